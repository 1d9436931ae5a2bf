"""What a loss comes to at each of a list of public models, exactly."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.arguments import positive
from dplinear.arrays import Floats, Integers
from dplinear.convex.example_blocks import CELLS, Features
from dplinear.convex.examples import ExampleSum, Frame
from dplinear.convex.losses import LogisticLoss, Loss, SquaredLoss
from dplinear.exact.logistic_sums import decay
from dplinear.exact.public_maps import power, rounded_matrix
from dplinear.exact.row_sums import freeze
from dplinear.exact.shape import Shape

_BITS = 30  # of the widest loss
_AT_ONCE = 256  # models, so that margins of a block stay small
_TERMS = 17  # of the series of artanh(1/3), which leave out less than 3^−35


@dataclass(frozen=True, eq=False)
class LossSum(ExampleSum):
    """Σ (ℓ(⟨x, θ⟩; y) − ℓ(0; y)) for every column θ of `thetas`, and then for every −θ if `signed`.

    Requires: `reach` above 0, a bound on margins.
    Promises: they are rounded to integers·2^−`scale`; with these, margins are exact. A row's loss
    is rounded to an integer, a bitwise function of the row, and clipped to what margins within
    ±`reach` and labels within ±1 can make it: an interval of length `spread` ≤ 2^30.
    """

    frame: Frame
    loss: Loss
    thetas: npt.ArrayLike = field(repr=False)
    reach: float
    signed: bool = False
    shape: Shape = field(init=False)
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 4
    integers: Floats = field(init=False, repr=False)
    scale: int = field(init=False)
    least: int = field(init=False)
    spread: int = field(init=False)

    def __post_init__(self) -> None:
        where, shape = "LossSum", self.frame.shape
        rows = np.array(self.thetas, np.float64).T
        with_label = np.hstack([rows, np.zeros((len(rows), 1))])
        weights, scale = rounded_matrix(with_label, shape, "thetas", where)
        low, high = extremes(self.loss, positive(self.reach, "reach", where))
        step = _BITS - 1 - math.ceil(math.log2(high - low))
        least, most = (math.floor(low * 2.0**step), math.ceil(high * 2.0**step))
        size = len(rows) * (2 if self.signed else 1)
        largest = max(abs(least), abs(most)) * (math.isqrt(size) + 1)
        freeze(self, shape=shape, size=size, bound=largest, unit=power(-step))
        freeze(self, integers=weights[:, :-1], scale=scale, least=least, spread=most - least)

    def over(self, features: Features, labels: Floats) -> Integers:
        """Return the sums over a block, exactly."""
        signs = (1.0, -1.0) if self.signed else (1.0,)
        totals = np.zeros((len(signs), len(self.integers)), np.int64)
        margin_unit, unit = float(power(-self.scale) / CELLS), float(1 / self.unit)
        for at in range(0, len(self.integers), _AT_ONCE):
            margins = np.asarray(self.integers[at : at + _AT_ONCE] @ features) * margin_unit
            for row, sign in enumerate(signs):
                steps = np.rint(excesses(self.loss, sign * margins, labels / CELLS) * unit)
                inside = np.clip(steps, self.least, self.least + self.spread)
                totals[row, at : at + _AT_ONCE] = inside.astype(np.int64).sum(axis=1)
        return totals.ravel()


def excesses(loss: Loss, margins: Floats, labels: Floats) -> Floats:
    """Return ℓ(η; y) − ℓ(0; y), row by row: each a bitwise function of its own margin and label."""
    if isinstance(loss, LogisticLoss):
        wrong = np.where(labels > 0, -margins, margins)
        return np.asarray(np.maximum(wrong, 0.0) + _log_one_plus(decay(margins, 1.0)) - math.log(2))
    if isinstance(loss, SquaredLoss):  # as a product, of which nothing cancels
        return np.asarray(margins * (margins - 2.0 * labels))
    return np.asarray(loss.values(margins, labels) - loss.values(np.zeros(()), labels))


def extremes(loss: Loss, reach: float) -> tuple[float, float]:
    """Return the least and the most that ℓ(η; y) − ℓ(0; y) is for |η| ≤ reach and |y| ≤ 1.

    It is convex in η, so that the most is at an end. A label of 1 has both: for losses of η − y,
    a larger y raises the loss at −reach by more than at 0, and lowers it at y or reach by more.
    """
    margins = np.array([-reach, min(reach, 1.0), reach])
    found = excesses(loss, margins, np.ones(3))
    return float(found.min()), float(found.max())


def _log_one_plus(values: Floats) -> Floats:
    """Return ln(1 + x) for x in [0, 1], by the series of 2·artanh(x/(2 + x))."""
    ratio = values / (2.0 + values)
    square, series = ratio * ratio, np.zeros_like(ratio)
    for term in range(_TERMS, -1, -1):
        series = series * square + 1.0 / (2 * term + 1)
    return np.asarray(2.0 * ratio * series)
