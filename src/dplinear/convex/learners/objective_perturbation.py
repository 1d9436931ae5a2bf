"""Objective perturbation: the minimum of a sum of losses that has a random slope added to it.

Kifer, Smith and Thakurta 2012 (COLT), with the privacy of `profiles/objective.py`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from dplinear import arguments
from dplinear.convex.learners.contract import (
    ConstrainedMechanism,
    Learned,
    Passes,
    PreparedConstrained,
    Task,
)
from dplinear.convex.learners.perturbation import FIRM, Sum, read_weight, smooth
from dplinear.convex.smooth_losses import HINGE_RAMP
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.noise.entropy import Entropy
from dplinear.noise.wishart import standard_normal
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.profiles.objective import Objective, largest_mu
from dplinear.privacy.rounding import up

_WHERE = "ObjectivePerturbation"
_BENT = 1 / 16  # of ε: what ln(1 + βc²/Λ) takes where Λ is not given
_OUTPUT = 1 / 16  # μ of the output's noise, as a part of that of the slope


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(ConstrainedMechanism):
    """The minimum over R^m of Σ ℓ + Λ‖ϑ‖²/2 + ⟨b, ϑ⟩, plus a little noise, then projected.

    Requires: an ApproxDP `guarantee` with δ above 0. `regularisation` Λ, above βc²/(e^ε − 1), by
    default what a table without any pattern would ask for; `slope` at which losses' slopes are
    clipped; `tolerance`, as a part of L; `ramp` that stands for the hinge's jump: all public.
    Promises: `profiles.Objective`, for slopes that are clipped and Lipschitz, as those of the
    squared, logistic and Huber losses and of the ramped hinge are. The minimum is not exact: the
    point that is found is within τ/Λ of it, where τ is the tolerance. Given the minimum, which has
    the same law either way, the points found for neighbours are at most 2τ/Λ apart, so the normal
    noise that is added hides them with μ = 2τ/(Λ·σ_out), composed with the minimum's own profile.
    Departs from the paper: sums, not means; normal noise; an approximate minimum.
    """

    regularisation: float | None = None
    slope: float | None = None
    tolerance: float = 2.0**-17
    ramp: float = HINGE_RAMP
    name: ClassVar[str] = "objective_perturbation"
    numerics: ClassVar[str] = "idealised"

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
        sigma = up(sum_.gradient / mu)
        output = up(2 * sum_.tolerance / (weight * _OUTPUT * mu))
        profile = Objective(mu, up(one.smoothness / weight), up(_OUTPUT * mu), self.neighbours)
        return PreparedObjective(task, checks.exact_account(asked, profile), sum_, sigma, output)


@dataclass(frozen=True, eq=False)
class PreparedObjective(PreparedConstrained):
    """A slope of standard deviation `sigma` and output noise of `output`, ready to learn once."""

    task: Task
    account: Account
    sum: Sum
    sigma: float
    output: float

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Minimise, add noise, and project."""
        features = self.task.frame.features
        linear = self.sigma * standard_normal(features, entropy=entropy)
        minimum = self.sum.minimum(examples, linear)
        noise = self.output * standard_normal(features, entropy=entropy)
        facts = {"sigma": self.sigma, "output_sigma": self.output}
        return self.sum.learned_point(minimum.plus(noise), self.account, facts)


def _growth(epsilon: float) -> float:
    """Return e^ε − 1, or a large number that is below it."""
    return math.expm1(min(epsilon, 100.0))
