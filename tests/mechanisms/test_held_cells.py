"""Rows that no pass would make, held to the sets of their cells where they meet their noise."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dplinear.exact.grid import shape_of
from dplinear.mechanisms.cells.held_cells import HeldCells, HeldNorm, cell_sets
from dplinear.mechanisms.cells.table_cells import cells_of
from dplinear.mechanisms.rows.additive_noise import AdditiveNoise
from dplinear.mechanisms.rows.projection import ProjectedRows
from dplinear.noise import simulation
from dplinear.privacy import MIDP, ApproxDP, Neighbours
from dplinear.schema import Schema

SCHEMA = Schema(
    {
        "age": {"type": "integer", "low": 0, "high": 99, "missing_indicator": True},
        "smoker": ["no", "yes"],
        "ward": {"type": "category", "levels": [1, 2, 3], "other": 3, "drop_first": False},
        "one": {"type": "category", "levels": ["a"], "drop_first": False},
        "pay": (0, 5000),
    }
)
SHAPE = shape_of(SCHEMA)


def odd_rows(seed: int, count: int) -> Any:
    """Return integers anywhere, and some that are no numbers."""
    random = simulation.generator(seed)
    rows = np.rint(random.standard_normal((SCHEMA.dimension, count)) * 3 * SHAPE.steps_per_unit)
    rows[random.random(rows.shape) < 0.3] = 0.0
    rows[:, 0] = np.nan
    rows[:, 1] = np.inf
    rows[:, 2] = 0.0
    return rows


def test_held_cells_are_in_their_sets_and_no_farther_apart() -> None:
    held = HeldCells.of(SCHEMA, SHAPE, "test").hold(odd_rows(1, 60))
    assert np.array_equal(held, np.rint(held))
    for cell in cells_of(SCHEMA, "test"):
        own = held[list(cell.indices)] / SHAPE.steps_per_unit
        for one, other in combinations(own.T, 2):
            assert ((one - other) ** 2).sum() <= cell.diameter_squared
        if len(cell.indices) > 2:  # a category: one level, or none where a level has no feature
            assert set(own.sum(axis=0)) <= {0.0, 1.0}


def test_rows_as_they_should_be_are_left_as_they_are() -> None:
    rows = np.zeros((SCHEMA.dimension, 3))
    for name in ("ward=2", "one=a"):
        rows[SCHEMA.names.index(name)] = SHAPE.steps_per_unit
    rows[SCHEMA.names.index("pay")] = [-SHAPE.steps_per_unit, 7, SHAPE.steps_per_unit]
    assert HeldCells.of(SCHEMA, SHAPE, "test").hold(rows) is rows
    empty = np.zeros((SCHEMA.dimension, 0))
    assert HeldCells.of(SCHEMA, SHAPE, "test").hold(empty) is empty


def test_each_row_is_held_by_itself() -> None:
    held, rows = HeldCells.of(SCHEMA, SHAPE, "test"), odd_rows(2, 40)
    whole = held.hold(rows)
    for place in range(40):
        assert np.array_equal(held.hold(rows[:, [place]])[:, 0], whole[:, place])


@pytest.mark.parametrize("described", [{"row_norm": 1.0}, {"derived": ["a*b"]}])
def test_rows_that_are_tied_together_are_held_to_a_ball(described: Any) -> None:
    schema = Schema({"a": (-1, 1), "b": (-1, 1)}, **described)
    shape = shape_of(schema)
    places = tuple(range(1, schema.dimension))
    held = cell_sets(schema, shape, places, shape.steps_per_unit**2, "test")
    assert isinstance(held, HeldNorm)
    rows = np.full((schema.dimension, 4), 5.0 * shape.steps_per_unit)
    found = held.hold(rows)
    assert ((found[1:].astype(np.int64)) ** 2).sum(axis=0).max() <= shape.steps_per_unit**2
    fine = np.zeros_like(rows)
    assert held.hold(fine) is fine


@pytest.mark.parametrize("mechanism", ["additive_noise", "projection"])
def test_released_rows_are_of_held_cells(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, what is released of rows far outside their sets is that of rows within."""
    entropy = simulation.entropy(4)
    if mechanism == "additive_noise":
        ready: Any = AdditiveNoise(guarantee=MIDP(0.5)).prepare(SCHEMA, SHAPE, entropy)
        monkeypatch.setattr(
            "dplinear.noise.discrete.gaussian",
            lambda _variance, size, *, entropy: np.zeros(size, np.int64),  # noqa: ARG005
        )
    else:
        asked = ApproxDP(1.0, 1e-6)
        ready = ProjectedRows(guarantee=asked, neighbours=Neighbours.ROW_L2, k=3).prepare(
            SCHEMA, SHAPE, entropy
        )
        monkeypatch.setattr(
            type(ready.noise), "draw", lambda _self, size, _entropy: np.zeros(size, np.int64)
        )
    rows = odd_rows(3, 50)[:, 2:]
    held = HeldCells.of(SCHEMA, SHAPE, "test").hold(rows)
    assert ready.release(rows, entropy).equals(ready.release(held, entropy))
