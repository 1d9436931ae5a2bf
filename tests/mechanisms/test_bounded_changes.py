"""Bounded changes replayed through the real pass: neighbours' integers against what is declared.

A change is one of the cells as a table holds them. Each test reads pairs of rows that are such
neighbours (values beside the ties of whole numbers, at the ends, anywhere; cells that lose their
number) with the reader that every release of rows has, and compares integers. No chance decides.
"""

import datetime as dt
import itertools
import math
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from dplinear.curator.sources.ordered import open_rows
from dplinear.noise import simulation
from dplinear.privacy import Neighbours, PureDP
from dplinear.schema import Schema

from .projected import kept_places, numbers, prepared, reach, shape_of

PURE = PureDP(1.0)
ROOMS = {"type": "integer", "low": 0, "high": 10}
FLAGGED = {"type": "integer", "low": -3, "high": 9, "missing": 9, "missing_indicator": True}
DAY = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
SHORT = {"type": "date", "low": DAY, "high": DAY + dt.timedelta(seconds=40)}
LONG = {"type": "date", "low": "2020-01-01", "high": "2026-01-01"}
KINDS: dict[str, Any] = {
    "number": (0, 10),
    "away": {"type": "number", "low": 2, "high": 10, "missing": 3},
    "integer": ROOMS,
    "flagged": FLAGGED,
    "boolean": "boolean",
}


def read(schema: Schema, table: dict[str, Any]) -> np.ndarray:
    """Return the integer rows that a release of rows would see, shape (dimension, rows)."""
    held = pa.table({name: pa.array(cells) for name, cells in table.items()})
    with open_rows(held, schema, "tests", threads=1).through(np.copy) as blocks:
        return np.concatenate(list(blocks), axis=1)


