"""Losses made fit for perturbation: convex, with slopes that are bounded and never jump.

A convex loss has a slope that rises with the margin. It still does so when it is clipped, and when
a jump is made into a ramp; so what is left is the slope of another convex loss, on all of R.
"""

import math
from dataclasses import dataclass

import numpy as np

from dplinear.arguments import positive
from dplinear.arrays import Floats
from dplinear.convex.losses import HingeLoss, Loss, signs

HINGE_RAMP = 0.1  # of a margin: the loss itself is changed by at most half of it


@dataclass(frozen=True)
class SmoothLoss:
    """A loss with its slopes clipped at ±`slope`; the hinge's jump is a `ramp` below margin 1.

    Requires: `slope` and `ramp` above 0; no other loss has a jump.
    Promises: slopes within ±`slope` whatever the margin, which rise with it by at most `smoothness`
    times its change.
    """

    base: Loss
    slope: float
    ramp: float = HINGE_RAMP

    def __post_init__(self) -> None:
        positive(self.slope, "slope", "SmoothLoss")
        positive(self.ramp, "ramp", "SmoothLoss")

    @property
    def smoothness(self) -> float:
        """The most that a slope can change by, for each unit of the margin."""
        return 1.0 / self.ramp if math.isinf(self.base.smoothness) else self.base.smoothness

    def slopes(self, margins: Floats, labels: Floats) -> Floats:
        """Return the slopes, row by row."""
        return np.asarray(np.clip(self._full_slopes(margins, labels), -self.slope, self.slope))

    def curvatures(self, margins: Floats, labels: Floats) -> Floats:
        """Return the slopes' derivatives; 0 where they are clipped."""
        inside = np.abs(self._full_slopes(margins, labels)) < self.slope
        if not isinstance(self.base, HingeLoss):
            return np.where(inside, self.base.curvatures(margins, labels), 0.0)
        short = 1.0 - signs(labels) * margins
        return np.where(inside & (short > 0) & (short < self.ramp), 1.0 / self.ramp, 0.0)

    def _full_slopes(self, margins: Floats, labels: Floats) -> Floats:
        if not isinstance(self.base, HingeLoss):
            return self.base.slopes(margins, labels)
        sign = signs(labels)
        return np.asarray(-sign * np.clip((1.0 - sign * margins) / self.ramp, 0.0, 1.0))
