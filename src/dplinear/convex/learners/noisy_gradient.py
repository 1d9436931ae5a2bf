"""Noisy projected gradient descent over ΦC, with momentum, within one budget.

Bassily, Smith and Thakurta 2014 (arXiv 1405.7085v2), Algorithm 1, with whole gradients for sampled
ones and Nesterov's extrapolation. Steps are taken in the image's own space: the same descent in R^d
would be slowed by the norm of Φ, squared. Where the nearest point of ΦC takes a search, steps stay
in a ball around it, and only their end is brought back to ΦC: noise leaves more of such a path.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.adaptive.noisy_sums import Answer, Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.convex.compression.images import Image
from dplinear.convex.compression.nearest import Nearest, Stop, by_gradient
from dplinear.convex.examples import SlopeSum
from dplinear.convex.learners.common import (
    USUAL_ROWS,
    check_chained,
    check_method,
    check_steps,
    check_task,
    read_slope,
)
from dplinear.convex.learners.contract import (
    ConstrainedMechanism,
    Learned,
    Passes,
    PreparedConstrained,
    Task,
)
from dplinear.exact.row_sums import Count
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.noise.entropy import Entropy

STEPS = (5, 30)  # the fewest and the most, by default
RATE = 4.0
COUNTED = Fraction(1, 50)  # the share of the number of examples
_WHERE = "NoisyGradient"
_LEAST_ROWS = 10.0
_CLEAR = 100.0  # rows times μ that pay for a step
_LONGEST = 0.8  # of a step, times the curvature that was surely seen
_INNER = 20  # steps of a projection, each of which starts from the last one's end
_LAST = 300  # and of the last one
_TOLERANCE = 1e-4  # of the radius
_INSIDE = 1e-3


@dataclass(frozen=True, eq=False)
class PreparedGradient(PreparedConstrained):
    """Steps with a budget, ready to be taken once."""

    task: Task
    account: Account
    budget: Budget
    method: "NoisyGradient"
    steps: int
    slope: float

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Return where the steps end."""
        sums = NoisySums(examples, self.budget, entropy)
        (count,) = sums.ask([Query(Count(self.task.weighted), COUNTED)])
        # Biased up, so that steps err towards small.
        rows = max(float(count.values[0]) + count.sigma, _LEAST_ROWS)
        share = (1 - COUNTED) / self.steps
        length = self.method.rate / (rows * _curvature(self.task))
        walk = _Walk(self.task.image, length, self.method)
        for _ in range(self.steps):
            gradient = SlopeSum(self.task.frame, self.task.loss, walk.ahead, self.slope)
            (answer,) = sums.ask([Query(gradient, share)])
            walk.move(answer)
        facts = {
            "steps": self.steps,
            "slope": self.slope,
            "rate": self.method.rate,
            "momentum": self.method.momentum,
            "constrained": walk.constrained,
            "mu": self.budget.mu,
            "rows": rows,
            "spent": float(1 - sums.remaining),
        }
        theta, source = walk.end()
        return Learned(theta, source, self.account, facts)


@dataclass(frozen=True, kw_only=True)
class NoisyGradient(ConstrainedMechanism):
    """A point of ΦC by noisy gradients of all examples.

    Requires: bounded examples; `steps`, their number; `rate`, the length of a step, in units of
    what the largest curvature that examples can have allows (they share it among directions, so
    more than 1 is usual); `slope`, at which the loss's slopes are clipped (None: what margins in ΦC
    can reach, or 2 if that is less); whether steps have `momentum`; whether every step is
    `constrained` to ΦC, or only the last (None: every one if there is no Φ). All public. By default
    there are more steps, 5 to 30, the more rows are expected (`Task.rows`) and the larger ε is.
    Promises: `ApproxDP` or `ZCDP` of everything that is released together: a noisy number of
    examples, or the sum of their weights, which step lengths need, and the gradients. Numerics are
    exact.
    Departs from the paper: whole gradients; steps are shortened where the released gradients show
    more curvature than the rate expects.
    """

    steps: int | None = None
    rate: float = RATE
    slope: float | None = None
    momentum: bool = True
    constrained: bool | None = None
    name: ClassVar[str] = "noisy_gradient"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_method(self)
        check_chained(self)
        check_steps(self.steps, _WHERE)
        arguments.positive(self.rate, "rate", _WHERE)
        arguments.flag(self.momentum, "momentum", _WHERE)
        if self.constrained is not None:
            arguments.flag(self.constrained, "constrained", _WHERE)

    def prepare(self, task: Task) -> PreparedGradient:
        """Divide the guarantee among the count and the steps."""
        check_task(task, _WHERE)
        steps = self.steps or self._usual(task)
        budget = self._budget(task, steps)
        account = checks.exact_account(self.guarantee, budget.profile)
        slope = read_slope(task, self.slope, _WHERE)
        return PreparedGradient(task, account, budget, self, steps, slope)

    def _budget(self, task: Task, steps: int) -> Budget:
        coordinates = 1 + steps * task.image.dimension
        return Budget.of(self.guarantee, coordinates, self.neighbours, _WHERE)

    def _usual(self, task: Task) -> int:
        """Return a number of steps, by simulation: the more, the less noise there is."""
        fewest, most = STEPS
        clear = (task.rows or USUAL_ROWS) * self._budget(task, most).mu / _CLEAR
        return min(max(round(clear), fewest), most)


