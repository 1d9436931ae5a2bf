"""Draws from exact matrices: every rounding is ball arithmetic's, and the laws are right."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dplinear.arrays import BigIntegers
from dplinear.exact import gaussian_draws, sketch_rows
from dplinear.exact.gaussian_draws import (
    inverse_wishart,
    inverse_wishart_of,
    sketch_matrix,
    sketch_matrix_of,
    wishart_integers,
    wishart_of,
)
from dplinear.exact.roots import Root
from dplinear.exact.sketch_rows import rows_of, wide_rows_of
from dplinear.noise import entropy, simulation
from dplinear.noise.bartlett import Bartlett
from dplinear.noise.normals import Normals, normals
from exact import arb_draws
from exact.test_roots import gram
from noise.laws import FALSE_ALARM

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

RIDGE = 2**20
STARTS = [8, 30, 128]  # few digits at first, so that nearly every draw is refined


def root(size: int, seed: int = 1) -> Root:
    return Root(gram(size, 15, RIDGE, seed), RIDGE)


def triangle(size: int, degrees: int | Fraction, seed: int) -> Bartlett:
    return Bartlett(size, degrees, entropy=simulation.entropy(seed))


@pytest.mark.parametrize("guard", [-60, 0, 48])
@pytest.mark.parametrize(("size", "degrees"), [(1, 1), (3, 3), (7, Fraction(15, 2)), (25, 1000)])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2**40)])
def test_wishart_matrices_are_rounded_exactly(
    guard: int,
    size: int,
    degrees: int | Fraction,
    scale: Fraction,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gaussian_draws, "_GUARD", max(guard, 1 - int(scale).bit_length()))
    for seed in range(4):
        drawn = triangle(size, degrees, seed)
        assert np.array_equal(wishart_of(drawn, scale), arb_draws.wishart(drawn, scale))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("size", "degrees"), [(1, 1), (4, 4), (9, Fraction(21, 2)), (25, 60)])
def test_sketched_matrices_are_rounded_exactly(
    start: int, size: int, degrees: int | Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaussian_draws, "PRECISION", start)
    scale = Fraction(2**20, RIDGE)
    for seed in range(3):
        made, drawn = root(size, seed), triangle(size, degrees, seed)
        expected = arb_draws.sketch_matrix(made.matrix, drawn, scale)
        assert np.array_equal(sketch_matrix_of(made, drawn, scale), expected)
        scale *= 1000  # on a root that is refined already


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("size", "degrees"), [(1, 1), (4, 4), (9, Fraction(21, 2)), (25, 60)])
def test_inverse_wishart_matrices_are_rounded_exactly(
    start: int, size: int, degrees: int | Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaussian_draws, "PRECISION", start)
    scale = Fraction(2**20, RIDGE)
    for seed in range(3):
        made, drawn = root(size, seed), triangle(size, degrees, seed)
        expected = arb_draws.inverse_wishart(made.matrix, drawn, scale)
        assert np.array_equal(inverse_wishart_of(made, drawn, scale), expected)


def both_paths(made: Root, draws: Normals, scale: Fraction) -> BigIntegers:
    found = rows_of(made, draws, scale)
    again = wide_rows_of(Root(made.matrix, made.floor), draws, scale)
    assert np.array_equal(found, again)
    return found


@pytest.mark.parametrize("start", [8, 64])
@pytest.mark.parametrize("size", [1, 4, 25])
@pytest.mark.parametrize("step", [Fraction(1, 7), Fraction(1, 2**20), Fraction(1, 2**45)])
def test_sketch_rows_are_rounded_exactly(
    start: int, size: int, step: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With a step of 2^-45 float64 leaves open most of the cells, or all.
    monkeypatch.setattr(sketch_rows, "PRECISION", start)
    monkeypatch.setattr(sketch_rows, "WIDE_PRECISION", start)
    made, draws = root(size), normals(20 * size, entropy=simulation.entropy(size))
    expected = arb_draws.sketch_rows(made.matrix, draws, 1 / step)
    assert np.array_equal(both_paths(made, draws, 1 / step), expected)


def test_cells_next_to_a_half_are_left_to_integers() -> None:
    # The root of 4·I is 2·I; scales by 7.5/(2·z) put a cell at 15/2, give or take a hair.
    made = Root(np.diag([4, 4]).astype(object), 4)
    for seed in range(20):
        draws = normals(6, entropy=simulation.entropy(seed))
        first = Fraction(draws.integer(0, 400), 2**399)
        for hair in (0, 1, -1, 2**20, -(2**20)):
            scale = abs((7 + Fraction(1, 2)) / first) * (1 + Fraction(hair, 2**90))
            expected = arb_draws.sketch_rows(made.matrix, draws, scale)
            assert np.array_equal(both_paths(made, draws, scale), expected)


def test_cells_that_float64_gets_wrong_are_found() -> None:
    # Cells of about 2^41: float64 is off by up to 2^-10 of a unit, in some of 20,000 cells too far.
    made, draws = root(20), normals(20_000, entropy=simulation.entropy(8))
    made.refine(64)
    scale = Fraction(2**20)
    middle, _ = sketch_rows.float_cells(made, draws.floats().reshape(-1, 20), scale)
    exact = both_paths(made, draws, scale)
    assert 1 <= (np.rint(middle).astype(np.int64) != exact).sum() < 2000


@pytest.mark.parametrize("scale", [Fraction(2**1200), Fraction(1, 2**1200), Fraction(2**40)])
def test_scales_beyond_float64_and_numbers_beyond_16(scale: Fraction) -> None:
    made = root(3)
    value = np.array([300, 1, 2, 3, 4, 5], np.uint16)
    drawn = entropy.words(simulation.entropy(1), 6)
    minus = np.array([True, False] * 3)
    draws = Normals(value, minus, drawn, {1: (2**400 + 1, 64)}, simulation.entropy(2))
    expected = arb_draws.sketch_rows(made.matrix, draws, scale)
    assert np.array_equal(both_paths(made, draws, scale), expected)


def test_a_bound_that_is_too_small_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each error bound in turn is taken away; with few digits some rounding must then be wrong.
    monkeypatch.setattr(gaussian_draws, "PRECISION", 30)
    scale = Fraction(2**20, RIDGE)

    def wrong(errors: bool, slack: bool) -> int:
        count = 0
        for seed in range(3):
            made, drawn = root(6, seed), triangle(6, 9, seed)
            made.refine(30)
            if errors:
                made.errors = made.errors * 0
            if slack:
                monkeypatch.setattr(gaussian_draws, "_times", certain)
            found = sketch_matrix_of(made, drawn, scale)
            count += (found != arb_draws.sketch_matrix(made.matrix, drawn, scale)).any()
        return int(count)

    usual = gaussian_draws._times

    def certain(made: Root, right: BigIntegers, error: int) -> gaussian_draws._Half:
        half = usual(made, right, error)
        return gaussian_draws._Half(half.rows, half.errors * 0, half.precision)

    assert wrong(errors=False, slack=False) == 0
    assert wrong(errors=True, slack=True) > 0


@pytest.mark.parametrize("size", [2, 5])
def test_wishart_noise_has_its_law(size: int) -> None:
    degrees, scale = Fraction(13, 2), 2**40
    drawn = [wishart_integers(size, degrees, scale) for _ in range(600)]
    assert all(np.array_equal(each, each.T) for each in drawn)
    many = np.array(drawn, float) / scale
    trace = np.trace(many, axis1=1, axis2=2)
    assert stats.kstest(trace, stats.chi2(float(degrees) * size).cdf).pvalue > FALSE_ALARM
    across = many.sum(axis=(1, 2)) / size
    assert stats.kstest(across, stats.chi2(float(degrees)).cdf).pvalue > FALSE_ALARM


def test_sketches_and_inverses_have_their_laws() -> None:
    made, degrees, scale = Root(gram(3, 4, 50), 50), 8, 2**40
    exact = made.matrix.astype(float)
    direction = np.array([1.0, -2.0, 0.5])
    rows = np.array([sketch_matrix(made, degrees, scale) for _ in range(600)], float) / scale
    seen = np.einsum("i,nij,j->n", direction, rows, direction) / (direction @ exact @ direction)
    assert stats.kstest(seen, stats.chi2(degrees).cdf).pvalue > FALSE_ALARM
    drawn = np.array([inverse_wishart(made, degrees, scale) for _ in range(600)], float) / scale
    inverse = np.linalg.inv(drawn)
    seen = np.einsum("i,nij,j->n", direction, inverse, direction)
    seen /= direction @ np.linalg.inv(exact) @ direction
    assert stats.kstest(seen, stats.chi2(degrees).cdf).pvalue > FALSE_ALARM


def test_sketch_rows_have_their_law() -> None:
    made = Root(gram(3, 4, 50), 50)
    wide = wide_rows_of(made, normals(9000), Fraction(2**30))
    for rounded in (sketch_rows.sketch_rows(made, 3000, 2**30), wide):
        drawn = rounded.astype(float) / 2**30
        white = np.linalg.solve(np.linalg.cholesky(made.matrix.astype(float)), drawn.T)
        assert stats.kstest(white.ravel(), "norm").pvalue > FALSE_ALARM
        assert stats.kstest((white**2).sum(axis=0), stats.chi2(3).cdf).pvalue > FALSE_ALARM
