"""Exact sums of integers of any size, as two 64-bit words: value = high·2^53 + low."""

import numpy as np

from dplinear.arrays import BigIntegers, Integers

WORD = 53
_MASK = (1 << WORD) - 1
_LARGEST = (1 << 63) - 1


class Total:
    """A running sum of int64 arrays. One per thread."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._high = np.zeros(shape, np.int64)
        self._low = np.zeros(shape, np.int64)
        self._reach = 0  # no entry of the low word can be larger by now

    def add(self, block: Integers, most: int) -> None:
        """Add integers, none of them above `most` (at most 2^62) in size."""
        if self._reach + most > _LARGEST:
            self._high, self._low = normalise(self._high, self._low)
            self._reach = 1 << WORD
        self._low += block
        self._reach += most

    def integers(self) -> BigIntegers:
        """Return the sum so far, as Python's integers."""
        return integers_of(*self.words())

    def words(self) -> tuple[Integers, Integers]:
        """Return the two words of the sum so far."""
        return normalise(self._high, self._low)


def normalise(high: Integers, low: Integers) -> tuple[Integers, Integers]:
    """Return the words of the same integers with 0 ≤ low < 2^53, as new arrays."""
    return high + (low >> WORD), low & _MASK


def integers_of(high: Integers, low: Integers) -> BigIntegers:
    """Return the integers as Python's own."""
    return np.asarray(high.astype(object) * (1 << WORD) + low)
