"""The elastic net from moments: optimality conditions, and scikit-learn's answers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.analyst.regression.lasso import TOLERANCE, elastic_net
from dplinear.noise import simulation
from refusals import refused
from services import library

from .tables import EVERYTHING, exact, people, raw

TABLE = people()
MOMENTS = exact(EVERYTHING, TABLE)
MODELS: list[tuple[str, list[str] | None, float]] = [
    ("charges", None, 20.0),
    ("charges", None, 2_000.0),
    ("stay", ["age", "ward", "charges", "smoker"], 0.05),
    ("smoker", ["age", "bmi", "visit"], 0.01),
]


def breach(x: Any, y: Any, b: Any, l1: float, ridge: float) -> float:
    """Return the largest violation of the optimality conditions, relative to the largest |Xᵀy|/n.

    Each is scaled as for a column of unit variance.
    """
    count = len(y)
    slope = (x.T @ (y - x @ b) - ridge * b) / count
    size = np.sqrt((x * x).mean(0))
    gaps = np.where(b == 0, np.maximum(abs(slope) - l1, 0), abs(slope - l1 * np.sign(b)))
    return float((gaps / size).max() / (abs(x.T @ y) / count / size).max())


@pytest.mark.parametrize("ridge", [0.0, 30.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("target", "features", "l1"), MODELS)
def test_no_coefficient_can_be_improved(
    target: str, features: list[str] | None, l1: float, ridge: float, intercept: bool
) -> None:
    fit = MOMENTS.regress(target, features, l1=l1, ridge=ridge, intercept=intercept)
    x, y = raw(EVERYTHING, TABLE, list(fit.names)), raw(EVERYTHING, TABLE, [fit.target])[:, 0]
    b = fit.coefficients.values
    if intercept:
        assert fit.intercept == pytest.approx(y.mean() - x.mean(0) @ b, rel=1e-9, abs=1e-9)
        x, y = x - x.mean(0), y - y.mean()
    assert breach(x, y, b, l1, ridge) < 1e-8
    assert fit.l1 == l1


@pytest.mark.oracle
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("target", "features", "l1"), MODELS)
def test_scikit_learn_agrees(
    target: str, features: list[str] | None, l1: float, intercept: bool
) -> None:
    linear = library("sklearn.linear_model")
    options = {"fit_intercept": intercept, "tol": 1e-12, "max_iter": 1_000_000}
    fit = MOMENTS.regress(target, features, l1=l1, intercept=intercept)
    x, y = raw(EVERYTHING, TABLE, list(fit.names)), raw(EVERYTHING, TABLE, [fit.target])[:, 0]
    oracle = linear.Lasso(alpha=l1, **options).fit(x, y)
    # Scikit-learn stops at a tolerance of its own: the predictions are what it pins down.
    assert fit.predict(x) == pytest.approx(oracle.predict(x), rel=1e-6, abs=1e-6 * float(np.std(y)))
    both = MOMENTS.regress(target, features, l1=l1, ridge=400 * l1, intercept=intercept)
    net = linear.ElasticNet(alpha=2 * l1, l1_ratio=0.5, **options).fit(x, y)
    assert both.predict(x) == pytest.approx(net.predict(x), rel=1e-6, abs=1e-6 * float(np.std(y)))
    assert both.coefficients.values == pytest.approx(net.coef_, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_hard_problems_are_solved_to_the_last_digits(seed: int) -> None:
    draw = simulation.generator(seed)
    rows, features = 30, (20, 60, 200)[seed % 3]
    x = draw.standard_normal((rows, features)) @ np.diag(10 ** draw.uniform(-2, 2, features))
    x[:, 1] = x[:, 0] + 1e-4 * x[:, 2]
    x[:, 3] = x[:, 4]
    y = x[:, :5] @ draw.standard_normal(5) + draw.standard_normal(rows)
    weights = 10 ** draw.uniform(-1, 1, features)
    found = elastic_net(x.T @ x, x.T @ y, float(y @ y), weights)
    assert found.converged
    assert found.gap <= TOLERANCE
    slope = x.T @ (y - x @ found.coefficients)
    b = found.coefficients
    gaps = np.where(b == 0, np.maximum(abs(slope) - weights, 0), abs(slope - weights * np.sign(b)))
    size = np.linalg.norm(x, axis=0)
    assert (gaps / size).max() <= 1e-8 * (abs(x.T @ y) / size).max()


def test_a_heavy_penalty_leaves_nothing_and_a_light_one_everything() -> None:
    nothing = MOMENTS.regress("charges", ["age", "bmi"], l1=1e9)
    assert nothing.coefficients.values.tolist() == [0.0, 0.0]
    assert nothing.intercept == pytest.approx(MOMENTS.mean()["charges"])
    assert nothing.r_squared == pytest.approx(0.0, abs=1e-9)
    everything = MOMENTS.regress("charges", ["age", "bmi"], l1=1e-9)
    plain = MOMENTS.regress("charges", ["age", "bmi"])
    assert everything.coefficients.values == pytest.approx(plain.coefficients.values, rel=1e-6)


def test_one_feature_is_a_soft_threshold() -> None:
    found = elastic_net(np.array([[2.0]]), np.array([3.0]), 10.0, np.array([1.0]))
    assert found.coefficients == pytest.approx([1.0])
    empty = elastic_net(np.zeros((2, 2)), np.zeros(2), 0.0, np.ones(2))
    assert empty.coefficients.tolist() == [0.0, 0.0]
    assert empty.converged


def test_an_indefinite_matrix_is_repaired_or_refused() -> None:
    law = SymmetricGaussian(1e6, 5e5)
    drawn = law.draw(MOMENTS.values, simulation.generator(3))
    noisy = replace(MOMENTS, values=drawn, noise_model=law, rows=400)
    for fit in (noisy.regress("charges", l1=5.0), noisy.regress("charges", l1=5.0, repair="floor")):
        assert np.isfinite(fit.coefficients.values).all()
    with refused("repair", "regress", hint='pass repair="auto" or "clipped"'):
        noisy.regress("charges", l1=5.0, repair="none")


def test_many_targets_at_once() -> None:
    fits = MOMENTS.regress(["charges", "stay"], ["age", "ward"], l1=0.5)
    for target, fit in fits.items():
        alone = MOMENTS.regress(target, ["age", "ward"], l1=0.5)
        assert fit.coefficients.values == pytest.approx(alone.coefficients.values)
