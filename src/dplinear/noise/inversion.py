"""Exact comparisons of a uniform real number, drawn bit by bit, with numbers known as enclosures.

An enclosure at `bits` of a number p is a pair of integers around p·2^bits. A uniform number whose
first `bits` bits read as the integer w lies in [w, w+1)/2^bits, so it is surely below p if w is
below the enclosure, surely above if w is not below its end, and undecided otherwise: then more bits
of the number are drawn and p is enclosed more tightly. All arithmetic is on Python integers.
"""

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dplinear.noise.entropy import Entropy


def exponential(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose exp(-x)·2^bits, for x of at least 0 (docs/noise.md, "Enclosures")."""
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:
        return 0, 1
    halvings = int(x).bit_length() + 4  # then x / 2^halvings < 1/16
    work = bits + halvings + bits.bit_length() + 16
    small = (x.numerator << work) // (x.denominator << halvings)
    term = total = 1 << work
    order = 0
    while term:
        order += 1
        term = (term * small >> work) // order
        total += -term if order % 2 else term
    # Each term is short of its real value by less than 2, the rest of the series is below 2, and
    # `small` is short by less than 1.
    low, high = total - 2 * order - 3, total + 2 * order + 3
    for _ in range(halvings):
        low, high = low * low >> work, -(-(high * high) >> work)
    return low >> (work - bits), min(-(-high >> (work - bits)), 1 << bits)


def logarithm(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Enclose ln(numerator/denominator)·2^bits, for integers above 0."""
    power = numerator.bit_length() - denominator.bit_length()
    n, d = numerator << max(-power, 0), denominator << max(power, 0)
    # Now n/d is in (1/2, 2); with the right power of two it is in [2/3, 4/3].
    if 3 * n > 4 * d:
        power, d = power + 1, 2 * d
    elif 3 * n < 2 * d:
        power, n = power - 1, 2 * n
    work = bits + 16 + abs(power).bit_length()
    low, high = _series(n, d, work)
    two = _logarithm_of_two(work)
    ends = power * two[0], power * two[1]
    low, high = low + min(ends), high + max(ends)
    return low >> (work - bits), -(-high >> (work - bits))


def _series(n: int, d: int, work: int) -> tuple[int, int]:
    """Enclose ln(n/d)·2^work for n/d in [2/3, 3/2]: 2·artanh t with |t| = |n − d|/(n + d) ≤ 1/5."""
    t = (abs(n - d) << work) // (n + d)
    square = t * t >> work
    power, total, order = t, 0, 1
    while power:
        total += power // order
        power = power * square >> work
        order += 2
    # Each power is short of its real value by less than 2, so each term by less than 3, and the
    # rest of the series is below 3 (docs/noise.md, "Enclosures").
    low, high = 2 * total, 2 * (total + 3 * order + 3)
    return (low, high) if n >= d else (-high, -low)


@lru_cache(maxsize=64)
def _logarithm_of_two(work: int) -> tuple[int, int]:
    """Enclose ln 2·2^work, as ln(4/3) + ln(3/2)."""
    (low, high), (more_low, more_high) = _series(4, 3, work), _series(3, 2, work)
    return low + more_low, high + more_high


@lru_cache(maxsize=256)
def survival(rate: Fraction, power: int, bits: int) -> tuple[int, ...]:
    """Return the survival function of the law on v = 0, 1, ... with mass ∝ exp(-rate·v^power).

    Requires: rate of at least 1/2048, power 1 or 2.
    Promises: integers in ascending order, the last but i being t with t ≤ P(V > i)·2^bits ≤ t + 2;
    after the first of them P(V > i)·2^bits ≤ 2.
    """
    guard = 40 + bits.bit_length()
    while True:
        table = _survival(rate, power, bits, guard)
        if table is not None:
            return table
        guard *= 2


def _survival(rate: Fraction, power: int, bits: int, guard: int) -> tuple[int, ...] | None:
    work = bits + guard
    one = 1 << work
    # The mass at v + 1 is `ratio` times that at v, and the ratios themselves shrink by `step`.
    ratio = exponential(rate, work)
    step = exponential((power - 1) * 2 * rate, work)
    mass = (one, one)
    masses = [mass]
    while True:
        mass = _product(mass, ratio, work)
        ratio = _product(ratio, step, work)
        if ratio[1] >= one:
            return None
        beyond = -(-(mass[1] * one) // (one - ratio[1]))  # a geometric series is above the tail
        if beyond <= 1 << guard:
            break
        masses.append(mass)
    low, high = mass[0], beyond
    tails = []
    for mass in reversed(masses):
        tails.append((low, high))
        low, high = low + mass[0], high + mass[1]
    table = []
    for tail_low, tail_high in tails:
        floor = (tail_low << bits) // high
        ceiling = -(-(tail_high << bits) // low)
        if ceiling > floor + 2:
            return None
        if ceiling > 2:
            table.append(floor)
    return tuple(table)


def _product(a: tuple[int, int], b: tuple[int, int], work: int) -> tuple[int, int]:
    return a[0] * b[0] >> work, -(-(a[1] * b[1]) >> work)


def below(
    enclosure: Callable[[int], tuple[int, int]], prefix: int, bits: int, entropy: Entropy
) -> bool:
    """Return whether a uniform number that begins with `prefix` is below the enclosed number."""
    while True:
        prefix, bits = prefix << bits | entropy.bits(bits), 2 * bits
        low, high = enclosure(bits)
        if prefix < low:
            return True
        if prefix >= high:
            return False


def invert(rate: Fraction, power: int, prefix: int, bits: int, entropy: Entropy) -> int:
    """Return the number of i with P(V > i) above a uniform number that begins with `prefix`."""
    while True:
        prefix, bits = prefix << bits | entropy.bits(bits), 2 * bits
        table = survival(rate, power, bits)
        at_least = len(table) - bisect_right(table, prefix)
        at_most = len(table) - bisect_right(table, prefix - 2)
        if prefix >= 2 and at_least == at_most:
            return at_least
