"""Profiles of releases in two parts, or that may fail: made of simpler ones, by basic composition.

Each is an upper bound on δ(ε) that needs no more than the parts' own bounds.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.rounding import ceiling, up


@dataclass(frozen=True)
class WithFailure(Profile):
    """What keeps `profile` but for an event of probability at most `failure`, the same on both.

    Promises: δ(ε) is at most the profile's plus `failure`.
    """

    profile: Profile
    failure: float

    def __post_init__(self) -> None:
        where = "profiles.WithFailure"
        arguments.real(self.failure, "failure", where, low=0, high=1)

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]  # the profile's own
        """The relation of the profile."""
        return self.profile.neighbours

    def directions(self, epsilon: Floats) -> Directions:
        """Return both curves, moved up."""
        curves = self.profile.directions(epsilon)
        sums = (
            np.where(curve > 0, up(1.0) * (curve + self.failure), self.failure) for curve in curves
        )
        return Directions(*(np.minimum(1.0, total) for total in sums))


@dataclass(frozen=True)
class BesidePure(Profile):
    """What keeps `profile`, released beside something that is `loss`-DP.

    Promises: δ(ε) is at most the profile's at ε − loss: the other part is worth no more than a
    factor e^loss on every event.
    """

    profile: Profile
    loss: float

    def __post_init__(self) -> None:
        arguments.positive(self.loss, "loss", "profiles.BesidePure")

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]  # the profile's own
        """The relation of the profile."""
        return self.profile.neighbours

    def directions(self, epsilon: Floats) -> Directions:
        """Return both curves, moved to the right; 1 where they do not reach."""
        left = epsilon - self.loss
        # The difference is rounded to nearest, so the next float below it is not too much.
        short = np.maximum(np.nextafter(left, -np.inf), 0.0)
        curves = self.profile.directions(short)
        return Directions(*(np.where(left < 0, 1.0, curve) for curve in curves))

    def _pure_epsilon(self) -> float:
        return ceiling(Fraction(self.profile.epsilon(0.0)) + Fraction(self.loss))


@dataclass(frozen=True)
class EitherOf(Profile):
    """Two releases of which neighbours differ in one only, whichever it is.

    Promises: δ(ε) is at most the larger of the two.
    """

    first: Profile
    second: Profile

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]  # the first's own
        """The relation of the first."""
        return self.first.neighbours

    def directions(self, epsilon: Floats) -> Directions:
        """Return the larger curves."""
        pairs = zip(self.first.directions(epsilon), self.second.directions(epsilon), strict=True)
        return Directions(*(np.maximum(one, other) for one, other in pairs))

    def _pure_epsilon(self) -> float:
        return max(self.first.epsilon(0.0), self.second.epsilon(0.0))
