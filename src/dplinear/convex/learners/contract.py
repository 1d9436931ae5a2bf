"""The contract of models in a set: loss + set + examples and a guarantee in, a point of it out.

As with mechanisms, `prepare` sees public facts only; what it returns sees the examples, in `run`.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from dplinear.arrays import BigIntegers, Floats
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import Block
from dplinear.convex.examples import Frame
from dplinear.convex.losses import Loss
from dplinear.exact.row_sums import RowSum
from dplinear.mechanisms.contract import Account, Mechanism, Prepared


class Passes(Protocol):
    """Private examples, as learners see them."""

    @property
    def denominator(self) -> int:
        """How many units of weight a row of weight 1 has."""

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return several exact sums, in one pass."""

    def blocks(self) -> Iterator[Block]:
        """Return the bounded blocks, one after the other."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is public about a problem: min Σ ℓ(⟨z, ϑ⟩; y) over ϑ in an image ΦC.

    `rows` is the order of magnitude of their number, where it is known; it enters no promise. Where
    rows are `weighted`, the sum is Σ v·ℓ, weights v of one unit of privacy add up to at most 1, and
    Σ v, which stands for the number of rows, is not public under replace either.
    """

    frame: Frame
    loss: Loss
    image: Image
    rows: float | None = None
    weighted: bool = False


@dataclass(frozen=True, eq=False)
class Learned:
    """A released point ϑ of ΦC, and a θ of C with Φθ = ϑ where the learner carries one. Public."""

    point: Floats
    source: Floats | None
    account: Account
    parameters: Mapping[str, Any]


class PreparedConstrained(Prepared[Passes, Learned]):
    """A learner calibrated for a task: it runs on examples, and returns a point of the set."""

    task: Task


@dataclass(frozen=True, kw_only=True)
class ConstrainedMechanism(Mechanism):
    """A way of releasing a point of a set that makes a loss small.

    `dense`: whether examples must not be sparse.
    """

    dense: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, task: Task) -> PreparedConstrained:
        """Calibrate for public facts; raise if the guarantee cannot be kept."""
