"""Record and replay where rows are left out: none moves a sum farther than is declared.

Every gate runs once on a table with gaps, and all it asks is recorded. The same sums of tables that
differ by one row, or by all rows of a unit (whole, with gaps, or all gaps; a row may lose or get
its numbers), must be no farther apart than the noise is made for, on integers; and the worst of
them must come within 1% of that. Neighbours are held by pandas, Polars and DuckDB, each in other
types.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from audit.gapped_tables import FRAMES, NAMES, Hold, Row, arrow
from audit.recording import Gate, Record, ask_again, recorded
from dplinear.adaptive.noisy_sums import VARIANCE, _Noise, _scale
from dplinear.curator.passes import open_table
from dplinear.curator.sources import second_moments
from dplinear.exact.grid import moments_shape
from dplinear.exact.row_sums import Count, LeftOut
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms.moments.eigenvalues import least_units
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from exact.oracles import square
from rotation import TODAY

pytestmark = pytest.mark.heavy

BOUND = 5.0
NEEDED = {"type": "number", "low": -BOUND, "high": BOUND, "missing": "leave_out"}
# Moments fill in what stands for a gap of b; models leave its row out, too.
SCHEMA = Schema({"a": NEEDED, "b": (-BOUND, BOUND), "c": NEEDED}, derived=["a*b", "b*c"])
PLAIN = Schema(dict.fromkeys(NAMES, NEEDED))
BUDGET = dpl.ZCDP(2.0)
PAIRS = 1_000
K = 3
UNITS, OTHERS = "units", "other units"  # all rows of a unit come or go, or become any others
WAYS = ("add_remove", "replace", UNITS, OTHERS)
Pair = tuple[list[Row], list[Row]]


def _own(schema: Schema, way: str) -> dict[str, Any]:
    own: dict[str, Any] = {"schema": schema, "neighbours": str(relation(way))}
    if of_units(way):
        own |= {"schema": schema.with_unit("id"), "rows_per_unit": K}
    return own


def of_units(way: str) -> bool:
    return way in {UNITS, OTHERS}


def relation(way: str) -> Neighbours:
    return Neighbours.REPLACE if way in {"replace", OTHERS} else Neighbours.ADD_REMOVE


def _model(way: str, **choice: Any) -> Gate:
    features = ["a", "b", "a*b"]
    given: dict[str, Any] = {
        "target": "c",
        "features": features,
        "guarantee": BUDGET,
        "progress": False,
    }
    return lambda data, *_: dpl.release_model(data, **given, **choice, **_own(SCHEMA, way))


def _bounds(way: str) -> Gate:
    given = _own(PLAIN, way)
    given |= {"unit": given.pop("schema").unit, "within": dict.fromkeys(NAMES, NEEDED)}
    return lambda data, *_: dpl.suggest_bounds(data, NAMES, guarantee=BUDGET, **given)


def gate(name: str, way: str) -> Gate:
    if name == "bounds":
        return _bounds(way)
    if name in {"mean", "covariance"}:
        release = dpl.release_mean if name == "mean" else dpl.release_covariance
        return lambda data, *_: release(data, guarantee=BUDGET, **_own(PLAIN, way))
    if name in {"huber", "logistic"}:
        return _model(way, loss=name)
    return _model(way, mechanism=name)


COUNTED = ("whitened_descent", "huber", "logistic", "coinpress")
SEARCHES = ("mean", "covariance", "bounds")
CASES = [(name, way) for name in ("moments", "adassp", *COUNTED, *SEARCHES) for way in WAYS]


def common(seed: int) -> tuple[list[Row], list[str]]:
    """Rows of people, one in five of them with a gap, and their ids."""
    random = simulation.generator(seed)
    cells = random.normal(0, 1, (60, len(NAMES)))
    gaps = random.uniform(size=cells.shape) < 0.07
    pairs = zip(cells.tolist(), gaps.tolist(), strict=True)
    rows = [tuple(None if gap else cell for cell, gap in zip(*row, strict=True)) for row in pairs]
    return rows, [f"p{unit}" for unit in random.integers(0, 25, len(rows)).tolist()]


def _row(random: Any) -> Row:
    """A row as bad as may be: at the bounds, beyond them, with gaps, or without a number."""
    corner = random.choice([-BOUND, BOUND], len(NAMES)).tolist()
    gaps = random.uniform(size=len(NAMES)) < 0.5
    kinds: list[list[float | None]] = [
        corner,
        [None if gap else cell for gap, cell in zip(gaps, corner, strict=True)],
        [None] * len(NAMES),
        random.choice([1e300, -math.inf, math.inf, BOUND, 0.0], len(NAMES)).tolist(),
        random.normal(0, BOUND, len(NAMES)).tolist(),
        [corner[0], corner[1], None],
    ]
    return tuple(kinds[random.integers(len(kinds))])


def pairs(way: str, count: int, seed: int) -> Iterator[Pair]:
    """Return rows that one table has, and the other has instead: the worst ones first."""
    random, up = simulation.generator(seed), BOUND
    whole: Row = (up, up, up)
    gap: Row = (up, up, None)
    far: list[Row] = [(-up, -up, -up), (up, -up, up), (up, up, -up), gap, (None, None, None)]
    worst: dict[str, list[Pair]] = {
        "add_remove": [([whole], []), ([gap], [])],
        "replace": [([whole], [other]) for other in far],
        # Rows that are left out are none of a unit's: those that are left count in full.
        UNITS: [([whole] * K + [gap] * 7, []), ([whole] + [gap] * 900, []), ([gap] * 9, [])],
        OTHERS: [([whole] * K + [gap] * 7, [other] * 900) for other in far],
    }
    yield from worst[way]
    for _ in range(count - len(worst[way])):
        sizes = random.choice([0, 1, K - 1, K, K + 1, 40, 300] if of_units(way) else [1], 2)
        one, other = ([_row(random) for _ in range(size)] for size in sizes.tolist())
        yield one, other if relation(way) is Neighbours.REPLACE else []


def tables(way: str, count: int, seed: int, holds: Sequence[Hold]) -> Iterator[tuple[Any, Any]]:
    """Return neighbours, each table in types, a library and an order of rows of its own."""
    random, (rows, ids) = simulation.generator(seed), common(seed)
    for ones, others in pairs(way, count, seed + 1):
        both = []
        for more in (ones, others):
            order = random.permutation(len(rows) + len(more))
            every, names = [*rows, *more], [*ids, *["new"] * len(more)]
            mixed = [every[place] for place in order], [names[place] for place in order]
            both.append(holds[int(random.integers(len(holds)))](*mixed, random))
        yield both[0], both[1]


def check_sums(name: str, way: str, count: int, seed: int, holds: Sequence[Hold]) -> float:
    """Return how far neighbours were apart in one sum at most, as a part of what is declared."""
    record = recorded(gate(name, way), arrow(*common(seed), simulation.generator(1)), K, seed)
    assert record.budget is not None
    weights = WHOLE if of_units(way) else 1
    queries = [query for _, query in record.asked]
    scales = [_Noise.of(query, record.budget, weights).scale for query in queries]
    limits = [q.statistic.sensitivity_squared(relation(way)) * weights**2 for q in queries]
    reached: dict[bool, Fraction] = {}
    for one, other in tables(way, count, seed, holds):
        spent = Fraction(0)
        moves = zip(ask_again(record, one), ask_again(record, other), strict=True)
        for query, scale, limit, (a, b) in zip(queries, scales, limits, moves, strict=True):
            part = Fraction(square(a - b), limit)
            assert part <= 1, (type(query.statistic).__name__, float(part))
            counts = isinstance(query.statistic, Count | LeftOut)
            reached[counts] = max(reached.get(counts, part), part)
            assert scale is not None  # nothing is public of rows that may be left out
            spent += square(_scale(a, scale) - _scale(b, scale))
        assert spent / VARIANCE <= record.budget.square
    assert reached[True] > Fraction(99, 100)
    return math.sqrt(reached[False])


def check_moments(way: str, count: int, seed: int, holds: Sequence[Hold]) -> float:
    given = _own(SCHEMA, way)
    schema, k = given["schema"], given.get("rows_per_unit", 1)
    limit = moments_shape(schema).sensitivity ** 2 * (
        2 if relation(way) is Neighbours.REPLACE else 1
    )
    most = 0
    for pair in tables(way, count, seed, holds):
        one, other = (
            second_moments(data, schema, rows_per_unit=k, threads=1, progress=False).integers
            for data in pair
        )
        most = max(most, square((one - other).ravel()))
        assert most <= limit
    return math.sqrt(Fraction(most, limit))


def check_adassp(way: str, count: int, seed: int, holds: Sequence[Hold]) -> float:
    """Hold all parts together to the distance that the noise is made for."""
    record = recorded(gate("adassp", way), arrow(*common(seed), simulation.generator(1)), K, seed)
    ready, schema = record.adassp, record_schema(way)
    assert ready is not None
    used, coarse = list(ready.design.features), 1 << 2 * ready.distance.step
    limits, variances = ready.distance.squares, ready.variances
    k, part = K if of_units(way) else 1, ready.design.of_rows()

    def parts(data: Any) -> list[Any]:
        opened = open_table(data, schema, rows_per_unit=k, threads=1, progress=False)
        matrix = opened.bounded_moments(part)
        gram = matrix[np.ix_(used, used)]
        least = least_units(gram, ready.design.feature_square)
        return [np.array([least], object), gram.ravel(), matrix[used, ready.design.target]]

    most = [Fraction(0)] * 3
    for one, other in tables(way, count, seed, holds):
        moved = [square(a - b) for a, b in zip(parts(one), parts(other), strict=True)]
        exact = [Fraction(moved[0]), Fraction(moved[1], coarse), Fraction(moved[2], coarse)]
        seen = [a / limit for a, limit in zip(exact, limits, strict=True)]
        assert max(seen) <= 1
        together = sum(a / variance for a, variance in zip(exact, variances, strict=True))
        assert together <= ready.distance.squared_distance(variances)
        most = [max(both) for both in zip(most, seen, strict=True)]
    return math.sqrt(min(most[1:]))


def record_schema(way: str) -> Schema:
    """Return what a model makes of the schema: the part that it needs, of complete rows."""
    whole: Schema = _own(SCHEMA, way)["schema"]
    return whole.select(["a", "b", "a*b", "c"]).leaving_out()


def check(name: str, way: str, count: int, seed: int, holds: Sequence[Hold]) -> float:
    if name == "moments":
        return check_moments(way, count, seed, holds)
    if name == "adassp":
        return check_adassp(way, count, seed, holds)
    return check_sums(name, way, count, seed, holds)


@pytest.mark.parametrize(("name", "way"), CASES)
def test_no_row_that_is_left_out_moves_a_release_too_far(name: str, way: str) -> None:
    """A few pairs, other ones every day."""
    assert check(name, way, 6, TODAY, [arrow]) > 0.99, TODAY


@pytest.mark.engine
@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
def test_nor_does_it_in_tables_of_pandas_polars_and_duckdb(name: str) -> None:
    ways = [way for other, way in CASES if other == name]
    assert check(name, ways[TODAY % len(ways)], 6, TODAY, list(FRAMES.values())) > 0.99, TODAY


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize(("name", "way"), CASES)
def test_none_of_a_thousand_pairs_is_too_far_apart(name: str, way: str) -> None:
    """A thousand for each gate, shared by its neighbours."""
    shared = sum(other == name for other, _ in CASES)
    assert check(name, way, -(-PAIRS // shared), 17, list(FRAMES.values())) > 0.99


@pytest.mark.parametrize("way", ["add_remove", "replace"])
@pytest.mark.parametrize("name", COUNTED)
def test_queries_of_tables_with_gaps_depend_on_earlier_answers_alone(name: str, way: str) -> None:
    """Another table, with other gaps, that gave the same answers."""
    random = simulation.generator(3)
    first = recorded(gate(name, way), arrow(*common(5), random), K, 6)
    rows, ids = common(9)
    gapped = [(*row[:2], None) if place % 3 else row for place, row in enumerate(rows)]
    again = recorded(gate(name, way), arrow(gapped, ids, random), K, 8, script=first.answers)
    assert _spelled(again) == _spelled(first)


def _spelled(record: Record) -> list[Any]:
    return [
        (schema.to_dict(), query.share, *map(_fact, sorted(vars(query.statistic).items())))
        for schema, query in record.asked
    ]


def _fact(named: tuple[str, Any]) -> tuple[str, Any]:
    name, fact = named
    return name, fact.tobytes() if isinstance(fact, np.ndarray) else fact
