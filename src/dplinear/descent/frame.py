"""Rows as a descent sees them: centred by released means, beside a constant as large as a cell."""

from dataclasses import dataclass

import numpy as np

from dplinear.arrays import Floats
from dplinear.exact.design import Design


@dataclass(frozen=True, eq=False)
class Frame:
    """Linear maps of a row's cells, all of them public.

    `middle` is taken off the features and `goal` off the target, where the model has an intercept;
    the intercept's own cell is multiplied by `constant`.
    """

    design: Design
    middle: Floats
    goal: float
    constant: float = 1.0

    @property
    def matrix(self) -> Floats:
        """The map from a row to the coordinates of the model: the constant, the features."""
        design = self.design
        matrix = np.zeros((design.dimension, design.shape.dimension))
        matrix[np.arange(design.dimension), design.features] = 1.0
        if design.intercept:
            ones = design.features[0]
            matrix[1:, ones] -= self.middle
            matrix[0, ones] = self.constant
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
            weights[self.design.features[0]] -= self.goal
        return np.asarray(weights)

    def readout(self, coefficients: Floats) -> Floats:
        """Return the model in the design's own cells."""
        return np.asarray(-self.residual(coefficients)[list(self.design.features)])

    def spread(self, covariance: Floats) -> Floats:
        """Return the covariance of the model in the design's own cells."""
        own = self.matrix[:, list(self.design.features)]
        return np.asarray(own.T @ covariance @ own)
