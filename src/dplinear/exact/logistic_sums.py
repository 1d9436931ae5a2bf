"""The sums of a whitened descent for logistic regression: its gradient, and its curvature.

A row's chance of a label is σ(η) = 1/(1 + exp(−η)), η = weights · cells. Libraries' exponentials
are not bitwise the same on every machine, nor in every place of a block; this one is made of
additions and multiplications alone (docs/exact-pass.md, "Other sums").
"""

from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.arguments import integer, real, rejection
from dplinear.arrays import Floats, Integers
from dplinear.exact.integers import bound_norms, product, squared_lengths
from dplinear.exact.public_maps import (
    bits,
    in_units,
    longest,
    power,
    rounded_matrix,
    rounded_weights,
)
from dplinear.exact.row_sums import RowSum, check_shape, freeze
from dplinear.exact.shape import Shape

_BITS = 26  # of a row's gradient, so that its squared norm is exact; and of its curvature
_FARTHEST = 32.0  # a margin beyond it counts as it: exp(−32) is 1.3e-14
_HALVINGS = 10  # that make a margin at most 1/32
_TERMS = 7  # of the series of exp(−x), which leave out less than x⁸/8!, at most 2.3e-17
_LEAST_UNIT = 2.0**-200  # below it every margin is less than 2^-147: no margin at all


