"""Clips of residuals and gradients: tables against integrals and draws, the best, the limits."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.descent import clips
from dplinear.descent.clips import TAPER, Clip, Clips
from dplinear.descent.tails import Tails

from .error_laws import inside, square

pytestmark = pytest.mark.heavy

Seeded = Callable[[int], Any]
EVERY = [
    Clip(float(residual), float(product))
    for residual in clips._RESIDUALS
    for product in clips._PRODUCTS
]

ROWS = 10_000.0


def even(heavy: float) -> Tails:
    """Tails as heavy as that, alike on both sides."""
    return uneven(1.0, 0.0, heavy)


def uneven(scales: float, share: float, heavy: float = 1.0) -> Tails:
    """Tails of which one holds a share of the rows, so many scales out."""
    return Tails(heavy, np.array([0.0, share]), np.array([1.0, scales]))


def lengths(heavy: int, dimension: int, count: int = 20_000) -> Any:
    """Squared lengths of rows, evenly from their law; the Gram matrix counts up to the mean."""
    at = (np.arange(count) + 0.5) / count
    law = stats.f(dimension, 4, scale=0.5) if heavy else stats.chi2(dimension, scale=1 / dimension)
    squares = law.ppf(at)
    return squares / np.minimum(squares, 1).mean()


@pytest.mark.parametrize("dimension", [1, 5, 40])
@pytest.mark.parametrize("heavy", [0, 1])
@pytest.mark.parametrize("tapered", [False, True])
def test_responses_and_squares_are_those_of_rows_and_errors(
    heavy: int, dimension: int, tapered: bool
) -> None:
    """To 1%; 3% for heavy tails, whose longest rows a hundred quantiles do not reach.

    10% where these are hardly clipped.
    """
    found = Clips(dimension, 1.0, ROWS)
    squares = lengths(heavy, dimension)
    at = np.linspace(0, 12, 600)  # the laws' tables go so far
    areas = square(heavy, at)
    for pair in EVERY[::23]:
        clip = Clip(pair.residual, pair.product, tapered)
        limits = np.minimum(clip.residual, clip.product / np.sqrt(squares))
        if tapered:
            limits *= np.minimum(TAPER / np.sqrt(squares), 1) ** 2
        response = (squares * inside(heavy, np.minimum(limits, 12))).mean()
        mean = (squares * np.interp(limits, at, areas)).mean()
        close = 0.01 if not heavy else 0.03 if clip.product < 5 else 0.1
        assert found.response(clip, even(heavy)) == pytest.approx(response, rel=close)
        assert found.square(clip, even(heavy)) == pytest.approx(mean, rel=close)


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
            (found.response(clip, even(0.0)), squares * (np.abs(errors) < limits)),
            (found.square(clip, even(0.0)), squares * np.minimum(np.abs(errors), limits) ** 2),
        ):
            slack = 6 * drawn.std() / math.sqrt(len(drawn))
            assert got == pytest.approx(drawn.mean(), abs=slack + 0.005 * drawn.mean())


def longest(clip: Clip) -> float:
    """The length of the longest gradient."""
    return min(clip.product, TAPER * clip.residual if clip.tapered else math.inf)


def error(found: Clips, clip: Clip, dimension: int, noise: float, heavy: float) -> float:
    """The expected logarithm of a step's variance, whose curvature is what clipping leaves."""
    light = found.square(clip, even(0)) + noise * longest(clip) ** 2
    bias = clips._BIAS[clip.tapered] * ROWS / max(dimension, 5)
    noise = noise * longest(clip) ** 2 + bias * clip.product**2
    other = found.square(clip, even(1)) + noise
    logarithms = (
        math.log(light / found.response(clip, even(0)) ** 2),
        math.log(other / found.response(clip, even(1)) ** 2),
    )
    return (1 - heavy) * logarithms[0] + heavy * logarithms[1]


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("heavy", [0.0, 0.3, 1.0])
def test_the_best_clips_have_the_least_error(noise: float, heavy: float) -> None:
    """Rows may be tapered where tails are heavy."""
    tried = EVERY
    if heavy > 0.5:
        tried = [*EVERY, *(Clip(clip.residual, clip.product, tapered=True) for clip in EVERY)]
    for dimension in (1, 7, 60):
        found = Clips(dimension, noise, ROWS)
        best = error(found, found.best(even(heavy)), dimension, noise, heavy)
        errors = [error(found, clip, dimension, noise, heavy) for clip in tried]
        assert best <= min(errors) + 1e-12


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

    best = Clips(6, noise, ROWS).best(even(0.0))
    tried = itertools.product(np.geomspace(0.3, 10, 25), np.geomspace(0.2, 25, 60))
    assert variance(best.residual, best.product) <= 1.02 * min(itertools.starmap(variance, tried))


