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

from dplinear.arrays import Integers

HALF_BITS = 12
BITS = 2 * HALF_BITS  # even, so that second moments of weighted rows are those of a finer grid
WHOLE = 1 << BITS  # the weight of a row that counts as one
_SIGNIFICANT = 12  # bits of a weight: so few that a block of any weights is added in few parts
_FEW = 48  # distinct weights in a block, up to which each is a part of its own

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
