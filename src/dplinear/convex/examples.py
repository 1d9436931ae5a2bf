"""Bounded examples: rows of integers with a label each, in blocks, dense or sparse.

The features of an example are integers of verified norm, its label is one more integer; each is a
bitwise function of one line of the table. Learners see examples through exact sums, as they see a
table (`row_sums.py`), or block by block where what they compute is not released as it stands.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.arguments import positive, rejection
from dplinear.arrays import BigIntegers as Sums
from dplinear.arrays import Floats, Integers
from dplinear.convex.example_blocks import CELLS, Block, Features, held_block
from dplinear.convex.losses import Loss
from dplinear.exact.integers import EXACT
from dplinear.exact.public_maps import power, rounded_weights
from dplinear.exact.row_sums import BLOCK_ROWS, Count, RowSum, freeze
from dplinear.exact.shape import Shape
from dplinear.exact.sums import SumTotal
from dplinear.exact.weights import WHOLE

_PRODUCT_BITS = 41  # of a feature times a slope, so that a block of 4096 adds up exactly


@dataclass(frozen=True)
class Frame:
    """What is public about examples: how many features, and their norm, at most `reach`.

    `norm` is the reach in integer units, `shape` that of rows that hold the features, then the
    label.
    """

    features: int
    reach: float
    norm: int = field(init=False)
    shape: Shape = field(init=False)

    def __post_init__(self) -> None:
        reach = Fraction(positive(self.reach, "reach", "Frame"))
        norm = int(reach * CELLS)
        if not 1 <= norm <= 8 * CELLS:
            raise rejection("reach", "Frame", "from 2^−20 to 8", self.reach)
        longest = norm**2 + CELLS**2
        exponent = (longest - 1).bit_length() // 2 + (longest - 1).bit_length() % 2
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "shape", Shape(self.features + 1, CELLS, exponent))


class Examples:
    """A private table of examples, to be passed over as often as a learner asks.

    Requires: blocks with weights where rows are `weighted`, a public fact, and nowhere else. The
    weights of one unit of privacy add up to at most 1 (docs/theory/units.md).
    Promises: whatever the blocks hold, every example's norm is at most `frame.norm` and its label
    within ±2^20, verified once on the integers that all learners and sums then see. Sums of
    weighted rows are in units that are `denominator` times as fine: so one row more or less, or all
    rows of one unit, change a sum by at most `denominator` times its bound.
    """

    def __init__(self, frame: Frame, blocks: Sequence[Block], *, weighted: bool = False) -> None:
        self.frame, self.weighted = frame, weighted
        if any((block.weights is not None) != weighted for block in blocks):
            raise TypeError("Some rows carry weights, and others none.")
        self._blocks = [held_block(block, frame.norm) for block in blocks]
        # Rows whose Gram matrix float64 adds up exactly, though a feature may be worth above 1.
        self._step = max(1, min(BLOCK_ROWS, (1 << EXACT) // max(frame.norm, CELLS) ** 2))

    @property
    def denominator(self) -> int:
        """How many units of weight make a row that counts as one: 1 where rows have no weights."""
        return WHOLE if self.weighted else 1

    @property
    def count_varies(self) -> bool:
        """Whether how much its rows count for tells of single ones: it is then never free."""
        return self.weighted

    def __repr__(self) -> str:
        return f"Examples({self.frame!r}, private)"

    def blocks(self) -> Iterator[Block]:
        """Return the blocks, one after the other. They are private."""
        return iter(self._blocks)

    def sums(self, statistics: Sequence[RowSum]) -> list[Sums]:
        """Return several exact sums, in one pass."""
        totals = [_Total(statistic) for statistic in statistics]
        for times, block in self._parts:
            for total in totals:
                total.add_block(block, self._step, times)
        return [total.integers() for total in totals]

    @cached_property
    def _parts(self) -> list[tuple[int, Block]]:
        """What is added up, and how often: kept, as learners pass over it many times."""
        return [part for block in self._blocks for part in block.parts()]


class _Total(SumTotal):
    """A sum over blocks, which may be sparse."""

    def add_block(self, block: Block, most: int, times: int) -> None:
        """Add a block, `times` as much; at most so many rows at once where they must be dense."""
        statistic, count = self.statistic, len(block.labels)
        if isinstance(statistic, ExampleSum):
            self.add(statistic.over(block.features, block.labels), count * statistic.bound, times)
        elif isinstance(statistic, Count):
            self.add(statistic.sum(block.features), count * statistic.bound, times)
        elif block.rows is None:
            what = type(statistic).__name__
            raise rejection("statistics", "Examples.sums", "made for sparse examples", what)
        else:
            self.add_rows(block.rows, most, times)


class ExampleSum(RowSum):
    """A row sum that needs the features only through products with them, so they may be sparse."""

    @abstractmethod
    def over(self, features: Features, labels: Floats) -> Integers:
        """Return the sum over a block."""

    def sum(self, rows: Floats) -> Integers:
        """Return the sum over a block of rows that hold the features, then the label."""
        return self.over(rows[:-1], rows[-1])


@dataclass(frozen=True, eq=False)
class SlopeSum(ExampleSum):
    """Σ x·ℓ'(⟨x, θ⟩; y): the gradient of a loss, its slopes clipped at ±`slope`.

    Requires: `theta`, θ, a number for each feature (all 0 will do); `slope`, above 0.
    Promises: θ is rounded to `integers`·2^−`scale`; with it, margins are exact. Slopes are rounded
    to integers of at most `steepest` ≤ 2^20, which is worth `slope`, rounded down; so a row's
    gradient, the exact product, has norm at most `bound` = norm·steepest.
    """

    frame: Frame
    loss: Loss
    theta: npt.ArrayLike = field(repr=False)
    slope: float
    shape: Shape = field(init=False)
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 4
    integers: Floats = field(init=False, repr=False)
    scale: int = field(init=False)
    steepest: int = field(init=False)
    _step: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        where, frame = "SlopeSum", self.frame
        theta = np.array(self.theta, np.float64)
        weights, scale = np.zeros((1, frame.features + 1)), 0
        if theta.any() or theta.shape != (frame.features,):
            with_label = np.append(theta, 0.0)
            weights, scale = rounded_weights(with_label, frame.shape, "theta", where)
        slope = Fraction(positive(self.slope, "slope", where))
        most = _PRODUCT_BITS - (frame.norm - 1).bit_length()
        steps = power(min(most, 20))
        shift = 0
        while slope * power(shift) > steps:
            shift -= 1
        while slope * power(shift + 1) <= steps:
            shift += 1
        freeze(self, shape=frame.shape, size=frame.features, integers=weights[0, :-1], scale=scale)
        freeze(self, steepest=int(slope * power(shift)), _step=float(power(shift)))
        freeze(self, bound=frame.norm * self.steepest, unit=power(-shift) / CELLS)

    def over(self, features: Features, labels: Floats) -> Integers:
        """Return the gradient of a block, exactly."""
        return np.asarray(features @ self.slopes(features, labels)).astype(np.int64)

    def slopes(self, features: Features, labels: Floats) -> Floats:
        """Return the clipped slopes of a block, as integers."""
        margins = np.asarray(self.integers @ features) * float(power(-self.scale) / CELLS)
        slopes = self.loss.slopes(margins, labels / CELLS)
        return np.asarray(np.rint(np.clip(slopes * self._step, -self.steepest, self.steepest)))
