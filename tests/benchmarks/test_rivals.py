"""The rivals: their limits without noise, their noise, and what one row can move."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from benchmarks.rivals import (
    Array,
    Line,
    adassp,
    boosted_adassp,
    library,
    marginals_worker,
    mean,
    noisy_gd,
    ols,
    tukey_em,
)
from benchmarks.rivals.common import CONSTANT, clipped, largest_norm, mu_of, with_constant
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, ApproxDP
from rival_tables import ASKED, BOUND, FREE, MU, fixed, gap, neighbours, sample


def test_least_squares_is_scikit_learns() -> None:
    rows, target = sample()
    model = LinearRegression().fit(rows, target)
    expected = Line(float(model.intercept_), model.coef_)
    assert gap(ols.fit(rows, target, ASKED, simulation.generator(0)), expected) < 1e-10


def wide_adassp(rows: Array, target: Array, guarantee: Any, generator: Any) -> Line:
    return adassp.fit(rows, target, guarantee, generator, row_clip=9.0)


def wide_boosted(rows: Array, target: Array, guarantee: Any, generator: Any) -> Line:
    return boosted_adassp.fit(rows, target, guarantee, generator, row_clip=9.0, residual_clip=9.0)


def wide_descent(rows: Array, target: Array, guarantee: Any, generator: Any) -> Line:
    return noisy_gd.fit(rows, target, guarantee, generator, steps=200, clip=99.0)


@pytest.mark.parametrize(
    ("fit", "guarantee"),
    [
        (wide_adassp, FREE),
        (wide_boosted, FREE),
        (wide_descent, FREE),
        (library.fit, ZCDP(1e18)),
        (adassp.fit_paper, ApproxDP(1e9, 1e-6)),
    ],
)
def test_without_noise_and_clips_it_is_least_squares(
    fit: Callable[..., Line], guarantee: Any
) -> None:
    rows, target = sample()
    expected = ols.fit(rows, target, ASKED, simulation.generator(0))
    assert gap(fit(rows, target, guarantee, simulation.generator(0)), expected) < 1e-5


def test_without_noise_the_mean_is_the_mean() -> None:
    rows, target = sample()
    found = mean.fit(rows, target, FREE, simulation.generator(0))
    assert found.intercept == pytest.approx(target.mean(), abs=1e-9)
    assert not found.coefficients.any()


def test_without_noise_tukey_em_is_the_middle_model() -> None:
    rows, target = sample(20_000)
    found = tukey_em.fit(rows, target, ApproxDP(1e6, 1e-6), simulation.generator(3), models=101)
    groups = simulation.generator(3).integers(0, 101, len(rows)).astype(np.float64)
    ordered = np.sort(tukey_em.group_models(rows, target, groups, 101), axis=0)
    point = np.concatenate([[found.intercept / CONSTANT], found.coefficients])
    assert (ordered[49] <= point).all()
    assert (point <= ordered[51]).all()


def test_noise_a_unit_of_sensitivity() -> None:
    assert mu_of(ASKED) == pytest.approx(MU, rel=1e-9)
    assert adassp.joint_scale(ASKED) == pytest.approx(7.317358, rel=1e-6)  # √3/μ
    assert boosted_adassp.noise_scale(ASKED, 5) == pytest.approx(11.177450, rel=1e-6)  # √7/μ
    assert mean.noise_scale(ASKED) == pytest.approx(5.974598, rel=1e-6)  # √2/μ
    assert adassp.paper_scale(ASKED) == pytest.approx(3 * math.sqrt(math.log(6e6)), rel=1e-12)
    assert tukey_em.laplace_scale(ASKED) == 2.0
    scales = noisy_gd.noise_scales(ASKED, 40)
    assert scales.count == scales.size == pytest.approx(42.246789, rel=1e-6)  # 10/μ
    assert scales.curvature == pytest.approx(24.391195, rel=1e-6)  # 1/(μ√0.03)
    assert scales.step == pytest.approx(27.413337, rel=1e-6)  # √(40/0.95)/μ
    once = (scales.count, scales.size, scales.curvature)
    spent = sum(1 / scale**2 for scale in once) + 40 / scales.step**2
    assert spent == pytest.approx(MU**2, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_papers_constants_keep_the_guarantee(epsilon: float) -> None:
    guarantee = ApproxDP(epsilon, 1e-6)
    assert math.sqrt(3) / adassp.paper_scale(guarantee) <= mu_of(guarantee)


def recorded(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[tuple[Array, float, Array]]]:
    """Return a function that fits and returns what the solver was given at each call."""

    def run(rows: Array, target: Array, value: float) -> list[tuple[Array, float, Array]]:
        calls = []

        def solve(gram: Array, ridge: float, moments: Array) -> Array:
            calls.append((gram, ridge, moments))
            return np.zeros(len(moments))

        monkeypatch.setattr(module, "ridge_solution", solve)
        module.fit(rows, target, ASKED, fixed(value))
        return calls

    return run


@pytest.mark.parametrize("module", [adassp, boosted_adassp])
def test_sufficient_statistics_spend_the_budget_and_no_more(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recorded(module, monkeypatch)
    most = 0.0
    for rows, target, more_rows, more_target in neighbours():
        still, moved = run(rows, target, 0.0), run(more_rows, more_target, 0.0)
        noisy = run(rows, target, 1.0)
        gram_sigma = (noisy[0][0] - still[0][0])[0, 0]
        spent = (np.linalg.norm(moved[0][0] - still[0][0]) / gram_sigma) ** 2
        # λ_min has the Gram matrix's noise, and cannot move by more than the matrix does.
        shift = np.linalg.eigvalsh(moved[0][0])[0] - np.linalg.eigvalsh(still[0][0])[0]
        assert 0 <= shift <= np.linalg.norm(moved[0][0] - still[0][0]) * (1 + 1e-9)
        spent *= 2
        for one, two, loud in zip(still, moved, noisy, strict=True):
            sigma = (loud[2] - one[2])[0]
            spent += (np.linalg.norm(two[2] - one[2]) / sigma) ** 2
        assert spent <= MU**2 * (1 + 1e-9)
        most = max(most, float(spent))
    assert most == pytest.approx(MU**2, rel=1e-9)  # a corner of the box spends it all


def test_the_least_eigenvalue_has_the_noise_of_its_sensitivity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, target = sample(200, 8)
    run = recorded(adassp, monkeypatch)
    still, noisy = run(rows, target, 0.0), run(rows, target, 1.0)
    change = still[0][1] - noisy[0][1]  # the ridge falls by what λ_min gains
    assert change == pytest.approx(adassp.joint_scale(ASKED) * BOUND**2, rel=1e-9)


def test_a_gradient_moves_by_the_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_gd, "measured", lambda *_: (0.75, 1.0))

    def gradient(rows: Array, target: Array, value: float) -> Array:
        found = noisy_gd.fit(rows, target, ASKED, fixed(value), steps=1)
        return np.concatenate([[found.intercept / CONSTANT], found.coefficients])

    most = 0.0
    for rows, target, more_rows, more_target in neighbours():
        still = gradient(rows, target, 0.0)
        sigma = (gradient(rows, target, 1.0) - still)[0]
        moved = np.linalg.norm(gradient(more_rows, more_target, 0.0) - still)
        most = max(most, float((moved / sigma) ** 2))
    assert most == pytest.approx(0.95 * MU**2, rel=1e-9)


def test_the_curvature_moves_by_the_squared_bound() -> None:
    scales = noisy_gd.noise_scales(ASKED, 40)
    for rows, _, more_rows, _ in neighbours():
        largest = [
            float(np.linalg.eigvalsh(part.T @ part)[-1])
            for part in (
                clipped(with_constant(rows), BOUND),
                clipped(with_constant(more_rows), BOUND),
            )
        ]
        assert 0 <= largest[1] - largest[0] <= BOUND**2 * (1 + 1e-9)
    many, _ = sample(5000, 8)
    found = [noisy_gd.measured(with_constant(many), scales, fixed(v))[1] for v in (0.0, 1.0)]
    assert found[1] - found[0] == pytest.approx(scales.curvature * BOUND**2, rel=1e-9)


def test_the_size_of_rows_has_the_noise_of_the_longest() -> None:
    scales = noisy_gd.noise_scales(ASKED, 40)
    wide = with_constant(np.where(simulation.generator(0).random((50_000, 8)) < 0.5, 1.0, -1.0))
    still, noisy = (noisy_gd.measured(wide, scales, fixed(value))[0] for value in (0.0, 1.0))
    sigma = scales.size * largest_norm(8) ** 2
    total = len(wide) * largest_norm(8) ** 2
    assert still**2 == pytest.approx((total - 2 * sigma) / len(wide), rel=1e-9)
    assert noisy**2 == pytest.approx((total - sigma) / (len(wide) + scales.count), rel=1e-9)
    short, _ = sample(100, 8)
    assert noisy_gd.measured(with_constant(short), scales, fixed(0.0))[0] == 0.75  # typical


def test_rows_are_clipped_to_the_bound() -> None:
    rows = with_constant(np.vstack([np.ones((2, 3)), np.zeros((1, 3))]))
    lengths = np.linalg.norm(clipped(rows, 0.5), axis=1)
    assert lengths == pytest.approx([0.5, 0.5, 0.25])
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(largest_norm(3))


def test_a_row_changes_one_of_tukey_ems_models() -> None:
    rows, target = sample(900)
    groups = simulation.generator(0).integers(0, 20, 900).astype(np.float64)
    before = tukey_em.group_models(rows, target, groups, 20)
    for place in (0, 450, 900):
        wider = np.insert(rows, place, 1.0, axis=0)
        goal, extra = np.insert(target, place, -1.0), np.insert(groups, place, 7.0)
        after = tukey_em.group_models(wider, goal, extra, 20)
        assert np.flatnonzero((before != after).any(axis=1)).tolist() == [7]


def model_pairs(count: int, models: int) -> list[tuple[Array, Array]]:
    generator = simulation.generator(5)
    pairs = []
    for _ in range(count):
        one = generator.standard_normal((models, 1))
        other = one.copy()
        other[generator.integers(models)] = 10 * generator.standard_normal()
        pairs.append((np.sort(one, axis=0), np.sort(other, axis=0)))
    return pairs


def test_the_safe_distance_moves_by_at_most_one() -> None:
    found = []
    for one, other in model_pairs(200, 60):
        steps = [
            tukey_em.safe_steps(tukey_em.log_volumes(part), 15, 2.0, math.log(1e-2))
            for part in (one, other)
        ]
        assert abs(steps[0] - steps[1]) <= 1
        found += steps
    assert max(found) > min(found)


@pytest.mark.parametrize("far", range(8, 15))
def test_the_safe_distance_counts_models_to_the_brink(far: int) -> None:
    # Depth 15 is asked for. With 14 models far out one more would stretch the set of that depth
    # beyond all measure, with 13 two would, and so on.
    models = np.sort(simulation.generator(2).random((200, 1)), axis=0)
    models[:far] -= 1e9
    volumes = tukey_em.log_volumes(models)
    assert tukey_em.safe_steps(volumes, 15, 0.5, math.log(1e-6)) == 13 - far


def density(models: Array, threshold: int, budget: float, points: Array) -> Array:
    """Return the restricted mechanism's density between sorted models of one coordinate."""
    line = models[:, 0]
    middles = (points[1:] + points[:-1]) / 2
    left = (line[:, None] <= middles).sum(0)
    depth = np.minimum(left, len(line) - left)
    weights = np.where(depth >= threshold, np.exp(budget * depth / 2), 0.0)
    return np.asarray(weights / (weights @ np.diff(points)))


