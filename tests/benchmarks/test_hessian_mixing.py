"""Iterative Hessian mixing: its limit, its exact account, and what one row can move."""

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.rivals import Array, hessian_mixing, ols
from benchmarks.rivals.common import clipped, mu_of, with_constant
from dplinear.noise import simulation
from dplinear.privacy import GDP, ApproxDP, compose
from dplinear.privacy.profiles import Gaussian, Sketch
from rival_tables import ASKED, BOUND, fixed, gap, neighbours, sample

SHARE = 0.5


def test_without_noise_and_clips_it_is_least_squares() -> None:
    rows, target = sample()
    found = hessian_mixing.fit(
        rows,
        target,
        ApproxDP(1e6, 1e-6),
        simulation.generator(0),
        rounds=40,
        row_clip=9.0,
        residual_clip=9.0,
    )
    expected = ols.fit(rows, target, ASKED, simulation.generator(0))
    assert gap(found, expected) < 1e-4


def test_only_approximate_guarantees_are_taken() -> None:
    rows, target = sample(20)
    with pytest.raises(TypeError, match="calibrated"):
        hessian_mixing.fit(rows, target, GDP(1.0), simulation.generator(0))


@pytest.mark.parametrize(("degrees", "ratio"), [(100, 0.05), (444, 0.01)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_beside_nothing_a_sketch_has_its_own_profile(
    degrees: int, ratio: float, epsilon: float
) -> None:
    found = hessian_mixing.composed_delta(epsilon, 0.02, degrees, ratio)
    alone = float(Sketch(degrees, ratio).delta(epsilon))
    assert alone * 0.999 - 1e-30 < found < alone * 1.2 + 1e-9
    tiny = hessian_mixing.composed_delta(epsilon, 0.5, degrees, 1e-9)
    assert tiny == pytest.approx(Gaussian(0.5).delta(epsilon), rel=1e-5)


@pytest.mark.accounting
@pytest.mark.parametrize("mu", [0.1, 0.4])
def test_the_composition_is_that_of_loss_distributions(mu: float) -> None:
    joint = compose.profiles([Gaussian(mu), Sketch(444, 0.01)])
    for epsilon in (0.1, 0.5, 1.0):
        bound = joint.delta(epsilon)  # rounded up on its grid, by 1e-12 and more
        found = hessian_mixing.composed_delta(epsilon, mu, 444, 0.01)
        assert bound * 0.99 - 1e-11 < found < bound


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_plan_spends_the_budget_and_no_more(epsilon: float) -> None:
    guarantee = ApproxDP(epsilon, 1e-6)
    scales = hessian_mixing.plan(guarantee, 4, 120, SHARE)
    rest = math.hypot(1 / scales.eigenvalue, math.sqrt(4) / scales.gradient)
    assert rest == pytest.approx(mu_of(guarantee) * math.sqrt(0.55), rel=1e-12)
    delta = hessian_mixing.composed_delta(epsilon, rest, 480, 1 / scales.ridge)
    failure = 0.5 * math.erfc(scales.margin / math.sqrt(2))
    assert failure == pytest.approx(1e-7, rel=1e-9)
    assert 0.999e-6 < delta + failure <= 1e-6


def recorded(rows: Array, target: Array, value: float, patch: Any) -> tuple[Array, Array]:
    """Return the Hessian and the gradient of one round under constant draws."""
    calls = []

    def solve(hessian: Array, gradient: Array, **_: Any) -> tuple[Array]:
        calls.append((hessian, gradient))
        return (np.zeros(len(gradient)),)

    with patch.context() as inside:
        inside.setattr(np.linalg, "lstsq", solve)
        hessian_mixing.fit(rows, target, ASKED, fixed(value), rounds=1)
    return calls[0]


def test_a_gradient_moves_by_the_clips(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0.0
    for rows, target, more_rows, more_target in neighbours():
        still = recorded(rows, target, 0.0, monkeypatch)[1]
        sigma = (recorded(rows, target, 1.0, monkeypatch)[1] - still)[0]
        moved = recorded(more_rows, more_target, 0.0, monkeypatch)[1] - still
        most = max(most, float((np.linalg.norm(moved) / sigma) ** 2))
    assert most == pytest.approx(SHARE * mu_of(ASKED) ** 2, rel=1e-9)


def test_a_sketch_is_stretched_by_the_ratio_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = math.ceil(6 * math.log(40 / 1e-6))
    scales = hessian_mixing.plan(ASKED, 1, sketch, SHARE)
    for count, needed in ((50, True), (200_000, False)):
        rows, target = sample(count, 8)
        wide = clipped(with_constant(rows), BOUND)
        gram = wide.T @ wide
        # Under draws of one, ZᵀZ/k has the trace of the law's covariance; λ̃ gains one deviation.
        drawn = recorded(rows, target, 1.0, monkeypatch)[0]
        noise = (float(np.trace(drawn)) - float(np.trace(gram))) / 9
        assert bool(noise > 1e-6 * np.trace(gram)) is needed
        row = np.full(9, BOUND / 3)
        stretch = float(row @ np.linalg.solve(gram + max(noise, 0.0) * np.eye(9), row))
        assert stretch <= 1 / scales.ridge * (1 + 1e-9)


def test_the_lower_bound_has_its_noise_and_is_below_the_smaller_tables() -> None:
    scales = hessian_mixing.plan(ASKED, 4, 120, SHARE)
    many, _ = sample(50_000, 8)
    found = [
        hessian_mixing.least_eigenvalue(with_constant(many), BOUND, scales, fixed(value))
        for value in (0.0, 1.0)
    ]
    sigma = scales.eigenvalue * BOUND**2
    assert found[1] - found[0] == pytest.approx(sigma, rel=1e-9)
    for rows, _, more_rows, _ in neighbours():
        small, large = (clipped(with_constant(part), BOUND) for part in (rows, more_rows))
        least = [float(np.linalg.eigvalsh(part.T @ part)[0]) for part in (small, large)]
        assert 0 <= least[1] - least[0] <= BOUND**2
        at_the_margin = fixed(scales.margin)
        bound = hessian_mixing.least_eigenvalue(large, BOUND, scales, at_the_margin)
        assert bound <= least[0] * (1 + 1e-9) + 1e-9
