"""The verified minimum: against SciPy, and its gradient against exact sums."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse

from dplinear.erm.examples import CELLS, Block
from dplinear.erm.losses import LOSSES
from dplinear.erm.minimiser import Regularised, minimise
from dplinear.erm.smooth_losses import SmoothLoss
from dplinear.noise.simulation import generator
from dplinear.schema.cells import Floats

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
    return np.array(sums) + problem.weight * place + problem.linear


@pytest.mark.parametrize("weight", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_vanish_to_the_tolerance(name: str, weight: float) -> None:
    x, y = table(300, 5, 31)
    linear = 3 * generator(32).standard_normal(5)
    problem = Regularised(SmoothLoss(LOSSES[name](), 0.7), weight, linear, 1.0)
    place = minimise(problem, blocks(x, y), 1e-6)
    assert np.linalg.norm(exact_gradient(problem, x, y, place)) <= 1e-6


def test_it_is_the_minimum_that_scipy_finds() -> None:
    x, y = table(400, 4, 33)
    linear = np.array([1.0, -2.0, 0.5, 0.0])
    problem = Regularised(SmoothLoss(LOSSES["logistic"](), 1.0), 0.5, linear, 1.0)

    def value(place: Floats) -> float:
        losses = np.logaddexp(0, -np.where(y > 0, 1, -1) * (place @ x / CELLS))
        return float(losses.sum() + 0.25 * place @ place + linear @ place)

    found = optimize.minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-4})
    assert minimise(problem, blocks(x, y), 1e-9) == pytest.approx(found.x, abs=1e-3)


def test_a_ridge_has_its_closed_form() -> None:
    x, y = table(200, 6, 34)
    problem = Regularised(SmoothLoss(LOSSES["squared"](), 1e3), 0.7, np.zeros(6), 1.0)
    scaled, labels = x / CELLS, y / CELLS
    ridge = np.linalg.solve(2 * scaled @ scaled.T + 0.7 * np.eye(6), 2 * scaled @ labels)
    assert minimise(problem, blocks(x, y), 1e-10) == pytest.approx(ridge, abs=1e-9)


def test_sparse_rows_and_other_blocks_give_the_same_minimum() -> None:
    x, y = table(250, 5, 35)
    x[generator(36).random(x.shape) < 0.6] = 0
    problem = Regularised(SmoothLoss(LOSSES["hinge"](), 1.0), 0.2, np.zeros(5), 1.0)
    dense = minimise(problem, blocks(x, y), 1e-9)
    thin = [Block(sparse.csc_array(block.features), block.labels) for block in blocks(x, y, 64)]
    assert minimise(problem, thin, 1e-9) == pytest.approx(dense, abs=1e-8)


def test_without_rows_only_the_slope_is_left() -> None:
    linear = np.array([2.0, -4.0])
    problem = Regularised(SmoothLoss(LOSSES["huber"](), 1.0), 0.5, linear, 1.0)
    assert minimise(problem, [], 1e-9) == pytest.approx(-linear / 0.5)


def test_many_rows_and_little_regularisation_still_come_to_an_end() -> None:
    x, y = table(20_000, 12, 37)
    problem = Regularised(SmoothLoss(LOSSES["hinge"](), 1.0, 0.01), 1e-4, np.zeros(12), 1.0)
    place = minimise(problem, blocks(x, y, 4096), 2.0**-17)
    assert np.linalg.norm(exact_gradient(problem, x, y, place)) <= 2.0**-17


def test_what_float64_cannot_reach_is_no_error() -> None:
    """One table may be out of reach where its neighbour is not, so that an error would tell."""
    x, y = table(300, 3, 38)
    problem = Regularised(SmoothLoss(LOSSES["huber"](), 1.0), 1.0, np.zeros(3), 1.0)
    place = minimise(problem, blocks(x, y), 1e-300)
    assert np.linalg.norm(exact_gradient(problem, x, y, place)) <= 1e-12
