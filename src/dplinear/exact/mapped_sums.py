"""The sums of rows under a public linear map: vectors, squares, squared norms, Gram matrices.

The map is rounded to so few bits that its products with a row are exact integers whatever BLAS
does; from there on, each row is treated by elementwise IEEE operations, and by comparisons that
no order of additions can sway (docs/exact-pass.md, "Other sums").
"""

from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats, Indices, Integers
from dplinear.exact.integers import FARTHEST, product, shorten, squared_lengths, support_of
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

_VECTOR_BITS = 26  # of the norm of a vector, so that its square is exact
_SQUARE_BITS = 50  # of a limited squared norm, so that 4096 of them stay within 2^62


@dataclass(frozen=True, eq=False)
class _Mapped(RowSum):
    """A sum of something of M z, z the cells of a row."""

    shape: Shape
    matrix: InitVar[npt.ArrayLike]
    size: int = field(default=1, init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    integers: Floats = field(init=False, repr=False)
    scale: int = field(init=False)
    _support: Indices = field(init=False, repr=False)

    def __post_init__(self, matrix: npt.ArrayLike) -> None:
        integers, scale = rounded_matrix(matrix, self.shape, "matrix", type(self).__name__)
        freeze(self, integers=integers, scale=scale, _support=support_of(integers))

    @property
    def _unit(self) -> Fraction:
        """What an integer of the product is worth in the cells' units."""
        return power(-self.scale) / self.shape.steps_per_unit


@dataclass(frozen=True, eq=False)
class _OfClipped(_Mapped):
    """A sum of a power of c, which is M z scaled towards zero to norm at most `norm`."""

    norm: float
    _longest: int = field(init=False, repr=False)
    _step: float = field(init=False, repr=False)
    _power: ClassVar[int]
    _bits: ClassVar[int]  # the most that the norm of c has

    def __post_init__(self, matrix: npt.ArrayLike) -> None:
        super().__post_init__(matrix)
        reach, where = longest(len(self.integers)), type(self).__name__
        clip = in_units(self.norm, "norm", where, unit=self._unit, reach=reach)
        shift = bits(clip) - self._bits
        most = int(clip / power(shift))
        freeze(self, size=len(self.integers) ** self._power, bound=most**self._power)
        freeze(self, unit=(self._unit * power(shift)) ** self._power)
        freeze(self, _longest=most, _step=2.0**-shift)

    def _clip(self, rows: Floats) -> Floats:
        """Return c for each row, in steps."""
        return shorten(product(self.integers, rows, self._support, self._step), self._longest)


@dataclass(frozen=True, eq=False)
class MappedSum(_OfClipped):
    """Σ c, c = M z scaled towards zero to norm at most `norm`, z the cells of a row.

    Requires: `matrix`, M, with a column for each cell (0 for those that take no part), not all
    zero; `norm`, above 0, in the cells' units (at least one unit, at most what a row can reach).
    Promises: M is rounded to `integers`·2^−`scale`, c to integers of norm at most `bound` ≤ 2^26,
    which is the norm in units, rounded down; what is clipped comes within a few units of it.
    """

    replaced: ClassVar[int] = 4
    _power: ClassVar[int] = 1
    _bits: ClassVar[int] = _VECTOR_BITS

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the clipped vectors."""
        return np.asarray(self._clip(rows).sum(axis=1), np.int64)


@dataclass(frozen=True, eq=False)
class MappedGram(_OfClipped):
    """Σ c cᵀ, c = M z scaled towards zero to norm at most `norm`, z the cells of a row.

    Requires: `matrix` and `norm` as for `MappedSum`.
    Promises: M is rounded to `integers`·2^−`scale`, c to integers of norm N ≤ 2^20; the whole
    symmetric matrix, row by row, so that `bound` = N² is its sensitivity in Frobenius norm.
    """

    replaced: ClassVar[int] = 2
    symmetric: ClassVar[bool] = True
    _power: ClassVar[int] = 2
    _bits: ClassVar[int] = 20  # so that sums of 4096 products are exact

    def sum(self, rows: Floats) -> Integers:
        """Return the matrix of the clipped vectors, flat."""
        clipped = self._clip(rows)
        return (clipped @ clipped.T).astype(np.int64).ravel()


@dataclass(frozen=True, eq=False)
class InnerGram(MappedGram):
    """Σ c cᵀ over the rows with |r| ≤ `residual`, r = weights · cells of a row.

    c is M z scaled towards zero, as for `MappedGram`. It is the curvature of a loss that is linear
    beyond that residual.

    Requires: `matrix` and `norm` as for `MappedGram`; `weights`, a number for each cell, and
    `residual`, above 0, in the cells' units.
    Promises: what `MappedGram` does. Weights are rounded to integers·2^−scale; with these, the
    comparison is exact. A row beyond adds nothing.
    """

    weights: InitVar[npt.ArrayLike]
    residual: float
    _inside: Floats = field(init=False, repr=False)
    _most: float = field(init=False, repr=False)

    def __post_init__(self, matrix: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        super().__post_init__(matrix)
        row, scale = rounded_weights(weights, self.shape, "weights", "InnerGram")
        unit = power(-scale) / self.shape.steps_per_unit
        most = in_units(self.residual, "residual", "InnerGram", unit=unit)
        freeze(self, _inside=row, _most=float(most))

    def sum(self, rows: Floats) -> Integers:
        """Return the matrix of the clipped vectors of rows within, flat."""
        inside = np.abs((self._inside @ rows)[0]) <= self._most
        return super().sum(np.ascontiguousarray(rows[:, inside]))


@dataclass(frozen=True, eq=False)
class MappedNorms(_Mapped):
    """Σ min(‖M z‖², limit), z the cells of a row.

    Requires: `matrix` as for `MappedSum`; `limit`, above 0, in the cells' units squared (at least
    one unit, at most what a row can reach).
    Promises: M is rounded to `integers`·2^−`scale`, each square to an integer of at most `bound`
    ≤ 2^50, which is the limit in units, rounded down.
    """

    limit: float
    replaced: ClassVar[int] = 1
    _step: float = field(init=False, repr=False)

    def __post_init__(self, matrix: npt.ArrayLike) -> None:
        super().__post_init__(matrix)
        unit, reach = self._unit**2, longest(len(self.integers)) ** 2
        limit = in_units(self.limit, "limit", "MappedNorms", unit=unit, reach=reach)
        shift = max(bits(limit) - _SQUARE_BITS, 0)
        freeze(self, bound=int(limit / 2**shift), unit=unit * 2**shift, _step=2.0**-shift)

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the limited squared norms."""
        squares = np.rint(squared_lengths(product(self.integers, rows, self._support)) * self._step)
        return np.array([np.minimum(squares, float(self.bound)).astype(np.int64).sum()])


