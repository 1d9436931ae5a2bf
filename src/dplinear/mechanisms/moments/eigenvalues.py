"""The least eigenvalue of a private matrix, with an error that is proved after it was computed.

A query about λ_min(G) has the sensitivity of λ_min, plus what arithmetic may add. No constant of a
library's eigensolver is trusted: what it returns is checked by a Cholesky factor from below and by
a Rayleigh quotient from above, and found again by exact integers where it does not pass.

Let R = G/B², G = Σ z zᵀ over rows of squared norm at most B², so that R is positive semi-definite;
d its dimension, N ≥ trace R a public number, u = 2^−53 and w = (d + 2)·N·u. `certified_least`
requires R̂ with |R̂ − R| ≤ 8u·|R|, entry by entry, and returns ℓ with λ_min(R) − 7w ≤ ℓ, and
ℓ ≤ λ_min(R) + 7.2w:

- ‖R̂ − R‖ ≤ 8u·‖R‖_F ≤ 8u·N ≤ 2.7w, as ‖R‖_F ≤ trace R for such R, and d + 2 ≥ 3.
- From below: with s = ℓ − w, the float64 matrix A differs from R̂ − s·I by at most u·(N + |s|) on
  its diagonal. Where a Cholesky factor of A is found, A + E is the product of that factor and its
  transpose, ‖E‖ ≤ γ·trace A/(1 − γ), γ = (d + 1)u/(1 − (d + 1)u) (Higham 2002, Theorem 10.5, for
  inner products in any order); twice that is allowed for, so that divisions may be products with
  inverses. So λ_min(R̂) ≥ s − 2.1·(d + 3)·u·(N + d·w) ≥ ℓ − w − 2.9w.
- From above: λ_min(R̂) ≤ vᵀR̂v/vᵀv for every vector v. In float64 the quotient is off by at most
  (3d + 2)·u·1.1·‖R̂‖_F ≤ 3.3w, and it is compared with ℓ + w.

Where neighbours' N is not public, `Saturated` makes it so (see there).
"""

import math
from fractions import Fraction
from math import lcm

import numpy as np

from dplinear.arrays import Floats

# The eigenvalue is counted in units of B²/2^20, rounded down.
UNITS = 1 << 20
_BITS = 53
_REACH = 1 << 37  # N·(d + 2) of a query about a table whose number of rows is private
# So w = 2^−16, which is 16 units: answers are within 7.2·16 < 2^7 of λ_min, in units.
SLACK = 1 << 7
# One row more or less, or another row, moves the answer by UNITS at the most (Weyl; `saturate`),
# arithmetic by (7 + 7.2)·16 < 2^8 for the two tables together, rounding down by less than 1.
SENSITIVITY = UNITS + 2 * SLACK + 1


def least_units(relative: Floats) -> int:
    """Return about λ_min of `saturate` second moments, in units of B²/2^20, rounded down.

    Requires: G/B², every entry right to 4 parts in 2^53; rows of squared norm at most B².
    Promises: at least 0, and at most `SLACK` above 2^20·λ_min(G)/B². Between tables that differ in
    one row (one more, one less, or another one), however many they have, the answers differ by at
    most `SENSITIVITY`.
    """
    bounded, rows = saturate(relative)
    return math.floor(max(certified_least(bounded, rows), 0.0) * UNITS)


def saturate(relative: Floats) -> tuple[Floats, float]:
    """Return R·min(1, N/trace R), and N = 2^37/(d + 2), which no trace then exceeds.

    Promises: f(R) = λ_min(R)·min(1, N/trace R) moves by at most 1 where one row of norm at most 1
    comes, goes, or is replaced. Proof: let R' = R + xxᵀ − yyᵀ, p = ‖x‖² ≤ 1, q = ‖y‖² ≤ 1 (0 where
    there is no such row), t and t' the traces, t' = t + p − q, λ and λ' the least eigenvalues. By
    Weyl λ' ≤ λ + p; and λ ≤ t. By symmetry it is enough to bound f' − f.
    - t' ≤ N, t ≤ N: f' − f = λ' − λ ≤ p ≤ 1.
    - t ≤ N < t': f' ≤ λ', so again f' − f ≤ p.
    - N < t, N < t': f' − f ≤ N·((λ + p)/t' − λ/t) = (N/t')·(p·(t − λ) + q·λ)/t ≤ (N/t')·1.
    - t' ≤ N < t: f' − f ≤ λ + p − N·λ/t = p + λ·(t − N)/t ≤ p + (t − t') = q ≤ 1.
    """
    most = _REACH / (len(relative) + 2)
    trace = math.fsum(np.diag(relative).tolist())
    return (relative * (most / trace) if trace > most else relative), most


def certified_least(relative: Floats, rows: float) -> float:
    """Return λ_min(R) to within 7.2·(d + 2)·rows/2^53; the module's text has the proof.

    Requires: R̂ as there, of a trace of at most `rows`, a public number (which counts as 1 or more).
    """
    width = (len(relative) + 2) * max(rows, 1.0) * 2.0**-_BITS
    try:
        values, vectors = np.linalg.eigh(relative)
        found, vector = float(values[0]), vectors[:, 0]
        if _is_certain(relative, found, vector, width):
            return found
    except np.linalg.LinAlgError:  # no convergence, or no factor: a matter of the table's rows
        pass
    return float(_exact_least(relative, Fraction(width)))


def slack_units(dimension: int, rows: int) -> int:
    """Return how many units, rounded up, `certified_least` may be off by, and rounding down."""
    return 1 + math.ceil(Fraction(8 * (dimension + 2) * max(rows, 1) * UNITS, 1 << _BITS))


def _is_certain(relative: Floats, found: float, vector: Floats, width: float) -> bool:
    """Return whether both bounds hold; raises LinAlgError where the lower one does not."""
    quotient = float(vector @ (relative @ vector)) / float(vector @ vector)
    if not quotient <= found + width:  # nor where it is no number
        return False
    lowered = relative.copy()
    lowered[np.diag_indices(len(lowered))] -= found - width
    return bool(np.isfinite(np.linalg.cholesky(lowered)).all())


def _exact_least(relative: Floats, width: Fraction) -> Fraction:
    """Return a number at most λ_min, by less than `width`: bisection on exact integers."""
    exact = [[Fraction(float(entry)) for entry in row] for row in np.tril(relative)]
    # By Gershgorin's theorem no eigenvalue is farther than this from 0.
    reach = sum((abs(entry) for row in exact for entry in row), Fraction(0)) * 2
    low, high = -reach - 1, min(row[place] for place, row in enumerate(exact))
    while high - low > width:
        middle = (low + high) / 2
        low, high = (middle, high) if _is_definite(exact, middle) else (low, middle)
    return low


def _is_definite(lower: list[list[Fraction]], shift: Fraction) -> bool:
    """Return whether a symmetric matrix less shift·I is positive definite: all minors are.

    Fraction-free elimination (Bareiss 1968): the pivots are the leading minors, as integers.
    """
    d = len(lower)
    common = lcm(shift.denominator, *(e.denominator for row in lower for e in row))
    work = [[int(lower[i][j] * common) for j in range(i + 1)] for i in range(d)]
    for i in range(d):
        work[i][i] -= int(shift * common)
    before = 1
    for k in range(d):
        pivot = work[k][k]
        if pivot <= 0:
            return False
        for i in range(k + 1, d):
            for j in range(k + 1, i + 1):
                work[i][j] = (work[i][j] * pivot - work[i][k] * work[j][k]) // before
        before = pivot
    return True