@dataclass(frozen=True, eq=False)
class LogisticGradient(RowSum):
    """Σ clip(W x)·w(σ)·(y − σ): per row, a shortened whitened vector, times the score of a label.

    σ = σ(weights · cells); y is 1 where the cell `label` is above 0, and 0 elsewhere: a column of
    0 and 1, an indicator, and any bounded number against the middle of its bounds. The weight
    w = min(1, score/max(σ, 1 − σ)) keeps scores within ±`score`; it does not see y, so the sum
    is still 0 on average where the model holds. With score = 1 (no weight) it is the likelihood's.

    Requires: `whitening` and `weights` as for `Gradient`, both 0 for the cell `label`, but weights
    may be 0 throughout; `leverage`, above 0; `score` in [1/2, 1].
    Promises: W and the weights are rounded as for `Gradient`; with these, scores are within 1e-12;
    each row's gradient to integers of norm at most `bound` ≤ 2^26, which is leverage·score in
    units, rounded down.
    """

    shape: Shape
    whitening: InitVar[npt.ArrayLike]
    weights: InitVar[npt.ArrayLike]
    label: int
    leverage: float
    score: float = 1.0
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 4
    integers: Floats = field(init=False, repr=False)
    scales: tuple[int, int] = field(init=False)
    _margin_unit: float = field(init=False, repr=False)
    _leverage: float = field(init=False, repr=False)
    _step: float = field(init=False, repr=False)

    def __post_init__(self, whitening: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        where = "LogisticGradient"
        matrix, first = rounded_matrix(whitening, self.shape, "whitening", where)
        row, second = round_weights(weights, self.shape, where)
        score = real(self.score, "score", where, low=0.5, high=1.0)
        label = integer(self.label, "label", where, low=0, high=self.shape.dimension - 1)
        if matrix[:, label].any() or row[:, label].any():
            rule = "a cell that neither whitening nor weights use"
            raise rejection("label", where, rule, label)
        unit = power(-first) / self.shape.steps_per_unit
        reach = longest(len(matrix))
        lever = in_units(self.leverage, "leverage", where, unit=unit, reach=reach)
        most = lever * Fraction(score)
        shift = bits(most) - _BITS
        integers = np.concatenate((matrix, row))
        integers.flags.writeable = False
        freeze(self, size=len(matrix), integers=integers, scales=(first, second))
        freeze(self, label=label, score=score, bound=int(most / power(shift)))
        freeze(self, unit=unit * power(shift), _leverage=float(lever), _step=2.0**-shift)
        freeze(self, _margin_unit=unit_of_margins(second, self.shape))

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the clipped gradients."""
        products = product(self.integers, rows)
        whitened, margins = products[:-1], products[-1]
        factor = scores(margins, self._margin_unit, rows[self.label] > 0, self.score)
        factor *= self._step
        lengths = np.sqrt(squared_lengths(whitened))
        factor *= self._leverage / np.maximum(lengths, self._leverage)
        terms = np.multiply(whitened, factor, out=whitened)
        bound_norms(np.rint(terms, out=terms), self.bound**2)
        return np.asarray(terms.sum(axis=1), np.int64)


@dataclass(frozen=True, eq=False)
class Curvatures(RowSum):
    """Σ w(σ)·σ(1 − σ): how fast scores change with η, added over the rows.

    Requires: `weights` and `score` as for `LogisticGradient`.
    Promises: weights are rounded as for `Gradient`; with these, each row's curvature is within
    2⁻²⁸. `bound` = 2^26 is worth 1/4.
    """

    shape: Shape
    weights: InitVar[npt.ArrayLike]
    score: float = 1.0
    size: int = field(default=1, init=False)
    bound: int = field(default=1 << _BITS, init=False)
    unit: Fraction = field(default=Fraction(1, 4 << _BITS), init=False)
    replaced: ClassVar[int] = 1
    integers: Floats = field(init=False, repr=False)
    scale: int = field(init=False)
    _margin_unit: float = field(init=False, repr=False)

    def __post_init__(self, weights: npt.ArrayLike) -> None:
        where = "Curvatures"
        integers, scale = round_weights(weights, self.shape, where)
        score = real(self.score, "score", where, low=0.5, high=1.0)
        freeze(self, integers=integers, scale=scale, score=score)
        freeze(self, _margin_unit=unit_of_margins(scale, self.shape))

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the curvatures."""
        odds = decay(product(self.integers, rows)[0], self._margin_unit)
        likely = 1.0 / (1.0 + odds)
        terms = np.rint(odds * likely * np.minimum(likely, self.score) * (4.0 * self.bound))
        return np.array([np.clip(terms, 0.0, float(self.bound)).astype(np.int64).sum()])


def scores(margins: Floats, unit: float, labels: npt.NDArray[np.bool_], most: float) -> Floats:
    """Return w(σ)·(y − σ), at most `most` in size, for margins η in units of `unit`.

    With o = exp(−|η|), the likelier label has chance 1/(1 + o) and the other one o/(1 + o). So a
    score is min(1/(1 + o), most) for a row with the unlikelier label, o times that for the others.
    """
    odds = decay(margins, unit)
    sizes = np.minimum(1.0 / (1.0 + odds), most)
    sizes *= np.where((margins >= 0) == labels, odds, 1.0)
    return np.where(labels, sizes, -sizes)


def decay(margins: Floats, unit: float) -> Floats:
    """Return exp(−min(|η|, 32)) for margins η in units of `unit`, in (0, 1].

    Promises: within 1e-12 of itself; each number a function of its own margin, bit by bit: a series
    for η/2^10, squared ten times.
    """
    if not unit:
        return np.ones(margins.shape)
    # Compared before it is multiplied, so that nothing overflows.
    small = np.minimum(np.abs(margins), _FARTHEST / unit)
    small *= unit
    np.minimum(small, _FARTHEST, out=small)
    small *= 2.0**-_HALVINGS
    value = np.ones(margins.shape)
    for term in range(_TERMS, 0, -1):
        value *= small
        value *= 1.0 / term
        np.subtract(1.0, value, out=value)
    for _ in range(_HALVINGS):
        value *= value
    return value


def round_weights(weights: npt.ArrayLike, shape: Shape, where: str) -> tuple[Floats, int]:
    """Return weights as integers·2^−scale, where a descent may also begin: at zero."""
    check_shape(shape, where)
    start = np.zeros((1, shape.dimension))
    if np.array_equal(np.asarray(weights, object), start[0]):
        start.flags.writeable = False
        return start, 0
    return rounded_weights(weights, shape, "weights", where)


def unit_of_margins(scale: int, shape: Shape) -> float:
    """Return what an integer of a margin is worth, 0 if no margin can matter."""
    unit = float(power(-scale) / shape.steps_per_unit)
    return unit if unit >= _LEAST_UNIT else 0.0