@dataclass(frozen=True, eq=False)
class MappedSquares(_Mapped):
    """Σ s, s the squares of the entries of M z, scaled towards zero to norm at most `limit`.

    Requires: `matrix` as for `MappedSum`; `limit`, above 0, in the cells' units squared (at least
    one unit, at most what a row can reach).
    Promises: M is rounded to `integers`·2^−`scale`, s to integers of norm at most `bound` ≤ 2^26,
    which is the limit in units, rounded down. No entry is negative, so the vectors of two rows are
    at most √2·`bound` apart.
    """

    limit: float
    replaced: ClassVar[int] = 2
    _step: float = field(init=False, repr=False)

    def __post_init__(self, matrix: npt.ArrayLike) -> None:
        super().__post_init__(matrix)
        unit, reach = self._unit**2, longest(len(self.integers)) ** 2
        limit = in_units(self.limit, "limit", "MappedSquares", unit=unit, reach=reach)
        shift = bits(limit) - _VECTOR_BITS
        freeze(self, size=len(self.integers), bound=int(limit / power(shift)))
        freeze(self, unit=unit * power(shift), _step=2.0**-shift)

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the limited squares."""
        products = product(self.integers, rows, self._support)
        squares = np.multiply(products, products, out=products)
        squares = np.minimum(np.multiply(squares, self._step, out=squares), FARTHEST, out=squares)
        return np.asarray(shorten(squares, self.bound).sum(axis=1), np.int64)
