"""Weights of rows: whole numbers of 1/2^24, so that weighted sums are exact.

A row of weight a/2^24 adds a times what it would add by itself; sums are then counted in units that
are 2^24 times as fine. So no weighted row is rounded again, every statistic is the one of rows
without weights, and whoever holds rows whose weights add up to at most 1 moves a sum by at most
what one row moves it by: ‖Σ aᵢ f(zᵢ)‖ ≤ Σ aᵢ·bound ≤ 2^24·bound (docs/exact-pass.md, "Weighted
rows").
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats, Integers

HALF_BITS = 12
BITS = 2 * HALF_BITS  # even, so that second moments of weighted rows are those of a finer grid
WHOLE = 1 << BITS  # the weight of a row that counts as one
_SIGNIFICANT = 12  # bits of a weight: so few that a block of any weights is added in few parts
_FEW = 48  # distinct weights in a block, up to which each is a part of its own

_BLOCK = 1 << 12  # rows whose products, of 2^48 at the most, add up within a word

Indices = npt.NDArray[np.intp]


def shared_weights(counts: Integers, rows_per_unit: int) -> Integers:
    """Return the weight of each row of a unit that has so many rows: min(1/k, 1/count).

    Requires: counts of at least 1; `rows_per_unit`, k, at least 1.
    Promises: count times the weight is at most 1 (`WHOLE`), verified on the integers. A weight is
    rounded towards 0: to 12 significant bits, and to 0 for a unit of more than 2^24 rows.
    """
    weights = _round_down(WHOLE // np.maximum(counts, rows_per_unit))
    if (weights * counts > WHOLE).any():
        raise ArithmeticError("The weights of a unit add up to more than 1.")
    return weights


def survey_weights(shares: Floats) -> Integers:
    """Return the weights of rows, given as parts of the largest: in [0, 1], or NaN, which is 0.

    Promises: from 0 to `WHOLE`, verified on the integers; rounded towards 0, by less than one part
    in 2,048, or by less than 2^−24.
    """
    known = np.where(np.isnan(shares), 0.0, shares)
    weights = _round_down(np.floor(known * WHOLE).astype(np.int64))
    if len(weights) and not 0 <= int(weights.min()) <= int(weights.max()) <= WHOLE:
        raise ArithmeticError("A weight is not between 0 and 1.")
    return weights


def capped_weights(
    weights: Integers, codes: Integers, units: int, rows_per_unit: int
) -> tuple[Integers, Integers]:
    """Return v = s·min(1/k, 1/Σ s over the unit) for rows of weights s, and Σ v of each row's unit.

    Requires: weights from 0 to `WHOLE`; the code of each row's unit, below `units`; k at least 1.
    Promises: the weights of a unit add up to at most 1 (`WHOLE`), verified on the integers; each is
    rounded towards 0, to 12 significant bits.
    """
    held = np.maximum(_totals(weights, codes, units), rows_per_unit * WHOLE)
    capped = _round_down(weights * WHOLE // held[codes])  # products below 2^49
    totals = _totals(capped, codes, units)
    if (totals > WHOLE).any():
        raise ArithmeticError("The weights of a unit add up to more than 1.")
    return capped, np.asarray(totals[codes])


def squared_weights(weights: Integers, totals: Integers) -> int:
    """Return Σ v·V over rows of weight v, of units of a total V: Σ V², in units of 1/2^48."""
    starts = range(0, len(weights), _BLOCK)
    return sum(int(weights[at : at + _BLOCK] @ totals[at : at + _BLOCK]) for at in starts)


def _totals(weights: Integers, codes: Integers, units: int) -> Integers:
    totals = np.zeros(units, np.int64)
    np.add.at(totals, codes, weights)
    return totals


def _round_down(weights: Integers) -> Integers:
    """Return weights with at most 12 significant bits, none of them larger than before."""
    long = np.frexp(weights.astype(np.float64))[1] - _SIGNIFICANT  # exact: below 2^53
    shift = np.maximum(long, 0)
    return np.asarray((weights >> shift) << shift)


def parts(weights: Integers) -> Iterator[tuple[int, Indices]]:
    """Return multipliers, each with the rows that it applies to: Σ of them is a row's weight.

    Few distinct weights are a part each. Of many, each part is a digit −1 or 1 in front of a power
    of two: of 12 bits a third are such digits, where they are written without neighbours.
    Requires: weights from 0 to `WHOLE`.
    """
    distinct, codes = np.unique(weights, return_inverse=True)
    if len(distinct) <= _FEW:
        for code, weight in enumerate(distinct.tolist()):
            if weight:
                yield weight, np.flatnonzero(codes == code)
        return
    # The non-adjacent form: the digits of 3w that differ from those of w, one place up.
    triple = 3 * weights
    plus, minus = triple & ~weights, weights & ~triple
    for bit in range(BITS + 1):
        for sign, digits in ((1, plus), (-1, minus)):
            rows = np.flatnonzero((digits >> (bit + 1)) & 1)
            if len(rows):
                yield sign << bit if sign > 0 else -(1 << bit), rows
