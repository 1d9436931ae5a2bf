"""`dpl.plan`: what a budget will buy, by every mechanism, from public facts alone.

Closed forms where there are any, and otherwise a table of simulated errors that the package
carries. Nothing is read, nothing is spent, and the same arguments give the same numbers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.optimize import brentq

from dplinear.analyst import notebook
from dplinear.arguments import choice, positive, rejection
from dplinear.planner.errors.locations import Covariance, Mean
from dplinear.planner.errors.logistic_errors import LogisticRegression
from dplinear.planner.errors.matrix_errors import Moments
from dplinear.planner.errors.principal_components import PrincipalComponents
from dplinear.planner.errors.row_distances import Distances
from dplinear.planner.facts import MOST_ROWS, WHERE, Facts, read_facts
from dplinear.planner.questions import Question, Refusal, is_exact
from dplinear.planner.regressions import Regression
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, Guarantee
from dplinear.schema import SchemaLike

QUESTIONS: dict[str, Question] = {
    each.name: each
    for each in (
        Regression(),
        Moments(),
        Mean(),
        Covariance(),
        PrincipalComponents(),
        LogisticRegression(),
        Distances(),
    )
}
HOPELESS = 0.9  # of the error of an answer that needs no data
_DEARER = 1.05  # times the error without privacy: below, nothing is said of the price
_AMOUNTS = (1e-3, 1e3)
PAGE_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
PAGE_ROWS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
PAGE_COLUMNS = (2, 5, 20, 100)
FLOATING = "Noise is drawn in floating point, so the guarantee is of the ideal mechanism only."
_STEPS = 100
_CLOSE = 1e-7


@dataclass(frozen=True)
class Line:
    """What to expect of one mechanism.

    `error` is the median over tables, and 90% of them are between `low` and `high`; `call` makes
    the release; `note` says what was assumed or extrapolated. What is not `exact` has a guarantee
    of the ideal mechanism only, and is never recommended.
    """

    mechanism: str
    call: str
    error: float
    low: float
    high: float
    note: str = ""
    exact: bool = True


@dataclass(frozen=True)
class Plan:
    """What each mechanism is expected to do, the best first; prints as a table.

    Mechanisms whose noise is drawn in floating point come behind all others, whatever their error.
    `measure` says in words what an error is, `floor` is the error without privacy. `refused` has,
    for each mechanism that cannot keep such a guarantee, the reason.
    """

    learn: str
    given: Facts = field(repr=False)
    measure: str
    lines: tuple[Line, ...]
    floor: float
    refused: tuple[tuple[str, Refusal], ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that was asked for."""
        return self.given.guarantee

    @property
    def recommended(self) -> Line:
        """The line to follow: the first, which is exact."""
        return self.lines[0]

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        best, *others = [line for line in self.lines if line.exact]
        said = f"{best.mechanism} is expected to have the least error, {_figure(best.error)}"
        if others:
            other = others[0]
            said += f"; {other.mechanism}, the next, has {_figure(other.error)}"
            if other.error < QUESTIONS[self.learn].alike * best.error:
                said = (
                    f"{best.mechanism} and {other.mechanism} are expected to be alike, at "
                    f"{_figure(best.error)} and {_figure(other.error)}, and the first is the usual"
                )
        if self.floor == 0:
            return f"{said}. Without privacy there would be none."
        price = best.error / self.floor
        if price * _DEARER < 1:  # a robust way, where cells are clamped to their bounds
            usual = f"The usual answer without privacy has {_figure(self.floor)}"
            return f"{said}. {usual}: heavy tails harm it more."
        less = f", {price:.3g} times less" if price > _DEARER else ""
        return f"{said}. Without privacy it would be {_figure(self.floor)}{less}."

    @property
    def worthwhile(self) -> bool:
        """Whether the best is much better than an answer that needs no data."""
        trivial = QUESTIONS[self.learn].trivial
        return trivial is None or self.recommended.error < HOPELESS * trivial

    def __getitem__(self, mechanism: str) -> Line:
        names = {line.mechanism: line for line in self.lines}
        return names[choice(mechanism, "mechanism", "Plan", names)]

    def budget_for(self, error: float, mechanism: str | None = None) -> float:
        """Return the least ε (ρ, μ or bits, as the plan's guarantee counts) for such an error.

        Requires: an error above that without privacy; a `mechanism` of the plan (None: the
        recommended one). δ, rows and all else stay as they are.
        """
        predicted = self._by(error, mechanism, "budget_for")
        low, high = _AMOUNTS
        found = _least(lambda amount: predicted(self.given.under(amount)), error, low, high)
        if found is None:
            raise self._unreachable(error, "budget_for", predicted(self.given.under(high)))
        return found

    def rows_for(self, error: float, mechanism: str | None = None) -> int:
        """Return the fewest rows that bring the error down to this, at the plan's budget.

        Requires: as for `budget_for`; that the error can be had by some number of rows.
        """
        predicted = self._by(error, mechanism, "rows_for")
        found = _least(
            lambda rows: predicted(self.given.resize(round(rows))), error, 1.0, float(MOST_ROWS)
        )
        if found is None:
            raise self._unreachable(error, "rows_for", predicted(self.given.resize(MOST_ROWS)))
        return round(found)  # the prediction, too, was of rounded rows

    def _by(self, error: float, mechanism: str | None, method: str) -> Callable[[Facts], float]:
        positive(error, "error", f"Plan.{method}")
        line = self.recommended if mechanism is None else self[mechanism]
        question = QUESTIONS[self.learn]
        return lambda facts: question.predict(line.mechanism, facts).error

    def _unreachable(self, error: float, method: str, least: float) -> ValueError:
        rule = f"above {_figure(least)}, the least that can be had so"
        hint = "more rows and a larger budget together lower it; another mechanism may, too."
        return rejection("error", f"Plan.{method}", rule, error, hint)

    def facts(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        facts = self.given
        return {
            "learn": self.learn,
            "measure": self.measure,
            "rows": facts.rows,
            "columns": facts.columns,
            "dimension": facts.dimension,
            "guarantee": str(facts.guarantee),
            "epsilon": getattr(facts.guarantee, "epsilon", None),
            "delta": getattr(facts.guarantee, "delta", None),
            "neighbours": str(facts.neighbours),
            "condition": facts.condition,
            "tails": facts.tails,
            "explained": facts.explained,
            "width": facts.width,
            "floor": self.floor,
            "recommended": self.recommended.mechanism,
            "reason": self.reason,
            "worthwhile": self.worthwhile,
            "lines": [dict(vars(line)) for line in self.lines],
            "refused": {name: str(why) for name, why in self.refused},
        }

    def __str__(self) -> str:
        heads = ["mechanism", "error", "90% of tables"]
        printed = [heads, *([line.mechanism, *_ends(line)] for line in self.lines)]
        printed.append(["without privacy", _figure(self.floor), ""])
        widths = [max(map(len, column)) for column in zip(*printed, strict=True)]
        rows = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in printed
        ]
        rule = "─" * len(rows[0])
        parts = [*self._above(), rule, rows[0], rule, *rows[1:], rule, *self._below()]
        return "\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [[line.mechanism, *_ends(line)] for line in self.lines]
        rows.append(["without privacy", _figure(self.floor), ""])
        title, under = self._above()
        shown = notebook.table(["mechanism", "error", "90% of tables"], rows, strong=0)
        return notebook.card(title, notebook.lines([under]), shown, notebook.lines(self._below()))

    def _above(self) -> list[str]:
        facts = self.given
        size = f"{facts.rows:,} rows, {facts.columns:,} column{'' if facts.columns == 1 else 's'}"
        return [
            f"Plan for {self.learn}: {size}",
            f"{facts.guarantee} ({facts.neighbours} neighbours)",
        ]

    def _below(self) -> list[str]:
        best = self.recommended
        said = [f"Error: {self.measure}.", self.reason, best.call]
        if not self.worthwhile:
            said.append("No mechanism can be expected to do much better than without any data.")
        notes = {line.note: line.mechanism for line in reversed(self.lines) if line.note}
        said += [f"{name}: {note}." for note, name in notes.items()]
        floating = [line.mechanism for line in self.lines if not line.exact]
        if floating:
            said.append(f"Not recommended: {', '.join(floating)}. {FLOATING}")
        said += [f"Left out: {name}. {why}" for name, why in self.refused]
        return said


