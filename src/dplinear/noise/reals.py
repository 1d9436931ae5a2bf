"""Exact real numbers: random digits without end, of which only those that are needed are drawn.

What is released is the rounding of a real number, and a rounding is settled by finitely many
digits. Until it is, digits are appended; none is ever drawn again (docs/noise.md, "Exact reals").
"""

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dplinear.arrays import BigIntegers, Floats


class Reals(Protocol):
    """Random real numbers whose digits are drawn when they are asked for.

    Promises: each number is fixed by bits of which those drawn stay as they are; all that is ever
    said about it is true of it. Drawing further bits changes the object, so one thread at a time.
    """

    def __len__(self) -> int: ...

    def integers(self, precision: int) -> BigIntegers:
        """Return k with |x·2^precision − k| ≤ 1 for every x."""
        ...

    def integer(self, index: int, precision: int) -> int:
        """Return the same for one of them, and draw bits for no other."""
        ...

    def floats(self) -> Floats:
        """Return float64 numbers close to them."""
        ...


def round_enclosure(
    middle: BigIntegers, error: BigIntegers, scale: Fraction
) -> tuple[BigIntegers, NDArray[np.bool_]]:
    """Round scale·x for real numbers x that are known to lie within `error` of `middle`.

    Requires: integers, errors of at least 0; scale above 0.
    Promises: ⌊scale·x + 1/2⌋ wherever that is the same for all such x, and which are still open.
    """
    # With scale = n/m the ends are ⌊(2n·x + m)/2m⌋, on integers.
    once, twice = scale.denominator, 2 * scale.denominator
    step = 2 * scale.numerator
    centre, reach = step * middle + once, step * error
    low = (centre - reach) // twice
    return low, np.asarray(low != (centre + reach) // twice, np.bool_)
