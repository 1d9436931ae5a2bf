"""Exact chi numbers, Bartlett's triangle and noise in all directions alike."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dplinear.noise import chi, simulation, spherical
from dplinear.noise.bartlett import Bartlett
from dplinear.noise.chi import chis
from dplinear.noise.discrete import FINE, Precision
from dplinear.noise.normals import normals
from noise.laws import FALSE_ALARM, misfit
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

COARSE = Precision(guide_bits=3, table_bits=5, slack=2**30)
DEGREES = [1, Fraction(3, 2), 2, 3, 50, 10**4, 10**7, Fraction(10**12, 7)]


def law_misfit(drawn: np.ndarray, degrees: float, cells: int = 40) -> float:
    cuts = np.sqrt(stats.chi2.ppf(np.arange(1, cells) / cells, degrees))
    counts = np.bincount(np.searchsorted(cuts, drawn), minlength=cells)
    return misfit(counts, [1 / cells] * cells)


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_law_is_chi(degrees: int | Fraction) -> None:
    assert law_misfit(chis([degrees] * 5000).floats(), float(degrees)) > FALSE_ALARM


@pytest.mark.long
@pytest.mark.parametrize("degrees", DEGREES)
def test_the_law_is_chi_in_many_draws(degrees: int | Fraction) -> None:
    assert law_misfit(chis([degrees] * 200_000).floats(), float(degrees), 300) > FALSE_ALARM


def test_the_law_does_not_depend_on_the_precision_of_the_fast_path() -> None:
    drawn = chis([3] * 4000, precision=COARSE).floats()
    assert law_misfit(drawn, 3.0) > FALSE_ALARM


def test_close_to_one_degree_half_of_the_proposals_are_below_zero() -> None:
    near = 1 + Fraction(1, 2**300)
    assert law_misfit(chis([near] * 2000).floats(), 1.0) > FALSE_ALARM


@pytest.mark.parametrize("degrees", [1, Fraction(3, 2), 2, 50, 10**7, 1 + Fraction(1, 2**200)])
@pytest.mark.parametrize("precision", [FINE, COARSE], ids=["fine", "coarse"])
def test_enclosures_are_nested(degrees: int | Fraction, precision: Precision) -> None:
    drawn = chis([degrees] * 30, precision=precision)
    finest = [Fraction(int(k), 2**900) for k in drawn.integers(900)]
    least = Fraction(1, 2**900)
    for bits in (2, 64, 66, 67, 68, 130, 200, 450):
        for index, k in enumerate(drawn.integers(bits)):
            assert abs(finest[index] * 2**bits - k) <= 1 + least * 2**bits
            assert drawn.integer(index, bits) == k
    for f, y in zip(drawn.floats(), finest, strict=True):
        assert abs(Fraction(float(f)) - y) <= max(Fraction(1), y) / 2**52


@pytest.mark.parametrize("degrees", [Fraction(9, 8), 2, 3, 50, 10**7])
@pytest.mark.parametrize("precision", [12, 68, 136])
def test_the_exponent_is_enclosed(degrees: int | Fraction, precision: int) -> None:
    square = Fraction(degrees) - 1
    pool = normals(200, entropy=simulation.entropy(7))
    seen = 0
    with mpmath.workdps(150):
        mode = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
        for at in range(200):
            z = pool.integer(at, precision)
            floor = chi._mode(square, precision)
            if floor + z - 1 <= 0:
                continue
            seen += 1
            low, high = chi._exponent(square, floor, z, precision)
            exact = mpmath.mpf(pool.integer(at, 400)) / mpmath.mpf(2) ** 400
            gamma = mode * exact - mode**2 * mpmath.log(1 + exact / mode)
            assert mpmath.mpf(low.numerator) / low.denominator <= gamma
            assert gamma <= mpmath.mpf(high.numerator) / high.denominator
            if precision > 12:
                assert high - low < Fraction(float(square) + 10) / 2 ** (precision - 12)
    assert seen > 50


@pytest.mark.parametrize("degrees", [Fraction(9, 8), 3, 10**7])
def test_verdicts_are_those_of_the_endless_numbers(
    degrees: int | Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Heights a hair from where acceptance turns, decided from few digits and from many.
    square = Fraction(degrees) - 1
    for seed in range(40):
        pool = normals(1, entropy=simulation.entropy(seed))
        with mpmath.workdps(100):
            mode = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
            z = mpmath.mpf(pool.integer(0, 300)) / mpmath.mpf(2) ** 300
            chance = mpmath.mpf(0)
            if mode + z > 0:
                chance = mpmath.exp(mode**2 * mpmath.log(1 + z / mode) - mode * z)
            turn = int(chance * 2**64)
        for height in (turn - 2, turn - 1, turn + 1, turn + 2, turn // 2):
            if not 0 <= height < 2**64:
                continue
            for first in (5, 68):
                monkeypatch.setattr(chi, "_FIRST", first)
                verdict = chi._accepts(square, pool, 0, height, simulation.entropy(1))
                assert verdict == (height < turn)


def test_each_number_has_its_own_degrees() -> None:
    drawn = chis([10**6, 1, 10**4], entropy=simulation.entropy(1)).floats()
    assert np.abs(drawn - [1000, 0, 100]).max() < 6
    assert len(chis([])) == 0


@pytest.mark.parametrize("degrees", [0, Fraction(1, 2), -3])
def test_degrees_below_one_are_refused(degrees: int | Fraction) -> None:
    with refused("degrees", "chi.chis"):
        chis([degrees])


def test_a_triangle_has_chis_on_its_diagonal_and_normals_below() -> None:
    many = [Bartlett(3, Fraction(9, 2)).integers(60) / 2.0**60 for _ in range(2000)]
    cells = np.array(many, float)
    assert (cells[:, *np.triu_indices(3, 1)] == 0).all()
    for i in range(3):
        assert law_misfit(cells[:, i, i], 4.5 - i) > FALSE_ALARM
    below = cells[:, *np.tril_indices(3, -1)].ravel()
    assert stats.kstest(below, "norm").pvalue > FALSE_ALARM


def test_triangles_are_refined_and_not_drawn_again() -> None:
    drawn = Bartlett(6, 10)
    fine, coarse = drawn.integers(300), drawn.integers(100)
    assert (np.abs(coarse * 2**200 - fine) <= 2**200 + 1).all()


def test_a_triangle_needs_as_many_degrees_as_rows() -> None:
    with refused("degrees", "bartlett.Bartlett"):
        Bartlett(4, Fraction(7, 2))
    with refused("dimension", "bartlett.Bartlett"):
        Bartlett(0, 1)


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_spherical_noise_has_gamma_lengths_and_uniform_directions(dimension: int) -> None:
    scale = 2.0**30
    vectors = np.array(
        [spherical.spherical_laplace_integers(scale, dimension) for _ in range(3000)], float
    )
    lengths = np.linalg.norm(vectors, axis=1) / scale
    assert stats.kstest(lengths, stats.gamma(dimension).cdf).pvalue > FALSE_ALARM
    cosines = vectors[:, 0] / np.linalg.norm(vectors, axis=1)
    if dimension == 1:
        assert stats.binomtest(int((cosines > 0).sum()), 3000).pvalue > FALSE_ALARM
    else:
        angular = stats.beta((dimension - 1) / 2, (dimension - 1) / 2).cdf
        assert stats.kstest((1 + cosines) / 2, angular).pvalue > FALSE_ALARM


def test_small_spherical_noise_is_rounded() -> None:
    # In one dimension the law is Laplace, and a unit has two halves.
    drawn = np.array([int(spherical.spherical_laplace_integers(2, 1)[0]) for _ in range(4000)])
    edges = np.arange(-6, 7) - 0.5
    inner = np.diff(stats.laplace(scale=2).cdf(edges))
    counts = [int((drawn == k).sum()) for k in range(-6, 6)]
    counts.append(len(drawn) - sum(counts))
    assert misfit(counts, [*inner, 1 - inner.sum()]) > FALSE_ALARM


@pytest.mark.parametrize("guard", [-30, 0, 20])
def test_few_digits_give_the_same_integers(guard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = spherical.spherical_laplace_integers(2**40, 20, entropy=simulation.entropy(3))
    monkeypatch.setattr(spherical, "_GUARD", guard)
    few = spherical.spherical_laplace_integers(2**40, 20, entropy=simulation.entropy(3))
    assert np.array_equal(usual, few)
