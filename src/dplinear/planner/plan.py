"""`dpl.plan`: what a budget will buy, by every mechanism, from public facts alone.

Closed forms where there are any, and otherwise a table of simulated errors that the package
carries. Nothing is read, nothing is spent, and the same arguments give the same numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dplinear.analyst import notebook
from dplinear.arguments import choice, positive, rejection
from dplinear.planner.errors.locations import Covariance, Mean
from dplinear.planner.errors.logistic_errors import LogisticRegression
from dplinear.planner.errors.matrix_errors import Moments
from dplinear.planner.errors.principal_components import PrincipalComponents
from dplinear.planner.errors.row_distances import Distances
from dplinear.planner.facts import MOST_ROWS, WHERE, Facts, read_facts
from dplinear.planner.lines import (
    Line,
    UnitLine,
    best_rows_per_unit,
    compare_rows_per_unit,
    rank_lines,
)
from dplinear.planner.questions import Question, Refusal, is_exact
from dplinear.planner.regressions import Regression
from dplinear.planner.search import least_reaching
from dplinear.planner.units import CORRELATIONS, read_units
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema, SchemaLike

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
UNIT_HEADS = ("rows_per_unit", "error", "noise", "sampling")
FLOATING = "Noise is drawn in floating point, so the guarantee is of the ideal mechanism only."


@dataclass(frozen=True)
class Plan:
    """What each mechanism is expected to do, the best first; prints as a table.

    Mechanisms whose noise is drawn in floating point come behind all others, whatever their error.
    `measure` says in words what an error is, `floor` is the error without privacy. `refused` has,
    for each mechanism that cannot keep such a guarantee, the reason. `by_rows_per_unit` has, where
    units have several rows, the best error for each number of them that may count; all else is for
    the number that was chosen, `rows_per_unit`.
    """

    learn: str
    given: Facts = field(repr=False)
    measure: str
    lines: tuple[Line, ...]
    floor: float
    refused: tuple[tuple[str, Refusal], ...] = ()
    by_rows_per_unit: tuple[UnitLine, ...] = ()
    beyond: Refusal | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that was asked for."""
        return self.given.guarantee

    @property
    def recommended(self) -> Line:
        """The line to follow: the first, which is exact.

        Raises: ValueError where nothing like the table was simulated.
        """
        if self.beyond is not None:
            rule = "about tables like those that were simulated"
            raise rejection("plan", "recommended", rule, self._above()[0], str(self.beyond))
        return self.lines[0]

    @property
    def rows_per_unit(self) -> int | None:
        """How many rows a unit should count as, at the most; None where no unit is planned for."""
        return None if self.given.units is None else self.given.units.rows_per_unit

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        if self.beyond is not None:
            return f"Nothing is recommended. {self.beyond}"
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
        usual = f"The usual answer without privacy has {_figure(self.floor)}"
        if price * _DEARER < 1:  # a robust way, where cells are clamped to their bounds
            return f"{said}. {usual}: heavy tails harm it more."
        less = f", {price:.3g} times less than {best.mechanism}" if price > _DEARER else ""
        return f"{said}. {usual}{less}."

    @property
    def worthwhile(self) -> bool:
        """Whether the best is much better than an answer that needs no data."""
        trivial = QUESTIONS[self.learn].trivial
        return trivial is None or self.lines[0].error < HOPELESS * trivial

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
        found = least_reaching(lambda amount: predicted(self.given.under(amount)), error, low, high)
        if found is None:
            raise self._unreachable(error, "budget_for", predicted(self.given.under(high)))
        return found

    def rows_for(self, error: float, mechanism: str | None = None) -> int:
        """Return the fewest rows that bring the error down to this, at the plan's budget.

        Requires: as for `budget_for`; that the error can be had by some number of rows.
        """
        predicted = self._by(error, mechanism, "rows_for")
        found = least_reaching(
            lambda rows: predicted(self.given.resize(round(rows))), error, 1.0, float(MOST_ROWS)
        )
        if found is None:
            raise self._unreachable(error, "rows_for", predicted(self.given.resize(MOST_ROWS)))
        return round(found)  # the prediction, too, was of rounded rows

    def _by(self, error: float, mechanism: str | None, method: str) -> Callable[[Facts], float]:
        positive(error, "error", f"Plan.{method}")
        line = self.lines[0] if mechanism is None else self[mechanism]
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
            "zero_one": facts.zero_one,
            "target_shape": facts.target_shape,
            "target_width": facts.target_width,
            "floor": self.floor,
            "recommended": None if self.beyond else self.recommended.mechanism,
            "reason": self.reason,
            "worthwhile": self.worthwhile,
            "lines": [dict(vars(line)) for line in self.lines],
            "refused": {name: str(why) for name, why in self.refused},
            "rows_per_unit": self.rows_per_unit,
            "by_rows_per_unit": [dict(vars(line)) for line in self.by_rows_per_unit],
        }

    def __str__(self) -> str:
        heads = ["mechanism", "error", "90% of tables"]
        lines = [[line.mechanism, *_ends(line)] for line in self.lines]
        lines.append(["without privacy", _figure(self.floor), ""])
        parts = [*self._above(), *_aligned([heads, *lines])]
        if len(self.by_rows_per_unit) > 1:
            parts += _aligned([list(UNIT_HEADS), *self.unit_rows()])[1:]
        return "\n".join([*parts, *self._below()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [[line.mechanism, *_ends(line)] for line in self.lines]
        rows.append(["without privacy", _figure(self.floor), ""])
        title, under = self._above()
        shown = notebook.table(["mechanism", "error", "90% of tables"], rows, strong=0)
        if len(self.by_rows_per_unit) > 1:
            shown += notebook.table(UNIT_HEADS, self.unit_rows())
        return notebook.card(title, notebook.lines([under]), shown, notebook.lines(self._below()))

    def unit_rows(self) -> list[list[str]]:
        """Return the lines of `by_rows_per_unit` as texts, below `UNIT_HEADS`."""
        return [
            [f"{line.rows_per_unit:,}", *map(_figure, (line.error, line.noise, line.sampling))]
            for line in self.by_rows_per_unit
        ]

    @property
    def unit_advice(self) -> str:
        """Which number of rows per unit to take, and why, in a sentence; empty without units."""
        units = self.given.units
        if units is None:
            return ""
        if units.sizes == (1,):
            return "Each unit is taken to have one row."
        best = next(
            line for line in self.by_rows_per_unit if line.rows_per_unit == self.rows_per_unit
        )
        if units.correlation is None:
            assumed = f"{CORRELATIONS[0]:g} to {CORRELATIONS[-1]:g} (you gave none)"
        else:
            assumed = f"{units.correlation:g}"
        said = f"Units of {units.mean:.3g} rows on average, correlated by {assumed}"
        if len(self.by_rows_per_unit) == 1:
            return f"{said}, count as at most {best.rows_per_unit:,} rows each."
        cause = (
            "more of them would add more noise than they take off the sampling error"
            if best.noise > best.sampling or best.rows_per_unit == 1
            else "fewer of them would give up more of the sample than they save in noise"
        )
        return f"{said}: take rows_per_unit={best.rows_per_unit}; {cause}."

    def _above(self) -> list[str]:
        facts = self.given
        size = f"{facts.rows:,} rows, {facts.columns:,} feature{'' if facts.columns == 1 else 's'}"
        return [
            f"Plan for {self.learn}: {size}",
            f"{facts.guarantee} ({facts.neighbours} neighbours)",
        ]

    def _below(self) -> list[str]:
        advice = [self.unit_advice] if self.unit_advice else []
        said = [f"Error: {self.measure}.", *advice, self.reason]
        said += [] if self.beyond else [self.recommended.call]
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
    zero_one: float | None = None,
    target_shape: str | None = None,
    target_width: float | None = None,
    components: int | None = None,
    rows_per_unit: int | Sequence[int] | str | None = None,
    rows_each: float | Sequence[float] | Mapping[int, float] | None = None,
    correlation: float | None = None,
) -> Plan:
    """Predict the error of every mechanism that can answer a question, before a budget is spent.

    Requires: public figures only: `expected_rows`, their number or a guess of its order of
    magnitude; `columns`, the number of features or a Schema (with the target among its columns);
    the budget and `neighbours` as for a release; what to `learn`. What may be assumed of the table:
    the share of variance that the best line would have `explained`; the share of `zero_one` columns
    (a schema tells of its categories); the `target_shape`: "even" (scores, logarithms), "skewed"
    (wages, prices), "counts" (visits, events) or "long" (costs, wealth); the `target_width`, the
    standard deviations from the middle of the target's bounds to each. What is left out may be
    anything, and the range is for all of it. `tails`, "normal" or "heavy", are of simulated tables
    only: rows and errors of one law, whose covariance has the `condition` number; without `tails`
    that is of correlations, and large where two columns say nearly the same. The `width` of
    all bounds in standard deviations (4); the number of principal `components`.
    Where people (units of privacy) have several rows: `rows_each`, how many, as a pair (low, high),
    a number, a list of several units' or a mapping of numbers to shares; the `correlation` of what
    two rows of a unit add to a sum (None: the plan covers small and large ones); `rows_per_unit`,
    one number, several to compare, or "auto". `expected_rows` counts all rows. With a schema that
    names a unit, `rows_each` is needed.
    Promises: nothing is read and nothing is spent; the same arguments give the same numbers.
    """
    question = QUESTIONS[choice(learn, "learn", WHERE, QUESTIONS)]
    named = isinstance(columns, Schema) and columns.unit is not None
    units, candidates = read_units(rows_per_unit, rows_each, correlation, named=named)
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
        zero_one=zero_one,
        target_shape=target_shape,
        target_width=target_width,
        components=components,
        units=units,
    )
    able, refused = _able_ways(question, facts)
    compared = compare_rows_per_unit(question, facts, able, candidates)
    if compared:
        facts = facts.per_unit(best_rows_per_unit(compared).rows_per_unit)
    return Plan(
        question.name,
        facts,
        question.measure,
        tuple(rank_lines(question, facts, able)),
        question.floor(facts),
        refused,
        compared,
        question.beyond(facts),
    )


def _able_ways(
    question: Question, facts: Facts
) -> tuple[list[str], tuple[tuple[str, Refusal], ...]]:
    """Return the ways that can keep the guarantee, and why the others cannot."""
    if facts.units is not None and Neighbours.ADD_REMOVE not in question.relations:
        rule = f"a question about sums where units are planned for; {question.name} is of rows"
        raise rejection("learn", WHERE, rule, question.name)
    refusals = {way: question.refusal(way, facts) for way in question.ways}
    refused = tuple((way, why) for way, why in refusals.items() if why is not None)
    able = [way for way, why in refusals.items() if why is None]
    if not any(map(is_exact, able)):
        own = refused[0][1].hint or "write epsilon=1.0, delta=1e-6."
        hint = question.elsewhere(facts) or own
        rule = "one that a mechanism for this can keep"
        raise rejection("guarantee", WHERE, rule, facts.guarantee, hint)
    return able, refused


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as text, its heads between rules."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in lines
    ]
    rule = "─" * len(rows[0])
    return [rule, rows[0], rule, *rows[1:], rule]


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
