"""Clips of residuals and gradients: laws against integrals and draws, the best, the limits."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dplinear.erm import clips
from dplinear.erm.clips import Clip, Clips, heaviness, scales_within

pytestmark = pytest.mark.heavy

Seeded = Callable[[int], Any]
WITHIN = 0.6826894921370859  # of normal errors within one standard deviation
SCALE = stats.t.ppf((1 + WITHIN) / 2, 4)  # of Student's errors
EVERY = [
    Clip(float(residual), float(product))
    for residual in clips._RESIDUALS
    for product in clips._PRODUCTS
]

ROWS = 10_000.0


def inside(heavy: int, clip: Any) -> Any:
    """P(|z| < clip), z in scales."""
    clip = np.asarray(clip)
    return 1 - 2 * (special.stdtr(4, -clip * SCALE) if heavy else special.ndtr(-clip))


def square(heavy: int, clip: Any) -> Any:
    """E min(z², clip²), as an integral over the density, by Gauss's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(100)
    clip = np.asarray(clip, float)
    at = clip[..., None] * nodes
    density = stats.t.pdf(at, 4, scale=1 / SCALE) if heavy else stats.norm.pdf(at)
    return clip * ((at**2 * density) @ weights) + clip**2 * (1 - inside(heavy, clip))


def lengths(heavy: int, dimension: int, count: int = 20_000) -> Any:
    """Squared lengths of rows, evenly from their law; the Gram matrix counts up to the mean."""
    at = (np.arange(count) + 0.5) / count
    law = stats.f(dimension, 4, scale=0.5) if heavy else stats.chi2(dimension, scale=1 / dimension)
    squares = law.ppf(at)
    return squares / np.minimum(squares, 1).mean()


@pytest.mark.parametrize("heavy", [0, 1])
def test_laws_of_errors_are_integrals(heavy: int) -> None:
    law = (clips._LIGHT, clips._HEAVY)[heavy]
    assert inside(heavy, 1.0) == pytest.approx(WITHIN, abs=1e-9)
    for clip in (0.05, 0.3, 1.0, 2.5, 7.0):
        assert np.interp(clip, clips._AT, law.inside) == pytest.approx(
            inside(heavy, clip), abs=1e-9
        )
        got = np.interp(clip, clips._AT, law.square)
        assert got == pytest.approx(square(heavy, clip), rel=1e-4, abs=1e-6)
    assert (law.inside[0], law.square[0]) == (0, 0)
    assert clips._TAILS[heavy] == pytest.approx(1 - inside(heavy, clips.FAR), abs=1e-9)


@pytest.mark.parametrize("dimension", [1, 5, 40])
@pytest.mark.parametrize("heavy", [0, 1])
def test_responses_and_squares_are_those_of_rows_and_errors(heavy: int, dimension: int) -> None:
    """To 1%; 3% for heavy tails, whose longest rows a hundred quantiles do not reach."""
    found = Clips(dimension, 1.0, ROWS)
    squares = lengths(heavy, dimension)
    at = np.linspace(0, 8, 400)
    areas = square(heavy, at)
    for clip in EVERY[::23]:
        limits = np.minimum(clip.residual, clip.product / np.sqrt(squares))
        response = (squares * inside(heavy, limits)).mean()
        mean = (squares * np.interp(limits, at, areas)).mean()
        close = 0.03 if heavy else 0.01
        assert found.response(clip, heavy) == pytest.approx(response, rel=close)
        assert found.square(clip, heavy) == pytest.approx(mean, rel=close)


def test_normal_rows_and_errors_drawn_agree(generator: Seeded) -> None:
    """200,000 normal rows of 5 cells: within six standard errors, a false alarm in 1e-8."""
    random = generator(1)
    rows, errors = random.normal(size=(200_000, 5)), random.normal(size=200_000)
    squares = np.square(rows).sum(axis=1) / 5
    squares /= np.minimum(squares, 1).mean()
    found = Clips(5, 1.0, ROWS)
    for clip in EVERY[5::41]:
        limits = np.minimum(clip.residual, clip.product / np.sqrt(squares))
        for got, drawn in (
            (found.response(clip, 0.0), squares * (np.abs(errors) < limits)),
            (found.square(clip, 0.0), squares * np.minimum(np.abs(errors), limits) ** 2),
        ):
            slack = 6 * drawn.std() / math.sqrt(len(drawn))
            assert got == pytest.approx(drawn.mean(), abs=slack + 0.005 * drawn.mean())


def error(found: Clips, clip: Clip, noise: float, heavy: float) -> float:
    """The expected logarithm of a step's variance, whose curvature is what clipping leaves."""
    light = found.square(clip, 0) + noise * clip.product**2
    other = found.square(clip, 1) + (noise + clips._BIAS * math.sqrt(ROWS)) * clip.product**2
    logarithms = (
        math.log(light / found.response(clip, 0) ** 2),
        math.log(other / found.response(clip, 1) ** 2),
    )
    return (1 - heavy) * logarithms[0] + heavy * logarithms[1]


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("heavy", [0.0, 0.3, 1.0])
def test_the_best_clips_have_the_least_error(noise: float, heavy: float) -> None:
    for dimension in (1, 7, 60):
        found = Clips(dimension, noise, ROWS)
        best = error(found, found.best(heavy), noise, heavy)
        assert best <= min(error(found, clip, noise, heavy) for clip in EVERY) + 1e-12