def test_safe_models_give_close_draws() -> None:
    budget, mass, threshold = 1.0, 0.02, 8
    allowed = mass * (1 + math.exp(budget / 2))
    checked = 0
    for one, other in model_pairs(400, 60):
        if tukey_em.safe_steps(tukey_em.log_volumes(one), threshold, budget, math.log(mass)) < 0:
            continue
        points = np.unique(np.concatenate([one[:, 0], other[:, 0]]))
        widths = np.diff(points)
        p, q = (density(part, threshold, budget, points) for part in (one, other))
        for a, b in ((p, q), (q, p)):
            delta = float(np.maximum(a - math.exp(budget) * b, 0) @ widths)
            assert delta <= allowed
        checked += 1
    assert checked > 50


def test_draws_are_as_deep_as_the_mechanism_says() -> None:
    models = np.sort(simulation.generator(8).standard_normal((40, 2)), axis=0)
    volumes = tukey_em.log_volumes(models)
    generator = simulation.generator(9)
    points = np.array([tukey_em.draw(models, volumes, 5, 0.5, generator) for _ in range(4000)])
    left = (models[:, None, :] <= points).sum(0)
    depths = np.minimum(left, 40 - left).min(axis=1)
    assert depths.min() >= 5
    levels = np.arange(5, 21)
    sizes = np.exp(volumes)
    shells = np.append(sizes[5:20] - sizes[6:21], sizes[20]) * np.exp(levels / 4)
    expected = shells / shells.sum()
    found = np.bincount(depths, minlength=21)[5:21] / 4000
    # Hoeffding over 16 levels: each is within √(ln(32e6)/8000) with false-alarm rate 1e-6.
    assert np.abs(found - expected).max() < math.sqrt(math.log(32e6) / 8000)


