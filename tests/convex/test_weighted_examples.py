"""Sums, minima and second moments of weighted examples, against fractions that share no code."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dplinear.convex.cell_sums import CellSlopeSum
from dplinear.convex.certified_gradient import CertifiedRows, Point, Regularised
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame, SlopeSum
from dplinear.convex.learners.exponential import second_moments
from dplinear.convex.loss_sums import LossSum
from dplinear.convex.losses import HingeLoss, SquaredLoss
from dplinear.convex.minimiser import minimise
from dplinear.convex.smooth_losses import SmoothLoss
from dplinear.exact.row_sums import ClippedGram, Count
from dplinear.exact.weights import WHOLE, survey_weights
from dplinear.noise import simulation

FEATURES = 4
FRAME = Frame(FEATURES, 1.0)


def drawn(count: int, *, distinct: int | None = None, seed: int = 2) -> tuple[Any, Any]:
    """Return integer rows of norm at most 1, labels last, and weights: many, or a few kinds."""
    random = simulation.generator(seed)
    X = random.normal(size=(count, FEATURES))
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None] * (1 + 1e-9)
    rows = np.vstack((np.trunc(X.T * CELLS), np.rint(random.uniform(-1, 1, count) * CELLS)))
    shares = random.uniform(size=count)
    if distinct is not None:
        shares = np.linspace(0, 1, distinct)[random.integers(0, distinct, count)]
    return rows, survey_weights(shares)


def held(rows: Any, weights: Any, *, thin: bool = False, block: int = 300) -> Examples:
    def part(at: int) -> Block:
        own, shares = rows[:, at : at + block], weights[at : at + block]
        if thin:
            return Block(sparse.csc_array(own[:-1]), own[-1], weights=shares)
        return Block.dense(own, shares)

    blocks = [part(at) for at in range(0, rows.shape[1], block)]
    return Examples(FRAME, blocks, weighted=True)


def expected(statistic: Any, rows: Any, weights: Any) -> list[int]:
    """Return Σ a·f(z), one row at a time, in Python's integers."""
    total = [0] * statistic.size
    for index, weight in enumerate(weights.tolist()):
        own = statistic.sum(rows[:, index : index + 1])
        total = [old + weight * int(new) for old, new in zip(total, own, strict=True)]
    return total


THETA = np.array([0.3, -0.7, 0.0, 0.5])
STATISTICS = [
    SlopeSum(FRAME, SquaredLoss(), THETA, 1.0),
    CellSlopeSum(FRAME, HingeLoss(), THETA, 1.0, 0.3),
    LossSum(FRAME, SquaredLoss(), np.eye(FEATURES), 1.0, signed=True),
    Count(varies=True),
]


@pytest.mark.parametrize("distinct", [3, None])
@pytest.mark.parametrize("thin", [False, True])
def test_weighted_sums_are_those_of_integers(distinct: int | None, *, thin: bool) -> None:
    rows, weights = drawn(700, distinct=distinct)
    sums = held(rows, weights, thin=thin).sums(STATISTICS)
    for statistic, found in zip(STATISTICS, sums, strict=True):
        assert found.tolist() == expected(statistic, rows, weights), type(statistic).__name__


def test_sums_of_whole_rows_are_weighted_as_well() -> None:
    rows, weights = drawn(500)
    statistic = ClippedGram(FRAME.shape, range(FEATURES + 1), 1.2)
    (found,) = held(rows, weights).sums([statistic])
    assert found.tolist() == expected(statistic, rows, weights)


@pytest.mark.parametrize("thin", [False, True])
def test_second_moments_are_weighted_exactly(*, thin: bool) -> None:
    rows, weights = drawn(400)
    gram, cross = second_moments(held(rows, weights, thin=thin).blocks(), FRAME)
    cells = rows.astype(np.int64).astype(object)
    heavy = cells[:-1] * weights.astype(object)
    assert (gram == heavy.dot(cells[:-1].T)).all()
    assert (cross == heavy.dot(cells[-1])).all()


def test_order_and_blocks_say_nothing() -> None:
    rows, weights = drawn(900)
    order = simulation.generator(4).permutation(900)
    first = held(rows, weights).sums(STATISTICS)
    second = held(rows[:, order], weights[order], thin=True, block=64).sums(STATISTICS)
    assert all((one == other).all() for one, other in zip(first, second, strict=True))


