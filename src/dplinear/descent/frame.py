"""Rows as a descent sees them: centred by released means, beside a constant as large as a cell."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dplinear.arrays import Floats
from dplinear.exact.design import Design


@dataclass(frozen=True, eq=False)
class Frame:
    """Linear maps of a row's cells, all of them public.

    `middle` is taken off the features and `target_mean` off the target, where the model has an
    intercept; the intercept's own cell is multiplied by `constant`.
    """

    design: Design
    middle: Floats
    target_mean: float
    constant: float = 1.0

    @cached_property
    def matrix(self) -> Floats:
        """The map from a row to the coordinates of the model: the constant, the features."""
        design = self.design
        features = design.features
        matrix = np.zeros((len(features), design.shape.dimension))
        matrix[np.arange(len(features)), features] = 1.0
        if design.intercept:
            ones = features[0]
            matrix[1:, ones] -= self.middle
            matrix[0, ones] = self.constant
        matrix.flags.writeable = False  # the same one for whoever asks
        return matrix

    @property
    def features(self) -> Floats:
        """The part of the map that gives the features."""
        return self.matrix[int(self.design.intercept) :]

    def residual(self, coefficients: Floats) -> Floats:
        """Return the weights of a row's cells that give the target less what is predicted."""
        weights = -(coefficients @ self.matrix)
        weights[self.design.target] += 1.0
        if self.design.intercept:
            weights[self.design.features[0]] -= self.target_mean
        return np.asarray(weights)

    def readout(self, coefficients: Floats) -> Floats:
        """Return the model in the design's own cells."""
        return np.asarray(-self.residual(coefficients)[list(self.design.features)])

    def spread(self, covariance: Floats) -> Floats:
        """Return the covariance of the model in the design's own cells."""
        own = self.matrix[:, list(self.design.features)]
        return np.asarray(own.T @ covariance @ own)
