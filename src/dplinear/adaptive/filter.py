"""The Kalman filter that weighs noisy steps, every coordinate by itself.

The gradient of a quadratic loss is a noisy measurement of the way that is left to its minimum:
gradient = curvature·(minimum − iterate) + noise. The iterate is where the minimum is expected, so a
gradient of 0 is, and each one is its own innovation. All of this is post-processing.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from dplinear.arrays import Floats


@dataclass(frozen=True, eq=False)
class KalmanFilter:
    """What the gradients so far say of a minimum, in coordinates that are independent.

    `theta` is the iterate, and `variance` that of the minimum around it: the posterior one of the
    last step, which is the prior one of the next. `noise` is the variance of the iterate that is
    due to the gradients' noise alone; `reached`, the share of the way from 0 to the minimum that
    the iterate is expected to have gone.
    """

    theta: Floats
    variance: Floats
    noise: Floats
    reached: Floats

    @classmethod
    def start(cls, prior: Floats) -> "KalmanFilter":
        """Return the filter at 0, around which the minimum has this variance."""
        theta, noise, reached = np.zeros((3, len(prior)))
        return cls(theta, prior, noise, reached)

    def gain(self, curvature: Floats, sigma: float, steepest: Floats | float) -> Floats:
        """Return how far to move by a gradient whose noise has the standard deviation `sigma`.

        Kalman's gain, but at most 1/`steepest`, the largest curvature that the loss may have: a
        longer step could pass its aim.
        """
        innovation_variance = curvature**2 * self.variance + sigma**2
        gain = curvature * self.variance / innovation_variance
        return np.minimum(gain, 1 / steepest)

    def update(
        self, gradient: Floats, curvature: Floats, sigma: float, gain: Floats
    ) -> "KalmanFilter":
        """Return the filter after a step along a gradient."""
        left = 1 - gain * curvature
        return KalmanFilter(
            theta=self.theta + gain * gradient,
            variance=self.variance * left,
            noise=self.noise * left**2 + (gain * sigma) ** 2,
            reached=self.reached + gain * curvature * (1 - self.reached),
        )

    def inflate(self, variance: Floats | float, most: Floats | float = math.inf) -> "KalmanFilter":
        """Return the filter with so much more variance, up to `most`: what its model misjudges."""
        return replace(self, variance=np.minimum(self.variance + variance, most))

    def restart(self, prior: Floats) -> "KalmanFilter":
        """Return the filter at the same iterate, for another minimum around it."""
        return replace(self, variance=prior, reached=np.zeros(len(prior)))
