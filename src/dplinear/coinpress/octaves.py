"""Where the cells of columns are, to a factor of two: counts over public octaves.

Bounds may be far wider than what a column holds. One histogram of signs and magnitudes for each
column finds the octaves that hold rows, at a price that does not depend on how wide bounds are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from dplinear.arrays import Booleans, Floats, Indices, Integers
from dplinear.exact.row_sums import RowSum, check_shape, chosen_columns, freeze
from dplinear.exact.shape import Shape
from dplinear.privacy.neighbours import Neighbours

OCTAVES = 16  # the smallest magnitudes told apart from 0 are 2^−16 of half a range
BINS = 2 * OCTAVES + 1
_CLEAR = 4.5  # deviations of noise that a column must stand out by
_CLOSE = 4.0  # twice the difference in log-likelihood that is not taken for one
_GUESS = 0.25  # the standard deviation of a column that was not found
_FARTHER_ENDS = np.sign(np.arange(BINS) - OCTAVES) * 2.0 ** (
    np.abs(np.arange(BINS) - OCTAVES) - OCTAVES
)


@dataclass(frozen=True, eq=False)
class Octaves(RowSum):
    """For each chosen column, the numbers of rows in bins of sign and magnitude.

    Bin b of a column holds the cells t with |t| in (2^(b−17), 2^(b−16)] and t > 0 for b above 16,
    their mirror images below, and at 16 those of at most 2^−16.

    Requires: `columns`, indices of k cells, none twice.
    Promises: a row is one 1 in each of k histograms: one row more or less changes the sum by √k
    exactly, another row by √(2k) at the most. Comparisons are of integers.
    """

    shape: Shape
    columns: Sequence[int]
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 2
    _edges: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        where = "Octaves"
        check_shape(self.shape, where)
        chosen = chosen_columns(self.columns, self.shape, where)
        edges = [float(self.shape.steps_per_unit >> octave) for octave in range(OCTAVES, 0, -1)]
        freeze(self, columns=chosen, size=len(chosen) * BINS, _edges=np.array(edges))
        freeze(self, bound=isqrt(len(chosen) - 1) + 1)  # the root, rounded up

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the most that the sums of two neighbours differ by, in squared norm."""
        return super().sensitivity_squared(neighbours) // self.bound**2 * len(self.columns)

    def sum(self, rows: Floats) -> Integers:
        """Return the counts, the first column's first."""
        counts = np.empty((len(self.columns), BINS), np.int64)
        for index, column in enumerate(self.columns):
            cells = rows[column]
            octave = np.searchsorted(self._edges, np.abs(cells), side="left")
            bins = np.where(cells < 0, OCTAVES - octave, OCTAVES + octave)
            counts[index] = np.bincount(bins, minlength=BINS)
        return counts.ravel()


@dataclass(frozen=True, eq=False)
class Boxes:
    """For each column, about the middle of its cells and their standard deviation.

    Within a factor of about two, where the column was `found`; otherwise a guess from the bounds.
    """

    middles: Floats
    scales: Floats
    found: Booleans


def boxes(counts: Floats, sigma: float, rows: float, *, centred: bool) -> Boxes:
    """Return what noisy counts of octaves say; `centred`: the middles are known to be 0.

    Each column is compared with the histograms of normal columns of all middles and sizes. Of those
    that fit about as well as the best, the widest is taken: it costs little, and too narrow a box
    would clip rows. Rows elsewhere, that stand out from the noise, make it as wide as their mean
    square says.
    """
    shapes = _shapes(centred=centred)
    lines = counts.reshape(-1, BINS)
    match = lines @ shapes.histograms.T
    squares = np.einsum("ij,ij->i", shapes.histograms, shapes.histograms)
    misfit = rows**2 * squares - 2 * rows * match  # but for what does not depend on the shape
    close = misfit <= misfit.min(axis=1, keepdims=True) + _CLOSE * max(sigma, 1.0) ** 2
    best = np.where(close, shapes.scales, 0.0).argmax(axis=1)
    found = match[np.arange(len(lines)), best] > _CLEAR * sigma * np.sqrt(squares[best])
    middles = np.where(found, shapes.middles[best], 0.0)
    scales = np.hypot(shapes.scales[best], _unexplained(lines, shapes, best, sigma, rows))
    return Boxes(middles, np.where(found, scales, _GUESS), found)


def _unexplained(
    lines: Floats, shapes: "_Shapes", best: Indices, sigma: float, rows: float
) -> Floats:
    """Return the root mean square, around the middles, of rows that no normal column explains.

    A rare level or a second mode would else be clipped as an outlier, where a line leans on it
    most. Bins count by what stands out from noise and fit, at their farther ends.
    """
    extra = lines - rows * shapes.histograms[best]
    extra = np.where(extra > _CLEAR * max(sigma, 1.0), extra, 0.0)
    far = (_FARTHER_ENDS - shapes.middles[best][:, None]) ** 2
    return np.asarray(np.sqrt((extra * far).sum(axis=1) / rows))


@dataclass(frozen=True, eq=False)
class _Shapes:
    """Normal columns: their middles, their scales, and which part of them each bin holds."""

    middles: Floats
    scales: Floats
    histograms: Floats


@lru_cache(maxsize=2)
def _shapes(*, centred: bool) -> _Shapes:
    """Return normal columns of all sizes, at 0 or any number of deviations from it."""
    sizes = 2.0 ** (-np.arange(2 * OCTAVES) / 2)
    away = np.append(0.0, 2.0 ** (np.arange(2 * OCTAVES + 2) / 2 - 1))
    away = np.zeros(1) if centred else np.concatenate((-away[:0:-1], away))
    scales, offsets = (grid.ravel() for grid in np.meshgrid(sizes, away))
    middles = scales * offsets
    inside = np.abs(middles) <= 1
    middles, scales = middles[inside], scales[inside]
    halves = 2.0 ** np.arange(-OCTAVES, 0)
    edges = np.concatenate((-halves[::-1], halves))
    below = ndtr((edges - middles[:, None]) / scales[:, None])
    ends = (np.zeros((len(middles), 1)), below, np.ones((len(middles), 1)))
    return _Shapes(middles, scales, np.diff(np.hstack(ends), axis=1))
