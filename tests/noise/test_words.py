"""Samplers' plumbing on given words, against a slow reading of the same words.

The laws are tested elsewhere; here nothing may be read twice, left out or put in another place.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dplinear.noise import (
    discrete,
    entropy,
    fixed_point,
    inversion,
    selection,
    simulation,
)
from dplinear.noise.entropy import Entropy, Keystream, SeededEntropy, Words, words
from dplinear.noise.integers import uniform_below

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 33, 65535, 65536, 65537, 65552, 131088])
def test_what_is_written_is_what_would_have_been_read(length: int) -> None:
    target = bytearray(b"x" * length)
    stream, same = (Keystream(bytes([5] * 32), refreshed=False) for _ in range(2))
    stream.write(memoryview(target))
    assert bytes(target) == same.read(length)
    assert stream.read(40) == same.read(40)


@pytest.mark.parametrize(("first", "second", "anew"), [(1000, 24, 0), (1000, 25, 1), (1024, 1, 1)])
def test_keys_are_replaced_when_they_would_be_overdrawn(
    first: int, second: int, anew: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entropy, "REKEY_BYTES", 1 << 10)
    started: list[bytes] = []
    start = Keystream._start

    def noted(self: Keystream, key: bytes) -> None:
        started.append(key)
        start(self, key)

    monkeypatch.setattr(Keystream, "_start", noted)
    stream = Keystream(bytes(32), refreshed=False)
    stream.read(first)
    stream.read(second)
    assert len(started) == 1 + anew


@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 1000])
def test_bits_of_the_system_have_the_length_that_was_asked_for(count: int) -> None:
    drawn = [entropy.system().bits(count) for _ in range(200)]
    assert min(drawn) >= 0
    assert max(drawn).bit_length() == count  # 200 leading zeros: once in 2^200


class Noted:
    """Entropy that is written down, with the lengths that were asked for."""

    simulated = True

    def __init__(self, *values: int) -> None:
        self.values = list(values)
        self.asked: list[int] = []

    def fill(self, words: Words) -> None:
        raise NotImplementedError

    def bits(self, count: int) -> int:
        self.asked.append(count)
        return self.values.pop(0)


def test_uniform_integers_are_the_first_below() -> None:
    bits = Noted(7, 6, 5, 0)
    assert [uniform_below(6, bits), uniform_below(1, bits)] == [5, 0]
    assert bits.asked == [3, 3, 3, 1]


def test_comparisons_go_on_by_twice_as_many_bits() -> None:
    def third(bits: int) -> tuple[int, int]:
        return (1 << bits) // 3, (1 << bits) // 3 + 1

    for values, verdict in (([4, 0x55, 0x5554], True), ([5, 0x55, 0x5556], False)):
        bits = Noted(*values)
        assert inversion.below(third, 5, 4, bits) is verdict
        assert bits.asked == [4, 8, 16][: len(bits.asked)]
    bits = Noted(5, 0x55, 0x5556)
    assert inversion.below(third, 5, 4, bits) is False
    assert bits.asked == [4, 8, 16]


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 7), Fraction(19, 2), Fraction(27)])
def test_acceptances_are_enclosed(exponent: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Callable[[int], tuple[int, int]]] = []
    first: list[tuple[int, int]] = []

    def noted(enclosure: Any, prefix: int, bits: int, _entropy: Entropy) -> bool:
        seen.append(enclosure)
        first.append((prefix, bits))
        return True

    monkeypatch.setattr(selection, "below", noted)
    weight = int(mpmath.ceil(mpmath.exp(-float(exponent)) * 2**40)) + 5
    assert selection._accept(exponent, weight, Noted(123))
    assert first == [(123, 64)]
    for bits in (64, 128, 200):
        low, high = seen[0](bits)
        with mpmath.workdps(120):
            step = mpmath.mpf(exponent.numerator) / exponent.denominator
            exact = mpmath.exp(-step) * mpmath.mpf(2) ** (40 + bits) / weight
            assert low <= exact <= high
        assert high - low <= 2


@pytest.mark.parametrize(
    "values",
    [
        [-(2**63), 2**63 - 1, 0],
        [-(2**62), 2**62 - 1],
        [-(2**62) - 1, 2**62],
        np.array([2**64 - 1, 5], np.uint64),
        np.array([-(10**30), 10**30], object),
        [7],
        np.array([True, False]).astype(np.int8),
    ],
)
def test_shortfalls_are_exact_at_every_size(values: Any) -> None:
    exact = [int(v) for v in np.asarray(values)]
    found = selection._shortfalls(values)
    assert [int(v) for v in found] == [max(exact) - v for v in exact]


def test_fixed_point_numbers_at_the_ends_of_their_words() -> None:
    edges = [0, 1, 2**22 - 1, 2**22, 2**22 + 1, 2**31, 2**32 - 2**22, 2**32 - 1]
    for u in (0, 1, 2**16, 2**31 + 12345, 2**32 - 1):
        for linear in (0, 1, 2**28 + 7, 2**32 - 2**29):
            for square in (0, 3, 2**28 - 5):
                g = fixed_point.exponent(
                    np.array([u], np.uint64), np.array([linear], np.uint64), np.uint64(square)
                )
                wanted = (linear * u >> 32) + (square * (u * u >> 32) >> 32)
                assert int(g[0]) == wanted
    with mpmath.workdps(40):
        for edge in edges:
            p = int(fixed_point.scaled_exponential(np.array([edge], np.uint64))[0])
            for more in (0, 6):  # how much γ may exceed what is said of it
                exact = mpmath.exp(-mpmath.mpf(edge + more) / 2**32) * 2**32
                assert p - 7 <= exact <= p + 3


def test_enclosures_at_the_ends() -> None:
    for bits in (1, 8, 64, 200):
        assert inversion.exponential(Fraction(0), bits) == (1 << bits, 1 << bits)
        assert inversion.exponential(Fraction(bits), bits) == (0, 1)
        low, high = inversion.exponential(Fraction(bits) - Fraction(1, 10**9), bits)
        assert (low, high) in {(0, 1), (0, 2), (1, 2)}
        low, high = inversion.exponential(Fraction(1, 10**90), bits)
        assert high == 1 << bits
        assert low >= (1 << bits) - 2


def stubbed(plan: object, target: Any, bits: Iterator[int]) -> tuple[Any, list[tuple[int, int]]]:
    """Number candidates one after the other: every third is refused, every fifth is long."""
    del plan
    numbers = [next(bits) for _ in range(len(target))]
    target[:] = numbers
    refused = [place for place, number in enumerate(numbers) if number % 3 == 0]
    long = [
        (place, 2**70 + number)
        for place, number in enumerate(numbers)
        if number % 5 == 0 and number % 3
    ]
    return np.array(refused, np.intp), long


@pytest.mark.parametrize("total", [0, 1, 2, 3, 4, 5, 23, 64])
def test_refused_candidates_are_drawn_again_in_their_place(
    total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discrete, "_candidates", stubbed)
    monkeypatch.setattr(discrete, "CHUNK", 4)
    drawn = discrete._draw(None, (total,), iter(range(1, 1000)))  # type: ignore[arg-type]
    found = [int(y) for y in drawn]
    kept = [y - 2**70 if y >= 2**70 else y for y in found]
    assert all(y % 3 for y in kept)
    assert all((y >= 2**70) == (k % 5 == 0) for y, k in zip(found, kept, strict=True))
    assert len(set(kept)) == total
    # Nothing that was accepted is thrown away, and what was accepted at once stays in its place.
    top = max(kept, default=0)
    accepted = [number for number in range(1, top + 1) if number % 3]
    assert set(kept) <= set(accepted)
    assert all(kept[i] == i + 1 for i in range(total) if (i + 1) % 3)
    assert drawn.dtype == (np.object_ if any(y >= 2**70 for y in found) else np.int64)


def test_seeds_are_hashed_into_keys() -> None:
    same = SeededEntropy(simulation.hashlib.sha256(b"dplinear simulation 5").digest())  # type: ignore[attr-defined]
    assert words(same, 4).tolist() == words(simulation.entropy(5), 4).tolist()
    with simulation.door(5):
        assert (
            words(simulation.entropy_for_release(), 4).tolist()
            == words(simulation.entropy(5), 4).tolist()
        )
        assert simulation.entropy_for_release().simulated
    assert not simulation.entropy_for_release().simulated
