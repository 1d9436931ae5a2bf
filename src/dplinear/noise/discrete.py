"""Exact discrete Laplace and Gaussian noise, vectorised.

The laws are those of Canonne, Kamath and Steinke 2020 (arXiv 2004.00010v5); the construction is our
own (docs/noise.md, "The samplers"). A magnitude is V·2^k + U with V from a table, U of k random
bits, accepted with probability exp(-γ). A few random bits and integer bounds decide nearly every
draw; those they leave open are decided with more bits, and in the end on Python integers of any
length. No floating-point number takes part.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dplinear import arguments
from dplinear.noise import inversion, sizes
from dplinear.noise.entropy import Entropy, Words, system, words
from dplinear.noise.fixed_point import ERROR, exponent, scaled_exponential

Integers = NDArray[np.int64] | NDArray[np.object_]

CHUNK = 1 << 14
_LARGEST_SCALE = Fraction(2**60)
_LARGEST_VARIANCE = Fraction(2**100)
_OPEN = np.uint16(0xFFFF)  # in a guide table: the bucket does not settle V


@dataclass(frozen=True)
class Precision:
    """How many bits decide before an exact comparison does. Coarser is slower, never less exact."""

    guide_bits: int = 13
    table_bits: int = 64
    slack: int = ERROR  # half the width left undecided around exp(-γ), in units of 2^-32


FINE = Precision()


def laplace(
    scale: arguments.Real, size: int | tuple[int, ...], *, entropy: Entropy | None = None
) -> Integers:
    """Draw integers y with probability proportional to exp(-|y| / scale).

    Requires: scale a rational in (0, 2^60]; a float stands for its exact binary value.
    Promises: exactly that law, draws independent. int64, or Python integers in an object array if
    any draw needs more than 63 bits.
    """
    exact = arguments.rational(scale, "scale", "discrete.laplace")
    if exact > _LARGEST_SCALE:
        raise arguments.rejection("scale", "discrete.laplace", "at most 2^60", scale)
    shape = sizes.shape(size, "discrete.laplace")
    return _draw(laplace_plan(exact, FINE), shape, entropy or system())


def gaussian(
    variance: arguments.Real, size: int | tuple[int, ...], *, entropy: Entropy | None = None
) -> Integers:
    """Draw integers y with probability proportional to exp(-y² / (2·variance)).

    Requires: variance a rational in (0, 2^100]; a float stands for its exact binary value.
    Promises: as `laplace`. The variance of the law is at most `variance`, and next to equal to it
    from 1 upwards.
    """
    exact = variance
    if not (type(exact) is Fraction and exact > 0):
        exact = arguments.rational(variance, "variance", "discrete.gaussian")
    if exact > _LARGEST_VARIANCE:
        raise arguments.rejection("variance", "discrete.gaussian", "at most 2^100", variance)
    shape = sizes.shape(size, "discrete.gaussian")
    return _draw(gaussian_plan(exact, FINE), shape, entropy or system())


@dataclass(frozen=True, eq=False)
class Plan:
    """The tables of one law.

    V has mass ∝ exp(-rate·v^power), and with u = U/2^k the exponent of the acceptance is
    γ = rate·u for power 1, rate·(2V + u)·u for power 2.
    """

    rate: Fraction
    power: int
    shift: int
    precision: Precision
    thresholds: Words  # P(V > i) in fixed point, ascending
    guide: NDArray[np.uint16]  # V by the leading bits of its uniform number
    steepest: NDArray[np.uint32]  # by V: γ ≤ u·steepest[V] / 2^16
    linear: Words  # by V, with `square`: γ ≈ (u·linear[V] + u²·square) / 2^32
    square: np.uint64
    limit: int  # V from here on may need more than 63 bits, and is left to Python's integers

    def exponent(self, v: int, u: int) -> Fraction:
        """Return γ."""
        part = Fraction(u, 1 << self.shift)
        return self.rate * part * (2 * v + part if self.power == 2 else 1)


@lru_cache(maxsize=64)
def laplace_plan(scale: Fraction, precision: Precision) -> Plan:
    """Return the plan of the law with mass ∝ exp(-|y| / scale)."""
    shift = _shift(int(scale))
    return _plan((1 << shift) / scale, 1, shift, precision)


@lru_cache(maxsize=64)
def gaussian_plan(variance: Fraction, precision: Precision) -> Plan:
    """Return the plan of the law with mass ∝ exp(-y² / (2·variance))."""
    shift = _shift(math.isqrt(int(variance)))
    return _plan((1 << 2 * shift) / (2 * variance), 2, shift, precision)


def _shift(scale: int) -> int:
    """Return k such that 2^k is a sixteenth of the scale or less, and more than a 32nd."""
    return max(0, scale.bit_length() - 5)


def _plan(rate: Fraction, power: int, shift: int, precision: Precision) -> Plan:
    survival = inversion.survival(rate, power, precision.table_bits)
    values = range(len(survival) + 1)
    if power == 1:
        steepest, linear, square = [rate] * len(values), [rate] * len(values), Fraction(0)
    else:
        steepest = [rate * (2 * v + 1) for v in values]
        linear, square = [rate * 2 * v for v in values], rate
    if shift == 0:  # U = 0, so γ = 0: nothing to bound
        steepest = linear = [Fraction(0)] * len(values)
    thresholds = np.array(survival, np.uint64)
    limit = min(1 << (63 - shift), int(_OPEN))
    return Plan(
        rate=rate,
        power=power,
        shift=shift,
        precision=precision,
        thresholds=thresholds,
        guide=_guide(thresholds, limit, precision),
        steepest=np.array([math.ceil(slope * 2**16) for slope in steepest] + [0], np.uint32),
        linear=np.array([math.floor(slope * 2**32) for slope in linear], np.uint64),
        square=np.uint64(math.floor(square * 2**32) if shift else 0),
        limit=limit,
    )


def _counts(thresholds: Words, prefix: Words) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the V that each prefix settles, and whether it does."""
    at_least = len(thresholds) - np.searchsorted(thresholds, prefix, side="right")
    settled = prefix >= 2
    lower = np.where(settled, prefix, np.uint64(2)) - np.uint64(2)
    at_most = len(thresholds) - np.searchsorted(thresholds, lower, side="right")
    return at_least, settled & (at_least == at_most)