@pytest.mark.parametrize("dimension", [1, 5, 50])
def test_without_noise_and_with_light_tails_nothing_is_clipped(dimension: int) -> None:
    found = Clips(dimension, 0.0, ROWS)
    best = found.best(even(0.0))
    widest = EVERY[-1]
    assert found.response(best, even(0.0)) == pytest.approx(
        found.response(widest, even(0.0)), rel=1e-4
    )
    assert found.square(best, even(0.0)) == pytest.approx(found.square(widest, even(0.0)), rel=1e-3)
    # Rows count up to the mean in the Gram matrix, so that both are above 1, and alike.
    assert found.response(widest, even(0.0)) == pytest.approx(
        found.square(widest, even(0.0)), rel=1e-3
    )
    assert found.response(widest, even(0.0)) == pytest.approx(
        lengths(0, dimension).mean(), rel=0.01
    )


@pytest.mark.parametrize("heavy", [0.0, 0.3, 1.0])
def test_more_noise_means_shorter_gradients(heavy: float) -> None:
    for dimension in (1, 10):
        products = [
            Clips(dimension, noise, ROWS).best(even(heavy)).product
            for noise in np.geomspace(1e-6, 1e4)
        ]
        assert all(after <= before for before, after in itertools.pairwise(products))
        assert products[0] > 3 * products[-1]
        assert products[-1] == clips._PRODUCTS[0]


def test_heavy_tails_are_clipped_where_light_ones_are_not() -> None:
    for dimension in (1, 10, 50):
        found = Clips(dimension, 1e-4, ROWS)
        light, heavy = found.best(even(0.0)), found.best(even(1.0))
        assert longest(heavy) < light.product
        assert heavy.residual < light.residual


def test_clips_leave_more_the_wider_they_are() -> None:
    for heavy in (0.0, 0.5, 1.0):
        found = Clips(8, 1.0, ROWS)
        for residual, values in ((1.0, EVERY[:62]), (80.0, EVERY[-62:])):
            assert {clip.residual for clip in values} == {residual}
            responses = [found.response(clip, even(heavy)) for clip in values]
            squares = [found.square(clip, even(heavy)) for clip in values]
            for sizes in (responses, squares):
                assert all(a <= b for a, b in itertools.pairwise(sizes))
    # Between the products of the table, and beyond its ends.
    low, high = EVERY[3], EVERY[4]
    between = Clip(low.residual, math.sqrt(low.product * high.product))
    assert (
        found.response(low, even(0))
        < found.response(between, even(0))
        < found.response(high, even(0))
    )
    assert found.response(Clip(80.0, 1e9), even(0)) == found.response(EVERY[-1], even(0))


def test_only_heavy_even_tails_are_tapered_and_only_for_little_noise() -> None:
    found = Clips(8, 1e-4, ROWS)
    assert [found.best(even(heavy)).tapered for heavy in (0.0, 0.4, 0.9, 1.0)] == [0, 0, 1, 1]
    assert not found.best(uneven(8.0, 0.01)).tapered
    assert not Clips(8, 10.0, ROWS).best(even(1.0)).tapered


@pytest.mark.parametrize("scales", [8.0, 32.0, 128.0])
def test_an_uneven_tail_is_not_clipped_where_noise_allows(scales: float) -> None:
    """The clip reaches it, and comes back as the noise grows; Huber's own stays."""
    tails = uneven(scales, 0.02)
    best = [Clips(8, noise, ROWS).best(tails) for noise in np.geomspace(1e-8, 1e4, 13)]
    assert min(best[0].residual, best[0].product) > 0.6 * min(scales, 80.0)
    products = [clip.product for clip in best]
    assert all(after <= before for before, after in itertools.pairwise(products))
    assert products[-1] < 0.1 * products[0]
    fixed = [Clips(8, 1e-8, ROWS, 1.345).best(found) for found in (tails, even(1.0))]
    assert [clip.residual for clip in fixed] == [1.345, 1.345]


def test_an_uneven_tail_adds_what_is_left_of_it_to_the_square(generator: Seeded) -> None:
    """One row in fifty, 32 scales out: drawn, to 3%."""
    random = generator(2)
    squares = random.chisquare(8, 400_000) / 8
    squares /= np.minimum(squares, 1).mean()
    errors = np.where(random.random(400_000) < 0.02, 32.0, 0.0)
    found = Clips(8, 1.0, ROWS)
    for clip in EVERY[7::53]:
        limits = np.minimum(clip.residual, clip.product / np.sqrt(squares))
        drawn = (squares * np.minimum(errors, limits) ** 2).mean()
        added = found.square(clip, uneven(32.0, 0.02)) - found.square(clip, even(1.0))
        assert added == pytest.approx(drawn, rel=0.03)
