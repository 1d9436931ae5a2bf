"""What output and objective perturbation share: a strongly convex sum, and the way out of it.

Both minimise Σ v·ℓ(⟨z, ϑ⟩; y) + Λ‖ϑ‖²/2 over all of R^m, where gradients vanish at the minimum (v
is a row's weight: 1 where there are none), round what they find to a public lattice, add noise of
that lattice, and then take the nearest point of the image, which costs nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dplinear import arguments
from dplinear.arrays import BigIntegers
from dplinear.convex.certified_gradient import Point, Regularised
from dplinear.convex.example_blocks import CELLS
from dplinear.convex.learners.contract import Learned, Passes, Task
from dplinear.convex.minimiser import minimise
from dplinear.convex.smooth_losses import SmoothLoss
from dplinear.mechanisms.contract import Account
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.rounding import root_ceiling, up

# Times what a balance of bounds gives Λ: models are shorter than their set allows. Chosen on a few
# simulated tables, where 1 is mostly worse; text-like ones often gain by still more, others lose.
FIRM = 4.0
# βc²/Λ, at most, so that minima are found soon; and Λ, the square of which must be finite.
_MOST_BENT, _MOST_WEIGHT = 2.0**20, 2.0**400
# Slopes and noise beyond it have squares that are no floats: searches and projections would warn.
_MOST_SIZE = 1e120


@dataclass(frozen=True)
class Lattice:
    """Vectors of `size` integers over 2^`exponent`. Public, and so fine that it does not show."""

    size: int
    exponent: int

    @classmethod
    def within(cls, length: Fraction, size: int) -> "Lattice":
        """Return a lattice whose cells have a diagonal of at most `length`, above 0."""
        side = length / Fraction(root_ceiling(Fraction(size)))
        exponent = side.denominator.bit_length() - side.numerator.bit_length()
        # 2^−(exponent + 1) < side < 2^−(exponent − 1).
        return cls(size, exponent + 1)

    @property
    def step(self) -> Fraction:
        """What one integer is worth."""
        return 1 / Fraction(2) ** self.exponent

    @property
    def diagonal(self) -> Fraction:
        """√size·step, or a little more: roundings move two points apart by no more than that."""
        return Fraction(root_ceiling(Fraction(self.size))) * self.step

    def add(self, point: Point, noise: BigIntegers) -> Point:
        """Return a point, rounded to the lattice, plus noise in its units."""
        return Point(point.rounded(self.exponent).integers + noise, self.exponent)


@dataclass(frozen=True, eq=False)
class Sum:
    """A regularised sum of losses: public facts, and its approximate minimum over private rows.

    `norm` bounds rows, `gradient` the gradient of one row, `smoothness` its second derivative; what
    `minimum` returns has a gradient of norm at most `tolerance`, on any table: that is proved for
    each point that is returned (`certified_gradient.py`).
    """

    task: Task
    loss: SmoothLoss
    weight: float
    tolerance: float

    @property
    def norm(self) -> float:
        """The most that a row's norm can be."""
        return self.task.frame.norm / CELLS

    @property
    def gradient(self) -> float:
        """L, the most that the norm of a row's gradient can be."""
        return up(self.norm * self.loss.slope)

    @property
    def smoothness(self) -> float:
        """βc², the most that the norm of a row's second derivative can be."""
        return up(self.norm * self.norm * self.loss.smoothness)

    def findable(self, weight: float) -> float:
        """Return the Λ nearest to `weight` with which minima are found in reasonable time."""
        return min(max(weight, self.smoothness / _MOST_BENT), _MOST_WEIGHT)

    def minimum(self, examples: Passes, linear: Point, tolerance: float | None = None) -> Point:
        """Return about where the sum plus ⟨linear, ϑ⟩ is least: a point of exact numbers.

        Its gradient has norm at most `tolerance`, or the sum's own.
        """
        problem = Regularised(self.loss, self.weight, linear, self.norm)
        return minimise(problem, examples.blocks(), tolerance or self.tolerance)

    def learned_point(self, released: Point, account: Account, facts: Mapping[str, Any]) -> Learned:
        """Return the nearest point of the image: of a released place, so it is free."""
        nearest = self.task.image.project(released.values)
        known = {
            "regularisation": self.weight,
            "slope": self.loss.slope,
            "tolerance": self.tolerance,
            "projection_gap": nearest.gap,
            **facts,
        }
        return Learned(nearest.point, nearest.source, account, known)


def read_weight(one: Sum, weight: float, where: str) -> float:
    """Return a Λ that was given, if minima are found with it in reasonable time."""
    low, high = one.findable(0.0), one.findable(math.inf)
    hint = "elsewhere the minimum may take very long to find; left out, it is chosen."
    return arguments.real(weight, "regularisation", where, low=low, high=high, hint=hint)


def check_sizes(asked: Guarantee, one: Sum, noise: float, where: str) -> None:
    """Refuse slopes and noise that float64 cannot square, before anything is spent."""
    if not one.gradient <= _MOST_SIZE:
        rule = f"so small that a row's gradient is at most {_MOST_SIZE:g}"
        hint = "a smaller constraint set has smaller slopes, and so has a clip: slope=1.0."
        raise arguments.rejection("slope", where, rule, one.loss.slope, hint)
    if not noise <= _MOST_SIZE:
        hint = "that much noise leaves nothing of any table: ask for a larger ε, ρ or μ."
        raise arguments.rejection("guarantee", where, "within reach", asked, hint)


def smooth(task: Task, slope: float | None, ramp: float, where: str) -> SmoothLoss:
    """Return the task's loss with slopes clipped: by default where no margin in the image gets."""
    most = task.loss.steepest(task.frame.reach * task.image.radius)
    if slope is not None:
        most = min(arguments.positive(slope, "slope", where), most)
    return SmoothLoss(task.loss, most, ramp)