def _guide(thresholds: Words, limit: int, precision: Precision) -> NDArray[np.uint16]:
    width = np.uint64(precision.table_bits - precision.guide_bits)
    first = np.arange(1 << precision.guide_bits, dtype=np.uint64) << width
    last = first + ((np.uint64(1) << width) - np.uint64(1))
    smallest, last_settled = _counts(thresholds, last)
    largest, first_settled = _counts(thresholds, first)
    settled = first_settled & last_settled & (smallest == largest) & (largest < limit)
    return np.where(settled, smallest.astype(np.uint16), _OPEN)


def _draw(plan: Plan, shape: tuple[int, ...], entropy: Entropy) -> Integers:
    total = math.prod(shape)
    drawn = np.empty(total, np.int64)
    wide: dict[int, int] = {}
    missing: list[NDArray[np.intp]] = []
    for start in range(0, total, CHUNK):
        target = drawn[start : start + CHUNK]
        refused, long = _candidates(plan, target, entropy)
        missing.append(refused + start)
        wide.update((int(start + place), value) for place, value in long)
    places = np.concatenate(missing) if missing else np.empty(0, np.intp)
    while len(places):
        target = np.empty(min(len(places), CHUNK), np.int64)
        here, later = places[: len(target)], places[len(target) :]
        refused, long = _candidates(plan, target, entropy)
        drawn[here] = target
        wide.update((int(here[place]), value) for place, value in long)
        places = np.concatenate([later, here[refused]])
    if wide:
        objects = drawn.astype(np.object_)
        for place, value in wide.items():
            objects[place] = value
        return objects.reshape(shape)
    return drawn.reshape(shape)


@dataclass(frozen=True, eq=False)
class Bits:
    """The random bits of a round of candidates, and the V they have settled so far."""

    bucket: NDArray[np.uint16]  # leading bits of the uniform number that V inverts
    minus: NDArray[np.uint16]
    height: NDArray[np.uint16]  # leading bits of the uniform number compared with exp(-γ)
    tail: Words  # its leading k bits are U
    value: NDArray[np.uint16]