def test_tukey_em_says_nothing_where_models_are_too_few_to_be_safe() -> None:
    rows, target = sample(300)
    found = tukey_em.fit(rows, target, ASKED, simulation.generator(0), models=16)
    assert not found.coefficients.any()
    assert found.intercept == 0


class Counts:
    """What a graphical model knows, were it the table itself: counts in eight bins."""

    def __init__(self, cells: Array) -> None:
        self.cells, self.total = cells, len(cells)
        self.names: tuple[str, ...] = ()

    def project(self, names: Any) -> "Counts":
        found = Counts(self.cells)
        found.names = names
        return found

    def datavector(self, flatten: bool = True) -> Array:
        chosen = [self.cells[:, int(name)] for name in self.names]
        counts = np.histogramdd(chosen, bins=[np.arange(9) - 0.5] * len(chosen))[0]
        return np.asarray(counts.ravel() if flatten else counts)


def test_dd_ssp_of_true_marginals_has_the_moments_of_the_bins() -> None:
    rows, target = sample(500)
    cells = np.floor((np.column_stack([rows, target]) + 1) * 4).clip(max=7)
    found = marginals_worker.moments(Counts(cells), ["0", "1", "2", "3"], 8)
    wide = np.column_stack([np.ones(500), (cells + 0.5) / 4 - 1])
    np.testing.assert_allclose(found, wide.T @ wide)
