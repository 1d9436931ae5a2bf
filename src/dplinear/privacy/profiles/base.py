"""The contract of a profile: the exact curve δ(ε) of a mechanism's worst pair of neighbours."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.roots import smallest_private

_DELTA_HINT = "this mechanism's loss is unbounded: ask for δ above 0"


class Directions(NamedTuple):
    """δ(ε) in each direction, rounded up: row present → absent, and row absent → present."""

    removing: Floats
    adding: Floats


class Profile(ABC):
    """A privacy profile: δ as a function of ε ≥ 0, one curve for each direction.

    Promises: `delta` and `epsilon` are never below the exact value, and above it by a relative
    1e-10 at the most wherever δ ≥ 1e-14.
    """

    neighbours: Neighbours

    @property
    def slow(self) -> bool:
        """Return whether each point of the curve is a search or a double integral of its own."""
        return False

    @abstractmethod
    def directions(self, epsilon: Floats) -> Directions:
        """Return δ in both directions at each ε ≥ 0, rounded up."""

    def delta(self, epsilon: float) -> float:
        """Return the least δ for which the mechanism is (ε, δ)-private, rounded up."""
        where = f"{type(self).__name__}.delta"
        epsilon = arguments.real(epsilon, "epsilon", where, low=0)
        return float(self.curve(np.array([epsilon]))[0])

    def curve(self, epsilon: Floats) -> Floats:
        """Return `delta` at many ε at once."""
        removing, adding = self.directions(epsilon)
        return np.maximum(removing, adding)

    def epsilon(self, delta: float) -> float:
        """Return the least ε for which the mechanism is (ε, δ)-private, rounded up."""
        where = f"{type(self).__name__}.epsilon"
        delta = arguments.real(delta, "delta", where, low=0, high=1, open_high=True)
        if delta == 0:
            return self._pure_epsilon()
        if self.delta(0.0) <= delta:
            return 0.0
        return smallest_private(self.delta, delta, 1.0)

    def _pure_epsilon(self) -> float:
        where = f"{type(self).__name__}.epsilon"
        raise arguments.rejection("delta", where, "in (0, 1)", 0, _DELTA_HINT)
