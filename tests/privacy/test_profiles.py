"""Profiles against interval arithmetic, closed forms and Monte Carlo of the full mechanisms."""

import math
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy.special import ndtr

from dplinear.arrays import Floats
from dplinear.noise.simulation import generator
from dplinear.privacy import Neighbours
from dplinear.privacy.profiles import (
    AdditiveWishart,
    Gaussian,
    GridGaussian,
    Laplace,
    Profile,
    Pure,
    Sketch,
)

from . import oracles

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

# Slack over the exact δ that a profile may claim, where δ ≥ 1e-14.
TIGHT = 1e-10


def random_settings(seed: int, count: int) -> list[tuple[float, float, int]]:
    """Return (ε, Gaussian-limit μ, degrees), spread over the whole supported range."""
    draw = generator(seed)
    settings = []
    for _ in range(count):
        epsilon = 10 ** draw.uniform(-3, 6 if draw.random() < 0.4 else 1.5)
        z = draw.uniform(-1, 6.5)  # how far out in the tail the threshold lies
        mu = math.sqrt(z * z + 2 * epsilon) - z
        settings.append((epsilon, mu, int(10 ** draw.uniform(0, 7))))
    return settings


def check(profile_delta: float, exact: Any) -> None:
    if exact > arb(1e-14):
        assert arb(profile_delta) >= exact or profile_delta == 1.0
        assert arb(profile_delta) <= exact * (1 + TIGHT)


@pytest.mark.parametrize(("epsilon", "mu", "_degrees"), random_settings(1, 150))
def test_gaussian_profile_is_the_exact_one(epsilon: float, mu: float, _degrees: int) -> None:
    check(Gaussian(mu).delta(epsilon), oracles.gaussian(epsilon, mu))


def test_gaussian_profile_agrees_with_its_formula_where_that_is_stable() -> None:
    for mu in (0.5, 1.0, 3.0):
        for epsilon in (0.0, 0.5, 2.0):
            formula = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
            assert Gaussian(mu).delta(epsilon) == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "mu", "degrees"), random_settings(2, 120))
def test_sketch_profile_is_the_exact_one(epsilon: float, mu: float, degrees: int) -> None:
    ratio = mu * math.sqrt(2 / degrees)
    removing, adding = Sketch(degrees, ratio).directions(np.array([epsilon]))
    check(float(removing[0]), oracles.sketch_removing(epsilon, degrees, ratio))
    check(float(adding[0]), oracles.sketch_adding(epsilon, degrees, ratio))
    inverse = Sketch(degrees, ratio, inverse=True).directions(np.array([epsilon]))
    assert (inverse.removing, inverse.adding) == (adding, removing)


@pytest.mark.parametrize(("epsilon", "mu", "degrees"), random_settings(3, 120))
def test_additive_wishart_profile_is_the_exact_one(epsilon: float, mu: float, degrees: int) -> None:
    m = degrees + 2
    ratio = min(mu * math.sqrt(2 * m), m)
    removing, adding = AdditiveWishart(m + 3, 4, ratio).directions(np.array([epsilon]))
    check(float(removing[0]), oracles.wishart_removing(epsilon, m, ratio))
    check(float(adding[0]), oracles.wishart_adding(epsilon, m, ratio))


@pytest.mark.parametrize(
    ("epsilon", "mu", "degrees"), [(e, m, d) for e, m, d in random_settings(4, 60) if d < 20_000]
)
def test_sketch_replace_profile_is_the_exact_one(epsilon: float, mu: float, degrees: int) -> None:
    ratio = mu / math.sqrt(degrees)
    exact = oracles.sketch_replace(epsilon, degrees, ratio)
    check(Sketch(degrees, ratio, Neighbours.REPLACE).delta(epsilon), exact)


def test_two_rows_sketched_have_a_closed_form_under_replace() -> None:
    # Two chi-square degrees are an exponential law, for which the double integral is elementary.
    for ratio in (0.1, 1.0, 5.0):
        for epsilon in (0.1, 1.0, 3.0):
            wide = 1 + ratio
            far = 2 * epsilon * wide / ratio
            formula = wide * math.exp(-far / 2 / wide) - math.exp(epsilon - far / 2)
            delta = Sketch(2, ratio, Neighbours.REPLACE).delta(epsilon)
            assert delta == pytest.approx(formula / (1 + wide), rel=1e-11)


