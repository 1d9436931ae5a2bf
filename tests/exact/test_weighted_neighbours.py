"""How far a replaced row moves weighted sums: every case of small integers, by the definition.

Rows and weights are listed, not drawn, and the arithmetic is Python's: nothing is shared with the
library but what it declares.
"""

import itertools
from fractions import Fraction
from typing import Any

import pytest

from dplinear.exact.design import Design
from dplinear.exact.grid import plain_shape
from dplinear.exact.histograms import Histograms
from dplinear.exact.mapped_sums import MappedGram, MappedSum
from dplinear.exact.row_sums import ClippedGram, Count, LeftOut, SquaredNorms, SquaredWeights
from dplinear.mechanisms.adassp_distance import Distance, Parts
from dplinear.mechanisms.moments.analyze_gauss import Difference
from dplinear.privacy.neighbours import Neighbours

REPLACE = Neighbours.REPLACE
SHAPE = plain_shape(2)
WEIGHTS = [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)]
Row = tuple[Fraction, ...]


def rows(size: int) -> list[Row]:
    """Return rows of norm at most 1: the points of a grid of fifths within a ball."""
    cells = [Fraction(k, 5) for k in range(-5, 6)]
    return [row for row in itertools.product(cells, repeat=size) if sum(a * a for a in row) <= 1]


def moved(one: Any, other: Any) -> Fraction:
    return sum(((a - b) ** 2 for a, b in zip(one, other, strict=True)), Fraction(0))


def farthest(function: Any, size: int) -> Fraction:
    """Return the most that v·f(u) − w·f(z) is, squared, over all rows and weights."""
    images = {tuple(w * entry for entry in function(row)) for row in rows(size) for w in WEIGHTS}
    return max(moved(one, other) for one, other in itertools.combinations(images, 2))


def outer(row: Row) -> Row:
    return tuple(a * b for a in row for b in row)


def test_vectors_move_by_twice_their_bound() -> None:
    assert farthest(lambda row: row, 2) == MappedSum.replaced == 4


@pytest.mark.parametrize(("size", "square"), [(1, 1), (2, 2)])
def test_outer_products_move_by_the_root_of_two(size: int, square: int) -> None:
    assert farthest(outer, size) == square
    assert ClippedGram.replaced == MappedGram.replaced == 2
    shape = plain_shape(size)
    declared = Fraction(Difference.of(shape, 0, REPLACE, 2).norm) / shape.sensitivity
    assert square <= declared**2 <= square * (1 + Fraction(1, 10**12))


def test_numbers_that_are_never_negative_move_by_their_bound() -> None:
    assert farthest(lambda row: (sum(a * a for a in row),), 2) == SquaredNorms.replaced == 1


def test_one_place_of_several_moves_by_the_root_of_two() -> None:
    def bins(row: Row) -> Row:
        return tuple(
            Fraction(place == (row[0] > 0) + (row[0] > Fraction(1, 2))) for place in range(3)
        )

    assert farthest(bins, 1) == Histograms.replaced == 2


def test_what_rows_weigh_moves_by_1_and_is_not_public() -> None:
    assert farthest(lambda _: (Fraction(1),), 1) == 1
    assert Count(varies=True).sensitivity_squared(REPLACE) == 1
    assert LeftOut().sensitivity_squared(REPLACE) == 1
    whole = SquaredWeights()
    assert whole.sensitivity_squared(REPLACE) * whole.unit**2 == 1
    assert Count().sensitivity_squared(REPLACE) == 0  # of rows without weights


@pytest.mark.parametrize("ratio", [Fraction(1, 5), Fraction(1), Fraction(3)])
def test_adassp_pays_for_both_of_its_sums_together(ratio: Fraction) -> None:
    """XᵀX and Xᵀy of rows (x, y), |x| ≤ 1 and |y| ≤ 1, at variances of 1 and of the ratio."""
    square = SHAPE.steps_per_unit**2
    design = Design(SHAPE, (0, 1), 0, square, square, intercept=False, indicators=(False,) * 2)
    distance = Distance(design, REPLACE, 0, 2)
    huge = Fraction(10**40)  # so that nothing is seen of the eigenvalue
    variances = Parts(huge, Fraction(square) ** 2, Fraction(square) ** 2 * ratio)
    declared = distance.squared_distance(variances)
    found = set()
    long = [row for row in rows(2) if sum(a * a for a in row) >= Fraction(4, 5)]
    for row, target, weight in itertools.product(long, (-1, 1), (WEIGHTS[0], *WEIGHTS[2:])):
        gram = tuple(weight * entry for entry in outer(row))
        found.add((gram, tuple(weight * target * entry for entry in row)))
    most = max(
        moved(one[0], other[0]) + moved(one[1], other[1]) / ratio
        for one, other in itertools.combinations(found, 2)
    )
    assert most <= declared
    assert most > declared * Fraction(97, 100)  # a grid of fifths has not every angle
