"""A Kalman filter with whole covariances, for gradients whose curvature is known in part.

A gradient is a noisy measurement of the way left to a minimum; the filter weighs it against what
is known already (docs/theory/logistic-descent.md).
"""

from dataclasses import dataclass

import numpy as np

from dplinear.arrays import Floats

_DOUBT = 0.2  # of a step's square: curvature changes on the way


@dataclass(frozen=True, eq=False)
class CovarianceFilter:
    """A Kalman filter with whole covariances: the iterate, and how it may be wrong.

    The minimum has covariance `covariance` around `theta`, or `cautious` if curvature is as low as
    it may be; `noise` is the part of it that is due to the releases alone. `missed` maps the way
    that there was at first to what is left of it.
    """

    theta: Floats
    covariance: Floats
    cautious: Floats
    noise: Floats
    missed: Floats

    @classmethod
    def start(cls, prior: Floats) -> "CovarianceFilter":
        """Return the filter at 0, before any gradient."""
        one = np.eye(len(prior))
        return cls(np.zeros(len(prior)), prior, prior, 0 * one, one)

    def gain(self, curvature: Floats, variance: float, steepest: Floats) -> Floats:
        """Return Kalman's gain for a gradient with noise of this variance.

        It is shortened in directions where a step could pass its aim if curvature were `steepest`.
        With P the covariance and C the curvature it is PC(CPC + v)⁻¹, by the singular values of
        √P·C: no matrix is inverted that noise so small as to be lost in rounding makes singular.
        """
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        left, sizes, right = np.linalg.svd(root @ curvature)
        shares = sizes / np.maximum(sizes**2 + variance, np.finfo(float).tiny)
        return cap(root @ (left * shares) @ right, steepest)

    def update(
        self, step: Floats, left: Floats, least_left: Floats, noise: Floats
    ) -> "CovarianceFilter":
        """Return the filter after a step.

        `left` maps the way that there was to what is left of it, `least_left` the same for the
        lowest curvature; `noise` is the covariance of the step's own noise.
        """
        doubt = _DOUBT * np.diag(step**2)
        return CovarianceFilter(
            self.theta + step,
            left @ self.covariance @ left.T + noise + doubt,
            least_left @ self.cautious @ least_left.T + noise + doubt,
            left @ self.noise @ left.T + noise,
            left @ self.missed,
        )


def cap(gain: Floats, steepest: Floats) -> Floats:
    """Return a gain G, lowered only in directions in which it times `steepest` is above 1.

    One steep direction, dividing all of the gain, would keep every other one from its aim.
    """
    values, vectors = np.linalg.eigh((steepest + steepest.T) / 2)
    roots = np.sqrt(np.maximum(values, 1e-9 * max(float(values[-1]), 1e-300)))
    root, inverse = (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T
    values, vectors = np.linalg.eigh(root @ (gain + gain.T) @ root / 2)
    if values[-1] <= 1:
        return gain
    return np.asarray(inverse @ (vectors * np.minimum(values, 1.0)) @ vectors.T @ inverse)
