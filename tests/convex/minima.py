"""Problems for the minimiser, ordinary and awkward, and their gradients in arbitrary precision."""

from dataclasses import dataclass

import mpmath
import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.certified_gradient import Point, Regularised
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.losses import LOSSES
from dplinear.convex.smooth_losses import SmoothLoss
from dplinear.noise.simulation import generator


@dataclass(frozen=True)
class Problem:
    """Rows, labels, what is minimised, and how closely."""

    sum: Regularised
    x: Floats
    y: Floats
    tolerance: float

    def blocks(self, size: int = 7) -> list[Block]:
        """Return the rows in blocks."""
        starts = range(0, len(self.y), size)
        return [
            Block.dense(np.vstack([self.x[:, at : at + size], self.y[at : at + size]]))
            for at in starts
        ]


def problem(seed: int) -> Problem:
    """Return a problem as learners allow: Λ from βc²/2^20, τ from 2^−20 of a row's gradient."""
    draw = generator(seed)
    name = list(LOSSES)[seed % len(LOSSES)]
    rows, features = int(draw.choice([0, 1, 2, 6, 25, 60, 400])), int(draw.choice([1, 2, 4, 9]))
    norm = float(draw.choice([1.0, 1.5, 2.0**-10, 8.0]))
    scales = np.geomspace(1, draw.choice([1, 1e-2, 1e-5]), features)
    x = draw.standard_normal((features, rows)) * scales[:, None]
    kind = int(draw.integers(5))
    if kind == 1 and rows:
        x[:] = x[:, :1]  # one row, many times
    if kind == 2:
        x[1:] = 0  # all on a line
    if kind == 3 and features > 1:
        x[1] = x[0] * (1 + 1e-6)  # columns that are all but the same
    lengths = np.maximum(np.linalg.norm(x, axis=0), 1e-300)
    x = np.trunc(x / lengths * norm * CELLS * (1 - 2.0**-40) * draw.choice([1.0, 1e-3, 1e-5]))
    y = np.rint(np.clip(draw.standard_normal(rows), -1, 1) * CELLS)
    if kind == 4:
        y = np.where(y > 0, float(CELLS), -float(CELLS))
    slope = float(draw.choice([1.0, 0.6, 2.5, 1e-4, 40.0]))
    loss = SmoothLoss(LOSSES[name](), slope, float(draw.choice([0.1, 1e-3, 1e-7])))
    bent = norm * norm * loss.smoothness
    weight = bent * 2.0 ** float(draw.choice([-20, -19.5, -12, -3, 0, 6, 40, 300]))
    linear = (
        draw.standard_normal(features) * float(draw.choice([0.0, 1.0, 1e3, 1e6])) * slope * norm
    )
    tolerance = norm * slope * 2.0 ** float(draw.choice([-20, -17, -10, -3]))
    return Problem(Regularised(loss, weight, Point.of(linear), norm), x, y, tolerance)


def gradient_norm(of: Problem, point: Point) -> mpmath.mpf:
    """Return the norm of the gradient at a point, by the losses' own formulas, to 400 digits."""
    with mpmath.workdps(400):
        theta = [
            mpmath.mpf(int(whole)) / mpmath.mpf(2) ** point.exponent for whole in point.integers
        ]
        loss = of.sum.loss
        slope = mpmath.mpf(loss.slope)
        total = [
            mpmath.mpf(of.sum.weight) * t + mpmath.mpf(float(b))
            for t, b in zip(theta, of.sum.linear.values, strict=True)
        ]
        for row, label in zip(of.x.T, of.y, strict=True):
            cells = [mpmath.mpf(int(cell)) / CELLS for cell in row]
            margin = mpmath.fdot(cells, theta)
            steep = _slope(loss, margin, mpmath.mpf(int(label)) / CELLS)
            steep = min(max(steep, -slope), slope)
            total = [sum_ + steep * cell for sum_, cell in zip(total, cells, strict=True)]
        return mpmath.sqrt(mpmath.fsum(entry**2 for entry in total))


def _slope(loss: SmoothLoss, margin: mpmath.mpf, label: mpmath.mpf) -> mpmath.mpf:
    sign = 1 if label > 0 else -1
    match loss.base.name:
        case "squared":
            return 2 * (margin - label)
        case "huber":
            knee = mpmath.mpf(loss.base.knee)  # type: ignore[attr-defined]  # of Huber's loss
            return min(max(margin - label, -knee), knee)
        case "logistic":
            return -sign / (1 + mpmath.exp(sign * min(max(margin, -32), 32)))
        case _:
            return -sign * min(max((1 - sign * margin) / mpmath.mpf(loss.ramp), 0), 1)
