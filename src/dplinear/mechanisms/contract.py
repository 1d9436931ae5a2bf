"""The contract of every mechanism, whatever it releases: public facts, `prepare`, then `run`.

`prepare` sees public facts only: it calibrates, and refuses what cannot be kept, before a row is
read. What it returns sees the private table once, in `run`, and returns what may be released.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from dplinear.analyst.noise_models.matrices import NoiseModel
from dplinear.arrays import Floats
from dplinear.exact.shape import Shape, Statistic
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile

Private = TypeVar("Private")
Made = TypeVar("Made", bound="Outcome")


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
    noise_model: NoiseModel
    account: Account
    parameters: Mapping[str, Any]


class Outcome(Protocol):
    """What a run returns, beside its numbers: what it guarantees, for the certificate. Public."""

    @property
    def account(self) -> Account:
        """What the outcome guarantees."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The public numbers of the mechanism, as plain JSON."""


class Prepared(ABC, Generic[Private, Made]):
    """A mechanism calibrated on public facts, ready to run once.

    `account` is what it will guarantee, known before any row is read.
    """

    account: Account

    @abstractmethod
    def run(self, table: Private, entropy: Entropy, /) -> Made:
        """Return what is released of the table."""


class PreparedMoments(Prepared[Statistic, Measurement]):
    """A mechanism calibrated for second moments of a shape.

    `noise_model` is that of what it will release, where it is settled before the table is read:
    plans are made of it.
    """

    shape: Shape

    @property
    def noise_model(self) -> NoiseModel | None:
        """The noise model of what will be released; None if that is not known beforehand."""
        return None


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A way of releasing something.

    Implementations are frozen dataclasses of `guarantee`, `neighbours` and options of their own,
    all public. `calibration` is what the certificate says of the amount of noise. `for_units` says
    that the proof needs no more of what is added or removed than how far it moves sums: then it
    may be all rows of a unit of privacy, whose weights add up to 1. `for_weights` says that single
    rows may have weights in [0, 1], where units may not. `for_groups` says that the
    proof is also about the sums of several groups, all of which one unit may move at once, and that
    noise is calibrated for that (docs/theory/groups.md).
    """

    guarantee: Guarantee
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    name: ClassVar[str]
    numerics: ClassVar[str]
    calibration: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = False
    for_weights: ClassVar[bool] = False
    for_groups: ClassVar[bool] = False


# What a gate sets itself, from arguments of its own.
_SET = frozenset({"guarantee", "neighbours", "release"})


def option_names(kind: type[Mechanism]) -> list[str]:
    """Return the names of a mechanism's own options, in the order of its fields."""
    return [field.name for field in fields(kind) if field.init and field.name not in _SET]


@dataclass(frozen=True, kw_only=True)
class MomentsMechanism(Mechanism):
    """A way of releasing second moments."""

    @abstractmethod
    def prepare(self, shape: Shape) -> PreparedMoments:
        """Calibrate for public facts; raise if the guarantee cannot be kept."""

    def prepare_groups(self, shape: Shape, moved: int) -> PreparedMoments:
        """Calibrate for the matrices of groups, of which neighbours move at most so many.

        What is prepared runs once for each group. Where no more than one moves, the groups are
        tables of their own.
        """
        if moved == 1:
            return self.prepare(shape)
        raise TypeError(f"{self.name} releases one matrix.")
