"""What Gaussian sketches and inverse-Wishart draws share: a row hidden behind a ridge.

Both see the table through H = G + ridge·I only, and have the same profile, with the directions
exchanged: it depends on the degrees of freedom and on B²/(ridge + a lower bound on the least
eigenvalue of the smaller neighbour's G). docs/theory/sketch.md.
H is a matrix of integers: the ridge is rounded up to the grid of G (`release_grid.ridge_units`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from dplinear.exact.roots import Root
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.release_grid import ridge_units
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.sketch import Sketch
from dplinear.privacy.rounding import ceiling


@dataclass(frozen=True)
class Ridged:
    """The public facts: which of the two, for which rows."""

    where: str
    shape: Shape
    neighbours: Neighbours
    inverse: bool

    def floor(self, guarantee: ApproxDP, degrees: int) -> float:
        """Return the least H that keeps the guarantee, in every direction."""
        exact = calibrate.inverse_wishart if self.inverse else calibrate.sketch
        return exact(guarantee, degrees, ceiling(self.shape.bound), self.neighbours)

    def profile(self, degrees: int, floor: float) -> Sketch:
        """Return the profile where H is nowhere below `floor`, for both neighbours."""
        ratio = ceiling(self.shape.bound**2 / Fraction(floor))
        return Sketch(degrees, ratio, self.neighbours, self.inverse)

    def setting(
        self, degrees: int, ridge: float, least: float, account: Account, **parameters: object
    ) -> "Setting":
        """Return what a draw uses that needs a ridge of at least `ridge`."""
        unit = self.shape.unit
        units = ridge_units(ridge, least, unit)
        return Setting(degrees, units, unit, least, account, parameters)


@dataclass(frozen=True)
class Setting:
    """What one draw uses, and what it promises. Public once the draw is released.

    The ridge is `units` of the grid of G, `unit` of which make 1. `least` is what H was calibrated
    to be at least, the scale of what the draw is rounded to.
    """

    degrees: int
    units: int
    unit: int
    least: float
    account: Account
    parameters: Mapping[str, Any]

    @property
    def ridge(self) -> float:
        """The ridge, in the cells' units."""
        return self.units / self.unit

    def root(self, statistic: Statistic) -> Root:
        """Return the root of H = G + ridge·I, exactly; H is at least the ridge, as G is at least 0.

        Private.
        """
        shifted = statistic.integers.copy()
        shifted[np.diag_indices(len(shifted))] += self.units
        return Root(shifted, self.units)


class Ready(ABC):
    """A calibrated way to choose what a draw uses, and what it will promise."""

    account: Account

    @abstractmethod
    def settle(self, statistic: Statistic, entropy: Entropy) -> Setting:
        """Return what the draw uses, given the private second moments."""


@dataclass(frozen=True)
class Fixed(Ready):
    """A ridge that hides a row of any table, settled beforehand."""

    setting: Setting
    account: Account

    @classmethod
    def of(cls, ridged: Ridged, asked: ApproxDP, degrees: int) -> Self:
        """Calibrate the ridge."""
        ridge = ridged.floor(asked, degrees)
        account = checks.exact_account(asked, ridged.profile(degrees, ridge))
        return cls(ridged.setting(degrees, ridge, ridge, account), account)

    def settle(self, statistic: Statistic, entropy: Entropy) -> Setting:
        """Return what was settled."""
        return self.setting
