"""Bounds for columns whose scale nobody knows: windows that close on the rows, pass by pass.

Two histograms of octaves find where a column is, over some thirty octaves; two of equal bins find
how far it reaches. Each is looked at through the window that the last one left, so that the grid
is never too coarse (docs/theory/bounds.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dplinear.adaptive.noisy_sums import Answer, Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.coinpress.methods import CoinPressOutcome
from dplinear.coinpress.octaves import BINS as OCTAVE_BINS
from dplinear.coinpress.octaves import OCTAVES, Octaves, boxes
from dplinear.coinpress.windows import View, Views
from dplinear.descent.common import check_guarantee
from dplinear.exact.histograms import Histograms
from dplinear.exact.row_sums import Count
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Mechanism, Prepared
from dplinear.noise.entropy import Entropy

_WHERE = "Bounds"
_BINS = 256
_FINAL_BINS = 32
_COUNT = Fraction(1, 50)
_SHARES = (Fraction(18, 100), Fraction(18, 100), Fraction(24, 100))  # the last pass has the rest
_CLEAR = 4.5  # deviations of noise that a bin must stand out by: a chance of 3e-6 for empty ones
_LEAST = 0.002  # of rows, that a bin must hold
_MOST = 0.6  # of rows, that the bins which stand out must hold together
_SLACK = 2.0  # how much wider than those bins the next window is
_LEVELS = (0.002, 0.2)  # of a quantile that is not lost in the noise
_BEYOND = 1e-4  # of a normal column's rows, that may be outside on each side


@dataclass(frozen=True, eq=False)
class Ranges:
    """Suggested bounds in the columns' own units; `found` is False where nothing stood out.

    There they are the bounds that were given.
    """

    low: Floats
    high: Floats
    found: npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Bounds(Mechanism):
    """Bounds of several columns together.

    Requires: a table of numeric columns that can be looked at through windows.
    Promises: `ApproxDP`, with the cost of the grid, or `ZCDP`, exactly, of everything together. A
    row is one 1 in each of k histograms, whatever it holds: it moves each by √k, another row by
    √(2k). Bounds lie within those that were given. Numerics are exact.
    """

    name: ClassVar[str] = "suggest_bounds"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        check_guarantee(self.guarantee, _WHERE)

    def prepare(self, columns: int, *, count_varies: bool = False) -> "PreparedBounds":
        """Calibrate for a number of columns; `count_varies` is as for `CoinPress.prepare`."""
        coordinates = 1 + columns * 2 * (OCTAVE_BINS + _BINS)
        budget = Budget.of(self.guarantee, coordinates, self.neighbours, _WHERE)
        account = checks.exact_account(self.guarantee, budget.profile)
        return PreparedBounds(columns, budget, account, count_varies)


@dataclass(frozen=True)
class PreparedBounds(Prepared[Views, CoinPressOutcome[Ranges]]):
    """A chain with a budget, ready to run once."""

    columns: int
    budget: Budget
    account: Account
    count_varies: bool = False

    def run(self, table: Views, entropy: Entropy) -> CoinPressOutcome[Ranges]:
        """Pass over the table four times, and return bounds."""
        low, high = table.low, table.high
        view = table.through(low, high)
        sums = NoisySums(view, self.budget, entropy)
        indices = range(1, self.columns + 1)
        first = Query(Octaves(view.shape, indices), _SHARES[0])
        count, answer = sums.ask([Query(Count(self.count_varies), _COUNT), first])
        rows = max(float(count.values[0]), 1.0)
        hulls = _octaves(answer, rows)
        found = np.array([hull is not None for hull in hulls])
        low, high = _closer(table, view, hulls)
        view = table.through(low, high)
        (answer,) = sums.ask([Query(Octaves(view.shape, indices), _SHARES[1])], view)
        hulls = _octaves(answer, rows)
        found &= np.array([hull is not None for hull in hulls])
        low, high = _closer(table, view, hulls)
        view = table.through(low, high)
        (answer,) = sums.ask([Query(Histograms(view.shape, indices, _BINS), _SHARES[2])], view)
        hulls = [_dyadic(line, answer.sigma, rows) for line in _lines(answer, _BINS)]
        low, high = _closer(table, view, hulls)
        view = table.through(low, high)
        last = Histograms(view.shape, indices, _FINAL_BINS)
        (answer,) = sums.ask([Query(last, sums.remaining)], view)
        ends = [_reach(line, answer.sigma, rows) for line in _lines(answer, _FINAL_BINS)]
        low, high = _ends(table, view, ends)
        ranges = Ranges(np.where(found, low, table.low), np.where(found, high, table.high), found)
        return CoinPressOutcome(ranges, self.account, {"mu": self.budget.mu, "passes": 4}, rows)


Hull = tuple[float, float] | None


def _lines(answer: Answer, bins: int) -> Floats:
    return answer.values.reshape(-1, bins)


def _clear(counts: Floats, sigma: float, rows: float) -> npt.NDArray[np.intp]:
    """Return the bins that stand out, if they hold most rows."""
    indices = np.flatnonzero(counts > max(_CLEAR * sigma, _LEAST * rows))
    return indices if counts[indices].sum() > _MOST * rows else indices[:0]


def _octaves(answer: Answer, rows: float) -> list[Hull]:
    """Return the intervals of the octaves that hold rows, in cells of the view.

    Where no single octave stands out, a normal column that fits all of them may.
    """
    lines = _lines(answer, OCTAVE_BINS)
    fitted = boxes(answer.values, answer.sigma, rows, centred=False)
    hulls: list[Hull] = []
    for line, middle, scale, fits in zip(
        lines, fitted.middles, fitted.scales, fitted.found, strict=True
    ):
        indices = _clear(line, answer.sigma, rows)
        if len(indices):
            hulls.append((_octave(indices[0])[0], _octave(indices[-1])[1]))
        else:
            wide = _SLACK * float(scale)
            hulls.append((float(middle) - wide, float(middle) + wide) if fits else None)
    return hulls


def _octave(index: int) -> tuple[float, float]:
    """Return the interval that a bin of octaves stands for."""
    signed = int(index) - OCTAVES
    outer = 2.0 ** (abs(signed) - OCTAVES)
    if signed == 0:
        return -outer, outer
    return (outer / 2, outer) if signed > 0 else (-outer, -outer / 2)


def _dyadic(counts: Floats, sigma: float, rows: float) -> Hull:
    """Return the interval of the bins that hold rows, bins as fine as the noise allows."""
    while len(counts) > 4:
        indices = _clear(counts, sigma, rows)
        if len(indices):
            width = 2 / len(counts)
            return float(indices[0]) * width - 1, float(indices[-1] + 1) * width - 1
        counts, sigma = counts[::2] + counts[1::2], sigma * 2**0.5
    return None


def _reach(counts: Floats, sigma: float, rows: float) -> tuple[float, float]:
    """Return how far a column reaches: noisy quantiles, as far out as a normal column's would be.

    The quantiles' level is the least that the noise of their counts leaves clear.
    """
    size = len(counts)
    level = min(max(3 * sigma * (size / 2) ** 0.5 / rows, _LEVELS[0]), _LEVELS[1])
    total = max(float(counts.sum()), 1.0)
    shares = np.append(0.0, np.maximum.accumulate(np.cumsum(counts) / total))
    edges = np.linspace(-1, 1, size + 1)
    # The last edge with no more than the level below it, and the first with no more above.
    middle = float(np.interp(0.5, shares, edges))
    low = float(edges[max(int(np.searchsorted(shares, level, side="right")) - 1, 0)])
    high = float(edges[min(int(np.searchsorted(shares, 1 - level)), size)])
    factor = float(ndtri(_BEYOND) / ndtri(level))
    return middle - factor * max(middle - low, 0.0), middle + factor * max(high - middle, 0.0)


def _closer(table: Views, view: View, hulls: Sequence[Hull]) -> tuple[Floats, Floats]:
    """Return the next window: what was found, widened, and the same as before where nothing was."""
    wide = []
    for hull in hulls:
        low, high = hull or (-1.0, 1.0)
        half = (high - low) / 2 * (_SLACK if hull else 1.0)
        wide.append(((low + high) / 2 - half, (low + high) / 2 + half))
    return _ends(table, view, wide)


def _ends(table: Views, view: View, cells: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    """Return intervals of a view's cells in the columns' own units, within the table's bounds.

    Promises: none is narrower than a schema can hold.
    """
    pairs = np.array(cells)
    low = view.middle + view.half * pairs[:, 0]
    high = view.middle + view.half * pairs[:, 1]
    middle = (low + high) / 2
    ends = np.maximum(np.abs(table.low), np.abs(table.high))
    least = np.maximum(2.0**-29 * np.maximum(np.abs(low), np.abs(high)), 2.0**-60 * ends)
    half = np.maximum((high - low) / 2, least)
    low = np.clip(middle - half, table.low, table.high - least)
    return low, np.minimum(np.maximum(middle + half, low + least), table.high)
