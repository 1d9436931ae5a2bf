"""How long the scores of rows are, and the sum of their outer products: what intervals rest on.

The score of a row is its gradient, W x·r. How many rows have long ones says how wide a clip must be
that leaves the gradient as it is; the sum of outer products is the middle of a sandwich, the
covariance of the gradient whatever the variances of the errors are
(docs/theory/whitened-descent.md).
"""

from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats, Integers
from dplinear.exact.integers import EXACT, bound_norms, product, squared_lengths
from dplinear.exact.public_maps import in_units, longest, power, rounded_matrix, rounded_weights
from dplinear.exact.residual_sums import Gradient
from dplinear.exact.row_sums import RowSum, freeze
from dplinear.exact.shape import Shape

_SCORE_BITS = 20  # so that a block of outer products is exact in float64


@dataclass(frozen=True, eq=False)
class ScoreGram(RowSum):
    """Σ g gᵀ over rows, g the clipped gradient of a row.

    Requires: `gradient`, which says how a row's is clipped.
    Promises: g is rounded towards zero to integers of norm at most N = √`bound` ≤ 2^20, verified on
    them; the whole symmetric matrix, row by row, so that `bound` is its sensitivity in Frobenius
    norm.
    """

    gradient: Gradient
    shape: Shape = field(init=False)
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 2
    symmetric: ClassVar[bool] = True
    _step: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own = self.gradient
        shift = max(own.bound.bit_length() - _SCORE_BITS, 0)
        freeze(self, shape=own.shape, size=own.size**2, _step=2.0**-shift)
        length = -(-own.bound >> shift)  # rounded up, so that no score is clipped once more
        freeze(self, bound=length**2, unit=(own.unit * 2**shift) ** 2)

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of outer products, flat."""
        scores = self.gradient.of_rows(rows)
        short = np.trunc(np.multiply(scores, self._step, out=scores), out=scores)
        short = bound_norms(short, self.bound)
        return np.asarray((short @ short.T).astype(np.int64).ravel())


@dataclass(frozen=True, eq=False)
class ScoreHistogram(RowSum):
    """Numbers of rows whose score is longer than each of `edges`, but not than the next.

    The score of a row is ‖W x‖·min(|r|, residual). Bands lie between successive edges, the last of
    them open; rows with shorter scores are not counted.

    Requires: `whitening`, `weights` and `residual` as for `Gradient`; `edges`, ascending, above 0,
    in the cells' units.
    Promises: W and the weights are rounded as for `Gradient`; products with these are exact, and
    lengths are elementwise. A row counts in one place at the most, so `bound` is 1.
    """

    shape: Shape
    whitening: InitVar[npt.ArrayLike]
    weights: InitVar[npt.ArrayLike]
    residual: float
    edges: tuple[float, ...]
    size: int = field(init=False)
    bound: int = field(default=1, init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 2
    integers: Floats = field(init=False, repr=False)
    _clip: float = field(init=False, repr=False)
    _edges: Floats = field(init=False, repr=False)

    def __post_init__(self, whitening: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        where = "ScoreHistogram"
        matrix, first = rounded_matrix(whitening, self.shape, "whitening", where)
        row, second = rounded_weights(weights, self.shape, "weights", where)
        one = power(-first) / self.shape.steps_per_unit
        other = power(-second) / self.shape.steps_per_unit
        limits = _limits(self.edges, one * other, longest(len(matrix)) << EXACT, where)
        clip = in_units(self.residual, "residual", where, unit=other)
        integers = np.concatenate((matrix, row))
        integers.flags.writeable = False
        freeze(self, size=len(limits), integers=integers, _clip=float(clip), _edges=limits)

    def sum(self, rows: Floats) -> Integers:
        """Return how many rows are in each band."""
        products = product(self.integers, rows)
        lengths = np.sqrt(squared_lengths(products[:-1]))
        scores = lengths * np.minimum(np.abs(products[-1]), self._clip)
        return _count(self._edges, scores)


@dataclass(frozen=True, eq=False)
class LengthHistogram(RowSum):
    """Numbers of rows whose ‖W x‖ is longer than each of `edges`, but not than the next.

    Requires: `whitening` as for `Gradient`; `edges` as for `ScoreHistogram`.
    Promises: what `ScoreHistogram` does.
    """

    shape: Shape
    whitening: InitVar[npt.ArrayLike]
    edges: tuple[float, ...]
    size: int = field(init=False)
    bound: int = field(default=1, init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 2
    integers: Floats = field(init=False, repr=False)
    _edges: Floats = field(init=False, repr=False)

    def __post_init__(self, whitening: npt.ArrayLike) -> None:
        matrix, scale = rounded_matrix(whitening, self.shape, "whitening", "LengthHistogram")
        unit = power(-scale) / self.shape.steps_per_unit
        limits = _limits(self.edges, unit, longest(len(matrix)), "LengthHistogram")
        freeze(self, size=len(limits), integers=matrix, _edges=limits)

    def sum(self, rows: Floats) -> Integers:
        """Return how many rows are in each band."""
        lengths = np.sqrt(squared_lengths(product(self.integers, rows)))
        return _count(self._edges, lengths)


def _limits(edges: tuple[float, ...], unit: Fraction, reach: int, where: str) -> Floats:
    """Return where bands begin, in units, none beyond what a row can reach."""
    if not isinstance(edges, tuple):
        raise wrong_type("edges", where, "a tuple of numbers", edges)
    limits = [float(in_units(edge, "edges", where, unit=unit, reach=reach)) for edge in edges]
    if not limits or limits != sorted(limits):
        raise rejection("edges", where, "ascending, at least one", edges)
    found = np.array(limits)
    found.flags.writeable = False
    return found


def _count(edges: Floats, values: Floats) -> Integers:
    """Return the numbers of values beyond each edge, but not beyond the next."""
    bands = np.searchsorted(edges, values)  # of those equal to an edge: below it
    return np.bincount(bands, minlength=len(edges) + 1)[1:].astype(np.int64)
