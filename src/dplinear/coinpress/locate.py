"""Where a column's cells are, and how wide: noisy histograms, one inside the other.

Bounds may be a million times wider than the rows. CoinPress shrinks them by a factor that grows
with the number of rows, again and again; a histogram does it by a factor of a hundred at once, with
few rows too. Everything but the counts is post-processing (docs/theory/coinpress.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from dplinear.adaptive.noisy_sums import NoisySums, Query
from dplinear.arrays import Floats
from dplinear.coinpress.windows import View, Views, window
from dplinear.exact.histograms import Histograms

BINS = (1024, 32)  # fine ones, for cells that are all in a few; coarse ones, for cells all over
FIRST = Fraction(1, 256)  # of μ², for a first look
LARGER = 4  # times that for the next, where some column could not be seen
MOST = Fraction(3, 16)  # of μ², for all looks together
_ACCIDENT = 1e-4  # how often noise alone may fill a bin, in a look
_RARE = 0.01  # of all rows: a bin of fewer is left out, as outliers are
_ENOUGH = 0.85  # of all rows in bins that are clear
_FEWEST = 8  # bins: fewer would say nothing
_RESOLVED = 2.0  # bins in a standard deviation: then a column is seen well enough
_UNSEEN = 0.25  # of half the window: the standard deviation of a column that noise hides
_WHOLE = 0.8  # of a window: one that is no wider would show no more
_FINEST = 2.0**-60  # of the bounds: a column that is narrower is as good as constant
_MARGIN = 1.0  # bins around those that hold rows
_WIDE = 8.0  # standard deviations, for the window of a column that is seen well enough


@dataclass(frozen=True, eq=False)
class Located:
    """The middle and the standard deviation of each column, roughly, in its own units."""

    centre: Floats
    scale: Floats
    looks: int


@dataclass(frozen=True)
class _Seen:
    """What one histogram shows, in its window's units, where the window is [0, 1]."""

    centre: float
    scale: float
    low: float
    high: float
    resolved: bool


def locate(sums: NoisySums, table: Views, rows: float) -> Located:
    """Release histograms of all columns, and again of those that are still in a few bins.

    Requires: `rows`, the number of rows where it is public, a noisy count otherwise.
    Promises: k columns are k counts a row, so one row more or less moves a histogram by √k. What is
    not spent, because a few looks are enough, is left in the chain.
    """
    middle, reach = (table.low + table.high) / 2, (table.high - table.low) / 2
    centre, scale = middle.copy(), _UNSEEN * reach
    before = np.full(len(middle), np.inf)
    unresolved, share, left, looks = list(range(len(middle))), FIRST, MOST, 0
    while unresolved and share <= left:
        view = table.through(*window(table, middle, reach))
        found = _look(sums, view, unresolved, rows, share)
        left, looks = left - share, looks + 1
        again = [column for column, seen in zip(unresolved, found, strict=True) if seen is None]
        share *= LARGER if again else 1
        for column, seen in zip(unresolved, found, strict=True):
            if seen is None:
                continue
            width, start = 2 * view.half[column], view.middle[column] - view.half[column]
            centre[column], scale[column] = start + width * seen.centre, width * seen.scale
            finest = _FINEST * (table.high[column] - table.low[column])
            stuck = view.half[column] > _WHOLE * before[column]  # as whole numbers' windows are
            before[column] = view.half[column]
            if seen.resolved or stuck or scale[column] < finest:
                middle[column], reach[column] = centre[column], _WIDE * scale[column]
            else:
                middle[column] = start + width * (seen.low + seen.high) / 2
                reach[column] = width * (seen.high - seen.low) / 2
                again.append(column)
        unresolved = again
    return Located(centre, scale, looks)


def _look(
    sums: NoisySums, view: View, columns: Sequence[int], rows: float, share: Fraction
) -> list[_Seen | None]:
    indices = tuple(column + 1 for column in columns)  # behind the constant
    asked = [Query(Histograms(view.shape, indices, bins), share / len(BINS)) for bins in BINS]
    answers = sums.ask(asked, view)
    tables = [answer.values.reshape(len(indices), -1) for answer in answers]
    sigmas = [answer.sigma for answer in answers]
    size = len(indices)
    return [_read_histograms(pair, sigmas, rows, size) for pair in zip(*tables, strict=True)]


def _read_histograms(
    histograms: Sequence[Floats], sigmas: Sequence[float], rows: float, columns: int
) -> _Seen | None:
    """Return what the finest bins show that hold most rows clearly; pairs are merged until so."""
    ends = [*(2 * len(coarser) for coarser in histograms[1:]), _FEWEST]
    for counts, sigma, end in zip(histograms, sigmas, ends, strict=True):
        while len(counts) >= end:
            clear = counts > max(_accident(sigma, columns * len(counts)), _RARE * rows)
            mass = float(counts[clear].sum())
            if mass >= _ENOUGH * rows:
                return _summary(np.where(clear, counts, 0.0), mass / rows)
            counts, sigma = counts[::2] + counts[1::2], sigma * math.sqrt(2)  # noqa: PLW2901
    return None


def _accident(sigma: float, bins: int) -> float:
    """Return a count that noise alone hardly makes in any of so many bins."""
    return -sigma * float(ndtri(_ACCIDENT / bins))


def _summary(counts: Floats, mass: float) -> _Seen:
    size = len(counts)
    middles = (np.arange(size) + 0.5) / size
    total = float(counts.sum())
    centre = float(counts @ middles) / total
    spread = math.sqrt(float(counts @ (middles - centre) ** 2) / total) / _kept_share(mass)
    held = np.flatnonzero(counts)
    low, high = max(held[0] - _MARGIN, 0.0) / size, min(held[-1] + 1 + _MARGIN, size) / size
    resolved = spread >= _RESOLVED / size or high - low > _WHOLE
    return _Seen(centre, max(spread, 0.5 / size), low, high, resolved=resolved)


def _kept_share(mass: float) -> float:
    """Return what is left of a normal's standard deviation without its tails."""
    if mass >= 1:
        return 1.0
    z = float(ndtri((1 + mass) / 2))
    return math.sqrt(1 - 2 * z * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / mass)