@pytest.mark.parametrize(
    ("m", "ratio", "epsilon"),
    [(5, 0.5, 0.5), (58, 1.0, 1.0), (153, 1.0, 0.5), (5000, 40.0, 3.0), (7, 1.25, 12.8)],
)
def test_two_step_bound_of_additive_wishart_is_the_lesser_route(
    m: int, ratio: float, epsilon: float
) -> None:
    bound = AdditiveWishart(m, 1, ratio, Neighbours.REPLACE).delta(epsilon)
    splits = np.linspace(0, min(epsilon, ratio / 2), 201)
    exact = min(
        (oracles.wishart_replace(epsilon, m, ratio, float(t)) for t in splits),
        key=lambda ball: float(ball.mid()),
    )
    assert arb(bound) <= exact * (1 + 1e-12)  # as good as a fine grid over both routes
    assert arb(bound) >= exact * (1 - 1e-2)  # and no better than that can explain
    assert bound >= AdditiveWishart(m, 1, ratio).delta(epsilon)  # an empty row may be replaced


def test_orthogonal_rows_are_not_the_worst_replacement() -> None:
    profile = AdditiveWishart(10, 6, 0.5, Neighbours.REPLACE)
    assert round(AdditiveWishart(10, 6, 0.5).delta(0.5), 4) == 0.0272
    assert round(oracles.orthogonal_delta(0.5, 6, 0.5), 4) == 0.0227
    assert profile.delta(0.5) > 0.0272


def test_laplace_and_pure_profiles_are_their_closed_forms() -> None:
    assert Laplace(1.5).delta(0.5) == pytest.approx(1 - math.exp(-0.5), rel=1e-14)
    assert Laplace(1.5).delta(1.5) == 0.0
    assert Laplace(1.5).epsilon(0) == 1.5
    assert Pure(1.5).delta(0.5) == pytest.approx(
        (math.exp(1.5) - math.exp(0.5)) / (1 + math.exp(1.5)), rel=1e-14
    )
    assert Pure(1.5).delta(2.0) == 0.0
    assert Pure(1e4).delta(0.0) == 1.0


PROFILES: list[Profile] = [
    Gaussian(0.3),
    GridGaussian(0.3, 1e-12),
    Laplace(0.7),
    Pure(0.7),
    Sketch(80, 0.03),
    Sketch(80, 0.03, Neighbours.REPLACE),
    Sketch(33.5, 0.05, inverse=True),
    AdditiveWishart(60, 5, 1.0),
    AdditiveWishart(60, 5, 1.0, Neighbours.REPLACE),
]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: f"{type(p).__name__}-{p.neighbours}")
def test_epsilon_inverts_delta_on_the_private_side(profile: Profile) -> None:
    deltas = [profile.delta(e) for e in (0.0, 0.1, 0.3, 0.6)]
    assert deltas == sorted(deltas, reverse=True)
    for delta in (1e-9, 1e-5, 1e-2):
        epsilon = profile.epsilon(delta)
        assert profile.delta(epsilon) <= delta
        if epsilon > 0:
            assert profile.delta(epsilon * (1 - 1e-9)) > delta
    assert profile.epsilon(0.999999) == 0.0


def test_far_beyond_every_loss_nothing_is_left() -> None:
    for profile in PROFILES:
        # Wishart noise is never pure: where χ²_m falls below the ratio, the row shows.
        floor = oracles.wishart(1e6, 56, 1.0) if isinstance(profile, AdditiveWishart) else arb(0)
        assert arb(profile.delta(1e6)) <= floor * (1 + 1e-9) + arb(1e-290)
        assert profile.delta(0.0) <= 1.0
    assert Gaussian(2000.0).delta(1.0) == 1.0
    assert Sketch(10_000_000, 100.0).delta(1.0) == 1.0
    assert AdditiveWishart(100, 3, 1e6).delta(1.0) == 1.0


