"""Theorems 1 and 2 of Showkatbakhsh et al. 2018 against simulated errors."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.noise import simulation
from dplinear.papers.showkatbakhsh import theorems
from dplinear.papers.showkatbakhsh.theorems import Constants, Problem
from refusals import refused

FALSE_ALARM = 1e-6
DRAWS = 4000
ONES = Constants(c0=1.0, c1=1.0, c2=1.0)


def table(seed: int, n: int = 40, d: int = 3, signal: float = 1.0) -> tuple[Any, Any]:
    source = simulation.generator(seed)
    X = source.choice([-1.0, 1.0], (n, d))
    y = X @ (signal * source.standard_normal(d)) + source.standard_normal(n)
    return X, y


def relative_errors(X: Any, y: Any, solutions: Any) -> Any:
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    least = ((y - X @ best) ** 2).sum()
    return ((y - np.einsum("ij,kj->ki", X, solutions)) ** 2).sum(axis=1) / least


def solved(A: Any, b: Any) -> Any:
    """Solve many least-squares problems at once."""
    transposed = np.swapaxes(A, -1, -2)
    return np.linalg.solve(transposed @ A, transposed @ b[..., None])[..., 0]


def additive(X: Any, y: Any, sigma: float, seed: int) -> Any:
    noise = simulation.generator(seed).standard_normal((DRAWS, *X.shape))
    return solved(X + sigma * noise, np.broadcast_to(y, (DRAWS, len(y))))


def projected(X: Any, y: Any, variance: float, rows: int, seed: int) -> Any:
    source = simulation.generator(seed)
    S = source.standard_normal((DRAWS, rows, len(X)))
    noise = math.sqrt(variance) * source.standard_normal((DRAWS, rows, X.shape[1]))
    return solved(S @ X + noise, S @ y)


@pytest.mark.heavy
@pytest.mark.parametrize(("signal", "bits"), [(0.0, 3.0), (1.0, 3.0), (5.0, 4.0)])
def test_additive_noise_exceeds_theorem_1_no_more_often_than_it_says(
    signal: float, bits: float
) -> None:
    X, y = table(1, signal=signal)
    problem = Problem.of(X, y)
    slack = theorems.additive_noise_slack(problem, bits, 0.1)
    sharp = theorems.additive_noise_error(problem, bits, slack)
    printed = theorems.additive_noise_error(problem, bits, slack, printed=True)
    assert sharp.bound is not None
    assert printed.bound is not None
    assert sharp.probability == printed.probability == pytest.approx(0.9)
    assert sharp.bound < printed.bound
    errors = relative_errors(X, y, additive(X, y, (4**bits - 1) ** -0.5, 2))
    allowed = stats.binom(DRAWS, 0.1).isf(FALSE_ALARM)
    assert (errors > sharp.bound).sum() <= allowed


@pytest.mark.heavy
def test_both_forms_of_theorem_1_hold_for_the_worst_perturbation_of_its_norm() -> None:
    # Wedin's bound is about every E: directions that tilt columns, grown to the allowed norm.
    X, y = table(3, d=2)
    problem = Problem.of(X, y)
    bits, slack = 4.0, 0.05
    norm = (theorems.additive_noise_spread(problem, bits) + slack) * problem.singular_values[0]
    source = simulation.generator(4)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    residual = y - X @ best
    random = [source.standard_normal(X.shape) for _ in range(200)]
    tilts = [s * np.outer(residual, v) for s in (-1, 1) for v in (*np.eye(2), best, -X[0])]
    E = np.array([norm * e / np.linalg.norm(e, 2) for e in (*random, *tilts)])
    solutions = solved(X + E, np.broadcast_to(y, (len(E), len(y))))
    sharp = theorems.additive_noise_error(problem, bits, slack).bound
    assert sharp is not None
    errors = relative_errors(X, y, solutions)
    assert errors.max() <= sharp
    assert errors.max() > 1 + (sharp - 1) / 100  # and it is not far off


def test_theorem_1_says_nothing_beyond_its_conditions() -> None:
    X, y = table(1)
    problem = Problem.of(X, y)
    nothing = theorems.additive_noise_error(problem, 0.5, 0.1)
    assert (nothing.bound, nothing.probability) == (None, 0.0)
    assert "no δ will do" in str(nothing)
    most = 1 / problem.condition - theorems.additive_noise_spread(problem, 3.0)
    assert most > 0
    inside = theorems.additive_noise_error(problem, 3.0, 0.999 * most)
    outside = theorems.additive_noise_error(problem, 3.0, 1.001 * most)
    assert inside.bound is not None
    assert outside.bound is None
    assert "δ must be below" in str(outside)
    small = theorems.additive_noise_error(problem, 3.0, 1e-9)
    assert small.bound is None
    assert "no positive probability" in str(small)
    with refused("slack", "bits_theorems.additive_noise_error"):
        theorems.additive_noise_error(problem, 3.0, 0.0)


@pytest.mark.heavy
@pytest.mark.parametrize(("rows", "dimension"), [(3, 3), (12, 3), (30, 1), (30, 8)])
def test_a_sketch_moves_the_solution_by_a_law_that_knows_no_table(
    rows: int, dimension: int
) -> None:
    X, y = table(5, d=dimension, signal=3.0)
    errors = relative_errors(X, y, projected(X, y, 0.0, rows, 6))
    for failure in (0.9, 0.5, 0.1):
        exceeded = int((errors - 1 > theorems.sketch_excess(rows, dimension, failure)).sum())
        law = stats.binom(DRAWS, failure)
        assert law.isf(1 - FALSE_ALARM / 24) <= exceeded <= law.isf(FALSE_ALARM / 24)


@pytest.mark.heavy
@pytest.mark.parametrize("signal", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("variance", [0.0, 3.0, 300.0])
def test_projections_exceed_theorem_2_no_more_often_than_it_says(
    signal: float, variance: float
) -> None:
    X, y = table(7, signal=signal)
    problem = Problem.of(X, y)
    stated = theorems.projection_error_exact(problem, variance, 12, 0.1)
    assert stated.bound is not None
    errors = relative_errors(X, y, projected(X, y, variance, 12, 8))
    assert (errors > stated.bound).sum() <= stats.binom(DRAWS, 0.1).isf(FALSE_ALARM)
    # As printed, where the caller's δ is what the sketch's law allows.
    slack = math.sqrt(1 + theorems.sketch_excess(12, 3, 0.1)) - 1
    printed = theorems.projection_error(problem, variance, 12, max(slack, 0.5), ONES)
    assert printed.bound is not None
    assert printed.bound >= stated.bound * (1 - 1e-12)


def test_the_ridges_bias_alone_is_within_its_terms() -> None:
    for signal in (0.1, 1.0, 5.0):
        X, y = table(9, signal=signal)
        problem = Problem.of(X, y)
        best = np.linalg.lstsq(X, y, rcond=None)[0]
        residual = np.linalg.norm(y - X @ best)
        for noise in (0.1, 10.0, 1000.0):
            ridge = np.linalg.solve(X.T @ X + noise * np.eye(3), X.T @ y)
            l1, l2 = theorems.ridge_terms(problem, noise)
            eta = relative_errors(X, y, ridge[None])[0]
            assert eta <= 1 + l2 * l2 + 1e-12
            size = noise * (ridge @ ridge) / ((y - X @ ridge) ** 2).sum()
            assert size <= l1 + 1e-12
            norm = theorems.ridge_norm(problem, noise)
            assert np.linalg.norm(ridge) <= norm * residual * (1 + 1e-12)


def test_corollary_3_is_false_as_printed() -> None:
    X, y = table(9, signal=5.0)
    ridge = np.linalg.solve(X.T @ X + np.eye(3), X.T @ y)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    values = np.linalg.svd(X, compute_uv=False)
    printed = (values / (values**2 + 1)).max() * np.linalg.norm(y - X @ best)
    assert np.linalg.norm(ridge) > 2 * printed


def test_theorem_2_says_nothing_beyond_its_conditions() -> None:
    X, y = table(1)
    problem = Problem.of(X, y)
    least = math.sqrt(3 / 12)
    assert theorems.projection_error(problem, 1.0, 12, 1.01 * least, ONES).bound is not None
    for rows, slack, constants in (
        (12, 0.99 * least, ONES),
        (40, 1.0, ONES),
        (12, 1.0, Constants(c0=1.0, c1=1e9, c2=1.0)),
    ):
        nothing = theorems.projection_error(problem, 1.0, rows, slack, constants)
        assert (nothing.bound, nothing.probability) == (None, 0.0)
        assert any("assumed" in note for note in nothing.notes)
    few = theorems.projection_error_exact(problem, 1.0, 2, 0.1)
    assert few.bound is None
    with refused("c1", "Constants"):
        Constants(c0=1.0, c1=0.0, c2=1.0)


def test_theorem_2_tends_to_corollary_2() -> None:
    for n in (10**3, 10**6, 10**9):
        # f² = n/3 and n' = √n: no noise from some n on.
        rows = math.isqrt(n)
        variance = theorems.printed_variance(n / 3, 0.5, rows)
        problem = Problem(n, (math.sqrt(n / 3),) * 3, 2.0)
        found = theorems.projection_error(problem, variance, rows, 0.5, ONES)
        assert found.bound == pytest.approx(theorems.projection_limit(0.5))
        # Noise that protects never is 0; its terms shrink like n'/n.
        sound = theorems.projection_error(problem, rows * 1.0, rows, 0.5, ONES).bound
        assert sound is not None
        assert 0 < sound / theorems.projection_limit(0.5) - 1 < 100 * rows / n


def test_secrecy_of_the_projection_buys_nothing() -> None:
    for rows in (1, 10, 1000):
        for variance in (0.1, 1.0, 30.0, 1e6):
            known = theorems.coherent_bits(rows, variance)
            secret = theorems.noncoherent_bits(rows, variance)
            assert secret >= known * (1 - 1e-12)
            assert secret == pytest.approx(known, rel=rows / variance)
    assert theorems.coherent_bits(7, 7 / (4**0.5 - 1)) == pytest.approx(0.5)


def test_the_printed_noise_takes_energy_by_columns() -> None:
    X = np.array([[1.0, 0.5], [0.5, 0.5], [0.5, 0.5], [1.0, -0.5]])
    assert theorems.least_sum_of_squares(X) == pytest.approx(0.75)
    assert theorems.printed_variance(0.75, 0.5, 4) == pytest.approx(3.25)
    assert theorems.printed_variance(5.0, 0.5, 4) == 0.0


def test_a_problem_is_checked() -> None:
    assert Problem(3, (1.0, 4.0), 0.5).condition == 4
    with refused("rows", "Problem"):
        Problem(1, (1.0, 2.0), 0.0)
    with refused("singular_values", "Problem"):
        Problem(3, (), 0.0)
    with refused("singular_values", "Problem"):
        Problem(3, (1.0, 0.0), 0.0)


def test_the_relative_error_of_least_squares_is_one() -> None:
    drawn = simulation.generator(5)
    X, y = drawn.normal(size=(50, 3)), drawn.normal(size=50)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    assert theorems.relative_error(X, y, best) == pytest.approx(1.0)
    left = np.sum((X @ best - y) ** 2)
    moved = theorems.relative_error(X, y, best + 1.0)
    assert moved == pytest.approx(1 + np.sum((X @ np.ones(3)) ** 2) / left)
    assert theorems.relative_error(np.eye(2), [1.0, 0.0], [0.0, 0.0]) == math.inf
    assert theorems.relative_error(np.eye(2), [0.0, 0.0], [0.0, 0.0]) == 1.0