def near_pairs(low: float, high: float, most: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return raw numbers that differ by no more than `most`, exactly: many beside ties."""
    random = simulation.generator(seed)
    ties = np.floor(random.uniform(low, high, 400)) + 0.5
    beside = ties + random.choice([0.0, 2.0**-40, -(2.0**-40), most / 2, -most / 2], 400)
    first = np.concatenate((beside, random.uniform(low, high, 200), [low, high, low - 1]))
    second = first + random.choice([most, -most, most / 3, most * (1 - 2.0**-50)], len(first))
    close = [
        abs(Fraction(a) - Fraction(b)) <= Fraction(most) for a, b in zip(first, second, strict=True)
    ]
    kept = np.flatnonzero(close)
    return first[kept], second[kept]


def declared_width(schema: Schema, change: float, *, missing_public: bool) -> Fraction:
    """Return the L1 distance of one cell's change that the noise of a 1-column table allows for."""
    made = prepared(
        schema,
        guarantee=PURE,
        k=1,
        projection="rademacher",
        noise="laplace",
        change=change,
        missing_public=missing_public,
    )
    return reach(made)


def spread(schema: Schema, rows: np.ndarray, count: int) -> int:
    """Return the largest L1 distance between the first rows and their neighbours, behind them."""
    own = rows[kept_places(schema)].astype(np.int64)
    return int(np.abs(own[:, :count] - own[:, count:]).sum(axis=0).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [0.004, 0.1, 0.2, 0.21, 0.75, 1.5])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("missing_public", [True, False])
def test_no_cell_moves_further_than_its_noise_allows(
    kind: str, change: float, intercept: bool, missing_public: bool
) -> None:
    schema = Schema({"x": KINDS[kind]}, intercept=intercept)
    feature = schema.features[kept_places(schema)[0]]
    column: Any = schema.declared["x"]
    most = float(Fraction(change) * feature.half_width * (1 - Fraction(1, 2**50)))
    first, second = near_pairs(float(column.low), float(column.high), most, 7)
    one, other = first.tolist(), second.tolist()
    if not missing_public:
        ends = [float(column.low), float(column.high), -1e300, 1e300, 4.4, 5.0]
        one, other = one + ends, other + [None] * len(ends)
    if kind == "boolean":  # which has no small changes: any for any other
        one, other = [*one, 0.0, -5.0], [*other, 1.0, 5.0]
    moved = spread(schema, read(schema, {"x": one + other}), len(one))
    assert moved <= declared_width(schema, change, missing_public=missing_public)


def test_a_whole_number_costs_one_unit_and_no_more() -> None:
    """Rooms from 0 to 10 that move by less than one room, or by one: read 1 or 2 apart."""
    schema = Schema({"x": ROOMS})
    unit = shape_of(schema).steps_per_unit / 5
    for change, units in ((0.004, 1), (0.19, 1), (0.2, 2), (0.3, 2), (0.4, 3)):
        allowed = declared_width(schema, change, missing_public=True)
        assert units * unit <= allowed <= units * unit + 9
    pair = read(schema, {"x": [4.49, 4.51]})[1]
    assert abs(pair[0] - pair[1]) == pytest.approx(unit, abs=1)


def test_a_cell_that_goes_missing_costs_the_way_to_its_constant() -> None:
    middle, end = (
        Schema({"x": {"type": "number", "low": 0, "high": 8, "missing": m}}) for m in (4, 8)
    )
    for schema, way in ((middle, 1), (end, 2)):
        cells = shape_of(schema).steps_per_unit
        allowed = declared_width(schema, 0.1, missing_public=False)
        assert way * cells <= allowed <= way * cells + 9
        assert declared_width(schema, 0.1, missing_public=True) <= 0.1 * cells + 9
        rows = read(schema, {"x": [0.0, None]})[1]
        assert abs(rows[0] - rows[1]) == way * cells


@pytest.mark.parametrize("declared", [SHORT, LONG])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_move_no_further_whatever_they_are_read_to(
    declared: dict[str, Any], unit: str
) -> None:
    """Forty seconds are a few steps to a microsecond: what reading rounds away is seen."""
    schema = Schema({"x": declared})
    feature = schema.features[1]
    change = 1e-7 if declared is SHORT else 0.01
    column: Any = schema.declared["x"]
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    most = math.floor(Fraction(change) * feature.half_width * 86_400 * ticks)
    low, high = (int(end * 86_400 * ticks) for end in (column.low, column.high))
    random = simulation.generator(3)
    first = random.integers(low, high, 1000)
    first = np.concatenate((first, first // 1000 * 1000, first // 1000 * 1000 - 1))
    second = first + random.choice([most, -most], len(first))
    both = pa.array(np.concatenate((first, second)), pa.int64()).cast(pa.timestamp(unit))
    moved = spread(schema, read(schema, {"x": both}), len(first))
    assert moved <= declared_width(schema, change, missing_public=True)


def test_times_that_numpy_holds_more_finely_are_read_to_the_second() -> None:
    schema = Schema({"x": {"type": "date", "low": "1970-01-01", "high": "1970-01-01T00:00:40"}})
    whole = np.arange(1, 39) * 10**12
    both = np.concatenate((whole - 1, whole)).view("datetime64[ps]")[:, None]
    with open_rows(both, schema, "tests", threads=1).through(np.copy) as blocks:
        rows = np.concatenate(list(blocks), axis=1)
    assert spread(schema, rows, len(whole)) <= declared_width(schema, 1e-7, missing_public=True)


@settings(max_examples=60, deadline=None)
@given(
    low=st.integers(-50, 50),
    width=st.integers(1, 40),
    missing=st.fractions(0, 1),
    change=st.floats(1e-4, 2.0),
    kind=st.sampled_from(["number", "integer"]),
    flag=st.booleans(),
    intercept=st.booleans(),
    missing_public=st.booleans(),
)
def test_any_declared_column_moves_no_further(
    low: int,
    width: int,
    missing: Fraction,
    change: float,
    kind: str,
    flag: bool,
    intercept: bool,
    missing_public: bool,
) -> None:
    constant = float(low + width * missing)
    constant = min(max(constant, low), low + width)
    column = {"type": kind, "low": low, "high": low + width, "missing": constant}
    schema = Schema({"x": column | {"missing_indicator": flag}}, intercept=intercept)
    half = schema.features[kept_places(schema)[0]].half_width
    most = float(Fraction(change) * half * (1 - Fraction(1, 2**50)))
    first, second = near_pairs(low, low + width, most, 1)
    one, other = first.tolist(), second.tolist()
    if not missing_public:
        one, other = [*one, low, low + width, -1e9], [*other, None, float("nan"), None]
    moved = spread(schema, read(schema, {"x": [*one, *other]}), len(one))
    assert moved <= declared_width(schema, change, missing_public=missing_public)


ROW = Schema({"x": (0, 4), "rooms": ROOMS, "yes": "boolean", "far": FLAGGED, "c": ["a", "b"]})


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("missing_public", [True, False])
def test_no_row_moves_further_than_its_noise_allows(order: int, missing_public: bool) -> None:
    """All cells of a row step over a tie at once; where they may, all go missing too."""
    change, random = 0.05, simulation.generator(order)
    names = ("x", "rooms", "yes", "far")
    half = [float(ROW.features[ROW.own_features(name)[0]].half_width) for name in names]
    directions = np.vstack((np.eye(4), random.standard_normal((60, 4))))
    directions *= 0.999 * change / np.linalg.norm(directions, order, axis=1)[:, None]
    ties = np.array([2.0, 4.5, 0.5, 3.5])
    first = ties - directions * half / 2
    second = ties + directions * half / 2
    cells = [np.vstack((first, second))[:, column].tolist() for column in range(4)]
    count = len(first)
    if not missing_public:
        ends, gaps = [[0.0, 10.0, 1.0, -3.0], [4.0, 0.0, 0.0, -3.0]], [[None] * 4] * 2
        cells = [
            [*mine[:count], *(end[i] for end in ends), *mine[count:], *(gap[i] for gap in gaps)]
            for i, mine in enumerate(cells)
        ]
        count += 2
    table = dict(zip(names, cells, strict=True)) | {"c": ["b"] * 2 * count}
    options: dict[str, Any] = {"change": change, "missing_public": missing_public}
    for noise in ("laplace", "perturbed"):
        made = prepared(
            ROW, guarantee=PURE, k=2, neighbours=f"row_l{order}", noise=noise, **options
        )
        rows = read(ROW, table)[kept_places(ROW)].astype(object)
        moves = (rows[:, :count] - rows[:, count:]).T
        if noise == "laplace":
            moves = moves @ made.projection.integers.astype(int).astype(object)
        assert max(sum(abs(m) for m in move) for move in moves.tolist()) <= reach(made)


@pytest.mark.parametrize("order", [1, 2])
def test_normal_noise_is_for_the_same_rows(order: int) -> None:
    """The Euclidean norms, of a row as it is and behind a matrix, for rows over ties."""
    from dplinear.mechanisms.cells.cell_moves import Bounded
    from dplinear.mechanisms.rows.row_changes import changes_of

    schema = Schema({f"r{i}": ROOMS for i in range(5)})
    relation = Neighbours.ROW_L1 if order == 1 else Neighbours.ROW_L2
    places, shape = tuple(kept_places(schema)), shape_of(schema)
    found = changes_of(schema, shape, relation, Bounded(0.01, missing_public=True), places, "tests")
    signs = np.array(list(itertools.product((1, -1), repeat=5)))
    first, second = 4.5 - 1e-6 * signs, 4.5 + 1e-6 * signs
    table = {f"r{i}": np.concatenate((first[:, i], second[:, i])) for i in range(5)}
    rows = read(schema, table)[list(places)]
    moves = (rows[:, : len(signs)] - rows[:, len(signs) :]).T
    matrix = np.rint(simulation.generator(2).normal(0, 1000, (5, 3)))
    assert np.linalg.norm(moves, axis=1).max() <= found.l2
    assert np.abs(moves).sum(axis=1).max() <= found.l1
    assert np.linalg.norm(moves @ matrix, axis=1).max() <= found.image_l2(matrix)
    assert np.abs(moves @ matrix).sum(axis=1).max() <= found.image_l1(matrix)
    assert np.linalg.norm(moves, axis=1).max() > 0.9 * found.l2
    whole = changes_of(schema, shape, Neighbours.ROW_L2, Bounded(), places, "tests")
    wide = changes_of(schema, shape, relation, Bounded(3.0), places, "tests")
    assert wide.l2 <= whole.l2
    assert wide.image_l2(matrix) <= whole.image_l2(matrix)


@pytest.mark.parametrize("relation", ["element", "row_l1", "row_l2"])
@pytest.mark.parametrize("missing_public", [True, False])
def test_a_label_is_hidden_for_what_its_own_cell_may_do(
    relation: str, missing_public: bool
) -> None:
    """Scale·ε is the width that is hidden, in the label's own units."""
    number = {"type": "number", "low": 0, "high": 4, "missing": 4}
    for declared, near in ((ROOMS, [(4.49, 4.51), (0.49, 0.51)]), (number, [(1.0, 1.001)])):
        schema = Schema({"x": (0, 1), "y": declared})
        made = prepared(
            schema,
            guarantee=PURE,
            k=1,
            label="y",
            neighbours=relation,
            change=0.004,
            missing_public=missing_public,
        )
        label: Any = made._label
        gaps = [] if missing_public else [(0.0, None), (10.0, None)]
        hidden = label.scale * label.epsilon
        for one, other in [*near, *gaps]:
            rows = read(schema, {"x": [0.5, 0.5], "y": [one, other]})[label.index]
            assert abs(rows[0] - rows[1]) <= hidden * (1 + 1e-12)


@pytest.mark.parametrize("relation", ["element", "row_l1", "row_l2"])
def test_a_certificate_says_what_neighbours_may_do(relation: str) -> None:
    options: dict[str, Any] = {"guarantee": PURE, "k": 2, "neighbours": relation, "change": 0.1}
    charged = prepared(ROW, **options)
    agreed = prepared(ROW, **options, missing_public=True)
    assert any("lose its number" in note for note in charged.account.notes)
    assert any("is public" in note for note in agreed.account.notes)
    for made in (charged, agreed):
        assert any("rounded" in note for note in made.account.notes)
    assert charged.parameters["missing_public"] is False
    assert agreed.parameters["missing_public"] is True
    assert charged.noise_model.variance >= agreed.noise_model.variance
    plain = prepared(numbers(2), **options, missing_public=True)
    assert not any("rounded" in note for note in plain.account.notes)


@pytest.mark.parametrize("bad", [{"missing_public": 1}, {"missing_public": True, "change": None}])
def test_what_is_said_of_missing_cells_is_checked(bad: dict[str, Any]) -> None:
    given: dict[str, Any] = {"guarantee": PURE, "k": 2, "change": 0.1} | bad
    with pytest.raises((TypeError, ValueError), match="'missing_public'"):
        prepared(numbers(2), **given)


def test_rows_of_derived_features_are_held_to_their_bound_on_the_integers() -> None:
    """A row that is longer than what was derived, however it came about, is shortened."""
    schema = Schema({"x": (0, 1), "c": ["a", "b"]}, derived=["x*c"])
    made = prepared(schema, guarantee=PURE, k=2, neighbours="row_l2", noise="laplace")
    shape, places = shape_of(schema), kept_places(schema)
    honest = read(schema, {"x": [1.0, 0.0, 1.0], "c": ["a", "b", "zzz"]})
    assert made._held.hold(honest) is honest
    broken = np.full((schema.dimension, 1), float(shape.steps_per_unit))
    assert 0 < (made._held.hold(broken)[places] ** 2).sum() <= 3 * shape.steps_per_unit**2


def test_a_product_that_overflows_makes_no_row_longer_than_its_noise_allows() -> None:
    """x¹⁶ is beyond float64 although x¹⁶·y³ is not: levels that the row does not hold are no 0."""
    columns = {"x": (0, 1e20), "y": (0, 1e-100), "c": list("abcdefgh")}
    schema = Schema(columns, derived=["x^16*y^3*c"])
    made = prepared(schema, guarantee=PURE, k=2, neighbours="row_l2", noise="laplace")
    cells = {"x": [0.0, 1e20, 1e20, 1e20], "y": [0.0, 1e-100, 0.0, 1e-100]}
    rows = made._held.hold(read(schema, cells | {"c": ["a", "b", "c", None]}))
    images = rows[kept_places(schema)].T @ made.projection.integers
    furthest = max(np.abs(a - b).sum() for a, b in itertools.combinations(images, 2))
    assert furthest <= reach(made)
