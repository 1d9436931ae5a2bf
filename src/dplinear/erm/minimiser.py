"""The minimum of a regularised sum of losses over all of R^m, to a gradient of verified norm.

Newton's method: directions by conjugate gradients, so that features may be sparse, and steps by a
search for where the slope along the direction vanishes. What is minimised is Λ-strongly convex, so
a point whose gradient has norm g is within g/Λ of the minimum, however it was found.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dplinear.analyst.laws import Matrix
from dplinear.erm.examples import CELLS, Block
from dplinear.erm.smooth_losses import SmoothLoss
from dplinear.schema.cells import Floats

_MOST_STEPS = 1000  # ten or twenty are usual
_MOST_PRODUCTS = 250  # for each of them
_MOST_TRIALS = 200
# Half of the tolerance is left to rounding. Slopes are right to 4e-13, and sums of a block of 4096
# rows to 2^−41 of their size: enough for 2^22 rows at a tolerance of 2^−17 of a row's gradient.
_ROUNDING = 2.0


@dataclass(frozen=True, eq=False)
class Regularised:
    """Σ ℓ(⟨x, θ⟩; y) + Λ‖θ‖²/2 + ⟨linear, θ⟩: Λ is `weight`, rows have norm at most `norm`."""

    loss: SmoothLoss
    weight: float
    linear: Matrix
    norm: float


def minimise(problem: Regularised, blocks: Iterable[Block], tolerance: float) -> Matrix:
    """Return a point where the gradient's norm is at most `tolerance`.

    Promises: to end, and not to raise. In real numbers, a step lowers the sum by at least a fixed
    part of the gradient's square: with M ≥ all curvatures and −s the slope along a direction p at
    its start, the search stops where the slope is from −s/2 to s·√(Λ/4M), so that it lowers the sum
    by s²/(4M‖p‖²) or more; and s²/‖p‖² ≥ (Λ/M)²·‖gradient‖² for any number of conjugate gradients.
    Where float64 runs out before (Λ next to nothing), the best point is returned: an error would
    tell what rows there are.
    """
    rows = _Rows(list(blocks), problem)
    place = best = np.zeros(len(problem.linear))
    least = math.inf
    for _ in range(_MOST_STEPS):
        margins = rows.margins(place)
        gradient = rows.gradient(place, margins)
        norm = float(np.linalg.norm(gradient))
        if norm < least:
            best, least = place, norm
        if norm <= tolerance / _ROUNDING:
            break
        direction = _direction(rows, margins, gradient)
        place = place + _step(rows, place, margins, direction) * direction
    return best


class _Rows:
    """All rows, as what the steps need of them."""

    def __init__(self, blocks: list[Block], problem: Regularised) -> None:
        self.blocks, self.problem = blocks, problem
        self.labels = np.concatenate([np.zeros(0), *(block.labels for block in blocks)]) / CELLS
        self.steepest = problem.weight + problem.loss.smoothness * problem.norm**2 * max(
            len(self.labels), 1
        )

    def margins(self, direction: Matrix) -> Floats:
        """Return ⟨x, direction⟩, row by row."""
        parts = [np.asarray(direction @ block.features) for block in self.blocks]
        return np.asarray(np.concatenate([np.zeros(0), *parts]) / CELLS)

    def combination(self, weights: Floats) -> Matrix:
        """Return Σ weight·x."""
        total, start = np.zeros(len(self.problem.linear)), 0
        for block in self.blocks:
            stop = start + len(block.labels)
            total += np.asarray(block.features @ weights[start:stop])
            start = stop
        return np.asarray(total / CELLS)

    def gradient(self, place: Matrix, margins: Floats) -> Matrix:
        """Return the gradient at a place."""
        slopes = self.problem.loss.slopes(margins, self.labels)
        ridge = self.problem.weight * place
        return np.asarray(self.combination(slopes) + ridge + self.problem.linear)

    def slope(self, margins: Floats, along: Floats, rest: float) -> float:
        """Return the slope of the sum along a direction with these margins."""
        return float(self.problem.loss.slopes(margins, self.labels) @ along) + rest


def _direction(rows: _Rows, margins: Floats, gradient: Matrix) -> Matrix:
    """Return about −(second derivative)⁻¹·gradient, by conjugate gradients."""
    curvatures = rows.problem.loss.curvatures(margins, rows.labels)
    found, left = np.zeros_like(gradient), -gradient
    way, square = left, float(left @ left)
    # The smaller the gradient, the closer: so the last steps double the digits.
    enough = square * min(0.01, square / (square + rows.problem.weight**2))
    for _ in range(_MOST_PRODUCTS):
        curved = rows.combination(curvatures * rows.margins(way)) + rows.problem.weight * way
        length = square / float(way @ curved)
        found, left = found + length * way, left - length * curved
        before, square = square, float(left @ left)
        if square <= enough:
            break
        way = left + (square / before) * way
    return found


def _step(rows: _Rows, place: Matrix, margins: Floats, direction: Matrix) -> float:
    """Return how far to go: to where the slope along the direction has all but vanished."""
    problem, along = rows.problem, rows.margins(direction)
    fixed = float((problem.weight * place + problem.linear) @ direction)
    ridge = problem.weight * float(direction @ direction)

    def slope(step: float) -> float:
        return rows.slope(margins + step * along, along, fixed + step * ridge)

    low, step, high = 0.0, 1.0, math.inf
    start = -slope(0.0)
    down, top = start, 0.0
    most = start * math.sqrt(problem.weight / (4 * rows.steepest))
    for _ in range(_MOST_TRIALS):
        here = slope(step)
        if -start / 2 <= here <= most:
            break
        if here < 0:
            low, down = step, -here
        else:
            high, top = step, here
        if math.isinf(high):
            step *= 2
        else:
            # Where a line through both ends vanishes, but well within them.
            part = min(max(down / (down + top), 0.1), 0.9)
            step = low + part * (high - low)
    return step
