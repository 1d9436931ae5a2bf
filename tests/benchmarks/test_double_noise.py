"""DP-Newton with double noise: its limit, its noise, and what one row can move."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.rivals import Array, Line, double_noise
from benchmarks.rivals.common import largest_norm
from benchmarks.rivals.double_noise import Curvature, Lift, Setting
from dplinear.noise import simulation
from rival_tables import ASKED, FREE, MU, fixed, gap, neighbours, sample

LIFTS: tuple[Lift, ...] = ("clip", "add")


def labelled(n: int = 3000) -> tuple[Array, Array]:
    rows, _ = sample(n)
    odds = 0.3 + rows @ np.array([-2.0, 1.0, 3.0])
    return rows, (simulation.generator(2).random(n) < expit(odds)).astype(float)


@pytest.mark.parametrize("lift", LIFTS)
@pytest.mark.parametrize("curvature", ["hessian", "bound"])
def test_without_noise_it_is_the_likeliest_model(lift: Lift, curvature: Curvature) -> None:
    rows, labels = labelled()
    setting = Setting(lift, curvature, 60)
    found = double_noise.fit(
        rows, labels, FREE, simulation.generator(0), bound=largest_norm(3), setting=setting
    )
    model = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(rows, labels)
    assert gap(found, Line(float(model.intercept_[0]), model.coef_[0])) < 1e-4


@pytest.mark.parametrize("setting", double_noise.SETTINGS)
def test_the_noise_spends_the_budget_and_no_more(setting: Setting) -> None:
    scales = double_noise.noise_scales(ASKED, setting)
    spent = sum(1 / scale**2 for scale in (scales.gradient, scales.trace, scales.step))
    assert setting.steps * spent == pytest.approx(MU**2, rel=1e-9)


@pytest.mark.parametrize("lift", LIFTS)
def test_a_step_moves_by_its_sensitivity(lift: Lift) -> None:
    generator = simulation.generator(4)
    least, moved, most = 2.0, 0.6, 0.0
    for _ in range(2000):
        root = generator.standard_normal((4, 3)) * generator.exponential()
        row = generator.standard_normal(4)
        row *= np.sqrt(moved) / np.linalg.norm(row)
        gradient = generator.standard_normal(4)
        hessian = root @ root.T * generator.integers(2)
        before, after = (
            double_noise.lifted_solution(one, gradient, least, lift)
            for one in (hessian, hessian + np.outer(row, row))
        )
        most = max(most, float(np.linalg.norm(after - before) / np.linalg.norm(gradient)))
    bound = double_noise.step_sensitivity(lift, least, moved)
    assert most <= bound * (1 + 1e-9)
    edge = np.diag([least, 0.0]) if lift == "clip" else np.zeros((2, 2))
    along = np.array([1.0, 0.0])
    worst = [
        double_noise.lifted_solution(one, along, least, lift)
        for one in (edge, edge + moved * np.outer(along, along))
    ]
    share = least / (least + moved) if lift == "clip" else 1.0
    assert np.linalg.norm(worst[1] - worst[0]) == pytest.approx(bound * share, rel=1e-9)


def test_weights_are_curvatures_of_at_most_a_quarter() -> None:
    odds = np.linspace(-30, 30, 2001)
    for curvature in ("hessian", "bound"):
        weights = double_noise.curvatures(curvature, odds)
        assert weights.max() == 0.25
        assert weights.min() >= 0
    # The bound is one: log(1 + e^x) stays below its parabola from any point.
    loss = np.logaddexp(0, odds)
    for at in (-3.0, 0.0, 0.5, 8.0):
        weight = double_noise.curvatures("bound", np.array([at]))[0]
        parabola = np.logaddexp(0, at) + expit(at) * (odds - at) + weight * (odds - at) ** 2 / 2
        assert (loss <= parabola + 1e-12).all()


def test_one_row_moves_gradient_and_trace_by_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, bound = Setting(steps=1), largest_norm(8)
    calls: list[tuple[Array, Array, float]] = []

    def solve(hessian: Array, gradient: Array, least: float, _: Any) -> Array:
        calls.append((hessian, gradient, least))
        return np.zeros(len(gradient))

    monkeypatch.setattr(double_noise, "lifted_solution", solve)
    scales = double_noise.noise_scales(ASKED, setting)
    traces = []
    for rows, target, more_rows, more_target in neighbours():
        for part, goal, value in (
            (rows, target, 0.0),
            (rows, target, 1.0),
            (more_rows, more_target, 0.0),
        ):
            labels = (goal > 0).astype(float)
            double_noise.fit(part, labels, ASKED, fixed(value), bound=bound, setting=setting)
        still, noisy, more = calls[-3:]
        sigma = (noisy[1] - still[1])[0]
        assert sigma == pytest.approx(scales.gradient * bound, rel=1e-9)
        # At 0 all probabilities are a half, and so is the most that a label can move.
        assert np.linalg.norm(more[1] - still[1]) <= bound / 2 * (1 + 1e-9)
        traces.append(float(np.trace(more[0] - still[0])))
    assert max(traces) == pytest.approx(bound**2 / 4, rel=1e-9)


def test_the_lift_follows_the_private_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, rows = Setting(steps=1, trace_factor=3.0), np.full((50_000, 3), 0.5)
    found = []

    def solve(_h: Array, gradient: Array, least: float, _l: Any) -> Array:
        found.append(least)
        return np.zeros(len(gradient))

    monkeypatch.setattr(double_noise, "lifted_solution", solve)
    bound = largest_norm(3)
    for value in (0.0, 1.0):
        double_noise.fit(rows, np.ones(50_000), ASKED, fixed(value), bound=bound, setting=setting)
    scales = double_noise.noise_scales(ASKED, setting)
    trace = 50_000 * (0.75 + 1 / 16) / 4
    for least, noise in zip(found, (0.0, scales.trace * bound**2 / 4), strict=True):
        expected = (6 * scales.step**2 * (trace + noise) * bound**4) ** (1 / 3)
        assert least == pytest.approx(expected, rel=1e-9)
