"""Neighbours replayed on integers: no pair is further apart than what the noise is scaled by."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.mechanisms.cells import cell_moves
from dplinear.mechanisms.cells.cell_moves import Bounded
from dplinear.mechanisms.rows import row_changes
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, Neighbours, PureDP
from dplinear.schema import Schema

from .projected import (
    MIXED,
    images,
    integer_rows,
    kept_places,
    l1,
    l2_squared,
    numbers,
    prepared,
    reach,
    shape_of,
)

PURE = PureDP(1.0)
Table = dict[str, list[Any]]

BASE = {"age": 0.0, "income": -5.0, "member": False, "town": "a", "job": "x"}
VALUES: dict[str, list[Any]] = {
    "age": [0.0, 100.0, -50.0, 1e300, None, 33.3],
    "income": [-5.0, 1e6, None, float("nan"), 17.0],
    "member": [False, True, None],
    "town": ["a", "b", "c", "d", "elsewhere", None],
    "job": ["x", "y", "z", "elsewhere", None],
}


def cell_neighbours() -> list[tuple[str, Table]]:
    """Return tables whose rows differ from each other in one cell, whatever it holds."""
    tables = []
    for name, values in VALUES.items():
        rows = [{**BASE, name: value} for value in values]
        tables.append((name, {key: [row[key] for row in rows] for key in BASE}))
    return tables


def test_no_cell_moves_a_row_further_than_declared_and_one_gets_there() -> None:
    made = prepared(MIXED, guarantee=PURE, k=3, noise="laplace")
    places, allowed, furthest = kept_places(MIXED), reach(made), 0
    for _, table in cell_neighbours():
        moved = images(made, integer_rows(MIXED, table), places)
        furthest = max([furthest, *(l1(*pair) for pair in itertools.combinations(moved, 2))])
    assert furthest <= allowed
    assert furthest >= allowed * Fraction(999, 1000)


@pytest.mark.parametrize("column", VALUES)
@pytest.mark.parametrize("order", [1, 2])
def test_the_norms_of_each_cell_are_those_of_its_worst_pair(column: str, order: int) -> None:
    """One column at a time, so that no other hides it; the flagged number only bounds."""
    declared = MIXED.to_dict()["columns"]
    schema = Schema({column: declared[column]})
    made = prepared(schema, guarantee=PURE, k=2)
    table = {column: VALUES[column]}
    rows = integer_rows(schema, table)
    places = kept_places(schema)
    shape = shape_of(schema)
    found = row_changes.changes_of(
        schema, shape, Neighbours.ELEMENT, Bounded(), tuple(places), "tests"
    )
    moved = images(made, rows, places)
    plain = [[int(rows[place, row]) for place in places] for row in range(rows.shape[1])]
    pairs = list(itertools.combinations(range(rows.shape[1]), 2))
    integers = made.projection.integers
    if order == 1:
        image = float(max(l1(moved[a], moved[b]) for a, b in pairs))
        raw = float(max(l1(plain[a], plain[b]) for a, b in pairs))
        declared_image, declared_raw = found.image_l1(integers), found.l1
    else:
        image = math.sqrt(max(l2_squared(moved[a], moved[b]) for a, b in pairs))
        raw = math.sqrt(max(l2_squared(plain[a], plain[b]) for a, b in pairs))
        declared_image, declared_raw = found.image_l2(integers), found.l2
    assert image <= declared_image
    assert raw <= declared_raw
    if column != "income":
        assert image >= declared_image * (1 - 1e-9)
        assert raw >= declared_raw * (1 - 1e-9)


def test_many_levels_are_bounded_by_their_two_longest() -> None:
    schema = Schema(code=[f"l{i}" for i in range(600)])
    made = prepared(schema, guarantee=PURE, k=2)
    integers = made.projection.integers
    found = row_changes.changes_of(
        schema, shape_of(schema), Neighbours.ELEMENT, Bounded(), tuple(kept_places(schema)), "tests"
    )
    few = integers[:200]
    worst = max(float(np.abs(few - row).sum(axis=1).max()) for row in few)
    assert worst * shape_of(schema).steps_per_unit <= found.image_l1(integers)


@pytest.mark.parametrize("change", [0.01, 0.3, 1.0])
def test_a_small_change_stays_small_after_rounding(change: float) -> None:
    """Values on and around ties of the grid, and the same plus the change."""
    schema = Schema(x=(0, 7), y=(1e9, 1e9 + 1))
    shape, generator = shape_of(schema), simulation.generator(4)
    options: dict[str, Any] = {"change": change, "missing_public": True}
    made = prepared(schema, guarantee=PURE, k=2, noise="laplace", **options)
    worst = 0
    for name, low, half in (("x", 0.0, 3.5), ("y", 1e9, 0.5)):
        ties = (generator.integers(0, shape.steps_per_unit, 2000) + 0.5) / shape.steps_per_unit
        first = low + half * ties
        second = np.minimum(first + half * change, low + 2 * half)
        other = {"x": "y", "y": "x"}[name]
        table = {name: np.concatenate((first, second)).tolist(), other: [1.0] * 4000}
        rows = integer_rows(schema, {key: table[key] for key in ("x", "y")})
        moved = images(made, rows, kept_places(schema))
        worst = max([worst, *(l1(moved[i], moved[2000 + i]) for i in range(2000))])
    assert worst <= reach(made)


def row_pairs(schema: Schema, order: int, change: float, seed: int) -> Table:
    """Return pairs of rows `change` apart: along axes, along the worst signs, and anyhow."""
    d, generator = len(schema.columns), simulation.generator(seed)
    made = prepared(schema, guarantee=PURE, k=3, neighbours=f"row_l{order}", change=change)
    matrix = made.projection.matrix()
    signs = np.array(list(itertools.product((1, -1), repeat=3))).T
    steps = np.hstack((np.eye(d), matrix @ signs, generator.standard_normal((d, 200))))
    steps *= change / np.linalg.norm(steps, order, axis=0)
    start = generator.uniform(-1, 1 - change, (d, steps.shape[1]))
    start = np.where(steps < 0, -start, start)
    rows = np.stack((start, start + steps * (1 - 1e-15)), axis=2).reshape(d, -1)
    return {name: rows[place].tolist() for place, name in enumerate(schema.columns)}


@pytest.mark.parametrize("order", [1, 2])
def test_no_row_moves_further_than_declared(order: int) -> None:
    schema, change = numbers(6), 0.2
    options: dict[str, Any] = {"change": change, "missing_public": True, "noise": "laplace"}
    made = prepared(schema, guarantee=PURE, k=3, neighbours=f"row_l{order}", **options)
    rows = integer_rows(schema, row_pairs(schema, order, change, 3))
    moved = images(made, rows, kept_places(schema))
    furthest = max(l1(moved[i], moved[i + 1]) for i in range(0, len(moved), 2))
    assert furthest <= reach(made)
    assert furthest >= reach(made) * Fraction(998, 1000)


@pytest.mark.parametrize("row_norm", [None, 1.0])
def test_whole_rows_move_no_further_than_declared(row_norm: float | None) -> None:
    schema = numbers(4, row_norm=row_norm)
    made = prepared(schema, guarantee=PURE, k=3, neighbours="row_l2", noise="laplace")
    generator = simulation.generator(5)
    corners = np.array(list(itertools.product((1.0, -1.0), repeat=4)))
    rows = np.vstack((corners, generator.uniform(-1, 1, (30, 4))))
    table = {name: rows[:, place].tolist() for place, name in enumerate(schema.columns)}
    moved = images(made, integer_rows(schema, table), kept_places(schema))
    furthest = max(l1(*pair) for pair in itertools.combinations(moved, 2))
    assert furthest <= reach(made)
    # Corners are the worst rows of a box; those of a ball are not among these.
    assert furthest >= reach(made) * (Fraction(1, 2) if row_norm else 1 - Fraction(1, 10**9))


def test_whole_rows_of_categories_are_less_wide_than_balls() -> None:
    shape = shape_of(MIXED)
    places = tuple(kept_places(MIXED))
    found = row_changes.changes_of(MIXED, shape, Neighbours.ROW_L2, Bounded(), places, "tests")
    tables = [table for _, table in cell_neighbours()]
    rows = np.hstack([integer_rows(MIXED, table) for table in tables])
    rows = np.hstack((rows, integer_rows(MIXED, {name: [VALUES[name][1]] for name in BASE})))
    plain = [[int(rows[place, row]) for place in places] for row in range(rows.shape[1])]
    pairs = list(itertools.combinations(plain, 2))
    assert math.sqrt(max(l2_squared(*pair) for pair in pairs)) <= found.l2
    assert max(l1(*pair) for pair in pairs) <= found.l1
    assert found.l2 < 2 * math.sqrt(MIXED.norm_squared) * shape.steps_per_unit


def test_the_widest_row_of_mixed_columns_is_found() -> None:
    """Against all pairs of rows of extreme cells; a flag and its number are only bounded."""
    schema = Schema(x=(0, 1), member="boolean", town=["a", "b", "c"])
    made = prepared(schema, guarantee=PURE, k=3, neighbours="row_l2", noise="laplace")
    rows = list(itertools.product((0.0, 1.0), (False, True), ("a", "b", "c", "other")))
    table = {name: [row[place] for row in rows] for place, name in enumerate(schema.columns)}
    moved = images(made, integer_rows(schema, table), kept_places(schema))
    furthest = max(l1(*pair) for pair in itertools.combinations(moved, 2))
    assert reach(made) * (1 - Fraction(1, 10**9)) <= furthest <= reach(made)
    ball = row_changes.RowChanges.image_l1
    changes = row_changes.changes_of(
        schema, shape_of(schema), Neighbours.ROW_L2, Bounded(), tuple(kept_places(schema)), "tests"
    )
    assert isinstance(changes, row_changes.WholeRows)
    assert changes.image_l1(made.projection.integers) < ball(changes, made.projection.integers)


def test_a_lost_rounding_step_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_moves, "STEPS", 0)
    schema = Schema(x=(-1, 1))
    shape = shape_of(schema)
    change = 3 / shape.steps_per_unit  # three steps, which ties make four
    options: dict[str, Any] = {"change": change, "missing_public": True}
    made = prepared(schema, guarantee=PURE, k=1, noise="laplace", **options)
    ties = (np.arange(0, 4000, 2) + 0.5) / shape.steps_per_unit
    rows = integer_rows(schema, {"x": np.concatenate((ties, ties + change)).tolist()})
    moved = images(made, rows, kept_places(schema))
    assert max(l1(moved[i], moved[2000 + i]) for i in range(2000)) > reach(made)


def test_one_level_of_two_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Had a category counted as one feature, levels would be further apart than declared."""
    monkeypatch.setattr(
        row_changes.Levels,
        "image",
        lambda self, integers, order: self.width * row_changes._norms(integers, order).max(),
    )
    schema = Schema(town=list("abcdef"))
    made = prepared(schema, guarantee=PURE, k=3, noise="laplace")
    moved = images(made, integer_rows(schema, {"town": list("abcdef")}), kept_places(schema))
    assert max(l1(*pair) for pair in itertools.combinations(moved, 2)) > reach(made)


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"neighbours": "row_l1"}, numbers(2), "change"),
        ({"neighbours": "row_l2", "change": 0.1}, numbers(2, row_norm=1.0), "row_norm"),
        ({"neighbours": "row_l1", "change": 0.1}, numbers(2, row_norm=1.0), "row_norm"),
        ({"neighbours": "element"}, numbers(2, row_norm=1.0), "row_norm"),
        ({"neighbours": "element"}, Schema(x=(0, 1), derived=["x^2"]), "derived"),
        ({"neighbours": "element", "change": -1.0}, numbers(2), "change"),
        ({"neighbours": "add_remove"}, numbers(2), "neighbours"),
    ],
)
def test_what_cannot_be_bounded_is_refused(
    options: dict[str, Any], schema: Schema, message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        prepared(schema, guarantee=ApproxDP(1.0, 1e-6), k=2, **options)


@pytest.mark.parametrize("relation", ["row_l1", "row_l2"])
def test_a_small_change_is_not_promised_for_features_made_of_others(relation: str) -> None:
    # x = 1 and x = .99 are .01 apart, their squares twice that: both move.
    schema = Schema({"x": (-1, 1)}, derived=["x*x"])
    with pytest.raises(ValueError, match=r"'change'[\s\S]*derived features[\s\S]*Hint"):
        prepared(schema, guarantee=PURE, k=2, neighbours=relation, change=0.01)
    assert prepared(schema, guarantee=PURE, k=2, neighbours="row_l2").account.holds == PURE


def test_a_small_change_of_rows_says_that_levels_may_be_further_apart() -> None:
    schema = Schema({"x": (-1, 1), "town": ["a", "b"]})
    options: dict[str, Any] = {"guarantee": PURE, "k": 2, "change": 0.1}
    notes = prepared(schema, neighbours="row_l2", **options).account.notes
    assert any("level" in note for note in notes)
    for quiet in (
        prepared(schema, **options),
        prepared(numbers(3), neighbours="row_l2", **options),
    ):
        assert not any("level" in note for note in quiet.account.notes)