@pytest.mark.parametrize("noise", [0.01, 0.3, 10.0])
def test_no_other_clip_is_much_better_for_normal_rows(noise: float) -> None:
    """Between the pairs that are tried none has a variance smaller by more than 2%."""
    squares = lengths(0, 6, 400)
    at = np.linspace(0, 12, 400)
    areas = square(0, at)

    def variance(residual: float, product: float) -> float:
        limits = np.minimum(residual, product / np.sqrt(squares))
        mean = (squares * np.interp(limits, at, areas)).mean() + noise * product**2
        return float(mean / (squares * inside(0, limits)).mean() ** 2)

    best = Clips(6, noise, ROWS).best(0.0)
    tried = itertools.product(np.geomspace(0.3, 10, 25), np.geomspace(0.2, 25, 60))
    assert variance(best.residual, best.product) <= 1.02 * min(itertools.starmap(variance, tried))


@pytest.mark.parametrize("dimension", [1, 5, 50])
def test_without_noise_and_with_light_tails_nothing_is_clipped(dimension: int) -> None:
    found = Clips(dimension, 0.0, ROWS)
    best = found.best(0.0)
    widest = EVERY[-1]
    assert found.response(best, 0.0) == pytest.approx(found.response(widest, 0.0), rel=1e-4)
    assert found.square(best, 0.0) == pytest.approx(found.square(widest, 0.0), rel=1e-3)
    # Rows count up to the mean in the Gram matrix, so that both are above 1, and alike.
    assert found.response(widest, 0.0) == pytest.approx(found.square(widest, 0.0), rel=1e-3)
    assert found.response(widest, 0.0) == pytest.approx(lengths(0, dimension).mean(), rel=0.01)


@pytest.mark.parametrize("heavy", [0.0, 0.3, 1.0])
def test_more_noise_means_shorter_gradients(heavy: float) -> None:
    for dimension in (1, 10):
        products = [
            Clips(dimension, noise, ROWS).best(heavy).product for noise in np.geomspace(1e-6, 1e4)
        ]
        assert all(after <= before for before, after in itertools.pairwise(products))
        assert products[0] > 3 * products[-1]
        assert products[-1] == clips._PRODUCTS[0]


def test_heavy_tails_are_clipped_where_light_ones_are_not() -> None:
    for dimension in (1, 10, 50):
        found = Clips(dimension, 1e-4, ROWS)
        assert found.best(1.0).product < found.best(0.0).product
        assert found.best(1.0).residual < found.best(0.0).residual


def test_clips_leave_more_the_wider_they_are() -> None:
    for heavy in (0.0, 0.5, 1.0):
        found = Clips(8, 1.0, ROWS)
        for residual, values in ((1.0, EVERY[:46]), (7.0, EVERY[-46:])):
            assert {clip.residual for clip in values} == {residual}
            responses = [found.response(clip, heavy) for clip in values]
            squares = [found.square(clip, heavy) for clip in values]
            for sizes in (responses, squares):
                assert all(a <= b for a, b in itertools.pairwise(sizes))
    # Between the products of the table, and beyond its ends.
    low, high = EVERY[3], EVERY[4]
    between = Clip(low.residual, math.sqrt(low.product * high.product))
    assert found.response(low, 0) < found.response(between, 0) < found.response(high, 0)
    assert found.response(Clip(7.0, 1e9), 0) == found.response(EVERY[-1], 0)


def test_tails_are_between_the_two_laws_and_grow_with_what_is_far() -> None:
    light, heavy = clips._TAILS
    assert 0 < light < heavy < 0.1
    for sigma in (0.0, 1e-3, 0.01, 0.1, 10.0):
        found = [heaviness(far, sigma) for far in np.linspace(-1, 2, 301)]
        assert all(0 <= value <= 1 for value in found)
        assert all(a <= b for a, b in itertools.pairwise(found))
    assert heaviness(light, 0.0) == pytest.approx(0, abs=0.05)
    assert heaviness(heavy, 0.0) == pytest.approx(1, abs=0.05)
    assert heaviness((light + heavy) / 2, 0.0) == pytest.approx(0.5, abs=0.05)
    # A count as doubtful as the guess has half the say.
    equal = clips._DOUBT * (heavy - light)
    assert heaviness(heavy, equal) == pytest.approx((1 + clips.before()) / 2, abs=0.02)
    # Where the count is nothing but noise, nothing is learned from it.
    assert heaviness(0.5, 1e6) == pytest.approx(clips.before(), abs=1e-6)
    assert 0 <= clips.before() <= 1


def test_a_share_is_within_its_scales() -> None:
    assert scales_within(WITHIN) == pytest.approx(1)
    for scales in (0.1, 0.5, 2.0, 3.0):
        assert scales_within(float(inside(0, scales))) == pytest.approx(scales)
