"""What to expect of a budget before it is spent, on simulated tables."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dplinear.arguments import choice, integer, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.exact.design import Design
from dplinear.exact.rows import Rows
from dplinear.mechanisms import checks
from dplinear.mechanisms.model import ModelMechanism
from dplinear.noise import simulation
from dplinear.planner.populations import WIDTH, Kind, Population, seed_of
from dplinear.planner.simulated import plain_design
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MODELS

_WHERE = "forecast"
_MODELS = MODELS["squared"]
FLOOR = "least_squares"  # without privacy: what no mechanism can be expected to beat
MOST_ROWS = 2_000_000
MOST_CELLS = 100_000_000  # 400 MB
_HOPELESS = 0.9  # an excess that leaves next to nothing of what can be explained

Fit = Callable[[Rows, int], Floats]


@dataclass(frozen=True)
class Expected:
    """What to expect of one mechanism.

    `excess` is the median of the excess risk over tables, as a share of the variance that the best
    line explains: 0 is the best line, 1 the mean of the target. 90% of tables are between `low`
    and `high`. `r_squared` is the median share of variance explained on new rows, `worse` the share
    of tables whose line is worse than the mean, `seconds` the median time of a fit in memory.
    `risks` has the excess on each table, in the same order for all mechanisms.
    """

    mechanism: str
    excess: float
    low: float
    high: float
    r_squared: float
    worse: float
    seconds: float = field(compare=False)
    risks: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True)
class Forecast:
    """What to expect of each mechanism; prints as a table, and `forecast[name]` is a line of it.

    `lines` has the mechanisms asked for, the best first, and then least squares without privacy.
    """

    rows: int
    kind: Kind
    guarantee: Guarantee
    neighbours: Neighbours
    tables: int
    lines: tuple[Expected, ...]

    @property
    def best(self) -> str:
        """The private mechanism with the least median excess, as `release_model` calls it."""
        return self.lines[0].mechanism

    def __getitem__(self, mechanism: str) -> Expected:
        names = {line.mechanism: line for line in self.lines}
        return names[choice(mechanism, "mechanism", "Forecast", names)]

    def __str__(self) -> str:
        heads = ["mechanism", "excess risk", "90% of tables", "R²", "worse than mean", "seconds"]
        printed = [heads, *(_table_row(line) for line in self.lines)]
        widths = [max(map(len, column)) for column in zip(*printed, strict=True)]
        rows = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in printed
        ]
        rule = "─" * len(rows[0])
        return "\n".join([*self._above(), rule, rows[0], rule, *rows[1:], rule, *self._below()])

    __repr__ = __str__

    def _above(self) -> list[str]:
        kind, held = self.kind, f"{self.guarantee} ({self.neighbours} neighbours)"
        assumed = (
            f"assumed: R² {kind.explained:g} at best, condition number {kind.condition:g}, "
            f"{kind.tails} tails, bounds at {kind.width:g} standard deviations"
        )
        size = f"{self.rows:,} rows, {kind.columns} columns"
        return [f"Forecast for {size}, from {self.tables} simulated tables", held, assumed]

    def _below(self) -> list[str]:
        notes = ["Excess risk: 0 is the best line, 1 the target's mean. Least squares: no privacy."]
        if self.lines[0].excess >= _HOPELESS:
            notes.append(
                "No mechanism can be expected to do much better than the mean on this budget."
            )
        return notes


def forecast(
    expected_rows: int,
    columns: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    explained: float = 0.5,
    condition: float = 1.0,
    tails: str = "normal",
    width: float = WIDTH,
    mechanisms: Sequence[str] | None = None,
    tables: int = 20,
    seed: int = 0,
) -> Forecast:
    """Predict the error of private regressions of such a table, by simulation.

    Requires: `expected_rows`, a public guess of their number (at most 2,000,000, and 100,000,000
    cells), and one of numeric feature `columns`; the budget and `neighbours` as for
    `release_model`; what is assumed of the table: the share of variance that the best line
    explains, the condition number of the features' covariance, "normal" or "heavy" `tails`, and how
    many of its standard deviations a column's bounds are from its mean (`width`, at least 1).
    `mechanisms` are names as for `release_model` (None: all).
    Promises: nothing private is read and nothing is spent. All mechanisms fit the same tables, each
    from a population of its own; the same arguments give the same numbers, but for the seconds.
    """
    kind = Kind(columns, explained, condition, tails, width).check(_WHERE)
    rows = _size(expected_rows, kind)
    relation = checks.relation(neighbours, _WHERE)
    asked = checks.read_guarantee(_WHERE, epsilon, delta, guarantee)
    tables = integer(tables, "tables", _WHERE, low=1)
    seed = integer(seed, "seed", _WHERE, low=0)
    fits = _fits(_choose(mechanisms), asked, relation, kind)
    found = {name: np.empty((tables, 2)) for name in fits}
    with threadpool_limits(1, "blas"):  # more threads only wait for each other over small matrices
        for table in range(tables):
            generator = simulation.generator(seed_of("table", seed, table))
            population = Population.draw(kind, generator)
            simulated = population.table(rows, generator)
            for name, fit in fits.items():
                start = time.perf_counter()
                line = fit(simulated, seed_of(name, seed, table))
                seconds = time.perf_counter() - start
                found[name][table] = population.excess(line), seconds
    floor = _summarise(FLOOR, found.pop(FLOOR), kind)
    lines = [_summarise(name, results, kind) for name, results in found.items()]
    lines.sort(key=lambda line: line.excess)
    return Forecast(rows, kind, asked, relation, tables, (*lines, floor))


def _size(rows: int, kind: Kind) -> int:
    rows = integer(rows, "expected_rows", _WHERE, low=1)
    most = min(MOST_ROWS, MOST_CELLS // (kind.columns + 2))
    if rows > most:
        rule = f"at most {most:,} for {kind.columns} columns, which are simulated in memory"
        hint = f"ask for {most:,}: with more rows the error is no larger."
        raise rejection("expected_rows", _WHERE, rule, rows, hint)
    return rows


def _choose(mechanisms: Any) -> Sequence[str]:
    if mechanisms is None:
        return tuple(_MODELS)
    if isinstance(mechanisms, str) or not isinstance(mechanisms, Sequence) or not mechanisms:
        raise wrong_type("mechanisms", _WHERE, "a list of at least one mechanism", mechanisms)
    return [choice(mechanism, "mechanisms", _WHERE, _MODELS) for mechanism in mechanisms]


def _fits(
    mechanisms: Sequence[str], guarantee: Guarantee, neighbours: Neighbours, kind: Kind
) -> Mapping[str, Fit]:
    """Return what fits a table by each mechanism, calibrated once, and by least squares."""
    design = plain_design(kind.columns)
    fits = {
        name: private_fit(_MODELS[name](guarantee=guarantee, neighbours=neighbours), design)
        for name in mechanisms
    }
    return {**fits, FLOOR: lambda rows, _: least_squares(rows, design)}


def private_fit(solver: ModelMechanism, design: Design) -> Fit:
    """Return a solver, calibrated for a design, as a function of rows and a seed."""
    prepared = solver.prepare(design)
    return lambda rows, seed: prepared.run(rows, simulation.entropy(seed)).coefficients


def least_squares(rows: Rows, design: Design) -> Floats:
    """Return the line of least squares, in cells; the shortest where there are several."""
    moments = rows.moments().integers.astype(float) / design.shape.unit
    features = list(design.features)
    gram, cross = moments[np.ix_(features, features)], moments[features, design.target]
    return np.asarray(np.linalg.lstsq(gram, cross, rcond=None)[0])


def _summarise(mechanism: str, results: Floats, kind: Kind) -> Expected:
    risks, seconds = results.T
    low, median, high = (float(value) for value in np.quantile(risks, [0.05, 0.5, 0.95]))
    return Expected(
        mechanism=mechanism,
        excess=median,
        low=low,
        high=high,
        r_squared=kind.explained * (1 - median),
        worse=float(np.mean(risks > 1)),
        seconds=float(np.median(seconds)),
        risks=tuple(risks.tolist()),
    )


def _table_row(line: Expected) -> list[str]:
    return [
        line.mechanism,
        f"{line.excess:.2g}",
        f"{line.low:.2g} to {line.high:.2g}",
        f"{line.r_squared:.3f}",
        f"{100 * line.worse:.0f}%",
        f"{line.seconds:.2g}",
    ]