def plan(
    expected_rows: float,
    columns: int | SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    bits: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str | None = None,
    learn: str = Regression.name,
    condition: float | None = None,
    tails: str | None = None,
    explained: float | None = None,
    width: float | None = None,
    components: int | None = None,
) -> Plan:
    """Predict the error of every mechanism that can answer a question, before a budget is spent.

    Requires: public figures only: `expected_rows`, their number or a guess of its order of
    magnitude; `columns`, the number of features or a Schema (with the target among its columns);
    the budget and `neighbours` as for a release; what to `learn`. What may be assumed of the table:
    the `condition` number of the features' covariance and "normal" or "heavy" `tails` (None: the
    plan covers all of them), the share of variance that the best line would have `explained` (half
    of it), the `width` of bounds in standard deviations (4), the number of principal `components`.
    Promises: nothing is read and nothing is spent; the same arguments give the same numbers.
    """
    question = QUESTIONS[choice(learn, "learn", WHERE, QUESTIONS)]
    facts = read_facts(
        expected_rows,
        columns,
        epsilon=epsilon,
        delta=delta,
        bits=bits,
        guarantee=guarantee,
        neighbours=question.relations[0] if neighbours is None else neighbours,
        allowed=question.relations,
        target=question.target,
        condition=condition,
        tails=tails,
        explained=explained,
        width=width,
        components=components,
    )
    refusals = {way: question.refusal(way, facts) for way in question.ways}
    refused = tuple((way, why) for way, why in refusals.items() if why is not None)
    able = [way for way, why in refusals.items() if why is None]
    if not any(map(is_exact, able)):
        own = refused[0][1].hint or "write epsilon=1.0, delta=1e-6."
        hint = question.elsewhere(facts) or own
        rule = "one that a mechanism for this can keep"
        raise rejection("guarantee", WHERE, rule, facts.guarantee, hint)
    return Plan(
        question.name,
        facts,
        question.measure,
        tuple(rank_lines(question, facts, able)),
        question.floor(facts),
        refused,
    )