def test_weights_of_one_are_rows_without_weights() -> None:
    rows, _ = drawn(300)
    plain = Examples(FRAME, [Block.dense(rows)]).sums(STATISTICS)
    whole = held(rows, np.full(300, WHOLE)).sums(STATISTICS)
    assert all((WHOLE * one == other).all() for one, other in zip(plain, whole, strict=True))


def test_whether_rows_are_weighted_is_told_and_not_guessed() -> None:
    rows, weights = drawn(5)
    none = Examples(FRAME, [], weighted=True)
    assert (none.denominator, none.count_varies) == (WHOLE, True)
    assert Examples(FRAME, []).denominator == 1
    for weighted, block in ((False, Block.dense(rows, weights)), (True, Block.dense(rows))):
        with pytest.raises(TypeError, match="weights"):
            Examples(FRAME, [block], weighted=weighted)


@pytest.mark.parametrize("wrong", [[-1, 0], [0, WHOLE + 1], [0]])
def test_weights_are_verified_on_the_integers(wrong: list[int]) -> None:
    rows, _ = drawn(2)
    for block in (
        Block.dense(rows, np.array(wrong)),
        Block(sparse.csc_array(rows[:-1]), rows[-1], weights=np.array(wrong)),
    ):
        with pytest.raises(ArithmeticError):
            Examples(FRAME, [block], weighted=True)


@pytest.mark.parametrize("thin", [False, True])
def test_rows_that_are_shortened_keep_their_weights(*, thin: bool) -> None:
    rows, weights = drawn(50)
    (block,) = held(rows * 3, weights, thin=thin).blocks()
    assert block.weights is not None
    assert (block.weights == weights).all()


# Minima of weighted sums


def exact_gradient(rows: Any, weights: Any, theta: Point, problem: Regularised) -> list[Fraction]:
    """Return the gradient of Σ v·(clipped squared loss) + Λ‖θ‖²/2, in fractions."""
    place = [Fraction(int(t)) / Fraction(2) ** theta.exponent for t in theta.integers]
    total = [Fraction(problem.weight) * t for t in place]
    most = Fraction(problem.loss.slope)
    for column, weight in zip(rows.T.tolist(), weights.tolist(), strict=True):
        x, y = [Fraction(int(z), CELLS) for z in column[:-1]], Fraction(int(column[-1]), CELLS)
        slope = 2 * (sum(a * b for a, b in zip(x, place, strict=True)) - y)
        slope = min(max(slope, -most), most) * Fraction(int(weight), WHOLE)
        total = [old + slope * z for old, z in zip(total, x, strict=True)]
    return total


PROBLEM = Regularised(SmoothLoss(SquaredLoss(), 0.8, 0.5), 0.7, Point.zero(FEATURES), 1.0)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_certified_gradients_are_those_of_the_weighted_sum(*, thin: bool, exact: bool) -> None:
    rows, weights = drawn(120)
    certified = CertifiedRows(list(held(rows, weights, thin=thin).blocks()), PROBLEM)
    point = Point.of(THETA)
    found = certified.gradient(point, 1e-9, exact=exact)
    truth = exact_gradient(rows, weights, point, PROBLEM)
    off = sum((Fraction(a) - b) ** 2 for a, b in zip(found.values.tolist(), truth, strict=True))
    assert off <= Fraction(found.error) ** 2 + Fraction(1, 10**30)
    assert sum(b * b for b in truth) <= Fraction(found.norm) ** 2


@pytest.mark.parametrize("tolerance", [1e-3, 1e-12, 1e-20])
def test_the_minimum_is_that_of_the_weighted_sum(tolerance: float) -> None:
    rows, weights = drawn(90)
    point = minimise(PROBLEM, held(rows, weights).blocks(), tolerance)
    truth = exact_gradient(rows, weights, point, PROBLEM)
    assert sum(b * b for b in truth) <= Fraction(tolerance) ** 2


def test_rows_of_no_weight_are_no_rows() -> None:
    rows, weights = drawn(60)
    more = np.hstack((rows, rows[:, :20] * -1))
    light = np.append(weights, np.zeros(20, np.int64))
    pair = [
        minimise(PROBLEM, held(*each).blocks(), 1e-13).values
        for each in ((rows, weights), (more, light))
    ]
    assert np.abs(pair[0] - pair[1]).max() < 1e-12
