"""DP-SGD: its limits, its account, and what one row can move."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.rivals import Array, Line, noisy_sgd, ols
from benchmarks.rivals.common import largest_norm, mu_of
from benchmarks.rivals.noisy_sgd import Descent, Setting
from dplinear.noise import simulation
from dplinear.privacy import GDP, ApproxDP
from rival_tables import ASKED, FREE, gap, neighbours, sample

WHOLE = Setting(1.0, 400, 1.0)


def test_all_rows_without_noise_give_least_squares() -> None:
    rows, target = sample()
    found = noisy_sgd.fit(rows, target, FREE, simulation.generator(0), setting=WHOLE, clip=99.0)
    assert gap(found, ols.fit(rows, target, ASKED, simulation.generator(0))) < 1e-5


def test_all_rows_without_noise_give_the_likeliest_model() -> None:
    rows, _ = sample()
    odds = 0.3 + rows @ np.array([-2.0, 1.0, 3.0])
    labels = (simulation.generator(2).random(len(rows)) < expit(odds)).astype(float)
    bound, far = largest_norm(3), replace(WHOLE, pace=4.0)
    found = noisy_sgd.fit_labels(
        rows, labels, FREE, simulation.generator(0), bound=bound, setting=far
    )
    model = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(rows, labels)
    assert gap(found, Line(float(model.intercept_[0]), model.coef_[0])) < 1e-3


def test_all_rows_spend_what_gaussian_steps_spend() -> None:
    sigma = noisy_sgd.noise_scale(ASKED, WHOLE, 0.95)
    assert math.sqrt(400) / sigma == pytest.approx(mu_of(ASKED) * math.sqrt(0.95), rel=1e-12)


def test_sampled_steps_need_a_delta() -> None:
    with pytest.raises(TypeError, match="calibrated"):
        noisy_sgd.noise_scale(GDP(1.0), noisy_sgd.USUAL, 1.0)


@pytest.mark.accounting
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("share", [1.0, 0.95])
def test_the_noise_spends_the_budget_and_no_more(epsilon: float, share: float) -> None:
    guarantee, setting = ApproxDP(epsilon, 1e-6), Setting(0.3, 20, 1.0)
    sigma = noisy_sgd.noise_scale(guarantee, setting, share)
    beside = mu_of(guarantee) * math.sqrt(1 - share)

    def delta(noise: float) -> float:
        return noisy_sgd.composed_delta(epsilon, 0.3, 20, noise, beside)

    assert delta(sigma) <= 1e-6 < delta(sigma * (1 - 2 * noisy_sgd.ACCURACY))
    # A chance of 1 is the Gaussian mechanism, whose account is exact and rounds up here.
    whole = mu_of(guarantee)
    full = noisy_sgd.composed_delta(epsilon, 1.0, 20, math.sqrt(20) / whole, 0.0)
    assert full == pytest.approx(1e-6, rel=1e-3)


def descent(rows: Array, target: Array, most: float, sigma: float) -> Descent:
    lengths = np.linalg.norm(rows, axis=1)
    return Descent(
        rows,
        lambda place, chosen: target[chosen] - rows[chosen] @ place,
        np.where(lengths > 0, most / np.maximum(lengths, 1e-300), 0.0),
        sigma,
    )


def test_a_gradient_moves_by_the_clip() -> None:
    place, largest = np.full(8, 0.3), 0.0
    for rows, target, more_rows, more_target in neighbours():
        still, moved = (
            descent(*part, 0.5, 0.0).gradient(place, 1.0, simulation.generator(0))
            for part in ((rows, target), (more_rows, more_target))
        )
        largest = max(largest, float(np.linalg.norm(moved - still)))
    assert largest == pytest.approx(0.5, rel=1e-9)


def test_rows_are_drawn_by_chance_and_noise_is_added() -> None:
    rows, target = np.ones((100_000, 1)), np.ones(100_000)
    quiet = descent(rows, target, 2.0, 0.0).gradient(np.zeros(1), 0.3, simulation.generator(1))
    # Hoeffding: off by more than √(n·ln(2e6)/2) with a chance of 1e-6.
    assert abs(quiet[0] - 30_000) < math.sqrt(100_000 * math.log(2e6) / 2)
    loud = descent(rows, target, 2.0, 7.0).gradient(np.zeros(1), 0.3, simulation.generator(1))
    draws = simulation.generator(1)
    draws.random(100_000)
    assert loud - quiet == pytest.approx(7.0 * draws.standard_normal(1))
