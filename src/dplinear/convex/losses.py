"""Losses of a linear model: ℓ(η; y), convex in the margin η = ⟨x, θ⟩, for a label y within ±1.

What a private learner sees of a row is the slope ℓ'(η; y) times the row. Slopes are made of
elementwise IEEE operations alone, so that each is a bitwise function of its own row.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dplinear.arguments import positive
from dplinear.arrays import Floats
from dplinear.exact.logistic_sums import decay


class Loss(ABC):
    """A convex loss of a margin and a label.

    `smoothness` is the most that ℓ'' can be (infinite where ℓ' jumps). A loss of `classes` takes
    the sign of the label: above 0 means +1, anything else −1.
    """

    name: ClassVar[str]
    classes: ClassVar[bool]
    smoothness: ClassVar[float]

    @abstractmethod
    def values(self, margins: Floats, labels: Floats) -> Floats:
        """Return ℓ, row by row."""

    @abstractmethod
    def slopes(self, margins: Floats, labels: Floats) -> Floats:
        """Return ℓ', row by row: each a bitwise function of its own margin and label."""

    @abstractmethod
    def curvatures(self, margins: Floats, labels: Floats) -> Floats:
        """Return ℓ'', row by row; raises where the loss has none."""

    @abstractmethod
    def steepest(self, reach: float) -> float:
        """Return the most that |ℓ'| can be for margins within ±reach and labels within ±1."""


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """(η − y)²."""

    name: ClassVar[str] = "squared"
    classes: ClassVar[bool] = False
    smoothness: ClassVar[float] = 2.0

    def values(self, margins: Floats, labels: Floats) -> Floats:
        """Return the squared errors."""
        return np.asarray(np.square(margins - labels))

    def slopes(self, margins: Floats, labels: Floats) -> Floats:
        """Return twice the errors."""
        return np.asarray(2.0 * (margins - labels))

    def curvatures(self, margins: Floats, labels: Floats) -> Floats:
        """Return 2."""
        return np.full(margins.shape, 2.0)

    def steepest(self, reach: float) -> float:
        """Return 2(reach + 1)."""
        return 2.0 * (reach + 1.0)


@dataclass(frozen=True)
class HuberLoss(Loss):
    """r²/2 for errors r = η − y within ±knee, and linear beyond: knee·(|r| − knee/2)."""

    knee: float = 0.25
    name: ClassVar[str] = "huber"
    classes: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        positive(self.knee, "knee", "HuberLoss")

    def values(self, margins: Floats, labels: Floats) -> Floats:
        """Return the losses of the errors."""
        sizes = np.abs(margins - labels)
        inside = np.minimum(sizes, self.knee)
        return np.asarray(inside * (sizes - inside / 2))

    def slopes(self, margins: Floats, labels: Floats) -> Floats:
        """Return the errors, clipped."""
        return np.asarray(np.clip(margins - labels, -self.knee, self.knee))

    def curvatures(self, margins: Floats, labels: Floats) -> Floats:
        """Return 1 within the knee, 0 beyond."""
        return np.asarray(np.abs(margins - labels) <= self.knee, float)

    def steepest(self, reach: float) -> float:
        """Return the knee, or less where no error reaches it."""
        return min(self.knee, reach + 1.0)


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """ln(1 + exp(−y·η)), y = ±1."""

    name: ClassVar[str] = "logistic"
    classes: ClassVar[bool] = True
    smoothness: ClassVar[float] = 0.25

    def values(self, margins: Floats, labels: Floats) -> Floats:
        """Return minus the log-likelihoods."""
        return np.asarray(np.logaddexp(0.0, -signs(labels) * margins))

    def slopes(self, margins: Floats, labels: Floats) -> Floats:
        """Return −y·σ(−y·η); margins beyond ±32 count as that."""
        odds = decay(margins, 1.0)
        right = (margins >= 0) == (labels > 0)
        sizes = np.where(right, odds, 1.0) / (1.0 + odds)
        return np.where(labels > 0, -sizes, sizes)

    def curvatures(self, margins: Floats, labels: Floats) -> Floats:
        """Return σ(η)·σ(−η)."""
        odds = decay(margins, 1.0)
        return np.asarray(odds / np.square(1.0 + odds))

    def steepest(self, reach: float) -> float:
        """Return σ(reach)."""
        return 1.0 / (1.0 + math.exp(-reach))


@dataclass(frozen=True)
class HingeLoss(Loss):
    """max(0, 1 − y·η), y = ±1."""

    name: ClassVar[str] = "hinge"
    classes: ClassVar[bool] = True
    smoothness: ClassVar[float] = math.inf

    def values(self, margins: Floats, labels: Floats) -> Floats:
        """Return how much of a margin of 1 is missing."""
        return np.asarray(np.maximum(0.0, 1.0 - signs(labels) * margins))

    def slopes(self, margins: Floats, labels: Floats) -> Floats:
        """Return −y where the margin is short of 1, and 0 elsewhere."""
        sign = signs(labels)
        return np.where(sign * margins < 1.0, -sign, 0.0)

    def curvatures(self, margins: Floats, labels: Floats) -> Floats:
        """Raise: the slope jumps."""
        raise NotImplementedError("The hinge has no second derivative.")

    def steepest(self, reach: float) -> float:
        """Return 1."""
        return 1.0


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (SquaredLoss, HuberLoss, LogisticLoss, HingeLoss)
}


def signs(labels: Floats) -> Floats:
    """Return +1 for labels above 0, −1 for others."""
    return np.where(labels > 0, 1.0, -1.0)
