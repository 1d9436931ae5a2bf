"""Output perturbation: the minimum of a strongly convex sum of losses, plus noise.

Chaudhuri, Monteleoni and Sarwate 2011 (arXiv 0912.0071v5), Algorithm 1.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dplinear import arguments
from dplinear.arrays import BigIntegers
from dplinear.convex.certified_gradient import Point
from dplinear.convex.learners.common import USUAL_ROWS
from dplinear.convex.learners.contract import (
    ConstrainedMechanism,
    Learned,
    Passes,
    PreparedConstrained,
    Task,
)
from dplinear.convex.learners.perturbation import (
    FIRM,
    Lattice,
    Sum,
    check_sizes,
    read_weight,
    smooth,
)
from dplinear.convex.smooth_losses import HINGE_RAMP
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.noise.entropy import Entropy
from dplinear.noise.rounded_normals import rounded_normals
from dplinear.noise.spherical import spherical_laplace_integers
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import MIDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.profiles.gaussian import Gaussian
from dplinear.privacy.profiles.laplace import Pure
from dplinear.privacy.rounding import ceiling, up

_WHERE = "OutputPerturbation"
_FINE = Fraction(1, 1 << 24)  # a diagonal of the lattice, as a part of what a row moves
_LEAST = 1e-290  # below it floats lose digits, and no rounding up can be relied upon


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(ConstrainedMechanism):
    """The minimum over R^m of Σ ℓ + Λ‖ϑ‖²/2, plus noise, then the nearest point of the image.

    Requires: `guarantee`, PureDP for noise of density ∝ exp(−ε‖b‖/Δ), or ApproxDP, ZCDP or GDP for
    normal noise. `regularisation` Λ, by default as for a table of the task's order of rows; `slope`
    at which losses' slopes are clipped; `tolerance`, as a part of L; `ramp` that stands for the
    hinge's jump: all public.
    Promises: the sensitivity of what is found is (L + 2τ)/Λ, or (2L + 2τ)/Λ if rows are replaced,
    L = slope·norm and τ the tolerance. For let e, e' be the gradients, of norm at most τ, at the
    points found for neighbours, and g that of the rows that differ, at the first point:
    Λ‖ϑ − ϑ'‖² ≤ ⟨e + g − e', ϑ − ϑ'⟩ by strong convexity. No smoothness is needed. Where rows have
    weights that add up to at most 1 for a unit of privacy, its gradient Σ v·g has norm at most L as
    well. Rounded to a
    public lattice of `step`, two points are at most √m·step farther apart: that is Δ. What is added
    is the same noise rounded to the lattice, exactly; and a point of the lattice plus rounded noise
    is the rounding of their sum, so that the guarantee is the ideal noise's, to the last bit.
    Departs from the paper: sums, not means, so n is no part of it; a tolerance and a lattice,
    counted.
    """

    regularisation: float | None = None
    slope: float | None = None
    tolerance: float = 2.0**-10
    ramp: float = HINGE_RAMP
    name: ClassVar[str] = "output_perturbation"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        arguments.real(self.tolerance, "tolerance", _WHERE, low=2.0**-20, high=1)
        if self.regularisation is not None:
            arguments.positive(self.regularisation, "regularisation", _WHERE)
        if isinstance(self.guarantee, MIDP):
            hint = "bits are counted for single cells, and a row has many: ask for ε, or ε and δ."
            rule = "a PureDP, ApproxDP, ZCDP or GDP guarantee"
            raise arguments.wrong_type("guarantee", _WHERE, rule, self.guarantee, hint)

    def prepare(self, task: Task) -> "PreparedOutput":
        """Choose Λ and the noise."""
        loss = smooth(task, self.slope, self.ramp, _WHERE)
        steps = 2 if self.neighbours is Neighbours.REPLACE else 1
        one = Sum(task, loss, 1.0, 0.0)
        tolerance = self.tolerance * one.gradient
        moved = up(steps * one.gradient + 2 * tolerance)
        if self.regularisation is None:
            scale = _noise(self.guarantee, moved)
            weight = _balance_weight(one, scale * scale * self._spread(task.frame.features))
        else:
            weight = read_weight(one, self.regularisation, _WHERE)
        found = (steps * Fraction(one.gradient) + 2 * Fraction(tolerance)) / Fraction(weight)
        lattice = Lattice.within(found * _FINE, task.frame.features)
        sensitivity = ceiling(found + lattice.diagonal)
        if sensitivity < _LEAST:
            rule = f"small enough that a row moves the minimum by {_LEAST:g} or more"
            raise arguments.rejection("regularisation", _WHERE, rule, weight)
        scale = _noise(self.guarantee, sensitivity)
        check_sizes(self.guarantee, one, scale, _WHERE)
        account = checks.exact_account(self.guarantee, self._profile(sensitivity / scale))
        sum_ = Sum(task, loss, weight, tolerance)
        return PreparedOutput(task, account, sum_, lattice, sensitivity, scale)

    def _spread(self, features: int) -> float:
        """Return the variance of one coordinate, in squares of the scale."""
        return features + 1.0 if isinstance(self.guarantee, PureDP) else 1.0

    def _profile(self, ratio: float) -> Profile:
        if isinstance(self.guarantee, PureDP):
            return Pure(self.guarantee.epsilon, self.neighbours)
        return Gaussian(up(ratio), self.neighbours)


@dataclass(frozen=True, eq=False)
class PreparedOutput(PreparedConstrained):
    """Noise of a known `scale`, ready to be added once: a standard deviation, or that of norms."""

    task: Task
    account: Account
    sum: Sum
    lattice: Lattice
    sensitivity: float
    scale: float

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Minimise, round, add noise, and project."""
        minimum = self.sum.minimum(examples, Point.zero(self.task.frame.features))
        noisy = self.lattice.add(minimum, self._noise(entropy))
        step = float(self.lattice.step)
        facts = {"sensitivity": self.sensitivity, "scale": self.scale, "step": step}
        return self.sum.learned_point(noisy, self.account, facts)

    def _noise(self, entropy: Entropy) -> BigIntegers:
        """Draw noise in units of the lattice; it depends on nothing private."""
        features, scale = self.task.frame.features, Fraction(self.scale) / self.lattice.step
        if isinstance(self.account.asked, PureDP):
            return spherical_laplace_integers(scale, features, entropy=entropy)
        return rounded_normals(scale, features, entropy=entropy)


def _noise(guarantee: Guarantee, sensitivity: float) -> float:
    """Return the scale of the noise for a sensitivity in the Euclidean norm."""
    if isinstance(guarantee, PureDP):
        return up(sensitivity / guarantee.epsilon)
    return calibrate.gaussian(guarantee, sensitivity)


def _balance_weight(one: Sum, variance: float) -> float:
    """Return the Λ that makes Λr²/2 + n·β/2·E⟨z, noise⟩² least, times 4; noise of `variance`/Λ².

    n is the task's order of magnitude, and β no more than 2, where a ramp is steeper.
    """
    curvature = min(one.loss.smoothness, 2.0)
    risk = (one.task.rows or USUAL_ROWS) * curvature / 2 * one.norm**2 * variance
    radius = one.task.image.radius
    if not radius:  # a sparse Φ that is 0 everywhere: there is one point, and nothing to find
        return one.findable(FIRM)
    ratio = math.sqrt(risk) / radius  # whose square may be no float
    return one.findable(FIRM * float((2 * ratio) ** (2 / 3)))