@dataclass(frozen=True)
class Undecided:
    """A candidate that needs more bits: where it stands, and those of its two uniform numbers."""

    place: int
    prefix: int  # the first `table_bits` of the one that V inverts
    height: int  # the first 32 of the one compared with exp(-γ)


def _candidates(
    plan: Plan, target: NDArray[np.int64], entropy: Entropy
) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """Fill `target` with one candidate each.

    Returns the places of those refused, and those accepted that need more than 63 bits.
    """
    count = len(target)
    quarter = -(-count // 4)
    drawn = words(entropy, 2 * quarter + (count if plan.shift else 0))
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

    magnitude = bits.value.astype(np.uint64)
    if plan.shift:
        magnitude <<= np.uint64(plan.shift)
        magnitude |= bits.tail >> np.uint64(64 - plan.shift)
    refused |= (magnitude == 0) & (bits.minus == 1)  # zero must not count twice
    sign = -bits.minus.astype(np.int64)
    np.bitwise_xor(magnitude.view(np.int64), sign, out=target)
    target -= sign

    long = []
    for open_ in rest:
        place = open_.place
        tail = int(bits.tail[place]) if plan.shift else 0
        number = _exactly(plan, open_.prefix, open_.height, tail, entropy)
        minus = bits.minus[place] == 1
        refused[place] = number is None or (number == 0 and minus)
        if number is None:
            continue
        signed = -number if minus else number
        if number < 2**63:
            target[place] = signed
        else:
            long.append((place, signed))
    return np.flatnonzero(refused), long


def settle(plan: Plan, bits: Bits, entropy: Entropy) -> tuple[NDArray[np.bool_], list[Undecided]]:
    """Settle V (in place) and the acceptance of every candidate that a few bits decide.

    Returns which are refused, and which are undecided: those are left to integers of any length.
    """
    undecided = bits.value == _OPEN
    if plan.shift:
        part = (bits.tail >> np.uint64(48)).astype(np.uint32)
        part += np.uint32(1)
        bound = plan.steepest.take(bits.value, mode="clip")
        bound *= part
        bound >>= np.uint32(16)
        bound += bits.height
        # Otherwise (height + 1) / 2^16 ≤ 1 - γ ≤ exp(-γ): accepted. (The bits of `tail` beyond
        # the first k only make this bound on γ larger.)
        undecided |= bound >= np.uint32(0xFFFF - (plan.precision.slack >> 16))
    places = np.flatnonzero(undecided)
    if len(places) == 0:
        return undecided, []
    fresh = words(entropy, 2 * len(places)).reshape(2, -1)

    width = plan.precision.table_bits - plan.precision.guide_bits
    prefix = bits.bucket[places].astype(np.uint64) << np.uint64(width)
    prefix |= fresh[0] >> np.uint64(64 - width)
    value, settled = _counts(plan.thresholds, prefix)
    settled &= value < plan.limit
    value[~settled] = 0
    bits.value[places] = value

    height = bits.height[places].astype(np.uint64) << np.uint64(16)
    height |= fresh[1] >> np.uint64(48)
    if plan.shift:
        u = bits.tail[places] >> np.uint64(64 - plan.shift) << np.uint64(64 - plan.shift)
        g = exponent(u >> np.uint64(32), plan.linear.take(value), plan.square)
        chance = scaled_exponential(g)
        slack = np.uint64(plan.precision.slack)
        accepted = height + slack <= chance
        decided = settled & (accepted | (height >= chance + slack))
    else:
        accepted, decided = settled, settled

    undecided[places] = ~accepted
    rest = [
        Undecided(place=int(places[i]), prefix=int(prefix[i]), height=int(height[i]))
        for i in np.flatnonzero(~decided)
    ]
    return undecided, rest


def _exactly(plan: Plan, prefix: int, height: int, tail: int, entropy: Entropy) -> int | None:
    """Return the magnitude of a candidate, or None if it is refused, on integers of any length."""
    v = inversion.invert(plan.rate, plan.power, prefix, plan.precision.table_bits, entropy)
    if plan.shift == 0:
        return v
    u = tail >> (64 - plan.shift)
    gamma = plan.exponent(v, u)
    if inversion.below(lambda bits: inversion.exponential(gamma, bits), height, 32, entropy):
        return (v << plan.shift) + u
    return None
