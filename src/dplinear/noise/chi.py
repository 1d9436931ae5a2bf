"""Exact chi numbers, the roots of chi-squares, with as many digits as anyone asks for.

A chi of ν > 1 degrees is m + z with m = √(ν − 1), its mode, and z a standard normal number that is
accepted, if m + z > 0, with probability exp(−γ), γ = m·z − m²·ln(1 + z/m) ≥ 0: a public constant,
and digits that are fair bits (docs/noise.md, "Exact reals"). A chi of one degree is |z|.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np

from dplinear import arguments
from dplinear.arrays import BigIntegers, Floats
from dplinear.noise import inversion
from dplinear.noise.discrete import FINE, Precision
from dplinear.noise.entropy import Entropy, system, words
from dplinear.noise.normals import Normals, normals

_FIRST = 68  # at this precision a normal number needs no bits beyond those it was drawn with
_FLOAT = 68


class Chis:
    """Independent chi numbers, one for each of the degrees. `Reals`."""

    def __init__(self, squares: Sequence[Fraction], sources: Sequence[tuple[Normals, int]]) -> None:
        self._squares, self._sources = tuple(squares), tuple(sources)

    def __len__(self) -> int:
        return len(self._sources)

    def integers(self, precision: int) -> BigIntegers:
        """Return k with |y·2^precision − k| ≤ 1."""
        found = np.empty(len(self), np.object_)
        for index in range(len(self)):
            found[index] = self.integer(index, precision)
        return found

    def integer(self, index: int, precision: int) -> int:
        """Return the same for one of them, and draw bits for no other."""
        square, (source, at) = self._squares[index], self._sources[index]
        if square == 0:
            return abs(source.integer(at, precision))
        # y·2^q is in (s − 1, s + 2) for q = precision + 2, so y·2^precision − k is in (−1/2, 1).
        finer = precision + 2
        return (_mode(square, finer) + source.integer(at, finer) + 1) >> 2

    def floats(self) -> Floats:
        """Return f with |f − y| ≤ 2^-52·max(1, y)."""
        return np.array([number / 2**_FLOAT for number in self.integers(_FLOAT)], np.float64)


def chis(
    degrees: Sequence[int | Fraction],
    *,
    entropy: Entropy | None = None,
    precision: Precision = FINE,
) -> Chis:
    """Draw independent chi numbers, exactly, one for each of the degrees of freedom.

    Requires: degrees of at least 1, whole or rational. `precision` as in `normals`.
    """
    squares = [_square(each) for each in degrees]
    bits = entropy or system()
    sources: dict[int, tuple[Normals, int]] = {}
    missing = list(range(len(squares)))
    while missing:
        pool = normals(len(missing), entropy=bits, precision=precision)
        heights = words(bits, len(missing))
        for at, index in enumerate(missing):
            if squares[index] == 0 or _accepts(squares[index], pool, at, int(heights[at]), bits):
                sources[index] = pool, at
        missing = [index for index in missing if index not in sources]
    return Chis(squares, [sources[index] for index in range(len(squares))])


def _square(degrees: int | Fraction) -> Fraction:
    """Return the square of the mode."""
    square = arguments.rational(degrees, "degrees", "chi.chis") - 1
    if square < 0:
        raise arguments.rejection("degrees", "chi.chis", "at least 1", degrees)
    return square


def _mode(square: Fraction, precision: int) -> int:
    """Return ⌊√square·2^precision⌋."""
    return isqrt((square.numerator << 2 * precision) // square.denominator)


def _accepts(square: Fraction, pool: Normals, at: int, height: int, entropy: Entropy) -> bool:
    """Return whether a uniform number that begins with the 64 bits of `height` is below exp(−γ)."""
    precision, seen = _FIRST, 64
    while True:
        mode, z = _mode(square, precision), pool.integer(at, precision)
        if mode + z + 2 <= 0:  # m + z < 0
            return False
        if mode > 0 and mode + z - 1 > 0:
            least, most = _exponent(square, mode, z, precision)
            if height < inversion.exponential(most, seen)[0]:
                return True
            if height >= inversion.exponential(least, seen)[1]:
                return False
        precision *= 2
        height, seen = height << seen | entropy.bits(seen), 2 * seen


def _exponent(square: Fraction, mode: int, z: int, precision: int) -> tuple[Fraction, Fraction]:
    """Enclose γ, for m in [mode, mode + 1] and the normal number in [z − 1, z + 1], times 2^-p.

    Requires: mode > 0 and mode + z − 1 > 0.
    """
    products = [m * end for m in (mode, mode + 1) for end in (z - 1, z + 1)]
    log_low = inversion.logarithm(mode + z - 1, mode + 1, precision)[0]
    log_high = inversion.logarithm(mode + z + 2, mode, precision)[1]
    one = 1 << precision
    # γ is not negative, whatever the enclosures say.
    low = Fraction(min(products), one) - square * log_high
    high = Fraction(max(products), one) - square * log_low
    return max(low, Fraction(0)) / one, max(high, Fraction(0)) / one
