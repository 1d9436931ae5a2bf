"""Replays of groups and survey weights through real tables: no row changes another's integers.

Gates run once, and what they ask is recorded. Neighbours are then held by pandas, Polars, DuckDB,
files of text and of Parquet, SciPy and Dask, each in types of its own. The sums of a table with a
row more, or with all rows of a unit, less those of the table without them, are exactly the sums of
these rows alone, as an Arrow table: so the integers of all other rows are the same, bit for bit.
And no difference is beyond what is declared.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from audit import recording, split_recording
from audit.held_tables import HOLDS, Columns, arrow
from dplinear.exact.weights import WHOLE
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from exact.oracles import square
from rotation import TODAY

pytestmark = [pytest.mark.heavy, pytest.mark.engine]

NUMBERS = ("a", "b", "c")
WARD = {"type": "category", "levels": ["1", "2"], "other": "2"}
WEIGHT = ("w", 0, 20)
BUDGET = dpl.ZCDP(2.0)
K = 2
BOUND = 5.0
PAIRS = 1_000
# Each way: what of a schema it has, and its gate.
WAYS = [(what, kind) for what in ("groups", "weights") for kind in ("rows", "units")]
GATES = ("model", "mean")
OF_ROWS = (*GATES, "scores")  # which are not released by group


def schema_of(what: str, kind: str) -> Schema:
    columns: dict[str, Any] = dict.fromkeys(NUMBERS, (-BOUND, BOUND))
    columns |= {"ward": WARD} if what == "groups" else {}
    weight: Any = WEIGHT if what == "weights" else None
    return Schema(columns, weight=weight, unit="id" if kind == "units" else None)


def common(random: Any) -> list[tuple[float | None, ...]]:
    """Rows of people in groups, with weights, of whom some hold no number, or are nobody."""
    cells = random.normal(0, 1, (50, len(NUMBERS))).tolist()
    wards = random.choice([1, 2, 7, np.nan], 50).tolist()
    weights = random.lognormal(0, 1, 50).tolist()
    ids = random.choice([*range(1, 20), np.nan], 50).tolist()
    rows = zip(cells, wards, weights, ids, strict=True)
    return [_row(*own, ward, weight, person) for own, ward, weight, person in rows]


def _row(*cells: float) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(cell) else cell for cell in cells)


def newcomers(kind: str, count: int, random: Any) -> Iterator[list[tuple[float | None, ...]]]:
    """Return what one table has more: a row, or the rows of unit 99; those at the bounds first."""
    corner = (BOUND, BOUND, -BOUND)
    for number in range(count):
        rows = 1 if kind == "rows" else int(random.choice([1, K, 7, 300]))
        if number == 0:
            yield [(*corner, 1.0, 20.0, 99.0)] * rows
            continue
        cells = random.choice([-BOUND, BOUND, 0.0, 1e300, np.nan, -np.inf], (rows, 3)).tolist()
        wards = random.choice([1, 2, 7, np.nan], rows).tolist()
        weights = random.choice([0.0, 20.0, 20.1, -7.0, np.inf, np.nan, 0.3], rows).tolist()
        odd = zip(cells, wards, weights, strict=True)
        yield [_row(*own, ward, weight, 99.0) for own, ward, weight in odd]


def columns_of(rows: list[tuple[float | None, ...]], schema: Schema) -> Columns:
    names = (*NUMBERS, "ward", "w", "id")
    held = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return {name: held[name] for name in schema.read_columns}


class _Guess:
    """A model of others': it is called for one row at a time."""

    def predict(self, rows: Any) -> Any:
        return np.tanh(rows[:, 0]) * rows[:, 1] + 1 / 3


