"""Record and replay where cells are filled in: no row moves matrix and counts too far together.

Tables that differ by one row, or by all rows of a unit, with any gaps, are read by the exact pass
through several libraries, in other types each. What they are apart, on the integers that noise is
added to, must be within what the noise is made for; and the worst of them must come near it.
"""

import csv
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dplinear as dpl
from audit.gapped_tables import FRAMES, NAMES, Hold, Row, arrow
from audit.recording import Gate, ask_again, recorded
from dplinear.curator.gates.measured import filled_relief, prepare_measured, side_names
from dplinear.curator.sources import second_moments
from dplinear.exact.filling import relief
from dplinear.exact.grid import Grid
from dplinear.exact.row_sums import FilledIn
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms import AnalyzeGauss
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from exact.oracles import square
from rotation import TODAY

pytestmark = pytest.mark.heavy

BOUND = 5.0
K = 3
ADD, REPLACE = "add_remove", "replace"
UNITS, OTHERS = "units", "other units"
WAYS = (ADD, REPLACE, UNITS, OTHERS)
LOW = {"type": "number", "low": -BOUND, "high": BOUND, "missing": -BOUND}
MIDDLE = Schema(dict.fromkeys(NAMES, (-BOUND, BOUND)), derived=["a*b"])
MIXED = Schema({"a": (-BOUND, BOUND), "b": LOW, "c": (-BOUND, BOUND)}, derived=["b*c"])
SHORT = Schema(dict.fromkeys(NAMES, (-BOUND, BOUND)), row_norm=1.2)
SCHEMAS = {"middle": MIDDLE, "mixed": MIXED, "short": SHORT}
BUDGET = dpl.ZCDP(2.0)


def of_units(way: str) -> bool:
    return way in {UNITS, OTHERS}


def relation(way: str) -> Neighbours:
    return Neighbours.REPLACE if way in {REPLACE, OTHERS} else Neighbours.ADD_REMOVE


def common(seed: int) -> tuple[list[Row], list[str]]:
    random = simulation.generator(seed)
    cells = random.normal(0, 1, (60, len(NAMES)))
    gaps = random.uniform(size=cells.shape) < 0.2
    pairs = zip(cells.tolist(), gaps.tolist(), strict=True)
    rows = [tuple(None if gap else cell for cell, gap in zip(*row, strict=True)) for row in pairs]
    return rows, [f"p{unit}" for unit in random.integers(0, 25, len(rows)).tolist()]


def row(random: Any) -> Row:
    corner = random.choice([-BOUND, BOUND], len(NAMES)).tolist()
    gaps = random.uniform(size=len(NAMES)) < random.choice([0.0, 0.5, 1.0])
    return tuple(None if gap else cell for gap, cell in zip(gaps, corner, strict=True))


def pairs(way: str, count: int, seed: int) -> Iterator[tuple[list[Row], list[Row]]]:
    random, up = simulation.generator(seed), BOUND
    whole, none, half = (up, up, up), (None, None, None), (None, up, up)
    worst: dict[str, list[Any]] = {
        ADD: [([whole], []), ([none], []), ([half], [])],
        REPLACE: [([whole], [(-up, up, -up)]), ([whole], [none]), ([half], [(up, None, -up)])],
        UNITS: [([whole] * 9, []), ([none] * 9, []), ([whole] * 5 + [none] * 4, [])],
        OTHERS: [([whole] * 9, [none] * 40), ([half] * 9, [(up, None, -up)] * 3)],
    }
    yield from worst[way]
    for _ in range(count - len(worst[way])):
        sizes = random.choice([0, 1, K, K + 1, 40] if of_units(way) else [1], 2)
        one, other = ([row(random) for _ in range(size)] for size in sizes.tolist())
        yield one, other if relation(way) is Neighbours.REPLACE else []


def tables(way: str, count: int, seed: int, holds: list[Hold]) -> Iterator[tuple[Any, Any]]:
    random, (rows, ids) = simulation.generator(seed), common(seed)
    for ones, others in pairs(way, count, seed + 1):
        both = []
        for more in (ones, others):
            order = random.permutation(len(rows) + len(more))
            every, names = [*rows, *more], [*ids, *["new"] * len(more)]
            mixed = [every[place] for place in order], [names[place] for place in order]
            both.append(holds[int(random.integers(len(holds)))](*mixed, random))
        yield both[0], both[1]


