"""The minimum of a regularised sum of losses over all of R^m, to a gradient of certified norm.

Newton's method: directions by conjugate gradients, so that features may be sparse, and steps by a
search for where the slope along the direction vanishes. What is minimised is Λ-strongly convex, so
a point whose gradient has norm g is within g/Λ of the minimum, however it was found. How directions
and steps are found is float64's matter; where it ends is decided by `certified_gradient.py` alone.
"""

import math
from collections.abc import Iterable

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.certified_gradient import CertifiedRows, Gradient, Point, Regularised
from dplinear.convex.example_blocks import CELLS, Block

_PRODUCTS = 250  # of conjugate gradients at first; twice as many whenever they were too few
_MOST_TRIALS = 200
_HALF = 0.5
_CLOSEST = 2.0**-90  # of a squared residual: no closer than float64 can tell


def minimise(problem: Regularised, blocks: Iterable[Block], tolerance: float) -> Point:
    """Return a point where the exact gradient's norm is at most `tolerance`, whatever the rows.

    Requires: Λ and `tolerance` above 0; examples of verified norm.
    Promises: the bound is proved for the point that is returned, rounding included: it is a vector
    of exact numbers, which float64 may not hold (Λ next to nothing, many rows). Nothing raises.
    It ends: in real numbers, a step lowers the sum by at least a fixed part of the gradient's
    square: with M ≥ all curvatures and −s the slope along a direction p at its start, the search
    stops where the slope is from −s/2 to s·√(Λ/4M), so that it lowers the sum by s²/(4M‖p‖²) or
    more; and s²/‖p‖² ≥ (Λ/M)²·‖gradient‖² for any number of conjugate gradients. Where float64
    does not see slopes well enough for that, so that a step does not halve the gradient, slopes are
    those of certified gradients; and where the error of these is in the way, of exact ones.
    """
    rows = _Rows(list(blocks), problem)
    point, exact, products = rows.start(tolerance), False, _PRODUCTS
    found = rows.gradient(point, tolerance)
    while found.norm > tolerance:
        if not exact and found.error > tolerance / 4:
            exact, found = True, rows.gradient(point, tolerance, exact=True)
            continue
        direction = rows.direction(found, products)
        step = rows.step(point, found, direction)
        trial = point.move(step * direction)
        after = rows.gradient(trial, tolerance, exact=exact)
        if not after.norm <= found.norm * _HALF:
            products *= 2
            trial, after = _search_along(rows, point, found, direction, tolerance, exact=exact)
        point, found = trial, after
    return point


def _search_along(
    rows: "_Rows",
    point: Point,
    found: Gradient,
    direction: Floats,
    tolerance: float,
    *,
    exact: bool,
) -> tuple[Point, Gradient]:
    """Return where the certified slope along a direction has all but vanished."""
    start = -float(found.values @ direction)
    if not start > 0:  # rounding turned the direction: downhill is a way, too
        direction, start = -found.values, float(found.values @ found.values)
    most = start * math.sqrt(rows.problem.weight / (4 * rows.steepest))
    search = _Search(start)
    while True:
        trial = point.move(search.step * direction)
        after = rows.gradient(trial, tolerance, exact=exact)
        slope = float(after.values @ direction)
        if after.norm <= tolerance or search.narrow or -start / 2 <= slope <= most:
            return trial, after
        search.tell(slope)


class _Search:
    """A search for where a rising function, −`start` at 0, vanishes."""

    def __init__(self, start: float) -> None:
        self.step = 1.0
        self._low, self._down = 0.0, start
        self._high, self._top = math.inf, 0.0

    @property
    def narrow(self) -> bool:
        """Whether float64 has no step between the two ends, or none beyond them."""
        return not self._low < self.step < self._high or math.isinf(self.step)

    def tell(self, slope: float) -> None:
        """Take note of the slope at `step`, and choose the next one."""
        if slope < 0:
            self._low, self._down = self.step, -slope
        else:
            self._high, self._top = self.step, slope
        if math.isinf(self._high):
            self.step *= 2
        else:
            # Where a line through both ends vanishes, but well within them.
            part = min(max(self._down / (self._down + self._top), 0.1), 0.9)
            self.step = self._low + part * (self._high - self._low)


class _Rows(CertifiedRows):
    """All rows, as what directions and steps need of them, in float64."""

    def __init__(self, blocks: list[Block], problem: Regularised) -> None:
        super().__init__(blocks, problem)
        self.steepest = problem.weight + problem.loss.smoothness * problem.norm**2 * max(
            self.count, 1
        )

    def _along(self, direction: Floats) -> Floats:
        """Return ⟨x, direction⟩, row by row."""
        parts = [np.asarray(direction @ block.features) for block in self.blocks]
        return np.asarray(np.concatenate([np.zeros(0), *parts]) / CELLS)

    def _combination(self, weights: Floats) -> Floats:
        """Return Σ weight·x."""
        total, start = np.zeros(self.problem.features), 0
        for block in self.blocks:
            stop = start + len(block.labels)
            total += np.asarray(block.features @ weights[start:stop])
            start = stop
        return np.asarray(total / CELLS)

    def direction(self, found: Gradient, products: int) -> Floats:
        """Return about −(second derivative)⁻¹·gradient, by conjugate gradients."""
        curvatures = self.problem.loss.curvatures(found.margins, self.labels) * self.weights
        # In units of the largest entry, so that no square is too small or too large.
        peak = float(np.abs(found.values).max())
        left = -found.values / peak
        reached, way, square = np.zeros_like(left), left, float(left @ left)
        # The smaller the gradient, the closer: so the last steps double the digits.
        weight = self.problem.weight / peak
        enough = square * min(0.01, max(square / (square + weight * weight), _CLOSEST))
        for _ in range(products):
            curved = self._combination(curvatures * self._along(way)) + self.problem.weight * way
            length = square / float(way @ curved)
            reached, left = reached + length * way, left - length * curved
            before, square = square, float(left @ left)
            if square <= enough or not square:
                break
            way = left + (square / before) * way
        return reached * peak

    def step(self, point: Point, found: Gradient, direction: Floats) -> float:
        """Return how far to go: to where the slope along the direction has all but vanished."""
        problem, along, loss = self.problem, self._along(direction), self.problem.loss
        weighted = self.weights * along
        fixed = float((problem.weight * point.values + problem.linear.values) @ direction)
        ridge = problem.weight * float(direction @ direction)
        start = -float(found.values @ direction)
        most = start * math.sqrt(problem.weight / (4 * self.steepest))
        search = _Search(start)
        for _ in range(_MOST_TRIALS):
            margins = found.margins + search.step * along
            slope = float(loss.slopes(margins, self.labels) @ weighted)
            slope += fixed + search.step * ridge
            if -start / 2 <= slope <= most or search.narrow:
                break
            search.tell(slope)
        return search.step
