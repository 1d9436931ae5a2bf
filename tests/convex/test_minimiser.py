"""The verified minimum: against SciPy, and its gradient against exact sums."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, sparse

from dplinear.arrays import Floats
from dplinear.convex import accurate_slopes
from dplinear.convex.certified_gradient import CertifiedRows, Point, Regularised
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.losses import LOSSES
from dplinear.convex.minimiser import _Rows, minimise
from dplinear.convex.smooth_losses import SmoothLoss
from dplinear.noise.simulation import generator

from .minima import Problem, gradient_norm, problem

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions


def table(rows: int, features: int, seed: int) -> tuple[Floats, Floats]:
    """Return integer features of norm at most 1, uneven in scale, and labels."""
    draw = generator(seed)
    x = draw.standard_normal((features, rows)) * np.geomspace(1, 0.01, features)[:, None]
    x /= np.maximum(1.001, np.linalg.norm(x, axis=0))
    y = np.clip(2 * x[0] - x[1] + 0.3 * draw.standard_normal(rows), -1, 1)
    return np.trunc(x * CELLS), np.rint(y * CELLS)


def blocks(x: Floats, y: Floats, size: int = 100) -> list[Block]:
    starts = range(0, len(y), size)
    return [Block.dense(np.vstack([x[:, at : at + size], y[at : at + size]])) for at in starts]


def exact_gradient(problem: Regularised, x: Floats, y: Floats, place: Floats) -> Floats:
    """Return the gradient, added up without rounding."""
    margins = np.array([math.fsum(place * row) for row in (x / CELLS).T])
    slopes = problem.loss.slopes(margins, y / CELLS)
    sums = [math.fsum(column * slopes) for column in x / CELLS]
    return np.array(sums) + problem.weight * place + problem.linear.values


@pytest.mark.parametrize("weight", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_vanish_to_the_tolerance(name: str, weight: float) -> None:
    x, y = table(300, 5, 31)
    linear = 3 * generator(32).standard_normal(5)
    problem = Regularised(SmoothLoss(LOSSES[name](), 0.7), weight, Point.of(linear), 1.0)
    place = minimise(problem, blocks(x, y), 1e-6).values
    assert np.linalg.norm(exact_gradient(problem, x, y, place)) <= 1e-6


def test_it_is_the_minimum_that_scipy_finds() -> None:
    x, y = table(400, 4, 33)
    linear = np.array([1.0, -2.0, 0.5, 0.0])
    problem = Regularised(SmoothLoss(LOSSES["logistic"](), 1.0), 0.5, Point.of(linear), 1.0)

    def value(place: Floats) -> float:
        losses = np.logaddexp(0, -np.where(y > 0, 1, -1) * (place @ x / CELLS))
        return float(losses.sum() + 0.25 * place @ place + linear @ place)

    found = optimize.minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-4})
    assert minimise(problem, blocks(x, y), 1e-9).values == pytest.approx(found.x, abs=1e-3)


def test_a_ridge_has_its_closed_form() -> None:
    x, y = table(200, 6, 34)
    problem = Regularised(SmoothLoss(LOSSES["squared"](), 1e3), 0.7, Point.zero(6), 1.0)
    scaled, labels = x / CELLS, y / CELLS
    ridge = np.linalg.solve(2 * scaled @ scaled.T + 0.7 * np.eye(6), 2 * scaled @ labels)
    assert minimise(problem, blocks(x, y), 1e-10).values == pytest.approx(ridge, abs=1e-9)


def test_sparse_rows_and_other_blocks_give_the_same_minimum() -> None:
    x, y = table(250, 5, 35)
    x[generator(36).random(x.shape) < 0.6] = 0
    problem = Regularised(SmoothLoss(LOSSES["hinge"](), 1.0), 0.2, Point.zero(5), 1.0)
    dense = minimise(problem, blocks(x, y), 1e-9).values
    thin = [Block(sparse.csc_array(block.features), block.labels) for block in blocks(x, y, 64)]
    assert minimise(problem, thin, 1e-9).values == pytest.approx(dense, abs=1e-8)


def test_without_rows_only_the_slope_is_left() -> None:
    linear = np.array([2.0, -4.0])
    problem = Regularised(SmoothLoss(LOSSES["huber"](), 1.0), 0.5, Point.of(linear), 1.0)
    assert minimise(problem, [], 1e-9).values == pytest.approx(-linear / 0.5)


def test_many_rows_and_little_regularisation_still_come_to_an_end() -> None:
    x, y = table(20_000, 12, 37)
    problem = Regularised(SmoothLoss(LOSSES["hinge"](), 1.0, 0.01), 1e-4, Point.zero(12), 1.0)
    place = minimise(problem, blocks(x, y, 4096), 2.0**-17).values
    assert np.linalg.norm(exact_gradient(problem, x, y, place)) <= 2.0**-17


@pytest.mark.parametrize("name", LOSSES)
def test_tolerances_far_beyond_float64_are_reached(name: str) -> None:
    """Slopes are then made one by one, of as many bits as it takes."""
    x, y = table(12, 2, 38)
    found = Regularised(SmoothLoss(LOSSES[name](), 1.0), 1.0, Point.of(np.ones(2)), 1.0)
    of = Problem(found, x, y, 1e-40)
    assert gradient_norm(of, minimise(of.sum, of.blocks(), of.tolerance)) <= of.tolerance


# Of 9,000 such problems float64's own gradients, added up as they come, passed one that is not so.
@pytest.mark.parametrize("first", [0, 7400, pytest.param(10_000, marks=pytest.mark.long)])
def test_gradients_are_within_the_tolerance_by_any_precision(first: int) -> None:
    count = 100 if first < 10_000 else 6000
    for seed in range(first, first + count):
        of = problem(seed)
        point = minimise(of.sum, of.blocks(), of.tolerance)
        assert gradient_norm(of, point) <= of.tolerance, seed


@pytest.mark.parametrize("name", LOSSES)
def test_a_certified_norm_is_no_less_than_the_exact_one(name: str) -> None:
    """At any point, and with either kind of slopes: the errors that are claimed are real bounds."""
    for seed in range(40):
        of = problem(4 * seed + list(LOSSES).index(name))
        rows = CertifiedRows(of.blocks(), of.sum)
        place = generator(seed).standard_normal(of.sum.features) * 10.0 ** (seed % 5 - 2)
        point = rows.start(of.tolerance).move(place)
        exact = gradient_norm(of, point)
        for slopes in (False, True):
            found = rows.gradient(point, of.tolerance, exact=slopes)
            assert found.norm >= exact
            assert found.norm <= exact * (1 + 1e-9) + 2.1 * found.error


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_are_within_their_error(name: str) -> None:
    loss = SmoothLoss(LOSSES[name](), 0.9)
    draw = generator(9)
    margins = np.concatenate((draw.uniform(-40, 40, 300), draw.uniform(-1.3, 1.3, 300), [0.0, 1.0]))
    rest = draw.uniform(-1, 1, len(margins)) * 2.0**-54 * np.abs(margins)
    labels = np.rint(draw.uniform(-1, 1, len(margins)) * CELLS) / CELLS
    found = accurate_slopes.slopes(loss, margins, rest, labels)
    for slope, margin, left, label in zip(found, margins, rest, labels, strict=True):
        exact = accurate_slopes.exact_slope(
            loss, Fraction(margin) + Fraction(left), Fraction(label), 120
        )
        assert abs(Fraction(slope) - exact) <= Fraction(accurate_slopes.ERROR * loss.slope)


def test_a_descent_that_float64_leads_astray_still_ends_where_it_should(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps that go nowhere, and directions that lead uphill: the certified search takes over."""
    of = problem(2)
    monkeypatch.setattr(_Rows, "step", lambda *_: 0.0)
    point = minimise(of.sum, of.blocks(), of.tolerance)
    assert gradient_norm(of, point) <= of.tolerance
    monkeypatch.setattr(_Rows, "direction", lambda _self, found, _products: found.values)
    easy = Problem(of.sum, of.x[:, :0], of.y[:0], of.tolerance)
    point = minimise(easy.sum, [], easy.tolerance)
    assert gradient_norm(easy, point) <= easy.tolerance


def test_points_are_rounded_to_the_nearest_of_a_lattice() -> None:
    """Halves go up, whatever their sign, and a finer lattice holds the same point."""
    point = Point(np.array([7, -7, 6, -6, 5, -5, 2**80 + 2], object), 2)
    assert point.rounded(0).integers.tolist() == [2, -2, 2, -1, 1, -1, 2**78 + 1]
    finer = point.rounded(9)
    assert finer.integers.tolist() == [whole * 2**7 for whole in point.integers]
    assert (finer.values == point.values).all()


def test_floats_are_points_as_they_are() -> None:
    values = np.array([0.1, -3e200, 0.0, 2.0**-1074, 1.0])
    point = Point.of(values)
    assert (point.values == values).all()
    exact = [Fraction(int(whole)) / Fraction(2) ** point.exponent for whole in point.integers]
    assert exact == [Fraction(value) for value in values.tolist()]
    assert (Point.of(np.zeros(2)).integers == 0).all()
