"""Float noise of the papers: normal numbers, read as they are written, and roots of matrices."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dplinear.noise import entropy, simulation
from dplinear.noise.entropy import Entropy, words
from dplinear.papers import float_noise
from dplinear.papers.float_noise import square_root, standard_normal

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6 / 10  # fewer than 10 comparisons
CLOSE = 1e-11


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_normal_numbers_follow_the_normal_law(size: int) -> None:
    assert stats.kstest(standard_normal(size), stats.norm.cdf).pvalue > FALSE_ALARM


def test_normal_tails_and_pairs() -> None:
    drawn = standard_normal((1000, 1000))
    for cut in (3.0, 4.0):
        beyond = int((np.abs(drawn) > cut).sum())
        expected = 2 * stats.norm.sf(cut)
        assert stats.binomtest(beyond, drawn.size, expected).pvalue > FALSE_ALARM
    flat = drawn.ravel()
    one, other = flat[: len(flat) // 2], flat[len(flat) // 2 :]  # the two halves of each pair
    assert stats.pearsonr(one, other).pvalue > FALSE_ALARM
    assert stats.pearsonr(one**2, other**2).pvalue > FALSE_ALARM
    assert stats.pearsonr(flat[:-1], flat[1:]).pvalue > FALSE_ALARM


def slow_uniform(source: Entropy, count: int) -> list[float]:
    drawn = [int(word) for word in words(source, 2 * count)]
    pairs = zip(drawn[:count], drawn[count:], strict=True)
    return [float((high + (low + Fraction(1, 2)) / 2**64) / 2**64) for high, low in pairs]


def slow_normal(source: Entropy, count: int) -> list[float]:
    pairs = (count + 1) // 2
    radii = [math.sqrt(-2 * math.log(u)) for u in slow_uniform(source, pairs)]
    angles = [2 * math.pi * (int(w) >> 11) / 2**53 for w in words(source, pairs)]
    made = [r * math.cos(a) for r, a in zip(radii, angles, strict=True)]
    made += [r * math.sin(a) for r, a in zip(radii, angles, strict=True)]
    return made[:count]


@pytest.mark.parametrize("count", [1, 2, 5, 64])
def test_numbers_are_read_as_they_are_written(count: int) -> None:
    for seed in range(4):
        slow, bits = simulation.entropy(seed), simulation.entropy(seed)
        uniform = float_noise._uniform(count, bits)
        assert uniform == pytest.approx(slow_uniform(slow, count), rel=CLOSE)
        drawn = standard_normal(count, entropy=bits)
        assert drawn == pytest.approx(slow_normal(slow, count), rel=CLOSE, abs=1e-14)
        assert words(slow, 3).tolist() == words(bits, 3).tolist()


def test_uniform_numbers_keep_their_bits_near_zero() -> None:
    class Low:
        simulated = True

        def fill(self, words: NDArray[np.uint64]) -> None:
            words[:] = np.arange(len(words), dtype=np.uint64)  # the high words are 0, 1

        def bits(self, count: int) -> int:
            return count

    drawn = float_noise._uniform(2, Low())
    assert 0 < drawn[0] < 2.0**-125
    assert drawn[1] == pytest.approx(2.0**-64)


def test_the_given_entropy_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> None:
        raise AssertionError("the system was asked")

    monkeypatch.setattr(entropy, "_own_stream", never)
    assert standard_normal((2, 3), entropy=simulation.entropy(1)).shape == (2, 3)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
def test_square_roots_of_gram_matrices(columns: int, rows: int, seed: int) -> None:
    table = simulation.generator(seed).standard_normal((rows, columns))
    gram = table.T @ table
    factor = square_root(gram)
    assert np.allclose(factor @ factor.T, gram, atol=1e-6 * np.abs(gram).max())


def test_rounding_below_zero_is_not_an_error() -> None:
    row = simulation.generator(2).standard_normal((1, 30))
    gram = row.T @ row
    assert np.linalg.eigvalsh(gram)[0] < 0
    factor = square_root(gram)
    assert np.allclose(factor @ factor.T, gram)
    factor = square_root(np.diag([9.0, 0.0, 4.0]))
    assert np.allclose(factor @ factor.T, np.diag([9.0, 0.0, 4.0]), atol=1e-14)
    assert not square_root(np.zeros((3, 3))).any()
