"""Randomised response among several levels, exactly: the truth, or one of the others at random.

Warner 1965; for several levels Kairouz, Bonawitz and Ramage 2016 (arXiv 1602.07387v1), where it is
called k-ary. The truth is told with a probability that is a multiple of 2^−64, rounded down, so the
odds of the truth against any other level are never above e^ε.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dplinear import arguments
from dplinear.noise.entropy import Entropy, words
from dplinear.noise.inversion import exponential

_WHERE = "noise.Response"
_BITS = 64
_MOST = 1 << 16  # levels
_ALL = 1 << _BITS

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Response:
    """Randomised response among `levels` codes 0, 1, … that is `epsilon`-DP.

    Promises: the answer is the truth with probability `truths`/2^64, and each other level with the
    same probability; the ratio of the two is at most e^ε, and within 2^−60 of it for ε up to 40.
    """

    levels: int
    epsilon: arguments.Real

    def __post_init__(self) -> None:
        arguments.integer(self.levels, "levels", _WHERE, low=1, high=_MOST)
        arguments.rational(self.epsilon, "epsilon", _WHERE)

    @property
    def truths(self) -> int:
        """How many of 2^64 draws tell the truth: 2^64/(1 + (levels − 1)·e^−ε), rounded down."""
        bits = 2 * _BITS
        # An upper bound of e^−ε makes the truth rarer, and so the answer more private.
        high = exponential(Fraction(self.epsilon), bits)[1]
        return (_ALL << bits) // ((1 << bits) + (self.levels - 1) * high)

    @property
    def chance(self) -> float:
        """The probability of the truth."""
        return self.truths / _ALL

    def draw(self, codes: Codes, entropy: Entropy) -> Codes:
        """Return an answer for each code.

        Requires: integers from 0 to levels − 1; of any other, the answer is that of level 0.
        """
        known = (codes >= 0) & (codes < self.levels)
        truth = np.where(known, codes, 0)
        if self.levels == 1:
            return truth
        count = len(codes)
        told = words(entropy, count) < np.uint64(min(self.truths, _ALL - 1))
        # Every code draws, told or not, so that time and entropy say nothing of the answers.
        steps = 1 + _uniform(self.levels - 1, count, entropy)
        return np.where(told, truth, (truth + steps) % self.levels)


def _uniform(many: int, count: int, entropy: Entropy) -> Codes:
    """Return uniform integers from 0 to many − 1, by rejection."""
    fair = np.uint64(_ALL // many * many - 1)  # draws up to here fall evenly on all of them
    drawn = words(entropy, count)
    while len(again := np.flatnonzero(drawn > fair)):
        drawn[again] = words(entropy, len(again))
    return (drawn % np.uint64(many)).astype(np.int64)
