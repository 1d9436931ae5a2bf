"""The contract of a mechanism: a bounded statistic and a guarantee in, released numbers out.

`prepare` sees public facts only: it calibrates, and refuses what cannot be kept, before a row is
read. What it returns sees the statistic once, in `measure`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.analyst.laws import Law, Matrix
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile


@dataclass(frozen=True)
class Shape:
    """What is public about a second-moment matrix before any row is read.

    Rows are integers of Euclidean norm at most 2^`exponent`, `cells` of them to the unit.
    """

    dimension: int
    cells: int
    exponent: int

    @property
    def unit(self) -> int:
        """How many integer units of the matrix make 1 in the cells' units."""
        return self.cells**2

    @property
    def sensitivity(self) -> int:
        """The most one row more or less changes the integer matrix, in Frobenius norm."""
        return 1 << 2 * self.exponent

    @property
    def bound(self) -> Fraction:
        """B, the norm no row exceeds, in cells."""
        return Fraction(2**self.exponent, self.cells)


@dataclass(frozen=True, eq=False)
class Statistic:
    """The exact second moments of a table's bounded rows. Private.

    `rows` is the number of rows where the mechanism may use it: private under add_remove. `peaks`
    are the largest squares of each column, where a mechanism asks for them.
    """

    shape: Shape
    integers: npt.NDArray[np.object_] = field(repr=False)
    rows: int | None = field(default=None, repr=False)
    peaks: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    def matrix(self) -> Matrix:
        """Return the matrix in the cells' units, each entry rounded once."""
        unit = self.shape.unit
        # Python divides integers with one rounding, whatever their size.
        exact = [int(entry) / unit for entry in self.integers.ravel()]
        return np.array(exact, np.float64).reshape(self.integers.shape)


@dataclass(frozen=True)
class Account:
    """What a measurement guarantees: the proved guarantee (None: none) and its profile."""

    asked: Guarantee
    holds: Guarantee | None
    profile: Profile | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Measurement:
    """Released numbers, the law they follow, and what they promise. Public."""

    values: Matrix
    law: Law
    account: Account
    parameters: Mapping[str, Any]


class Prepared(ABC):
    """A mechanism calibrated for a shape, ready to measure one statistic once.

    `account` is what it will guarantee, known before any row is read.
    """

    shape: Shape
    account: Account

    @property
    def needs_rows(self) -> bool:
        """Whether the statistic must say how many rows there are."""
        return False

    @abstractmethod
    def measure(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Return the released numbers for the statistic."""


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way of releasing something.

    Implementations are frozen dataclasses of `guarantee`, `neighbours`, `calibration` ("exact" or
    "paper") and options of their own, all public.
    """

    guarantee: Guarantee
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    calibration: str = "exact"
    name: ClassVar[str]
    numerics: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class Mechanism(Method):
    """A way of releasing second moments."""

    @abstractmethod
    def prepare(self, shape: Shape) -> Prepared:
        """Calibrate for public facts; raise if the guarantee cannot be kept."""
