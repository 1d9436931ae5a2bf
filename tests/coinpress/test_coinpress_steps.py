"""The steps of CoinPress without noise against plain NumPy, their radii, and what they cost."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.adaptive.noisy_sums import Answer, NoisySums
from dplinear.coinpress import covariance as steps
from dplinear.coinpress import methods, radii
from dplinear.coinpress.covariance import Whitener, covariance
from dplinear.coinpress.locate import locate
from dplinear.coinpress.mean import Ball, mean
from dplinear.privacy import ZCDP, ApproxDP

from .coins import (
    ADD_REMOVE,
    REPLACE,
    SILENT,
    chain_of,
    paper_length,
    plain_covariance,
    recorded,
    rotated,
    shortened,
    windowed,
)

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("dimension", [1, 2, 7, 40, 300])
@pytest.mark.parametrize("beta", [0.3, 0.1, 0.01, 1e-6])
def test_a_normal_row_is_seldom_longer_than_its_bound(dimension: int, beta: float) -> None:
    length = radii.tail(dimension, beta)
    assert stats.chi2.sf(length**2, dimension) <= beta
    assert length == pytest.approx(paper_length(dimension, beta))


def test_radii_are_the_papers() -> None:
    assert radii.reach(0.0, 3.0) == 3.0
    assert radii.reach(100.0, 3.0) == pytest.approx(math.sqrt(10000 + 600 + 9))
    assert radii.reach(0.1, 30.0) == pytest.approx(math.sqrt(0.01 + 0.6 + 900))
    assert radii.reach(0.1, 1.0) == pytest.approx(1.1)
    assert radii.ball(100, 0.3, 4, 0.01) == pytest.approx(math.sqrt(0.1) * paper_length(4, 0.01))
    assert radii.sampling(4, 100) == pytest.approx(0.5 * (0.4 + 0.04))


@pytest.mark.parametrize("dimension", [1, 10, 60])
def test_rows_are_clipped_less_the_less_noise_there_is(dimension: int) -> None:
    """Where neither noise nor clipping would be less at a neighbouring radius."""
    lengths = [radii.length(dimension, 10.0**-power) for power in range(9)]
    assert lengths[0] == pytest.approx(paper_length(dimension, 0.1))
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0]
    laws = stats.chi2(dimension)
    noise, square = 1e-4, radii.length(dimension, 1e-4) ** 2

    def error(clip: float) -> float:
        lost = laws.expect(lambda q: max(q - clip, 0.0), lb=clip) / math.sqrt(dimension)
        return math.hypot(float(lost), noise * clip * math.sqrt(dimension * (dimension + 1) / 2))

    for beta in (0.1, 10**-1.5, 0.01, 1e-3, 1e-4):
        assert error(square) <= error(paper_length(dimension, beta) ** 2) * (1 + 1e-6)


def whitener(turn: Any, condition: float) -> Whitener:
    """A start that is a little too wide in every direction, and off the centre."""
    columns = len(turn)
    lengths = 1.5 * np.sqrt(np.geomspace(1.0, condition, columns))
    return Whitener(np.arange(1.1, columns + 1), np.asarray((turn / lengths).T))


def published_length(chain: NoisySums, rows: float, size: int, share: Fraction) -> float:
    """The paper's clip, whatever the number of rows."""
    return paper_length(size, 0.1)


