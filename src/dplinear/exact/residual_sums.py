"""The sums of residuals that a whitened descent asks for, and their clipped, whitened gradient.

Public matrices are rounded to so few bits that their products with a row are exact integers
whatever BLAS does; from there on, each row is treated by elementwise IEEE operations alone
(docs/exact-pass.md, "Other sums").
"""

from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats, Indices, Integers
from dplinear.exact.integers import EXACT, bound_norms, product, squared_lengths, support_of
from dplinear.exact.public_maps import (
    bits,
    in_units,
    longest,
    power,
    rounded_matrix,
    rounded_weights,
)
from dplinear.exact.row_sums import RowSum, freeze
from dplinear.exact.shape import Shape

_GRADIENT_BITS = 26  # of a row's gradient, so that its squared norm is exact


@dataclass(frozen=True, eq=False)
class _OfResiduals(RowSum):
    """A sum of a power of r = weights · cells of a row, |r| at most `residual`."""

    shape: Shape
    weights: InitVar[npt.ArrayLike]
    residual: float
    size: int = field(default=1, init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    integers: Floats = field(init=False, repr=False)
    scale: int = field(init=False)
    _step: float = field(init=False, repr=False)
    _clip: float = field(init=False, repr=False)
    _power: ClassVar[int]
    _bits: ClassVar[int]  # the most that a clipped residual has

    def __post_init__(self, weights: npt.ArrayLike) -> None:
        where = type(self).__name__
        integers, scale = rounded_weights(weights, self.shape, "weights", where)
        unit = power(-scale) / self.shape.steps_per_unit
        reach = in_units(self.residual, "residual", where, unit=unit)
        shift = max(bits(reach) - self._bits, 0)
        clip = int(reach / 2**shift)
        freeze(self, integers=integers, scale=scale, bound=clip**self._power)
        freeze(self, unit=(unit * 2**shift) ** self._power)
        freeze(self, _step=2.0**-shift, _clip=float(clip))

    def _residuals(self, rows: Floats) -> Floats:
        """Return the residuals in steps, not clipped."""
        return np.asarray(np.rint((self.integers @ rows)[0] * self._step))


@dataclass(frozen=True, eq=False)
class SumOfSquares(_OfResiduals):
    """Σ min(r², residual²), r = weights · cells of a row.

    Requires: `weights`, a number for each cell (1 for the target, −u for the features of a
    regression, 0 elsewhere); `residual`, above 0, in the cells' units.
    Promises: weights are rounded to `integers`·2^−`scale`; with these, r is exact, or within 2⁻²⁵
    of the clip. `bound` is the square of the clip in units, rounded down.
    """

    replaced: ClassVar[int] = 1
    _power: ClassVar[int] = 2
    _bits: ClassVar[int] = 25  # so that 4096 of its squares stay within 2^62

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the clipped squares."""
        residuals = np.clip(self._residuals(rows), -self._clip, self._clip)
        return np.array([np.square(residuals).astype(np.int64).sum()])


@dataclass(frozen=True, eq=False)
class Residuals(_OfResiduals):
    """Σ clip(r, ±residual), r = weights · cells of a row.

    Requires: `weights` and `residual` as for `SumOfSquares`.
    Promises: weights are rounded as for `SumOfSquares`; with these, r is exact, or within 2⁻²⁶ of
    the clip. `bound` ≤ 2^26 is the clip in units, rounded down.
    """

    replaced: ClassVar[int] = 4
    _power: ClassVar[int] = 1
    _bits: ClassVar[int] = 26

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the clipped residuals."""
        residuals = np.clip(self._residuals(rows), -self._clip, self._clip)
        return np.array([residuals.astype(np.int64).sum()])


@dataclass(frozen=True, eq=False)
class ResidualHistogram(_OfResiduals):
    """Numbers of rows: with |r| ≤ residual, and with r in each band far above or below.

    Bands lie between successive `edges`, the last of them open. First those above are counted, from
    near to far, then those below; r = weights · cells of a row.

    Requires: `weights` and `residual` as for `SumOfSquares`; `edges`, ascending, none below
    `residual`.
    Promises: weights are rounded as for `SumOfSquares`; with these, the comparisons are exact. A
    row counts in one place at the most, so `bound` is 1.
    """

    edges: tuple[float, ...]
    size: int = field(init=False)
    replaced: ClassVar[int] = 2
    _edges: Floats = field(init=False, repr=False)
    _power: ClassVar[int] = 0  # each row counts 1 at most
    _bits: ClassVar[int] = EXACT  # nothing is rounded off

    def __post_init__(self, weights: npt.ArrayLike) -> None:
        super().__post_init__(weights)
        unit = power(-self.scale) / self.shape.steps_per_unit
        if not isinstance(self.edges, tuple):
            raise wrong_type("edges", "ResidualHistogram", "a tuple of numbers", self.edges)
        edges = [
            float(in_units(edge, "edges", "ResidualHistogram", unit=unit)) for edge in self.edges
        ]
        if not edges or [self._clip, *edges] != sorted([self._clip, *edges]):
            raise rejection(
                "edges", "ResidualHistogram", "ascending, none below `residual`", self.edges
            )
        limits = np.array(edges)
        limits.flags.writeable = False
        freeze(self, _edges=limits, size=1 + 2 * len(edges))

    def sum(self, rows: Floats) -> Integers:
        """Return how many rows have a small residual, and how many are in each band."""
        residuals = self._residuals(rows)
        sizes, bins = np.abs(residuals), len(self._edges)
        near = np.count_nonzero(sizes <= self._clip)
        far = residuals[sizes > self._edges[0]]
        indices = np.searchsorted(self._edges, np.abs(far)) - 1  # of those equal to an edge: below
        counts = np.bincount(indices + bins * (far < 0), minlength=2 * bins)
        return np.array([near, *counts], np.int64)


@dataclass(frozen=True, eq=False)
class Gradient(RowSum):
    """Σ W x·clip(r): a whitened vector times a residual that is clipped the more, the longer it is.

    A residual is clipped at `residual`, and at `residual`·`leverage`/‖W x‖ where W x is longer than
    `leverage`. With a `taper`, that clip is (taper/‖W x‖)² times as wide where W x is longer still.

    Requires: `whitening`, a matrix with a column for each cell (0 for those that take no part);
    `weights` and `residual` as for `SumOfSquares`; `leverage`, above 0 (the clips count as at least
    one unit, and at most what a row can reach); `taper` likewise, or None.
    Promises: W is rounded to `integers[:-1]`·2^−`scales[0]`, the weights to
    `integers[-1]`·2^−`scales[1]`; each row's gradient to integers of norm at most `bound` ≤ 2^26,
    which is leverage·residual in units, rounded down, or taper·residual if that is less, as rows
    beyond the taper have shorter gradients than those at it.
    """

    shape: Shape
    whitening: InitVar[npt.ArrayLike]
    weights: InitVar[npt.ArrayLike]
    leverage: float
    residual: float
    taper: float | None = None
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 4
    integers: Floats = field(init=False, repr=False)
    scales: tuple[int, int] = field(init=False)
    _clips: tuple[float, float] = field(init=False, repr=False)
    _taper: float | None = field(init=False, repr=False)
    _support: Indices = field(init=False, repr=False)
    _step: float = field(init=False, repr=False)

    def __post_init__(self, whitening: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        where = "Gradient"
        matrix, first = rounded_matrix(whitening, self.shape, "whitening", where)
        row, second = rounded_weights(weights, self.shape, "weights", where)
        units = (
            power(-first) / self.shape.steps_per_unit,
            power(-second) / self.shape.steps_per_unit,
        )
        reach = longest(len(matrix))
        lever = in_units(self.leverage, "leverage", where, unit=units[0], reach=reach)
        residual = in_units(self.residual, "residual", where, unit=units[1])
        product, taper = lever * residual, None
        if self.taper is not None:
            least = in_units(self.taper, "taper", where, unit=units[0], reach=reach)
            product, taper = min(lever, least) * residual, float(least)
        shift = bits(product) - _GRADIENT_BITS
        integers = np.concatenate((matrix, row))
        integers.flags.writeable = False
        freeze(self, size=len(matrix), integers=integers, scales=(first, second))
        freeze(self, _support=support_of(integers))
        freeze(self, bound=int(product / power(shift)))
        freeze(self, unit=units[0] * units[1] * power(shift))
        freeze(self, _clips=(float(lever), float(residual)), _taper=taper, _step=2.0**-shift)

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the clipped gradients."""
        return np.asarray(self.of_rows(rows).sum(axis=1), np.int64)

    def of_rows(self, rows: Floats) -> Floats:
        """Return the clipped gradient of each row: integers, shape (size, rows)."""
        leverage, residual = self._clips
        products = product(self.integers, rows, self._support)
        whitened = products[:-1]
        lengths = np.sqrt(squared_lengths(whitened))
        limits = residual * (leverage / np.maximum(lengths, leverage))
        if self._taper is not None:
            limits *= np.square(self._taper / np.maximum(lengths, self._taper))
        factor = np.clip(products[-1], -limits, limits) * self._step
        terms = np.multiply(whitened, factor, out=whitened)
        return bound_norms(np.rint(terms, out=terms), self.bound**2)
