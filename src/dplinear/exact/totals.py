"""Exact sums of integers of any size, as two 64-bit words: value = high·2^53 + low."""

import numpy as np

from dplinear.arrays import BigIntegers, Integers

WORD = 53
_MASK = (1 << WORD) - 1
_LARGEST = (1 << 63) - 1
_HALF = 26
_HALF_MASK = (1 << _HALF) - 1
_REST_MASK = (1 << (WORD - _HALF)) - 1
_MOST_TIMES = 1 << 24


class Total:
    """A running sum of int64 arrays. One per thread."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._high = np.zeros(shape, np.int64)
        self._low = np.zeros(shape, np.int64)
        self._reach = 0  # no entry of the low word can be larger by now

    def add(self, block: Integers, most: int, times: int = 1) -> None:
        """Add integers, none of them above `most` (at most 2^62) in size.

        With `times`, of at most 2^24 in size, add so many times as much: exactly, in two words.
        """
        if times != 1:
            self._add_multiple(block, times)
            return
        if self._reach + most > _LARGEST:
            self._high, self._low = normalise(self._high, self._low)
            self._reach = 1 << WORD
        self._low += block
        self._reach += most

    def add_integer(self, value: int) -> None:
        """Add an integer of any size to every entry."""
        self._high += value >> WORD
        self.add(np.asarray(value & _MASK), _MASK)

    def _add_multiple(self, block: Integers, times: int) -> None:
        """Add times·block: upper·2^26 + lower, each of which times 2^24 is within a word."""
        if abs(times) > _MOST_TIMES:
            raise ValueError("A multiple of a sum is beyond two words.")
        upper, lower = (block >> _HALF) * times, (block & _HALF_MASK) * times
        self._high, self._low = normalise(self._high, self._low)
        self._high += upper >> (WORD - _HALF)
        self._low += ((upper & _REST_MASK) << _HALF) + lower
        self._reach = 1 << (WORD + 2)

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
