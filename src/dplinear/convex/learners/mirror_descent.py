"""Noisy mirror descent over mixtures of extreme points: multiplicative weights, noisy gradients.

Talwar, Thakurta and Zhang 2015 (arXiv 1411.5417v3), Section 3, with the entropy as the mirror: the
weights of the extreme points fall exponentially with the sum of their scores. Scores are products
with noisy gradients, so all but the gradients is processing.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from dplinear import arguments
from dplinear.adaptive.noisy_sums import Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.convex.examples import SlopeSum
from dplinear.convex.learners.common import (
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
from dplinear.convex.sets.contract import Atoms
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.noise.entropy import Entropy

STEPS = 60
RATE = 3.0
_WHERE = "MirrorDescent"


@dataclass(frozen=True, eq=False)
class PreparedMirror(PreparedConstrained):
    """Steps with a budget, ready to be taken once."""

    task: Task
    account: Account
    budget: Budget
    method: "MirrorDescent"
    steps: int
    slope: float
    atoms: Atoms
    corners: Atoms

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Return where the steps end, or the mean of the later half of them."""
        image = self.task.image
        sums = NoisySums(examples, self.budget, entropy)
        total, squares = np.zeros(self.atoms.count), 0.0
        source, later = mixture(self.corners, total), []
        for step in range(self.steps):
            theta = image.forward(source)
            gradient = SlopeSum(self.task.frame, self.task.loss, theta, self.slope)
            (answer,) = sums.ask([Query(gradient, Fraction(1, self.steps))])
            scores = self.atoms.scores(answer.values)
            total, squares = total + scores, squares + spread(scores, self.corners) ** 2
            # As large as the scores so far allow, whatever their unit: no number of rows is needed.
            rate = self.method.rate * math.sqrt(math.log(self.atoms.total) / (squares or 1.0))
            source = mixture(self.corners, rate * total)
            if 2 * step >= self.steps - 1:
                later.append(source)
        found = np.mean(later, axis=0) if self.method.average else source
        facts = {
            "steps": self.steps,
            "slope": self.slope,
            "rate": self.method.rate,
            "average": self.method.average,
            "mu": self.budget.mu,
            "spent": float(1 - sums.remaining),
        }
        return Learned(image.forward(found), found, self.account, facts)


@dataclass(frozen=True, kw_only=True)
class MirrorDescent(ConstrainedMechanism):
    """A point of ΦC, C the hull of a list of points, by multiplicative weights.

    Requires: bounded examples; a set whose extreme points can be listed; `steps`, their number;
    `rate`, of the weights' fall, in units of what is best for adversarial scores; `slope`, at which
    the loss's slopes are clipped (None: what margins in ΦC can reach, or 2 if that is less);
    whether the later half of the places is averaged, as the last may swing.
    All public; no number of examples is used.
    Promises: `ApproxDP` or `ZCDP` of all gradients together. Numerics are exact.
    Departs from the paper: rates follow the released scores.
    """

    steps: int | None = None
    rate: float = RATE
    slope: float | None = None
    average: bool = True
    name: ClassVar[str] = "mirror_descent"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_method(self)
        check_chained(self)
        check_steps(self.steps, _WHERE)
        arguments.positive(self.rate, "rate", _WHERE)
        arguments.flag(self.average, "average", _WHERE)

    def prepare(self, task: Task) -> PreparedMirror:
        """Divide the guarantee among the steps."""
        check_task(task, _WHERE)
        atoms, corners = task.image.atoms, task.image.base.atoms
        if atoms is None or corners is None:
            rule = "one whose extreme points can be listed"
            hint = 'the L1 ball, the simplex and polytopes have such; "noisy_gradient" takes any.'
            raise arguments.rejection("constraint", _WHERE, rule, task.image.base.name, hint)
        steps = self.steps or STEPS
        coordinates = steps * task.image.dimension
        budget = Budget.of(self.guarantee, coordinates, self.neighbours, _WHERE)
        account = checks.exact_account(self.guarantee, budget.profile)
        slope = read_slope(task, self.slope, _WHERE)
        return PreparedMirror(task, account, budget, self, steps, slope, atoms, corners)


def mixture(corners: Atoms, exponents: Floats) -> Floats:
    """Return the mixture with weights ∝ exp(−exponent); opposites have minus the exponent."""
    both = np.concatenate((-exponents, exponents)) if corners.signed else -exponents
    weights = softmax(both)
    if corners.signed:
        weights = weights[: corners.count] - weights[corners.count :]
    matrix = weights if corners.matrix is None else corners.matrix @ weights
    return np.asarray(corners.size * matrix)


def spread(scores: Floats, corners: Atoms) -> float:
    """Return half the distance from the least score to the largest, opposites included."""
    if corners.signed:
        return float(np.abs(scores).max())
    return float(scores.max() - scores.min()) / 2
