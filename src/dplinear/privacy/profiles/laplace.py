"""Laplace noise and pure ε: profiles in closed form.

A vector statistic of L1 sensitivity Δ with independent Laplace(b) noise in each coordinate is
dominated, at every ε, by one coordinate shifted by Δ: moving along the coordinates one by one
gives at least the trade-off curve of the composed path, and for the log-concave Laplace law the
path's curve *is* that of one shift by the total (docs/theory/laplace.md).
"""

from dataclasses import dataclass

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.rounding import ULP


@dataclass(frozen=True)
class Laplace(Profile):
    """Two Laplace laws whose centres are `ratio` scales apart.

    Requires: `ratio` ≥ the statistic's L1 sensitivity divided by the noise scale.
    Promises: δ(ε) = 1 − e^{(ε − ratio)/2} below ε = ratio, and 0 from there on.
    """

    ratio: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        arguments.positive(self.ratio, "ratio", "profiles.Laplace")
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours, "Laplace"))

    def directions(self, epsilon: Floats) -> Directions:
        """Return the same curve twice: the pair is symmetric."""
        short = -np.expm1(np.minimum(epsilon - self.ratio, 0.0) / 2)
        delta = np.minimum(short * (1 + 8 * ULP), 1.0)
        return Directions(delta, delta)

    def _pure_epsilon(self) -> float:
        return self.ratio


@dataclass(frozen=True)
class Pure(Profile):
    """The worst that pure differential privacy allows: randomised response.

    Requires: a mechanism that is `loss`-DP.
    Promises: δ(ε) = (e^loss − e^ε)/(1 + e^loss) below ε = loss, and 0 from there on
    (Kairouz, Oh and Viswanath 2015, arXiv 1311.0776v4).
    """

    loss: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        arguments.positive(self.loss, "loss", "profiles.Pure")
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours, "Pure"))

    def directions(self, epsilon: Floats) -> Directions:
        """Return the same curve twice: the pair is symmetric."""
        short = -np.expm1(np.minimum(epsilon - self.loss, 0.0))
        delta = np.minimum(short / (1 + np.exp(-self.loss)) * (1 + 8 * ULP), 1.0)
        return Directions(delta, delta)

    def _pure_epsilon(self) -> float:
        return self.loss
