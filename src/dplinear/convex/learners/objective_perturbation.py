"""Objective perturbation: the minimum of a sum of losses that has a random slope added to it.

Kifer, Smith and Thakurta 2012 (COLT), with the privacy of `profiles/objective.py`.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dplinear import arguments
from dplinear.convex.certified_gradient import Point
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
from dplinear.noise.normals import normals
from dplinear.noise.rounded_normals import rounded_normals
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.profiles.objective import Objective, largest_mu
from dplinear.privacy.rounding import ceiling, up

_WHERE = "ObjectivePerturbation"
_BENT = 1 / 16  # of ε: what ln(1 + βc²/Λ) takes where Λ is not given
_OUTPUT = 1 / 16  # μ of the output's noise, as a part of that of the slope
_LEAST = 1e-290  # below it floats lose digits, and no rounding up can be relied upon
_FINE = Fraction(1, 1 << 8)  # a diagonal of the lattice, as a part of τ/Λ
_CUT = 10  # the slope's digits are cut at 2^−_CUT of τ, which is left out of what is asked for


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(ConstrainedMechanism):
    """The minimum over R^m of Σ ℓ + Λ‖ϑ‖²/2 + ⟨b, ϑ⟩, plus a little noise, then projected.

    Requires: an ApproxDP `guarantee` with δ above 0. `regularisation` Λ, above βc²/(e^ε − 1), by
    default what a table without any pattern would ask for; `slope` at which losses' slopes are
    clipped; `tolerance`, as a part of L; `ramp` that stands for the hinge's jump: all public.
    Promises: `profiles.Objective`, for slopes that are clipped and Lipschitz, as those of the
    squared, logistic and Huber losses and of the ramped hinge are. b is normal, exactly: a real
    number of which as many digits are drawn as keep what is cut off below a part of the tolerance
    τ. The minimum is not exact: the point that is found has a gradient of norm at most τ, what b
    was cut by included, so it is within τ/Λ of the ideal minimum, and once it is rounded to a
    public lattice, within r = τ/Λ + √m·step/2. Given the minimum, which has the same law either
    way, the points for neighbours are at most 2r apart, so the normal noise that is added hides
    them with μ = 2r/σ_out, composed with the minimum's own profile. That noise is rounded to the
    lattice, exactly: a point of it plus rounded noise is the rounding of their sum.
    Enclosing the minimum itself, to round it without noise, would take gradients to as many digits
    as the lattice has, and a second pass whenever a digit is open; the noise costs less than a
    hundredth of ε.
    Rows may have weights v in [0, 1]: v·ℓ is a loss of margins, with slopes that are no steeper.
    Units of privacy are refused: the proof is about one margin, and a unit has many.
    Departs from the paper: sums, not means; normal noise; an approximate minimum.
    """

    regularisation: float | None = None
    slope: float | None = None
    tolerance: float = 2.0**-17
    ramp: float = HINGE_RAMP
    name: ClassVar[str] = "objective_perturbation"
    numerics: ClassVar[str] = "exact"
    for_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        checks.approximate(self.guarantee, _WHERE, "normal noise")
        arguments.real(self.tolerance, "tolerance", _WHERE, low=2.0**-20, high=1)
        if self.regularisation is not None:
            arguments.positive(self.regularisation, "regularisation", _WHERE)

    def prepare(self, task: Task) -> "PreparedObjective":
        """Choose Λ, the slope's noise and the output's."""
        loss = smooth(task, self.slope, self.ramp, _WHERE)
        one = Sum(task, loss, 1.0, 0.0)
        asked = self.guarantee
        assert isinstance(asked, ApproxDP)  # noqa: S101 - checked when it was made
        weight = one.findable(one.smoothness / _growth(_BENT * asked.epsilon))
        if self.regularisation is not None:
            weight = read_weight(one, self.regularisation, _WHERE)
        limit = one.smoothness / _growth(asked.epsilon)
        if weight <= limit * (1 + 1e-9):
            rule = f"above βc²/(e^ε − 1) = {limit:.6g}"
            hint = "with less, one row can bend the sum by more than ε; left out, it is chosen."
            raise arguments.rejection("regularisation", _WHERE, rule, weight, hint)
        mu = largest_mu(asked, up(one.smoothness / weight), _OUTPUT, self.neighbours)
        if self.regularisation is None:
            # Where rows say nothing of a coefficient, its noise is σ/Λ: about the image's size.
            # A projection that happens to be 0 leaves no room for any.
            reach = task.image.radius or math.inf
            blind = one.gradient / mu * math.sqrt(task.frame.features) / reach
            weight = one.findable(max(weight, FIRM * blind))
            mu = largest_mu(asked, up(one.smoothness / weight), _OUTPUT, self.neighbours)
        sum_ = Sum(task, loss, weight, self.tolerance * one.gradient)
        if min(sum_.gradient, sum_.tolerance) < _LEAST:
            rule = f"so large that slopes, and the tolerance, are at least {_LEAST:g}"
            raise arguments.rejection("slope", _WHERE, rule, self.slope)
        sigma = up(sum_.gradient / mu)
        check_sizes(asked, one, sigma, _WHERE)
        near = Fraction(sum_.tolerance) / Fraction(weight)
        lattice = Lattice.within(near * _FINE, task.frame.features)
        output = ceiling((2 * near + lattice.diagonal) / (Fraction(_OUTPUT) * Fraction(mu)))
        profile = Objective(mu, up(one.smoothness / weight), up(_OUTPUT * mu), self.neighbours)
        account = checks.exact_account(asked, profile)
        return PreparedObjective(task, account, sum_, lattice, sigma, output)


@dataclass(frozen=True, eq=False)
class PreparedObjective(PreparedConstrained):
    """A slope of standard deviation `sigma` and output noise of `output`, ready to learn once."""

    task: Task
    account: Account
    sum: Sum
    lattice: Lattice
    sigma: float
    output: float

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Minimise, round, add noise, and project."""
        minimum = self.sum.minimum(examples, self._slope(entropy), self._left)
        scale = Fraction(self.output) / self.lattice.step
        noise = rounded_normals(scale, self.task.frame.features, entropy=entropy)
        step = float(self.lattice.step)
        facts = {"sigma": self.sigma, "output_sigma": self.output, "step": step}
        return self.sum.learned_point(self.lattice.add(minimum, noise), self.account, facts)

    @property
    def _left(self) -> float:
        """What is left of the tolerance for the gradient: all but twice what b is cut by."""
        return self.sum.tolerance * (1 - 2.0 ** (1 - _CUT))

    def _slope(self, entropy: Entropy) -> Point:
        """Draw b, cut where ‖what is left out‖ ≤ σ·√m·2^−precision ≤ τ·2^−_CUT."""
        features = self.task.frame.features
        above = math.frexp(self.sigma)[1] + (features.bit_length() + 1) // 2
        precision = max(above - math.frexp(self.sum.tolerance)[1] + 1 + _CUT, 0)
        numerator, denominator = self.sigma.as_integer_ratio()
        digits = normals(features, entropy=entropy).integers(precision)
        return Point(digits * numerator, precision + denominator.bit_length() - 1)


def _growth(epsilon: float) -> float:
    """Return e^ε − 1, or a large number that is below it."""
    return math.expm1(min(epsilon, 100.0))
