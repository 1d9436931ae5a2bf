"""The least eigenvalue of a private matrix, from below, with an error that is proved.

A query about λ_min(G) has the sensitivity of λ_min, plus what arithmetic may add. Here that is less
than two units of the answer, for tables of any size: `exact.roots` encloses the eigenvalue of the
integer matrix by an exact Rayleigh quotient and an exact residual, and trusts no eigensolver.
"""

from fractions import Fraction

from dplinear.arrays import BigIntegers
from dplinear.exact.roots import least_eigenvalue

# The eigenvalue is counted in units of B²/2^20.
UNITS = 1 << 20
# The answer U is an integer in (λ − 2, λ], λ the eigenvalue in units. So where neighbours' λ differ
# by at most s, a whole number, their answers differ by at most s + 1.
ROUNDING = 1
# One row more or less, or another row, moves λ_min by at most B² (Weyl).
SENSITIVITY = UNITS + ROUNDING


def least_units(matrix: BigIntegers, square: int) -> int:
    """Return λ_min of second moments from below, in units of B²/2^20, at least 0.

    Requires: G, integers; `square`, B² in the same units, which no row's squared norm exceeds.
    Promises: not above λ_min, and less than two units below. Between tables that differ in one row
    (one more, one less, or another one), however many they have, answers differ by at most
    `SENSITIVITY`. Proof: U > λ − 2 and U' ≤ λ' ≤ λ + s, so U' − U < s + 2 is at most s + 1 for
    an integer s; and G is positive semi-definite, so raising a negative answer to 0, which moves
    no two of them apart, leaves it at most λ.
    """
    low, _ = least_eigenvalue(matrix, width=Fraction(square, UNITS))
    return max(low * UNITS // square, 0)