# Monte Carlo of the whole matrix, not of its one-dimensional reduction. Under the claim, the
# mean of (1 − e^{ε−L})₊ is δ and its variance at most δ; Bernstein's inequality then bounds the
# deviation with a false-alarm rate of 1e-6 for each of the tests below.
DRAWS = 400_000


def bernstein(delta: float, count: int) -> float:
    log = math.log(2 / 1e-6)
    return math.sqrt(2 * delta * (1 - delta) * log / count) + log / (3 * count)


def check_losses(profile: Profile, removing: Floats, adding: Floats) -> None:
    for epsilon in (0.1, 0.5, 1.5):
        curves = profile.directions(np.array([epsilon]))
        for losses, delta in ((removing, float(curves[0][0])), (adding, float(curves[1][0]))):
            simulated = float(np.mean(-np.expm1(np.minimum(epsilon - losses, 0.0))))
            assert abs(simulated - delta) <= bernstein(max(delta, 1e-9), losses.size)


def log_normal_rows(rows: Floats, covariance: Floats) -> Floats:
    """Return the joint log-density of r x d matrices with iid N(0, covariance) rows."""
    precision = np.linalg.inv(covariance)
    quadratic = np.einsum("nri,ij,nrj->n", rows, precision, rows)
    log_density: Floats = -0.5 * (quadratic + rows.shape[1] * np.linalg.slogdet(covariance)[1])
    return log_density


def neighbouring_grams() -> tuple[Floats, Floats, Floats]:
    """Return ridged Gram matrices: without a row, with it, and with an orthogonal one instead."""
    turn = np.linalg.qr(generator(5).standard_normal((3, 3)))[0]
    ridge = 0.8
    base = ridge * np.eye(3)
    return base, base + np.outer(turn[0], turn[0]), base + np.outer(turn[1], turn[1])