@pytest.mark.parametrize(("condition", "off"), [(1.0, 1e-5), (1e4, 1e-4), (1e8, 4e-3)])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_without_noise_it_is_the_covariance_of_the_clipped_rows(
    count: int, condition: float, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to the matrix itself: in no direction is it off by more than the grid is coarse.

    A grid has a million steps to half a window, and the longest axis is √condition of the shortest.
    With the paper's radius some rows are clipped; with ours, and no noise, none are.
    """
    rows, turn = rotated(count, 800, condition, 4)
    start, table = whitener(turn, condition), windowed(rows, 1e6)
    shares = methods.shares(count, Fraction(1))
    wanted = plain_covariance(rows, start.root.T, start.centre, count), np.cov(rows.T, bias=True)
    for truth, length in zip(wanted, (published_length, steps._length), strict=True):
        monkeypatch.setattr(steps, "_length", length)
        chain = chain_of(table, SILENT)
        found = covariance(chain, table, len(rows), start, shares)
        white = np.linalg.inv(np.linalg.cholesky(truth))
        assert np.abs(white @ found.values @ white.T - np.eye(4)).max() < off


def test_a_wide_start_ends_where_a_close_one_does() -> None:
    rows, turn = rotated(1, 2000, 1e3, 3)
    table = windowed(rows, 1e9)
    close = whitener(turn, 1e3)
    wide = Whitener(close.centre, np.eye(3) / 300)
    shares = [Fraction(1, 12)] * 12
    ends = [
        covariance(chain_of(table, SILENT), table, len(rows), start, shares).values
        for start in (close, wide)
    ]
    np.testing.assert_allclose(ends[0], ends[1], rtol=2e-3, atol=2e-2)


def test_a_known_centre_gives_second_moments_about_it() -> None:
    rows, _ = rotated(2, 500, 10.0, 3)
    start = Whitener(np.zeros(3), np.eye(3) / 100, known=True)
    table = windowed(rows, 1e4)
    found = covariance(chain_of(table, SILENT), table, 500, start, [Fraction(1)])
    np.testing.assert_allclose(found.values, rows.T @ rows / 500, rtol=1e-3, atol=1e-3)
    assert not found.mean.any()


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_whitenings_in_the_other_order_are_caught_from_three_steps_on(
    count: int, generator: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the public reference code has it; up to two steps its whitening is symmetric.

    Rows in three clumps, so that clipping turns the axes from step to step. (A window bends the
    directions of rows that are far beyond the clip a little.)
    """
    random = generator(3)
    middles = np.array([[0, 0, 0], [2.2, 0.5, 0], [-0.5, 1.5, 2.7]])
    clumps = middles[random.choice(3, 900, p=[0.7, 0.2, 0.1])]
    rows = clumps + random.normal(size=(900, 3)) * [0.4, 0.1, 0.03]
    start = Whitener(np.zeros(3), np.eye(3) / 0.4)
    table = windowed(rows, 1e4)
    shares = methods.shares(count, Fraction(1))
    chain = chain_of(table, SILENT)
    monkeypatch.setattr(steps, "_length", published_length)
    found = covariance(chain, table, 900, start, shares)
    right, wrong = (
        plain_covariance(rows, start.root.T, start.centre, count, reference=reference)
        for reference in (False, True)
    )
    assert np.linalg.norm(found.values - right) < 3e-3 * np.linalg.norm(right)
    gap = np.linalg.norm(wrong - right) / np.linalg.norm(right)
    assert (gap > 0.01) == (count >= 3), gap


def test_eigenvalues_below_zero_become_zero() -> None:
    matrix = np.diag([2.0, -3.0, 0.5])
    turn, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3) + np.eye(3))
    np.testing.assert_allclose(
        steps.positive(turn @ matrix @ turn.T), turn @ np.diag([2.0, 0.0, 0.5]) @ turn.T, atol=1e-12
    )


def test_noise_above_one_does_not_widen_the_next_step() -> None:
    image = np.diag([3.0, 1.5, 0.5, 0.0])
    whole = steps.rounder(image, 0.0, 0.1)
    np.testing.assert_allclose(np.diag(whole) ** -2, [3.1, 1.6, 0.6, 0.1])
    np.testing.assert_allclose(np.diag(steps.rounder(image, 1.0, 0.1)) ** -2, [2.1, 1.1, 0.6, 0.1])
    np.testing.assert_allclose(np.diag(steps.rounder(image, 9.0, 0.1)) ** -2, [1.1, 1.1, 0.6, 0.1])


