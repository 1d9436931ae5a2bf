"""Pairs of tables are neighbours, and as far apart as neighbours are allowed to be."""

import numpy as np
import pytest

from dplinear.audit import worst_pairs
from dplinear.exact.shape import Shape
from dplinear.noise import simulation
from dplinear.privacy import Neighbours

SHAPE = Shape(3, 100, 8)


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize(
    ("relation", "apart"), [(Neighbours.ADD_REMOVE, 1.0), (Neighbours.REPLACE, 2**0.5)]
)
def test_moments_are_as_far_apart_as_the_sensitivity(
    relation: Neighbours, apart: float, oblique: bool
) -> None:
    rows = worst_pairs.matrix_pair(SHAPE, relation, oblique=oblique, base=2)
    assert [len(part) for part in rows] == [7, 6 + (relation is Neighbours.REPLACE)]
    assert all((np.square(part).sum(axis=1) <= SHAPE.sensitivity).all() for part in rows)
    one, other = (worst_pairs.moments(SHAPE, part, 1).integers.astype(float) for part in rows)
    distance = np.linalg.norm(one - other) / SHAPE.sensitivity
    assert distance == pytest.approx(apart, rel=0.02 if oblique else 1e-12)


def test_one_dimension_has_no_right_angles() -> None:
    one, other = worst_pairs.matrix_pair(Shape(1, 100, 8), Neighbours.REPLACE)
    assert one.tolist() == [[256]]
    assert other.tolist() == [[0]]


def test_copies_have_columns_of_their_own() -> None:
    row = np.array([[1, 2, 3]])
    wide = worst_pairs.moments(SHAPE, row, 2)
    assert wide.shape.dimension == 6
    assert wide.integers[:3, :3].tolist() == [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
    assert wide.integers[3:, 3:].tolist() == wide.integers[:3, :3].tolist()
    assert not wide.integers[:3, 3:].any()
    assert wide.rows == 2
    assert not worst_pairs.moments(SHAPE, row[:0], 2).integers.any()


def test_sums_turn_round_or_vanish() -> None:
    one, other = worst_pairs.sum_pair(SHAPE, Neighbours.REPLACE)
    assert np.array_equal(one, 256 * np.eye(3))
    assert np.array_equal(other, -one)
    assert worst_pairs.sum_pair(SHAPE, Neighbours.ADD_REMOVE)[1].shape == (3, 0)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("relation", "change"),
    [
        (Neighbours.ELEMENT, None),
        (Neighbours.ELEMENT, 0.5),
        (Neighbours.ROW_L1, 0.5),
        (Neighbours.ROW_L2, 0.5),
        (Neighbours.ROW_L2, None),
    ],
)
def test_no_allowed_change_goes_further(
    relation: Neighbours, change: float | None, order: int
) -> None:
    draw = simulation.generator(3)
    matrix = draw.normal(size=(3, 2))
    one, other = worst_pairs.row_pair(matrix, 1 << 20, relation, change, order)
    assert np.abs((one, other)).max() <= 1 << 20
    moved = (one - other) / 2**20
    found = np.linalg.norm(moved @ matrix, order)
    others = draw.normal(size=(5000, 3))
    width = 2.0 if change is None else change
    if relation is Neighbours.ROW_L2 and change is None:
        others = draw.uniform(-2, 2, (5000, 3))
    elif relation is Neighbours.ROW_L2:
        others *= width / np.linalg.norm(others, axis=1, keepdims=True)
        assert np.linalg.norm(moved) <= width
    elif relation is Neighbours.ROW_L1:
        others *= width / np.abs(others).sum(axis=1, keepdims=True)
        assert np.abs(moved).sum() <= width
    else:
        others = width * np.eye(3)
        assert np.count_nonzero(moved) == 1
        assert np.abs(moved).max() <= width
    assert (np.linalg.norm(others @ matrix, order, axis=1) <= found * (1 + 1e-5)).all()
