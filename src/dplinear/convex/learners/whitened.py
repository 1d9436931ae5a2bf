"""Whitened descent on projected examples, brought back to ΦC.

The descents of `whitened_descent.py`, `huber_descent.py` and `logistic_descent.py` know no
constraint: they look for the best ϑ of all, in coordinates of equal size, and the nearest point of
ΦC is taken in the end, which is processing.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from dplinear import arguments
from dplinear.adaptive.noisy_sums import NoisySums
from dplinear.convex.example_blocks import CELLS
from dplinear.convex.examples import Frame
from dplinear.convex.learners.common import check_chained, check_method, check_task
from dplinear.convex.learners.contract import (
    ConstrainedMechanism,
    Learned,
    Passes,
    PreparedConstrained,
    Task,
)
from dplinear.descent.common import Descent, PreparedDescent
from dplinear.descent.huber import HuberDescent
from dplinear.descent.logistic import LogisticDescent
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact.design import Design
from dplinear.mechanisms.contract import Account
from dplinear.noise.entropy import Entropy

DESCENTS: dict[str, type[Descent]] = {
    "squared": WhitenedDescent,
    "huber": HuberDescent,
    "logistic": LogisticDescent,
}
_WHERE = "Whitened"
_MOST_FEATURES = 2000  # a Gram matrix of so many is the most that is inverted in seconds


@dataclass(frozen=True, eq=False)
class PreparedWhitened(PreparedConstrained):
    """A descent with a budget, ready to run once."""

    task: Task
    account: Account
    descent: PreparedDescent

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Return the nearest point of ΦC to where the descent ends."""
        solution = self.descent.descend(NoisySums(examples, self.descent.budget, entropy))
        nearest = self.task.image.project(solution.coefficients)
        facts: dict[str, Any] = {**solution.parameters, "outside": nearest.gap}
        return Learned(nearest.point, nearest.source, self.account, facts)


@dataclass(frozen=True, kw_only=True)
class Whitened(ConstrainedMechanism):
    """A point of ΦC next to where a whitened descent without constraint ends.

    Requires: dense bounded examples; the squared loss, Huber's or the logistic one.
    Promises: `ApproxDP` or `ZCDP` of everything that the descent releases. Numerics are exact.
    Departs from the task's loss: Huber's knee is at 1.345 of the residuals' scale, whatever the
    task's is.
    """

    name: ClassVar[str] = "whitened"
    numerics: ClassVar[str] = "exact"
    dense: ClassVar[bool] = True
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_method(self)
        check_chained(self)

    def prepare(self, task: Task) -> PreparedWhitened:
        """Calibrate the descent of the task's loss."""
        check_task(task, _WHERE)
        hint = '"noisy_gradient" takes any loss.'
        kind = DESCENTS[arguments.choice(task.loss.name, "loss", _WHERE, DESCENTS, hint=hint)]
        if task.frame.features > _MOST_FEATURES:
            rule = f"at most {_MOST_FEATURES}, for the whitened learner"
            raise arguments.rejection("dimension", _WHERE, rule, task.frame.features)
        descent = kind(guarantee=self.guarantee, neighbours=self.neighbours)
        prepared = descent.prepare(design_of(task.frame, weighted=task.weighted))
        return PreparedWhitened(task, prepared.account, prepared)


def design_of(frame: Frame, *, weighted: bool = False) -> Design:
    """Return the regression of the label on the features, without an intercept."""
    features = tuple(range(frame.features))
    return Design(
        shape=frame.shape,
        features=features,
        target=frame.features,
        feature_square=frame.norm**2,
        target_square=CELLS**2,
        intercept=False,
        indicators=(False,) * len(features),
        weighted=weighted,
    )
