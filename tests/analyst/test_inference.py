"""Intervals: against textbook least squares, under change of units, and by coverage.

The coverage tests draw fixed tables. Each holds fewer than 200 comparisons, and a comparison fails
by chance with probability at most 1e-6/200 if coverage is between 92% and 98%.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    NoiseModel,
    ProjectionNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.analyst.regression import inference
from dplinear.analyst.regression.bootstrap import bootstrap
from dplinear.analyst.regression.inference import TOLERANCE, Intervals, delta_method, weakest
from dplinear.analyst.regression.problem import Problem
from dplinear.arrays import Floats
from dplinear.noise.simulation import generator
from refusals import refused

from .designs import Design

FALSE_ALARM = 1e-6 / 200
METHODS = [delta_method, bootstrap]
Mechanism = Callable[[Problem], Intervals]


def rows(count: int = 400, seed: int = 3) -> Floats:
    chance = generator(seed)
    features = np.column_stack([np.ones(count), chance.uniform(-1, 1, (count, 3))])
    target = features @ [0.1, 0.3, -0.2, 0.0] + 0.1 * chance.standard_normal(count)
    return np.column_stack([features, target])


def problem_of(table: Floats, law: NoiseModel | None = None, ridge: float = 0.0) -> Problem:
    p = table.shape[1] - 1
    return Problem(
        whole=table.T @ table,
        noise_model=law or SymmetricGaussian(1e-18, 1e-18),
        transform=np.eye(p + 1),
        penalty=ridge * np.append(0.0, np.ones(p - 1)),
        readout=np.eye(p),
        offset=np.zeros(p),
        names=("intercept", *(f"x{i}" for i in range(1, p))),
        target="y",
        count=float(len(table)),
    )


def textbook(table: Floats) -> tuple[Floats, Floats, Floats]:
    """Return coefficients, standard errors and half-widths of least squares on rows."""
    features, target = table[:, :-1], table[:, -1]
    freedom = len(features) - features.shape[1]
    solution, squares, *_ = np.linalg.lstsq(features, target, rcond=None)
    spread = np.diag(np.linalg.inv(features.T @ features)) * squares[0] / freedom
    errors = np.sqrt(spread)
    reach = errors * stats.t.ppf(0.975, freedom)
    return np.asarray(solution, np.float64), np.asarray(errors, np.float64), np.asarray(reach)


def test_without_noise_the_intervals_are_those_of_least_squares() -> None:
    table = rows()
    solution, errors, reach = textbook(table)
    found = delta_method(problem_of(table))
    assert found.swamped is None
    assert np.allclose(found.estimates, solution, rtol=1e-9)
    assert np.allclose(found.standard_errors, errors, rtol=1e-9)
    assert np.allclose(found.low, solution - reach, rtol=1e-9)
    assert np.allclose(found.high, solution + reach, rtol=1e-9)
    assert (found.privacy_share < 1e-9).all()


def test_without_noise_the_bootstrap_agrees_with_least_squares() -> None:
    table = rows()
    solution, _, reach = textbook(table)
    found = bootstrap(problem_of(table), draws=9_999)
    # A 2.5% quantile of 9,999 normal draws errs by 0.027 standard deviations; five of those, and
    # the difference between Student's and the normal law.
    assert np.allclose(found.low, solution - reach, atol=0.08 * reach.max())
    assert np.allclose(found.high, solution + reach, atol=0.08 * reach.max())


def test_a_sketch_without_ridge_has_the_intervals_of_least_squares_on_its_rows() -> None:
    sketch = rows(40)
    solution, errors, reach = textbook(sketch)
    problem = problem_of(sketch, SketchNoise(40.0, 0.0))
    problem = replace(problem, whole=problem.whole / 40, count=1e12)
    found = delta_method(problem)
    assert np.allclose(found.estimates, solution, rtol=1e-9)
    assert np.allclose(found.standard_errors, errors, rtol=0.02)  # to second order in 1/40
    assert np.allclose(found.high - found.low, 2 * reach, rtol=0.02)


def test_ridge_has_the_sandwich_variance() -> None:
    table = rows()
    found = delta_method(problem_of(table, ridge=50.0))
    gram = table.T @ table
    inverse = np.linalg.inv(gram[:-1, :-1] + np.diag([0, 50, 50, 50]))
    solution = inverse @ gram[:-1, -1]
    residual = table[:, -1] - table[:, :-1] @ solution
    taken = 2 * inverse - inverse @ gram[:-1, :-1] @ inverse
    spread = residual @ residual / (len(table) - np.trace(taken @ gram[:-1, :-1]))
    variance = spread * np.diag(inverse @ gram[:-1, :-1] @ inverse)
    assert np.allclose(found.estimates, solution, rtol=1e-9)
    assert np.allclose(found.sampling, variance, rtol=1e-9)


def test_the_privacy_part_is_the_law_s_variance_along_each_coefficient() -> None:
    law = SymmetricGaussian(1e-4, 3e-4)  # so little that the first order is all there is
    problem = problem_of(rows(), law)
    found = delta_method(problem)
    gram = problem.gram
    inverse = np.linalg.inv(gram[:-1, :-1])
    contrast = np.append(-inverse @ gram[:-1, -1], 1.0)
    for place, row in enumerate(inverse):
        left = np.append(row, 0.0)
        direction = (np.outer(left, contrast) + np.outer(contrast, left)) / 2
        assert np.isclose(found.privacy[place], law.variance(direction, gram), rtol=1e-4)


@pytest.mark.parametrize("law", [SymmetricGaussian(8.0, 4.0), WishartNoise(30.0, 0.3)])
@pytest.mark.parametrize("method", METHODS)
def test_units_do_not_matter(law: NoiseModel, method: Mechanism) -> None:
    plain = problem_of(rows(2_000), law)
    features = np.diag([1.0, 10.0, 0.1, 3.0])
    features[1:, 0] = [0.2, -0.4, 0.1]  # other units, around other origins
    transform = np.zeros((5, 5))
    transform[:-1, :-1], transform[-1, -1] = features, 7.0
    changed = replace(plain, transform=transform, readout=features.T / 7)
    found, other = method(plain), method(changed)
    assert np.allclose(other.estimates, found.estimates, rtol=1e-9)
    assert np.allclose(other.standard_errors, found.standard_errors, rtol=1e-9)
    assert np.allclose(other.low, found.low, rtol=1e-6)
    assert np.allclose(other.high, found.high, rtol=1e-6)


@pytest.mark.parametrize(
    "law",
    [
        SymmetricGaussian(8.0, 4.0),
        WishartNoise(30.0, 0.3),
        SketchNoise(300.0, 2.0),
        ProjectionNoise(300.0, (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
        InverseWishartNoise(300.0, 2.0),
    ],
)
def test_cells_that_are_not_used_do_not_matter(law: NoiseModel) -> None:
    table = rows(2_000)
    small = problem_of(table, law.part(7, range(5)))
    wide = np.column_stack([table, generator(1).uniform(-1, 1, (2_000, 2))])
    large = replace(small, whole=wide.T @ wide, noise_model=law, transform=np.eye(7)[:5])
    assert np.allclose(delta_method(small).low, delta_method(large).low, rtol=1e-9)
    assert np.allclose(bootstrap(small).high, bootstrap(large).high, rtol=1e-9)


def test_more_noise_gives_a_larger_share_to_privacy() -> None:
    found = [
        delta_method(problem_of(rows(2_000), SymmetricGaussian(s, s / 2))) for s in (1, 10, 100)
    ]
    shares = np.stack([one.privacy_share for one in found])
    assert (np.diff(shares, axis=0) > 0).all()
    assert ((shares > 0) & (shares < 1)).all()
    for one in found:
        assert np.allclose(one.standard_errors**2, one.sampling + one.privacy)


@pytest.mark.parametrize("method", METHODS)
def test_noise_as_large_as_the_table_is_refused_in_words(method: Mechanism) -> None:
    problem = problem_of(rows(), SymmetricGaussian(2e4, 1e4))
    found = method(problem)
    noise, signal = weakest(problem)
    assert found.swamped is not None
    assert f"{noise / signal:,.0%}" in found.swamped  # what is compared
    assert f"{TOLERANCE:.0%}" in found.swamped  # with what it may be
    assert np.isfinite(found.estimates).all()
    for nothing in (found.low, found.high, found.standard_errors, found.privacy_share):
        assert np.isnan(nothing).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("least", [0.0, -5.0])
def test_a_matrix_that_is_not_positive_definite_is_refused(method: Mechanism, least: float) -> None:
    whole = np.diag([100.0, 50.0, least, 50.0, 10.0])
    problem = replace(problem_of(rows(), SymmetricGaussian(2.0, 1.0)), whole=whole)
    found = method(problem)
    assert found.swamped is not None
    assert f"{TOLERANCE:.0%}" in found.swamped
    assert np.isfinite(found.estimates).all()


def test_a_ridge_can_bring_the_intervals_back() -> None:
    law = SymmetricGaussian(1600.0, 800.0)
    assert delta_method(problem_of(rows(), law)).swamped is not None
    assert delta_method(problem_of(rows(), law, ridge=400.0)).swamped is None


@pytest.mark.parametrize(
    "law", [SymmetricGaussian(2.0, 1.0), SketchNoise(500.0, 60.0), InverseWishartNoise(500.0, 60.0)]
)
def test_a_ridge_gives_intervals_even_without_positive_moments(law: NoiseModel) -> None:
    problem = problem_of(rows(2_000), law, ridge=2_000.0)
    whole = problem.whole.copy()
    whole[2, 2] = -50.0
    for method in (delta_method, bootstrap):
        found = method(replace(problem, whole=whole))
        assert found.swamped is None
        assert (found.low < found.high).all()


@pytest.mark.parametrize("law", [SymmetricGaussian(8.0, 4.0), WishartNoise(300.0, 0.1)])
def test_the_steadied_matrix_has_the_right_inverse_on_average(law: NoiseModel) -> None:
    d = 12
    gram = np.eye(d + 1) * 28.0
    problem = replace(problem_of(rows(), law), transform=np.eye(d + 1), penalty=np.zeros(d))
    drawn = law.unbiased_estimate(
        law.draw(np.broadcast_to(gram, (4_000, *gram.shape)), generator(1))
    )
    plain, steady = drawn[:, :-1, :-1], inference.debias_inverse(problem, drawn)[:, :-1, :-1]
    bias = [np.trace(np.linalg.inv(one).mean(0)) - d / 28 for one in (plain, steady)]
    assert bias[0] > 0.04 * d / 28
    assert abs(bias[1]) < bias[0] / 4


@pytest.mark.parametrize("count", [np.nan, -20.0, 3.0])
def test_an_unknown_number_of_rows_is_refused(count: float) -> None:
    found = delta_method(replace(problem_of(rows()), count=count))
    assert found.swamped is not None
    assert "number of rows" in found.swamped


@pytest.mark.parametrize("law", [SketchNoise(4.0, 0.0), InverseWishartNoise(8.0, 0.0)])
def test_a_law_without_a_variance_is_refused(law: NoiseModel) -> None:
    assert delta_method(problem_of(rows(), law)).swamped is not None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [0.0, 1.0, 95, np.nan])
def test_a_level_is_between_0_and_1(method: Callable[..., Intervals], level: float) -> None:
    with pytest.raises(ValueError, match="'level' parameter"):
        method(problem_of(rows()), level)


def test_the_bootstrap_is_the_same_for_the_same_seed() -> None:
    problem = problem_of(rows(), SymmetricGaussian(2.0, 1.0))
    first, again, other = (bootstrap(problem, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.low, again.low)
    assert not np.array_equal(first.low, other.low)
    with refused("draws", "bootstrap"):
        bootstrap(problem, draws=10)


def test_higher_levels_give_wider_intervals() -> None:
    problem = problem_of(rows(), SymmetricGaussian(2.0, 1.0))
    for method in (delta_method, bootstrap):
        narrow, wide = method(problem, 0.8), method(problem, 0.99)
        assert (wide.low < narrow.low).all()
        assert (wide.high > narrow.high).all()


def coverage(design: Design, method: Mechanism, tables: int, seed: int = 0) -> Floats:
    """Return, for each answered table, which coefficients were covered."""
    found = [method(problem) for problem in design.problems(tables, seed)]
    return np.array(
        [
            (one.low <= design.truth) & (design.truth <= one.high)
            for one in found
            if one.swamped is None
        ]
    )


def assert_covered(covered: Floats) -> None:
    """Hold each coefficient, and the average of all, between 92% and 98%."""
    count = len(covered)
    low, high = stats.binom.ppf(FALSE_ALARM, count, 0.92), stats.binom.isf(FALSE_ALARM, count, 0.98)
    hits = covered.sum(0)
    assert ((low <= hits) & (hits <= high)).all()
    shares = covered.mean(1)
    reach = stats.norm.isf(FALSE_ALARM) * shares.std() / np.sqrt(count)
    assert shares.mean() + reach >= 0.92
    assert shares.mean() - reach <= 0.98


FAST = [
    Design(epsilon=0.5, condition=1.0),
    Design(epsilon=0.5, condition=100.0),
    Design(epsilon=2.0, condition=100.0, fit=0.9),
    Design(epsilon=0.5, condition=100.0, fit=0.2, turned=False),
    Design(epsilon=0.5, condition=100.0, intercept=False),
    Design(epsilon=2.0, condition=100.0, replace=True),
    Design(epsilon=0.5, condition=1.0, bounds="box"),
    Design(condition=100.0, rows=50_000),
    Design(condition=100.0, law=WishartNoise(95.0, 4.0)),
    Design(condition=100.0, law=SketchNoise(24.0, 0.0)),
    Design(condition=100.0, law=SketchNoise(500.0, 290.0)),
    Design(condition=100.0, law=InverseWishartNoise(40.0, 0.0)),
    Design(condition=100.0, law=InverseWishartNoise(500.0, 290.0)),
]


@pytest.mark.parametrize("design", FAST)
def test_the_delta_method_covers(design: Design) -> None:
    covered = coverage(design, delta_method, 300)
    assert len(covered) == 300 or design.predicted > 0.5
    assert_covered(covered)


@pytest.mark.heavy
@pytest.mark.parametrize("design", FAST[1::4])
def test_the_bootstrap_covers(design: Design) -> None:
    covered = coverage(design, bootstrap, 100)
    assert len(covered) == 100 or design.predicted > 0.5
    assert_covered(covered)


def test_where_noise_is_swamping_most_tables_are_refused_and_few_intervals_are_wrong() -> None:
    design = Design(epsilon=0.5, condition=100.0, bounds="box")
    assert design.predicted > 0.5
    tables = 300
    covered = coverage(design, delta_method, tables)
    assert len(covered) < tables / 2
    wrong = len(covered) - (covered.sum(0).min() if len(covered) else 0)
    assert wrong <= stats.binom.isf(FALSE_ALARM, tables, 0.08)


def test_intervals_are_refused_only_where_the_noise_exceeds_half_the_least_eigenvalue() -> None:
    design = Design(condition=1.0, rows=5_000)
    assert design.predicted < 0.5
    assert len(coverage(design, delta_method, 300)) == 300


@pytest.mark.parametrize("part", ["sampling", "privacy"])
def test_coverage_notices_a_missing_part(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = inference.correct_for_noise

    def without(problem: Problem, matrix: Floats) -> inference.Corrected:
        found = whole(problem, matrix)
        return replace(found, **{part: np.zeros_like(found.sampling)})

    monkeypatch.setattr(inference, "correct_for_noise", without)
    covered = coverage(Design(epsilon=1.0, condition=10.0), delta_method, 400)
    with pytest.raises(AssertionError):
        assert_covered(covered)


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("condition", [1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_two_thousand_tables(
    method: Mechanism, epsilon: float, condition: float, intercept: bool
) -> None:
    design = Design(epsilon=epsilon, condition=condition, intercept=intercept)
    covered = coverage(design, method, 2_000, seed=7)
    assert len(covered) == 2_000  # the predicted noise is below half the least eigenvalue
    shares = covered.mean(0)
    assert 0.92 <= shares.min() <= shares.max() <= 0.98


def test_noisy_moments_understate_what_a_line_leaves_by_its_optimism() -> None:
    """Against 4,000 draws; what the best line takes up of the noise has mean 0 and is left out.

    A mean over the draws is beyond 4.9 of its own errors once in a million times.
    """
    law = SymmetricGaussian(1.0, 0.5)
    exact = problem_of(rows(), law, ridge=3.0)
    penalty = np.diag(exact.penalty)

    def fitted(whole: Floats) -> Floats:
        return np.asarray(np.linalg.solve(whole[:-1, :-1] + penalty, whole[:-1, -1]))

    still = np.append(-fitted(exact.whole), 1.0)
    chance, gaps, told = generator(31), [], []
    for _ in range(4000):
        noise = law.draw(exact.whole, chance) - exact.whole
        noisy = replace(exact, whole=exact.whole + noise)
        line = fitted(noisy.whole)
        moved = np.append(-line, 1.0)
        gaps.append(still @ noise @ still - moved @ noise @ moved)
        told.append(inference.optimism(noisy, line))
    spread = np.std(np.subtract(gaps, told)) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps) - np.mean(told)) < 4.9 * spread + 0.05 * np.mean(told)
    assert np.mean(told) > 10 * spread  # so that half of it would be seen