class Replay:
    """A gate that has run once, and the sums that it asked for."""

    def __init__(self, what: str, kind: str, gate: str, folder: Path) -> None:
        self.random = simulation.generator(TODAY)
        self.rows, self.folder = common(self.random), folder
        self.schema = schema_of(what, kind)
        given: dict[str, Any] = {"guarantee": BUDGET, "progress": False}
        given |= {"rows_per_unit": K} if kind == "units" else {}
        given |= {"by": "ward"} if what == "groups" else {}

        def run(data: Any, *_: Any) -> Any:
            if gate == "mean":
                return dpl.release_mean(data, self.schema, **given)
            if gate == "scores":
                return dpl.release_scores(_Guess(), data, self.schema, "c", **given)
            return dpl.release_model(data, self.schema, "c", **given)

        table = arrow(columns_of(self.rows, self.schema), self.random, folder)
        self._groups = what == "groups"
        self._of_groups = split_recording.recorded(lambda: run(table), 4) if self._groups else None
        self._of_rows = None if self._groups else recording.recorded(run, table, K, 4)
        self.whole = WHOLE if self.schema.is_weighted else 1

    def sums(self, rows: list[tuple[float | None, ...]], hold: Any) -> list[Any]:
        """Return all sums of a table that is held in some way, its rows in any order."""
        mixed = [rows[place] for place in self.random.permutation(len(rows))]
        if self._of_groups is not None:
            data = hold(columns_of(mixed, self.schema), self.random, self.folder)
            each = split_recording.ask_groups(self._of_groups, data, K)
            return [sums for group in each for sums in group]
        assert self._of_rows is not None
        data = hold(columns_of(mixed, self.schema), self.random, self.folder)
        return list(recording.ask_again(self._of_rows, data))

    def limits(self) -> list[int]:
        """Return the squares of what is declared, of each sum."""
        if self._of_groups is not None:
            asked = [query for group in self._of_groups.groups for _, query in group]
        else:
            assert self._of_rows is not None
            asked = [query for _, query in self._of_rows.asked]
        relation = Neighbours.ADD_REMOVE
        return [query.statistic.sensitivity_squared(relation) * self.whole**2 for query in asked]


def check(replay: Replay, kind: str, hold: Any, count: int) -> None:
    limits = replay.limits()
    before = replay.sums(replay.rows, hold)
    assert any(sums.any() for sums in before)
    for new in newcomers(kind, count, replay.random):
        after = replay.sums([*replay.rows, *new], hold)
        alone = replay.sums(new, arrow)
        for one, other, own, limit in zip(after, before, alone, limits, strict=True):
            assert (one - other == own).all()
            assert square(own) <= limit


def _gate(what: str, kind: str, name: str) -> str:
    """Return the gate of the day, so that each has its turn."""
    gates = _gates(what)
    return gates[(TODAY + len(what) + len(kind) + len(name)) % len(gates)]


def _gates(what: str) -> tuple[str, ...]:
    return GATES if what == "groups" else OF_ROWS


@pytest.mark.parametrize(("what", "kind"), WAYS)
@pytest.mark.parametrize("name", HOLDS)
def test_a_row_or_a_unit_changes_no_other_rows_integers(
    name: str, what: str, kind: str, tmp_path: Path
) -> None:
    """Two pairs, other ones every day."""
    check(Replay(what, kind, _gate(what, kind, name), tmp_path), kind, HOLDS[name], 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "kind", "gate"), [(*way, gate) for way in WAYS for gate in _gates(way[0])]
)
@pytest.mark.parametrize("name", HOLDS)
def test_none_of_a_thousand_does(
    name: str, what: str, kind: str, gate: str, tmp_path: Path
) -> None:
    """A thousand pairs for each of groups and weights, of rows and of units, in all tables."""
    shared = -(-PAIRS // (len(HOLDS) * len(GATES)))
    check(Replay(what, kind, gate, tmp_path), kind, HOLDS[name], shared)


def test_a_reader_that_looks_at_other_rows_is_caught(tmp_path: Path) -> None:
    """A frame whose numbers are rounded to a digit where any row is far beyond the bounds."""

    def careless(columns: Columns, random: Any, folder: Path) -> Any:
        far = any(abs(cell or 0) > 1e9 for name in NUMBERS for cell in columns[name])
        worse = {
            name: [None if c is None else round(c, 1) if far and np.isfinite(c) else c for c in own]
            if name in NUMBERS
            else own
            for name, own in columns.items()
        }
        return arrow(worse, random, folder)

    with pytest.raises(AssertionError):
        check(Replay("groups", "units", "model", tmp_path), "units", careless, 6)