def test_sketch_profile_of_the_full_matrix() -> None:
    without, present, _ = neighbouring_grams()
    draw = generator(6)
    losses = []
    for first, second in ((present, without), (without, present)):
        factor = np.linalg.cholesky(first)
        rows = draw.standard_normal((DRAWS // 2, 7, 3)) @ factor.T
        losses.append(log_normal_rows(rows, first) - log_normal_rows(rows, second))
    check_losses(Sketch(7, 1 / 0.8), *losses)


def test_sketch_replace_profile_of_the_full_matrix() -> None:
    _, present, other = neighbouring_grams()
    rows = generator(7).standard_normal((DRAWS // 2, 7, 3)) @ np.linalg.cholesky(present).T
    losses = log_normal_rows(rows, present) - log_normal_rows(rows, other)
    check_losses(Sketch(7, 1 / 0.8, Neighbours.REPLACE), losses, losses)


def test_inverse_wishart_profile_of_the_full_matrix() -> None:
    without, present, _ = neighbouring_grams()
    draw, degrees = generator(8), 6
    losses = []
    for first, second in ((present, without), (without, present)):
        factor = np.linalg.cholesky(np.linalg.inv(first))
        rows = draw.standard_normal((DRAWS // 4, degrees, 3)) @ factor.T
        release = np.linalg.inv(np.einsum("nri,nrj->nij", rows, rows))

        def log_density(scale: Floats, m: Floats = release) -> Floats:
            trace = np.einsum("ij,nji->n", scale, np.linalg.inv(m))
            log: Floats = 0.5 * (degrees * np.linalg.slogdet(scale)[1] - trace)
            return log

        losses.append(log_density(first) - log_density(second))
    check_losses(Sketch(degrees, 1 / 0.8, inverse=True), *losses)


def log_wishart(noise: Floats, degrees: int) -> Floats:
    """Return the log-density of 3 x 3 Wishart(I) matrices, −inf where not positive definite."""
    inside = np.linalg.eigvalsh(noise)[:, 0] > 0
    safe = np.where(inside[:, None, None], noise, np.eye(3))
    trace = np.einsum("nii->n", safe)
    density = 0.5 * (degrees - 4) * np.linalg.slogdet(safe)[1] - 0.5 * trace
    return np.where(inside, density, -np.inf)


def wishart_losses(seed: int, first: Floats, second: Floats, degrees: int) -> Floats:
    rows = generator(seed).standard_normal((DRAWS // 4, degrees, 3))
    noise = np.einsum("nri,nrj->nij", rows, rows)
    return log_wishart(noise, degrees) - log_wishart(noise + first - second, degrees)


def test_additive_wishart_profile_of_the_full_matrix() -> None:
    without, present, _ = neighbouring_grams()
    removing = wishart_losses(9, present, without, 9)
    adding = wishart_losses(10, without, present, 9)
    check_losses(AdditiveWishart(9, 3, 1.0), removing, adding)


def test_additive_wishart_replace_bound_covers_the_full_matrix() -> None:
    without, present, other = neighbouring_grams()
    profile = AdditiveWishart(9, 3, 1.0, Neighbours.REPLACE)
    for seed, first, second in ((11, present, other), (12, without, present)):
        losses = wishart_losses(seed, first, second, 9)
        for epsilon in (0.1, 0.5, 1.5):
            simulated = float(np.mean(-np.expm1(np.minimum(epsilon - losses, 0.0))))
            slack = bernstein(max(simulated, 1e-9), losses.size)
            assert simulated <= profile.delta(epsilon) + slack
            if second is other:
                assert abs(simulated - oracles.orthogonal_delta(epsilon, 8, 1.0)) <= slack


def test_symmetric_gaussian_noise_has_the_profile_of_one_frobenius_distance() -> None:
    sigma, draw = 1.7, generator(13)
    _, present, other = neighbouring_grams()
    change = present - 0.8 * np.eye(3)
    swap = present - other
    upper = np.triu_indices(3)
    spread = np.where(upper[0] == upper[1], sigma, sigma / math.sqrt(2))
    for shift, distance, relation in (
        (change, 1.0, Neighbours.ADD_REMOVE),
        (swap, math.sqrt(2), Neighbours.REPLACE),
    ):
        noise = draw.standard_normal((DRAWS, 6))
        losses = np.sum(0.5 * (noise + shift[upper] / spread) ** 2 - 0.5 * noise**2, axis=1)
        check_losses(Gaussian(distance / sigma, relation), losses, losses)


def test_vector_laplace_noise_never_exceeds_the_profile_of_its_l1_distance() -> None:
    draw, scale = generator(14), 0.9
    profile = Laplace(1 / scale)
    noise = draw.laplace(scale=scale, size=(DRAWS, 3))
    for split in ((1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.6, 0.3, 0.1)):
        losses = np.sum(np.abs(noise + np.array(split)) - np.abs(noise), axis=1) / scale
        for epsilon in (0.0, 0.3, 0.9):
            simulated = float(np.mean(-np.expm1(np.minimum(epsilon - losses, 0.0))))
            slack = bernstein(profile.delta(epsilon), DRAWS)
            assert simulated <= profile.delta(epsilon) + slack
            if split[0] == 1.0:
                assert abs(simulated - profile.delta(epsilon)) <= slack


def test_grid_gaussian_covers_the_discrete_law_exactly_computed() -> None:
    # In one dimension δ of the discrete Gaussian is a sum; compare with both of its bounds.
    for variance, shift in ((121, 3), (400, 7), (2500, 30)):
        k = np.arange(-60 * math.isqrt(variance), 60 * math.isqrt(variance) + 1)
        weight = np.exp(-(k**2) / (2 * variance))
        moved = np.exp(-((k - shift) ** 2) / (2 * variance))
        for epsilon in (0.0, 0.5, 1.0):
            exact = np.maximum(moved - math.exp(epsilon) * weight, 0).sum() / weight.sum()
            profile = GridGaussian(shift / math.sqrt(variance), 1 / variance)
            assert profile.delta(epsilon) >= exact
    fine = GridGaussian(0.2367, 1600 / 2.0**100)
    assert fine.delta(1.0) == pytest.approx(Gaussian(0.2367).delta(1.0), rel=1e-12)
