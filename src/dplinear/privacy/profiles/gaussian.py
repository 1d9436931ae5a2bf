"""Gaussian noise: the profile of μ-GDP, continuous and on the integer grid.

Balle and Wang 2018 (arXiv 1805.06530v2), Theorem 8; Dong, Roth and Su 2019 (arXiv 1905.02383v3).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.conversions import zcdp_delta
from dplinear.privacy.guarantees import ZCDP, ApproxDP, Guarantee
from dplinear.privacy.hockey_stick import normal_tail
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.rounding import up

# Total variation between the discrete and the rounded Gaussian is at most this over the variance
# (docs/noise.md, "Grid and continuous Gaussian"; asymptotically it is φ(1)/12 = 0.02016...).
GRID_CONSTANT = 0.0203
GRID_LEAST_VARIANCE = 121.0


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return δ(ε) of N(0, 1) against N(μ, 1), rounded up."""
    return float(normal_tail(np.array([epsilon]), mu).upper()[0])


@dataclass(frozen=True)
class Gaussian(Profile):
    """Two normal laws of equal variance whose means are `mu` standard deviations apart.

    Requires: `mu` ≥ the statistic's L2 sensitivity divided by σ, for the relation in `neighbours`.
    Promises: δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), the same in both directions.
    """

    mu: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        arguments.positive(self.mu, "mu", "profiles.Gaussian")
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours, "Gaussian"))

    def directions(self, epsilon: Floats) -> Directions:
        """Return the same curve twice: the pair is symmetric."""
        delta = normal_tail(epsilon, self.mu).upper()
        return Directions(delta, delta)


@dataclass(frozen=True)
class GridGaussian(Profile):
    """Discrete Gaussian noise on integer coordinates, each with a variance of its own.

    Requires: an integer statistic whose neighbours differ by v with Σ vᵢ²/σᵢ² ≤ `mu`²;
    `inverse_variance` ≥ Σ 1/σᵢ² over all coordinates, in grid units, each σᵢ² ≥ 121.
    Promises: the better of two sound bounds on δ(ε): the continuous profile plus
    (1 + e^ε)·0.0203·Σ 1/σᵢ² (docs/noise.md, "Grid and continuous Gaussian"), and the conversion of
    the exact μ²/2-zCDP of the discrete Gaussian (Canonne, Kamath and Steinke 2020, arXiv
    2004.00010v6).
    """

    mu: float
    inverse_variance: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        where = "profiles.GridGaussian"
        arguments.positive(self.mu, "mu", where)
        arguments.positive(self.inverse_variance, "inverse_variance", where)
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours, where))

    @cached_property
    def _continuous(self) -> Gaussian:
        return Gaussian(self.mu, self.neighbours)

    def keeps(self, guarantee: Guarantee) -> bool:
        """Return whether noise with this profile satisfies an (ε, δ) or a zCDP guarantee."""
        if isinstance(guarantee, ApproxDP):
            return self.delta(guarantee.epsilon) <= guarantee.delta
        if isinstance(guarantee, ZCDP):
            return Fraction(self.mu) ** 2 <= 2 * Fraction(guarantee.rho)
        return False

    def directions(self, epsilon: Floats) -> Directions:
        """Return the same bound twice: the pair is symmetric."""
        with np.errstate(over="ignore"):
            cost = (1 + np.exp(epsilon)) * (GRID_CONSTANT * self.inverse_variance)
        by_lemma = up(1.0) * (self._continuous.directions(epsilon).removing + cost)
        rho = up(self.mu**2 / 2)
        by_zcdp = np.array([zcdp_delta(rho, float(e)) for e in epsilon])
        delta = np.minimum(1.0, np.minimum(by_lemma, by_zcdp))
        return Directions(delta, delta)
