"""The sums that intervals rest on, against Python's integers and fractions, row by row."""

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pytest

from descent.descents import shape_of
from dplinear.arguments import ArgumentError
from dplinear.exact.mapped_sums import InnerGram, MappedGram
from dplinear.exact.residual_sums import Gradient
from dplinear.exact.row_sums import RowSum
from dplinear.exact.score_sums import LengthHistogram, ScoreGram, ScoreHistogram
from dplinear.noise import simulation

SHAPE = shape_of(4)
MATRIX = np.array([[1.0, 0.3, 0.0, 0.0], [0.0, -2.0, 0.5, 0.0]])
WEIGHTS = np.array([0.5, 0.0, -1.0, 1.0])
EDGES = (0.05, 0.1, 0.2, 0.4)
GRADIENT = Gradient(SHAPE, MATRIX, WEIGHTS, 0.4, 0.3)
SUMS: dict[str, RowSum] = {
    "scores": ScoreGram(GRADIENT),
    "score histogram": ScoreHistogram(SHAPE, MATRIX, WEIGHTS, 0.3, EDGES),
    "length histogram": LengthHistogram(SHAPE, MATRIX, EDGES),
    "inner gram": InnerGram(SHAPE, MATRIX, 0.4, WEIGHTS, 0.3),
}


def some_rows(seed: int, count: int) -> Any:
    random = simulation.generator(seed)
    cells = random.standard_normal((4, count)) * random.choice([0.01, 0.1, 0.4], count)
    return np.rint(np.clip(cells, -1, 1) * SHAPE.steps_per_unit)


def exact(row: Any) -> tuple[Fraction, Fraction]:
    """The squared length of W x, and |r|, in the cells' units."""
    cells = [Fraction(int(cell), SHAPE.steps_per_unit) for cell in row]

    def times(weights: Any) -> Fraction:
        pairs = zip(weights, cells, strict=True)
        return sum((Fraction(float(weight)) * cell for weight, cell in pairs), Fraction(0))

    return sum((times(one) ** 2 for one in MATRIX), Fraction(0)), abs(times(WEIGHTS))


def band(square: Fraction) -> list[int]:
    """One 1, in the band that a number with this square is in."""
    beyond = sum(square > Fraction(edge) ** 2 for edge in EDGES)
    return [int(index == beyond - 1) for index in range(len(EDGES))]


def test_histograms_count_what_fractions_say() -> None:
    """The public numbers round well here, so rows that lie on an edge to 1e-6 are passed over."""
    rows = some_rows(1, 400)
    for row in rows.T:
        square, residual = exact(row)
        clipped = min(residual, Fraction(0.3)) ** 2
        near = [
            abs(float(one) / edge**2 - 1) for one in (square, square * clipped) for edge in EDGES
        ]
        if min(near) < 1e-6:
            continue
        assert SUMS["length histogram"].sum(row[:, None]).tolist() == band(square)
        assert SUMS["score histogram"].sum(row[:, None]).tolist() == band(square * clipped)
    assert SUMS["score histogram"].sum(rows).min() > 5


def test_outer_products_are_those_of_rounded_gradients() -> None:
    rows, statistic = some_rows(2, 300), SUMS["scores"]
    step = 2 ** max(GRADIENT.bound.bit_length() - 20, 0)
    total = np.zeros((2, 2), object)
    for gradient in GRADIENT.of_rows(rows).astype(int).T.tolist():
        short = np.array([abs(one) // step * (1 if one > 0 else -1) for one in gradient], object)
        assert int(short @ short) <= statistic.bound
        total += np.outer(short, short)
    assert statistic.sum(rows).tolist() == total.ravel().tolist()
    # A clipped score comes within a few units of the bound, so that no noise is paid for nothing.
    far = some_rows(3, 300) * 0 + SHAPE.steps_per_unit // 2
    longest = isqrt(int(np.trace(statistic.sum(far[:, :1]).reshape(2, 2))))
    assert longest > isqrt(statistic.bound) - 4


def test_rows_beyond_the_residual_add_nothing() -> None:
    rows = some_rows(4, 400)
    inside = np.array([exact(row)[1] <= Fraction(0.3) for row in rows.T])
    assert inside.any()
    assert not inside.all()
    whole = MappedGram(SHAPE, MATRIX, 0.4)
    assert SUMS["inner gram"].sum(rows).tolist() == whole.sum(rows[:, inside].copy()).tolist()


@pytest.mark.parametrize("name", SUMS)
def test_a_row_adds_the_same_bits_whatever_stands_beside_it(name: str) -> None:
    statistic, rows = SUMS[name], some_rows(5, 64)
    each = sum(statistic.sum(rows[:, [index]]).astype(object) for index in range(64))
    assert (statistic.sum(rows) == each).all()
    halves = statistic.sum(rows[:, ::2].copy()) + statistic.sum(rows[:, 1::2].copy())
    assert (halves == each).all()


@pytest.mark.parametrize("edges", [(), (0.2, 0.1), [0.1], (-1.0,)], ids=str)
def test_edges_ascend(edges: Any) -> None:
    for make in (
        lambda: ScoreHistogram(SHAPE, MATRIX, WEIGHTS, 0.3, edges),
        lambda: LengthHistogram(SHAPE, MATRIX, edges),
    ):
        with pytest.raises(ArgumentError, match="edges"):
            make()