def _line(question: Question, way: str, facts: Facts) -> Line:
    found = question.predict(way, facts)
    call = question.call(way, facts)
    return Line(way, call, found.error, found.low, found.high, found.note, is_exact(way))


def rank_lines(question: Question, facts: Facts, ways: Sequence[str]) -> list[Line]:
    """Return the lines, the least error first; where some are alike, the usual one first.

    Requires: a way that is exact. Those that are not come last.
    """
    lines = [_line(question, way, facts) for way in ways]
    ordered = sorted(lines, key=lambda line: (not line.exact, line.error))
    limit = question.alike * ordered[0].error
    alike = next(line for line in lines if line.exact and line.error <= limit)
    return [alike, *(line for line in ordered if line is not alike)]


def _least(
    function: Callable[[float], float], wanted: float, low: float, high: float
) -> float | None:
    """Return the least place at which a falling function is at most `wanted`; None if nowhere."""
    if function(high) > wanted:
        return None
    if function(low) <= wanted:
        return low

    def above(logarithm: float) -> float:
        return math.log(function(math.exp(logarithm)) / wanted)

    found = math.exp(brentq(above, math.log(low), math.log(high), xtol=_CLOSE, rtol=_CLOSE))
    for _ in range(_STEPS):  # to the side on which the goal is reached
        if function(found) <= wanted:
            break
        found *= 1 + _CLOSE
    return min(found, high)


def _ends(line: Line) -> list[str]:
    return [_figure(line.error), f"{_figure(line.low)} to {_figure(line.high)}"]


def _figure(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.3g}"


def unit_of(guarantee: Guarantee) -> str:
    """Return what `budget_for` counts in."""
    match guarantee:
        case ZCDP():
            return "ρ"
        case GDP():
            return "μ"
        case MIDP():
            return "bits"
        case _:
            return "ε"


def plan_table(
    learn: str = Regression.name, *, delta: float = 1e-6, condition: float = 100.0
) -> dict[str, Any]:
    """Return the errors of every mechanism over ε, rows and columns, as plain values for a page.

    Promises: `errors[mechanism][i][j][k]` is at `epsilon[i]`, `rows[j]` and `columns[k]`, and
    `floor[j][k]` the error without privacy; add_remove neighbours, normal tails, all else as
    `plan` has it.
    """
    question = QUESTIONS[choice(learn, "learn", "plan_table", QUESTIONS)]

    def facts(epsilon: float, rows: int, columns: int) -> Facts:
        return read_facts(
            rows,
            columns,
            epsilon=epsilon,
            delta=delta,
            neighbours=question.relations[0],
            allowed=question.relations,
            target=question.target,
            condition=condition,
            tails="normal",
        )

    whole = [[[facts(e, n, d) for d in PAGE_COLUMNS] for n in PAGE_ROWS] for e in PAGE_EPSILONS]
    ways = [way for way in question.ways if question.refusal(way, whole[0][0][0]) is None]
    return {
        "learn": question.name,
        "measure": question.measure,
        "delta": delta,
        "condition": condition,
        "trivial": question.trivial,
        "epsilon": list(PAGE_EPSILONS),
        "rows": list(PAGE_ROWS),
        "columns": list(PAGE_COLUMNS),
        "floor": [[_short(question.floor(one)) for one in row] for row in whole[0]],
        "errors": {
            way: [
                [[_short(question.predict(way, one).error) for one in row] for row in part]
                for part in whole
            ]
            for way in ways
        },
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")