def check_moments(schema: Schema, way: str, count: int, seed: int, holds: list[Hold]) -> float:
    """Return the largest distance of matrix and counts together, as a part of what is paid for."""
    schema = schema.with_unit("id") if of_units(way) else schema
    method = AnalyzeGauss(guarantee=BUDGET, neighbours=relation(way))
    ready: Any = prepare_measured(method, schema)
    k, whole = (K, WHOLE) if of_units(way) else (1, 1)
    assert len(filled_relief(schema)) == len(side_names(schema)) == len(ready.filled_scales)
    limit = Fraction(ready.account.profile.mu) ** 2 * Fraction(ready.variance)
    most = Fraction(0)
    for pair in tables(way, count, seed, holds):
        one, other = (
            second_moments(data, schema, rows_per_unit=k, threads=1, progress=False)
            for data in pair
        )
        moved = Fraction(square((one.integers - other.integers).ravel()), 4**ready.step)
        for a, b, scale in zip(one.filled, other.filled, ready.filled_scales, strict=True):
            moved += (Fraction(a - b, whole) * scale) ** 2
        most = max(most, moved / limit)
        assert most <= 1
    return math.sqrt(most)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_no_row_moves_moments_and_counts_too_far_together(name: str, way: str) -> None:
    reached = check_moments(SCHEMAS[name], way, 12, TODAY, [arrow])
    assert reached > (0.9 if relation(way) is Neighbours.ADD_REMOVE else 0.5), TODAY


@pytest.mark.engine
@pytest.mark.parametrize("way", WAYS)
def test_nor_does_it_in_tables_of_pandas_polars_and_duckdb(way: str) -> None:
    check_moments(MIXED, way, 8, TODAY, list(FRAMES.values()))


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_none_of_many_pairs_is_too_far_apart(name: str, way: str) -> None:
    check_moments(SCHEMAS[name], way, 100, 17, [arrow, *FRAMES.values()])


def written(rows: Any, folder: Path, name: str) -> Path:
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([NAMES, *(["" if cell is None else cell for cell in row] for row in rows)])
    return folder / name


@pytest.mark.parametrize("kind", ["csv", "sparse"])
def test_files_and_sparse_matrices_move_counts_as_much(kind: str, tmp_path: Path) -> None:
    rows, _ = common(TODAY)
    none: Row = (None,) * len(NAMES)
    found = []
    for index, held in enumerate((rows, [*rows, none])):
        if kind == "csv":
            data: Any = written(held, tmp_path, f"{index}.csv")
        else:
            data = sparse.csr_array(np.array(held, float))
        found.append(second_moments(data, MIDDLE, threads=1, progress=False).filled)
    assert [b - a for a, b in zip(*found, strict=True)] == [1, 1, 1]
    assert list(found[0]) == [sum(row[place] is None for row in rows) for place in range(3)]


def model(way: str, **choice: Any) -> Gate:
    schema = MIXED.with_unit("id") if of_units(way) else MIXED
    schema = Schema(dict(schema.to_dict()["columns"]) | {"a": LOW}, unit=schema.unit)
    given: dict[str, Any] = {"neighbours": str(relation(way)), "guarantee": BUDGET}
    given |= {"rows_per_unit": K} if of_units(way) else {}
    return lambda data, *_: dpl.release_model(data, schema, "c", progress=False, **choice, **given)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "choice",
    [{"mechanism": "whitened_descent"}, {"mechanism": "coinpress"}, {"loss": "huber"},
     {"loss": "logistic"}],
)  # fmt: skip
def test_no_row_moves_the_counts_of_a_model_too_far(choice: dict[str, str], way: str) -> None:
    """The worst row, without any cell but the target, moves them by all that is paid for."""
    record = recorded(model(way, **choice), arrow(*common(3), simulation.generator(1)), K, 5)
    places = [p for p, (_, q) in enumerate(record.asked) if isinstance(q.statistic, FilledIn)]
    assert len(places) == 1
    query = record.asked[places[0]][1]
    assert query.share == Fraction(8, 1000)
    whole = WHOLE if of_units(way) else 1
    limit = query.statistic.sensitivity_squared(relation(way)) * whole**2
    assert limit == 2 * whole**2
    rows, ids = common(TODAY)
    copies = 40 if of_units(way) else 1
    gap: list[Row] = [(None, None, 1.0)] * copies
    full: list[Row] = [(1.0, 1.0, 1.0)] * copies if relation(way) is Neighbours.REPLACE else []
    random = simulation.generator(2)
    one, other = (
        ask_again(record, arrow([*rows, *more], [*ids, *["new"] * len(more)], random))[places[0]]
        for more in (gap, full)
    )
    moved = Fraction(square(one - other), limit)
    assert Fraction(98, 100) < moved <= 1


def test_rows_that_are_longer_than_their_gaps_allow_are_shortened() -> None:
    """As if a filled cell were not the constant that it should be: planted in the block itself."""
    from dplinear.exact.filling import hold_relief

    grid = Grid.of(MIDDLE)
    shorter = relief(MIDDLE, grid)
    rows = np.full((5, 4), float(grid.steps_per_unit))
    gaps = np.array([[True, False, True, False]] * 3)
    before = rows.copy()
    hold_relief(grid, rows, gaps, shorter)
    assert (rows[:, 1::2] == before[:, 1::2]).all()
    most = grid.sensitivity - int(shorter.sum())
    assert (np.square(rows[:, ::2]).sum(axis=0) <= most).all()