class _Walk:
    """Places near ΦC or in it, each a step from one a little `ahead` of the last."""

    def __init__(self, image: Image, length: float, method: NoisyGradient) -> None:
        self.image, self.length, self.momentum = image, length, method.momentum
        given = method.constrained
        self.constrained = image.map is None if given is None else given
        self.now = image.project(np.zeros(image.dimension))
        self.ahead = self.now.point
        self.taken = 0
        self._last: tuple[Floats, Answer] | None = None

    def move(self, gradient: Answer) -> None:
        """Take a step against a gradient that was released for the place ahead."""
        self._shorten(gradient)
        point = self.ahead - self.length * gradient.values
        before = self.now.point
        self.now = self._nearest(point)
        self._last = self.ahead, gradient
        self.taken += 1
        pull = (self.taken - 1) / (self.taken + 2) if self.momentum else 0.0
        self.ahead = self.now.point + pull * (self.now.point - before)

    def _shorten(self, gradient: Answer) -> None:
        """Step no further than curvature allows that is seen beyond two deviations of noise."""
        if self._last is None:
            return
        before, last = self._last
        way = self.ahead - before
        square = float(way @ way)
        noise = math.hypot(gradient.sigma, last.sigma) * math.sqrt(square)
        seen = float(way @ (gradient.values - last.values)) - 2 * noise
        if seen > 0:
            self.length = min(self.length, _LONGEST * square / seen)

    def end(self) -> tuple[Floats, Floats | None]:
        """Return the place, brought back to ΦC, and its θ: None where ΦC has it anyhow.

        Then many θ map to it, and which to take is for whoever lifts it.
        """
        if self.constrained:
            return self.now.point, self.now.source
        image, theta = self.image, self.now.point
        start = image.base.minimiser(-np.asarray(image.adjoint(theta)))
        found = self._in_image(theta, start, _LAST)
        inside = float(np.linalg.norm(found.point - theta)) <= _INSIDE * image.radius
        return found.point, None if inside else found.source

    def _nearest(self, point: Floats) -> Nearest:
        """Return a point of ΦC about as near as noise lets one see, or of the ball around it."""
        if self.constrained:
            return self._in_image(point, self.now.source, _INNER)
        size = max(float(np.abs(point).max()), 1e-300)  # squares of much noise are no floats
        length = size * max(float(np.linalg.norm(point / size)), 1.0)
        return Nearest(point * min(1.0, self.image.radius / length), self.now.source, 0.0)

    def _in_image(self, point: Floats, near: Floats, cap: int) -> Nearest:
        """Return a point of ΦC near to the nearest.

        By quick steps where C is a ball or simplex of perhaps many features: the exact nearest
        point would mix hundreds of them.
        """
        image, corners = self.image, self.image.base.atoms
        if image.map is None or corners is None or corners.matrix is not None:
            return image.project(point, _TOLERANCE, near=near)
        steepest = float(image.spectrum[0][-1]) * (1 + 1e-9)
        return by_gradient(image, point, near, steepest, Stop(_TOLERANCE * image.radius, cap))


def _curvature(task: Task) -> float:
    """Return the most curvature that an example can have; a slope that jumps counts as steep."""
    return min(task.loss.smoothness, 2.0) * task.frame.reach**2
