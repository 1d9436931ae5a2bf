"""What is known of δ(ε) from ρ-zCDP alone.

Canonne, Kamath and Steinke 2020 (arXiv 2004.00010v6), Corollary 13.
"""

from dataclasses import dataclass

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.conversions import zcdp_delta
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.profiles.laplace import Pure


@dataclass(frozen=True)
class Concentrated(Profile):
    """A mechanism of which no more is known than that it is ρ-zCDP, or also `loss`-DP.

    Requires: Rényi divergences of at most ρ·α at every order α > 1, in both directions; `loss`, if
    given, bounds the privacy loss itself.
    Promises: an upper bound on δ(ε), the same in both directions; 0 from ε = `loss` on.
    """

    rho: float
    loss: float | None = None
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        where = "profiles.Concentrated"
        arguments.positive(self.rho, "rho", where)
        if self.loss is not None:
            arguments.positive(self.loss, "loss", where)
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours, where))

    def directions(self, epsilon: Floats) -> Directions:
        """Return the same bound twice: zCDP knows no direction."""
        delta = np.array([zcdp_delta(self.rho, float(e)) for e in epsilon])
        if self.loss is not None:
            pure = Pure(self.loss).directions(epsilon).removing
            delta = np.minimum(delta, pure)
        return Directions(delta, delta)

    def _pure_epsilon(self) -> float:
        return super()._pure_epsilon() if self.loss is None else self.loss
