"""Record and replay: what a mechanism asked of one table, asked of its neighbours, on integers.

Each method runs once, and every exact sum that it asks for is recorded. The same sums of tables
that differ in one row (random, at the bounds, far beyond them, without numbers) must be no farther
apart than what the noise was scaled by, whatever holds the tables. No chance is involved.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dplinear.arguments import choice, integer
from dplinear.arrays import Floats
from dplinear.audit import row_replays
from dplinear.audit.holders import HOLDERS, Holder, names_of
from dplinear.coinpress.bounds import Bounds
from dplinear.coinpress.centred import CentredCovariance
from dplinear.coinpress.methods import CoinPressCovariance, CoinPressMean
from dplinear.coinpress.regression import CoinPressRegression
from dplinear.curator.passes import exact_sums, open_table
from dplinear.curator.sources import second_moments
from dplinear.descent.huber import HuberDescent
from dplinear.descent.logistic import LogisticDescent
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact.design import Design
from dplinear.exact.grid import shape_of
from dplinear.exact.row_sums import Count, RowSum
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ZCDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

RELATIONS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
HEADER = (
    *("mechanism", "source", "neighbours", "farthest sum"),
    *("declared", "largest change", "part", "verdict"),
)
_COLUMNS = 3
_BOUND = 5.0
_ROWS = 40
_BUDGET = ZCDP(2.0)
_EXAMPLES = ("array", "sparse")  # what learners in constraint sets take
_FEW = 3  # rows that come and go in an engine, where each pass takes long


class Asked(NamedTuple):
    """Sums that were asked of the table under one schema."""

    schema: Schema
    statistics: list[RowSum]


@dataclass(frozen=True)
class Replay:
    """What a mechanism declared, and how far neighbours of one source really were apart.

    `declared` and `seen` are of the sum that came nearest to its bound, `statistic`, in its units.
    """

    mechanism: str
    source: str
    neighbours: str
    statistic: str
    declared: float
    seen: float
    pairs: int

    @property
    def ratio(self) -> float:
        """What was seen, as a part of what is declared."""
        return self.seen / self.declared if self.declared else math.inf if self.seen else 0.0

    @property
    def broken(self) -> bool:
        """Whether a neighbour was farther away than the noise is made for."""
        return self.seen > self.declared


class _Recorder:
    """A table that remembers the sums that were asked of it."""

    def __init__(self, table: Any, schema: Schema, kept: list[Asked]) -> None:
        self._table, self._schema, self._kept = table, schema, kept

    def sums(self, statistics: Sequence[RowSum]) -> Any:
        self._kept.append(Asked(self._schema, list(statistics)))
        return self._table.sums(statistics)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


class _RecordedWindows:
    """A table looked at through windows, that remembers what was asked through each."""

    def __init__(self, windows: Any, kept: list[Asked]) -> None:
        self.low, self.high = windows.low, windows.high
        self._windows, self._kept = windows, kept

    def through(self, low: Floats, high: Floats) -> _Recorder:
        view = self._windows.through(low, high)
        return _Recorder(view, view.schema, self._kept)


Record = Callable[[Floats, Neighbours, list[Asked]], None]


def schema() -> Schema:
    """Return the public description of the tables that are replayed."""
    return Schema(dict.fromkeys(names_of(_COLUMNS), (-_BOUND, _BOUND)))


def _design() -> Design:
    described = schema()
    shape = shape_of(described)
    whole = shape.steps_per_unit**2
    size = _COLUMNS  # the constant, and all columns but the last
    flags = (False,) * size
    return Design(
        shape, tuple(range(size)), size, size * whole, whole, intercept=True, indicators=flags
    )


def _solver(kind: Any) -> Record:
    def record(rows: Floats, neighbours: Neighbours, kept: list[Asked]) -> None:
        prepared = kind(guarantee=_BUDGET, neighbours=neighbours).prepare(_design())
        table = _Recorder(open_table(rows, schema(), threads=1), schema(), kept)
        prepared.run(table, simulation.entropy(1))

    return record


def _search(kind: Any) -> Record:
    def record(rows: Floats, neighbours: Neighbours, kept: list[Asked]) -> None:
        from dplinear.curator.sources import open_reader
        from dplinear.curator.windows import Windowed

        def open_part(described: Schema) -> Any:
            return open_reader(rows, described, threads=1, again=True)

        prepared = kind(guarantee=_BUDGET, neighbours=neighbours).prepare(_COLUMNS)
        table = _RecordedWindows(Windowed(open_part, schema()), kept)
        prepared.run(table, simulation.entropy(1))

    return record


ADAPTIVE: dict[str, Record] = {
    "whitened_descent": _solver(WhitenedDescent),
    "huber_descent": _solver(HuberDescent),
    "logistic_descent": _solver(LogisticDescent),
    "coinpress": _solver(CoinPressRegression),
    "coinpress_mean": _search(CoinPressMean),
    "coinpress_covariance": _search(CoinPressCovariance),
    "centred_covariance": _search(CentredCovariance),
    "suggest_bounds": _search(Bounds),
}
MOMENTS = "second moments"  # of analyze_gauss, additive_wishart, sketch, inverse_wishart, adassp


def odd_rows(count: int, seed: int) -> Floats:
    """Return rows at the bounds, beyond them, without numbers, and random ones."""
    random = simulation.generator(seed)
    ends = random.choice([-_BOUND, _BOUND], (count, _COLUMNS))
    far = np.array([[1e300] * 3, [-np.inf] * 3, [np.nan] * 3, [np.nan, 1e300, -_BOUND], [0.0] * 3])
    drawn = random.normal(0, _BOUND, (count, _COLUMNS))
    return np.vstack((ends[:1], -ends[:1], far, ends[1:], drawn))[: 2 * count]


def pairs(neighbours: Neighbours, count: int, seed: int) -> list[tuple[Floats, Floats]]:
    """Return tables that differ in one row."""
    table = simulation.generator(seed).normal(0, 1, (_ROWS, _COLUMNS))
    rows = odd_rows(count, seed + 1)[:count]
    longer = [np.vstack((table, row)) for row in rows]
    if neighbours is Neighbours.ADD_REMOVE:
        return [(each, table) for each in longer]
    return [(longer[index], longer[index - 1]) for index in range(1, len(longer))]


def replay(
    sources: Sequence[str] | None = None, count: int = 12, seed: int = 1
) -> Iterator[Replay]:
    """Replay every mechanism on neighbours held by each source (by default all installed ones)."""
    count = integer(count, "count", "replay", low=2)  # of one row there is no other
    for source in sources or ():
        choice(source, "sources", "replay", [holder.name for holder in HOLDERS])
    recorded = {
        (name, relation): _record_sums(record, relation, seed)
        for name, record in ADAPTIVE.items()
        for relation in RELATIONS
    }
    for holder in HOLDERS:
        wanted = holder.installed if sources is None else holder.name in sources
        for relation in RELATIONS if wanted else ():
            tables = pairs(relation, _FEW if holder.slow else count, seed)
            with tempfile.TemporaryDirectory() as folder:
                yield _moments(holder, relation, tables, Path(folder))
                for name in ADAPTIVE:
                    asked = recorded[name, relation]
                    yield _sums(name, asked, holder, relation, tables, Path(folder))
                if holder.name in _EXAMPLES:
                    yield _line(
                        holder, row_replays.gradients(holder, tables, relation, Path(folder))
                    )
        if wanted:
            with tempfile.TemporaryDirectory() as folder:
                for line in row_replays.released_rows(holder, schema(), _BOUND, Path(folder)):
                    yield _line(holder, line)


def _line(holder: Holder, line: row_replays.Line) -> Replay:
    name, relation, statistic, declared, seen, count = line
    return Replay(name, holder.name, str(relation), statistic, declared, seen, count)


def _record_sums(record: Record, relation: Neighbours, seed: int) -> list[Asked]:
    """Return the sums that a run asked for, those under one schema together: one pass for all."""
    kept: list[Asked] = []
    record(simulation.generator(seed).normal(0, 1, (_ROWS, _COLUMNS)), relation, kept)
    merged: list[Asked] = []
    for one in kept:
        same = next((other for other in merged if other.schema == one.schema), None)
        if same is None:
            merged.append(Asked(one.schema, list(one.statistics)))
        else:
            same.statistics.extend(one.statistics)
    return merged


def _moments(
    holder: Holder, relation: Neighbours, tables: Sequence[tuple[Floats, Floats]], folder: Path
) -> Replay:
    shape = shape_of(schema())
    twice = 2 if relation is Neighbours.REPLACE else 1
    most = 0
    for pair in tables:
        one, other = (
            second_moments(holder.hold(rows, folder), schema(), threads=1).integers for rows in pair
        )
        most = max(most, int(((one - other) ** 2).sum()))
    found = row_replays.sizes(twice * shape.sensitivity**2, most, 1 / shape.unit)
    return Replay(MOMENTS, holder.name, str(relation), "XᵀX", *found, len(tables))


def _sums(  # noqa: PLR0917 - what was asked, of whom, and between which tables
    name: str,
    asked: Sequence[Asked],
    holder: Holder,
    relation: Neighbours,
    tables: Sequence[tuple[Floats, Floats]],
    folder: Path,
) -> Replay:
    """Ask again what was asked; return the sum that came nearest to its bound."""
    worst, found = Fraction(-1), ("", 0.0, 0.0)
    for pair in tables:
        for one in asked:
            first, second = (
                exact_sums(holder.hold(rows, folder), one.schema, one.statistics, threads=1)
                for rows in pair
            )
            for statistic, a, b in zip(one.statistics, first, second, strict=True):
                moved = int(((a - b) ** 2).sum())
                limit = statistic.sensitivity_squared(relation)
                part = Fraction(moved, limit) if limit else Fraction(2 * bool(moved))
                if isinstance(statistic, Count) and part <= 1:
                    continue  # each row is one row: that says nothing
                if part > worst:
                    sizes = row_replays.sizes(limit, moved, float(statistic.unit))
                    worst, found = part, (type(statistic).__name__, *sizes)
    return Replay(name, holder.name, str(relation), *found, len(tables))


def cells(result: Replay) -> tuple[str, ...]:
    """Return a line of the table."""
    return (
        *(result.mechanism, result.source, result.neighbours, result.statistic),
        *(f"{result.declared:.4g}", f"{result.seen:.4g}", f"{result.ratio:.3f}"),
        "BROKEN" if result.broken else "kept",
    )


def together(results: Sequence[Replay]) -> list[Replay]:
    """Return one line for all sources that say the same of a mechanism: mostly, all of them."""
    found: dict[Replay, list[str]] = {}
    for result in results:
        found.setdefault(replace(result, source="", pairs=0), []).append(result.source)
    named = [replace(line, source=", ".join(sources)) for line, sources in found.items()]
    order = {name: index for index, name in enumerate([MOMENTS, *ADAPTIVE])}
    last = len(order)
    return sorted(named, key=lambda line: (order.get(line.mechanism, last), line.neighbours))


def markdown(results: Sequence[Replay]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| " + " | ".join(HEADER) + " |"
    yield "|" + "---|" * len(HEADER)
    for result in results:
        yield "| " + " | ".join(cells(result)) + " |"


def main(given: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a declared sensitivity is not kept."""
    parser = argparse.ArgumentParser(prog="python -m dplinear.audit.replays", description=__doc__)
    known = [holder.name for holder in HOLDERS]
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help=", ".join(known))
    parser.add_argument("--pairs", type=int, default=12, help="pairs of tables for each line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", action="store_true", help="one line for equal sources")
    chosen = parser.parse_args(given)
    results = list(replay(chosen.sources or None, chosen.pairs, chosen.seed))
    shown = together(results) if chosen.together else results
    sys.stdout.write("\n".join(markdown(shown)) + "\n")
    return int(any(result.broken for result in results))


if __name__ == "__main__":
    sys.exit(main())
