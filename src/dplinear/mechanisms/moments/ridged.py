"""What Gaussian sketches and inverse-Wishart draws share: a row hidden behind a ridge.

Both see the table through H = G + ridge·I only, and have the same profile, with the directions
exchanged: it depends on the degrees of freedom and on B²/(ridge + a lower bound on the least
eigenvalue of the smaller neighbour's G). docs/theory.md, "Gaussian sketch and inverse-Wishart".
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from dplinear.arrays import Floats
from dplinear.exact.shape import Shape
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
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


@dataclass(frozen=True)
class Setting:
    """What one draw uses, and what it promises. Public once the draw is released."""

    degrees: int
    ridge: float
    account: Account
    parameters: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues and eigenvectors of a private second-moment matrix."""

    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, gram: Floats) -> "Spectrum":
        """Decompose the matrix; eigenvalues that rounding made negative count as zero."""
        values, vectors = np.linalg.eigh(gram)
        return cls(np.maximum(values, 0.0), vectors)

    def root(self, ridge: float) -> Floats:
        """Return F with F Fᵀ = G + ridge·I; after rounding, a Cholesky factor may not exist."""
        return np.asarray(self.vectors * np.sqrt(self.values + ridge))


class Ready(ABC):
    """A calibrated way to choose what a draw uses, and what it will promise."""

    account: Account

    @abstractmethod
    def settle(self, gram: Floats, entropy: Entropy) -> Setting:
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
        return cls(Setting(degrees, ridge, account, {}), account)

    def settle(self, gram: Floats, entropy: Entropy) -> Setting:
        """Return what was settled."""
        return self.setting
