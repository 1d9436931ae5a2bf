"""Exact standard normal numbers, vectorised, with as many digits as anyone asks for.

z = ±(V + x)/16 with V an integer of mass ∝ exp(−V²/512) and x an endless string of fair bits,
accepted with probability exp(−γ), γ = x·(2V + x)/512. Then |z| has density ∝ exp(−z²/2), and more
digits of z are more fair bits of x (docs/noise.md, "Exact reals"). The candidates are those of
`discrete`, whose first two stages look at no more than 64 bits of x.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dplinear import arguments
from dplinear.arrays import BigIntegers, Floats, Indices
from dplinear.noise import discrete, inversion
from dplinear.noise.discrete import CHUNK, FINE, Bits, Plan, Precision, Undecided, settle
from dplinear.noise.entropy import Entropy, Words, system, words

_WORD = 64
_UNIT_BITS = 4  # a unit of V + x is 2^-4 of z
_VARIANCE = Fraction(2**100)  # of a discrete law whose V has exactly the mass above
_FLOAT_VALUES = 256  # V below this and 45 bits of x make an exact float64

Digits = tuple[int, int]  # m and b: (V + x)·2^b is in [m, m + 1)


class Normals:
    """Independent N(0, 1) numbers, in the order of their drawing. `Reals`."""

    def __init__(
        self,
        value: NDArray[np.uint16],
        minus: NDArray[np.bool_],
        first: Words,
        long: dict[int, Digits],
        entropy: Entropy,
    ) -> None:
        self._value, self._minus = value, minus
        self._words = [first]  # bits of x, 64 from each
        self._long = long  # in place of the above, where single numbers have more bits
        self._entropy = entropy

    def __len__(self) -> int:
        return len(self._value)

    def integers(self, precision: int) -> BigIntegers:
        """Return k with |z·2^precision − k| < 1 and |k| ≤ |z|·2^precision."""
        wanted = precision - _UNIT_BITS
        while _WORD * len(self._words) < wanted:
            self._words.append(words(self._entropy, len(self)))
        used = max(-(-wanted // _WORD), 0)
        found = self._value.astype(np.object_)
        for word in self._words[:used]:
            found <<= _WORD
            found |= word.astype(np.object_)
        found >>= _WORD * used - wanted
        found[self._minus] *= -1
        for index in self._long:
            found[index] = self.integer(index, precision)
        return found

    def integer(self, index: int, precision: int) -> int:
        """Return the same for one of them, and draw bits for no other."""
        wanted = precision - _UNIT_BITS
        number, known = self._digits(index)
        if known < wanted:
            missing = wanted - known
            number, known = number << missing | self._entropy.bits(missing), wanted
            self._long[index] = number, known
        number >>= known - wanted
        return -number if self._minus[index] else number

    def floats(self) -> Floats:
        """Return f with |f| ≤ |z| and |z| − |f| < 2^-49·max(1, |z|/8)."""
        high = self._value.astype(np.uint64) << np.uint64(45)
        found = np.ldexp((high | self._words[0] >> np.uint64(19)).astype(np.float64), -49)
        wide = np.flatnonzero(self._value >= _FLOAT_VALUES)
        for index in {*self._long, *map(int, wide)}:
            found[index] = _truncate(*self._digits(index))
        return np.where(self._minus, -found, found)

    def _digits(self, index: int) -> Digits:
        if index in self._long:
            return self._long[index]
        number = int(self._value[index])
        for word in self._words:
            number = number << _WORD | int(word[index])
        return number, _WORD * len(self._words)


def normals(count: int, *, entropy: Entropy | None = None, precision: Precision = FINE) -> Normals:
    """Draw independent N(0, 1) numbers, exactly.

    `precision` says how many bits decide before an exact comparison does, as in `discrete`: a
    coarser one is slower, never less exact.
    """
    count = arguments.integer(count, "count", "normals.normals", low=0)
    bits = entropy or system()
    plan = discrete.gaussian_plan(_VARIANCE, precision)
    value, minus = np.empty(count, np.uint16), np.empty(count, np.bool_)
    first, long = np.empty(count, np.uint64), dict[int, Digits]()
    missing = []
    for start in range(0, count, CHUNK):
        part = slice(start, min(start + CHUNK, count))
        drawn, refused, exact = _candidates(plan, part.stop - start, bits)
        value[part], minus[part], first[part] = drawn.value, drawn.minus, drawn.tail
        long.update((start + place, digits) for place, digits in exact)
        missing.append(refused + start)
    places: Indices = np.concatenate(missing) if missing else np.empty(0, np.intp)
    while len(places):
        here, later = places[:CHUNK], places[CHUNK:]
        drawn, refused, exact = _candidates(plan, len(here), bits)
        value[here], minus[here], first[here] = drawn.value, drawn.minus, drawn.tail
        long.update((int(here[place]), digits) for place, digits in exact)
        places = np.concatenate([later, here[refused]])
    return Normals(value, minus, first, long, bits)


def _candidates(
    plan: Plan, count: int, entropy: Entropy
) -> tuple[Bits, Indices, list[tuple[int, Digits]]]:
    """Draw candidates: their bits, which are refused, and the digits of those decided exactly."""
    quarter = -(-count // 4)
    drawn = words(entropy, 2 * quarter + count)
    halves = drawn[: 2 * quarter].view(np.uint16)
    bucket = halves[:count] & np.uint16((1 << plan.precision.guide_bits) - 1)
    bits = Bits(
        bucket=bucket,
        minus=halves[:count] >> np.uint16(15),
        height=halves[4 * quarter : 4 * quarter + count],
        tail=drawn[2 * quarter :],
        value=plan.guide.take(bucket),
    )
    refused, rest = settle(plan, bits, entropy)
    exact = []
    for candidate in rest:
        digits = _exactly(plan, candidate, int(bits.tail[candidate.place]), entropy)
        refused[candidate.place] = digits is None
        if digits is not None:
            exact.append((candidate.place, digits))
    return bits, np.flatnonzero(refused), exact


def _exactly(plan: Plan, candidate: Undecided, tail: int, entropy: Entropy) -> Digits | None:
    """Return all digits of V + x that were drawn, or None if the candidate is refused."""
    v = inversion.invert(
        plan.rate, plan.power, candidate.prefix, plan.precision.table_bits, entropy
    )
    x, known, height, seen = tail, _WORD, candidate.height, 32
    while True:
        height, seen = height << seen | entropy.bits(seen), 2 * seen
        least, most = (_exponent(plan.rate, v, Fraction(end, 1 << known)) for end in (x, x + 1))
        if height < inversion.exponential(most, seen)[0]:
            return v << known | x, known
        if height >= inversion.exponential(least, seen)[1]:
            return None
        x, known = x << known | entropy.bits(known), 2 * known


def _exponent(rate: Fraction, v: int, x: Fraction) -> Fraction:
    """Return γ, which grows with x."""
    return rate * x * (2 * v + x)


def _truncate(number: int, known: int) -> float:
    """Return number/16·2^-known, rounded towards 0 to 53 bits."""
    spare = max(number.bit_length() - 53, 0)
    with np.errstate(over="ignore"):
        return float(np.ldexp(float(number >> spare), spare - known - _UNIT_BITS))
