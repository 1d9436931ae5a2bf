"""Output perturbation: the minimum of a strongly convex sum of losses, plus noise.

Chaudhuri, Monteleoni and Sarwate 2011 (arXiv 0912.0071v5), Algorithm 1.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.convex.learners.common import USUAL_ROWS
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
from dplinear.noise.spherical import spherical_laplace
from dplinear.noise.wishart import standard_normal
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import MIDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.profiles.gaussian import Gaussian
from dplinear.privacy.profiles.laplace import Pure
from dplinear.privacy.rounding import up

_WHERE = "OutputPerturbation"
_LEAST = 1e-290  # below it floats lose digits, and no rounding up can be relied upon


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(ConstrainedMechanism):
    """The minimum over R^m of Σ ℓ + Λ‖ϑ‖²/2, plus noise, then the nearest point of the image.

    Requires: `guarantee`, PureDP for noise of density ∝ exp(−ε‖b‖/Δ), or ApproxDP, ZCDP or GDP for
    normal noise. `regularisation` Λ, by default as for a table of the task's order of rows; `slope`
    at which losses' slopes are clipped; `tolerance`, as a part of L; `ramp` that stands for the
    hinge's jump: all public.
    Promises: the sensitivity of what is found is Δ = (L + 2τ)/Λ, or (2L + 2τ)/Λ if rows are
    replaced, L = slope·norm and τ the tolerance. For let e, e' be the gradients, of norm at most τ,
    at the points found for neighbours, and g that of the rows that differ, at the first point:
    Λ‖ϑ − ϑ'‖² ≤ ⟨e + g − e', ϑ − ϑ'⟩ by strong convexity. No smoothness is needed.
    Departs from the paper: sums, not means, so n is no part of it; a tolerance, counted.
    """

    regularisation: float | None = None
    slope: float | None = None
    tolerance: float = 2.0**-10
    ramp: float = HINGE_RAMP
    name: ClassVar[str] = "output_perturbation"
    numerics: ClassVar[str] = "idealised"

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
        sensitivity = up(moved / weight)
        if sensitivity < _LEAST:
            rule = f"small enough that a row moves the minimum by {_LEAST:g} or more"
            raise arguments.rejection("regularisation", _WHERE, rule, weight)
        scale = _noise(self.guarantee, sensitivity)
        account = checks.exact_account(self.guarantee, self._profile(sensitivity / scale))
        return PreparedOutput(task, account, Sum(task, loss, weight, tolerance), sensitivity, scale)

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
    sensitivity: float
    scale: float

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Minimise, add noise, and project."""
        minimum = self.sum.minimum(examples, np.zeros(self.task.frame.features))
        facts = {"sensitivity": self.sensitivity, "scale": self.scale}
        return self.sum.learned_point(minimum.plus(self._noise(entropy)), self.account, facts)

    def _noise(self, entropy: Entropy) -> Floats:
        features = self.task.frame.features
        if isinstance(self.account.asked, PureDP):
            return spherical_laplace(self.scale, features, entropy=entropy)
        return self.scale * standard_normal(features, entropy=entropy)


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