def test_the_square_of_a_noisy_mean_is_taken_off_without_its_noise() -> None:
    """E m̂ m̂ᵀ = m mᵀ + s² I: with answers as told, the matrix is the first less the second."""
    table = windowed(np.zeros((1, 2)), 10.0)
    chain = chain_of(table)
    told = [Answer(np.array([[200.0, 30.0], [30.0, 150.0]]), 1.0), Answer(np.array([50.0, 9]), 7.0)]

    class Told(NoisySums):
        def ask(self, *_: Any) -> list[Answer]:
            return told

    mean, error = np.array([0.5, 0.09]), 0.07
    start = Whitener(np.zeros(2), np.eye(2) / 2)
    script = Told(chain._rows, chain.budget, chain._entropy)
    found = covariance(script, table, 100.0, start, [Fraction(1)])
    wanted = told[0].values / 100 - np.outer(mean, mean) + error**2 * np.eye(2)
    np.testing.assert_allclose(found.image, wanted, atol=1e-12)
    np.testing.assert_allclose(found.values, 4 * wanted, rtol=1e-5)
    np.testing.assert_allclose(found.mean, 2 * mean, rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_without_noise_a_mean_is_that_of_the_clipped_rows(
    count: int, generator: Callable[[int], Any]
) -> None:
    rows = generator(count).normal(size=(700, 3)) * [3, 30, 0.1] + [5, -7, 0]
    root = np.diag(1 / np.array([1.0, 10.0, 0.1]))
    start, table = Ball(np.array([3.0, 0.0, 1.0]), 11.0, root), windowed(rows, 1e5)
    shares = methods.shares(count, Fraction(1))
    found = mean(chain_of(table, SILENT), table, len(rows), start, shares)
    centre, radius = start.centre, start.radius
    far = paper_length(3, 0.01)
    for _ in range(count):
        reach = min(math.sqrt(radius**2 + 6 * radius + far**2), radius + far)
        centre = centre + shortened((rows - centre) @ root, reach).mean(axis=0) @ np.linalg.inv(
            root
        )
        radius = math.sqrt(1 / 700) * far
    np.testing.assert_allclose(found.values, centre, rtol=1e-5, atol=1e-3)


def test_stated_errors_are_those_of_the_noise() -> None:
    """200 draws: a chi-square statistic of each variance, at a false-alarm rate of 1e-6 in all."""
    rows, turn = rotated(4, 400, 20.0, 2)
    start, table = whitener(turn, 20.0), windowed(rows, 100.0)
    draws = [
        covariance(chain_of(table, ZCDP(50.0), seed=seed), table, 400, start, [Fraction(1)])
        for seed in range(200)
    ]
    low, high = (stats.chi2.ppf(tail, 199) / 199 for tail in (5e-7 / 3, 1 - 5e-7 / 3))
    # The centring's noise is of second order here, so that only the stated one is left.
    ratio = np.var([draw.values for draw in draws], axis=0, ddof=1) / draws[0].errors ** 2
    assert low < ratio.min()
    assert ratio.max() < high * 1.05


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("guarantee", [ZCDP(0.5), ZCDP(1e-3), ApproxDP(1.0, 1e-6)], ids=str)
@pytest.mark.parametrize("scale", [None, 3.0])
def test_the_whole_budget_is_spent_and_never_more(
    guarantee: Any, relation: Any, scale: float | None, generator: Callable[[int], Any]
) -> None:
    rows = generator(5).normal(size=(300, 3))
    for kind in (methods.CoinPressMean, methods.CoinPressCovariance):
        method: Any = kind(guarantee=guarantee, neighbours=relation, scale=scale)
        chain = recorded(method, rows, 1e4, 6).chain
        assert chain.budget.square * (1 - Fraction(1, 10**9)) < chain.spent <= chain.budget.square
        assert chain.inverse <= chain.budget.inverse
        if isinstance(guarantee, ZCDP):
            assert chain.budget.square == 2 * Fraction(guarantee.rho)


def test_splits_are_the_papers() -> None:
    assert methods.shares(1, Fraction(1, 2)) == [Fraction(1, 2)]
    assert methods.shares(2, Fraction(1)) == [Fraction(1, 4), Fraction(3, 4)]
    assert methods.shares(3, Fraction(1)) == [Fraction(1, 8), Fraction(1, 8), Fraction(3, 4)]
    for count in range(1, 51):
        assert sum(methods.shares(count, Fraction(7, 9))) == Fraction(7, 9)


@pytest.mark.parametrize("bound", [20.0, 1e6, 1e9])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_scales_are_found_within_bounds_of_any_width(
    bound: float, relation: Any, generator: Callable[[int], Any]
) -> None:
    scales, middles = np.array([1.0, 2.0, 0.5]), np.array([5.0, -3.0, 0.0])
    rows = generator(7).normal(size=(2000, 3)) * scales + middles
    rows[0], rows[1], rows[2] = 1e300, np.nan, -np.inf
    table = windowed(rows, bound)
    chain = chain_of(table, ZCDP(0.5), relation, seed=8)
    found = locate(chain, table, 2000.0)
    assert (np.abs(found.centre - middles) < scales).all()
    assert (found.scale / scales < 2).all()
    assert (found.scale / scales > 0.5).all()
    assert chain.remaining > Fraction(13, 16) - Fraction(1, 1000)


def test_constant_columns_and_tables_without_rows_come_to_an_end() -> None:
    for rows in (np.zeros((500, 2)), np.full((500, 2), 7.25), np.zeros((0, 2))):
        table = windowed(rows, 1e9)
        found = locate(chain_of(table), table, max(len(rows), 1.0))
        assert np.isfinite(found.centre).all()
        assert (found.scale > 0).all()
        if len(rows):
            assert (found.scale < 1).all()
            np.testing.assert_allclose(found.centre, rows[0], atol=1)
