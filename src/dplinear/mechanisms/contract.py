"""The contract of a mechanism: a bounded statistic and a guarantee in, released numbers out.

`prepare` sees public facts only: it calibrates, and refuses what cannot be kept, before a row is
read. What it returns sees the statistic once, in `measure`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dplinear.analyst.noise_models.matrices import Law
from dplinear.arrays import Floats
from dplinear.exact.shape import Shape, Statistic
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile


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

    values: Floats
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
