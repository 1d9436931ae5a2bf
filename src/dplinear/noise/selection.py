"""The exponential mechanism on a finite list, exactly: P(k) ∝ exp(unit·qualityₖ).

A candidate is proposed by integer weights that are a little too large, and accepted with the
probability that makes up for it (docs/noise.md, "Selection"). The weights come from a table of
upper bounds by an IEEE product that is rounded the safe way; the acceptance is decided on Python
integers, with as many random bits as it takes. So the law is exact whatever the bounds are, as long
as they are upper ones.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dplinear import arguments
from dplinear.noise.entropy import Entropy, Words, system
from dplinear.noise.integers import uniform_below
from dplinear.noise.inversion import below, exponential

MOST = 1 << 22  # candidates, so that their weights add up within 64 bits
_WHERE = "selection.draw"
_BITS = 40  # of the largest weight
_STEPS = 1024  # to a unit of the exponent: a proposal is refused about once in 2000
_REACH = 28  # exp(−28)·2^40 < 1
_LEAST_UNIT = Fraction(1, 2**1000)  # a normal float64
_SHORT = 1 - 2.0**-50  # outweighs four roundings to nearest

Qualities = npt.NDArray[np.int64] | npt.NDArray[np.object_]


def draw(qualities: npt.ArrayLike, unit: arguments.Real, *, entropy: Entropy | None = None) -> int:
    """Draw the index of a candidate with probability proportional to exp(unit·quality).

    Requires: from 1 to 2^22 integers, of any length in an object array; unit a rational of at least
    2^−1000, a float standing for its exact binary value.
    Promises: exactly that law.
    """
    worth = arguments.rational(unit, "unit", _WHERE)
    if worth < _LEAST_UNIT:
        raise arguments.rejection("unit", _WHERE, "at least 2^−1000", unit)
    short = _shortfalls(qualities)
    bits = entropy or system()
    weights = _weights(short, worth)
    heap = np.cumsum(weights)
    while True:
        place = int(
            np.searchsorted(heap, np.uint64(uniform_below(int(heap[-1]), bits)), side="right")
        )
        if _accept(int(short[place]) * worth, int(weights[place]), bits):
            return place


def _shortfalls(qualities: npt.ArrayLike) -> Qualities:
    """Return by how much each quality falls short of the best one."""
    values = np.asarray(qualities)
    rule = f"a list of 1 to {MOST} integers"
    if values.ndim != 1 or not 1 <= len(values) <= MOST:
        raise arguments.rejection("qualities", _WHERE, rule, f"an array of shape {values.shape}")
    whole = set(map(type, values)) == {int} if values.dtype == object else values.dtype.kind in "iu"
    if not whole:
        raise arguments.wrong_type("qualities", _WHERE, rule, f"an array of {values.dtype}")
    best, worst = int(values.max()), int(values.min())
    if values.dtype != object and worst >= -(2**62) and best < 2**62:
        return np.asarray(best - values.astype(np.int64))
    return np.asarray(best - values.astype(object))


def _weights(short: Qualities, unit: Fraction) -> Words:
    """Return upper bounds of exp(−unit·short)·2^40, above them by a thousandth, or one, at most."""
    # Beyond the table's end all weights are 1, so a longer shortfall counts as its end.
    most = int(_REACH / unit) + 1
    if short.dtype != object:
        most = min(most, 2**63 - 1)
    rate = float(min(unit, Fraction(_REACH))) * _STEPS * _SHORT
    steps = np.minimum(short, most).astype(np.float64) * rate  # never above the exact product
    return _bounds().take(np.minimum(steps, float(_REACH * _STEPS)).astype(np.intp))


@lru_cache(maxsize=1)
def _bounds() -> Words:
    """Return upper bounds of exp(−j/1024)·2^40, j = 0, 1, ..., 1024·28."""
    work = _BITS + 64
    ratio = exponential(Fraction(1, _STEPS), work)[1]
    value, bounds = 1 << work, []
    for _ in range(_REACH * _STEPS + 1):
        bounds.append(-(-value >> 64))
        value = -(-(value * ratio) >> work)
    return np.array(bounds, np.uint64)


def _accept(exponent: Fraction, weight: int, entropy: Entropy) -> bool:
    """Return true with probability exp(−exponent)·2^40/weight."""

    def enclosure(bits: int) -> tuple[int, int]:
        low, high = exponential(exponent, bits + _BITS)
        return low // weight, -(-high // weight)

    return below(enclosure, entropy.bits(64), 64, entropy)
