"""With a budget without end, the private estimators are scikit-learn's.

The noise is real, but its standard deviation is below 1e-7 of the moments here; the tolerance of
1e-4 is hundreds of standard deviations away, so the false-alarm rate is far below 1e-6.
"""

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, LinearRegression, Ridge

from dplinear.estimators import PrivateLasso, PrivateLinearRegression, PrivatePCA, PrivateRidge
from dplinear.noise import simulation

from .faces import table

ROWS = 20_000
WIDE: dict[str, Any] = {"bounds": [(-1, 1), (-2, 1.5), (-1, 3)], "target_bounds": (-12, 10)}
PAIRS = [
    (PrivateLinearRegression, LinearRegression, {"mechanism": "analyze_gauss"}),
    (PrivateRidge, Ridge, {"alpha": 5000.0}),
    (PrivateLasso, Lasso, {"alpha": 0.2}),
]


def own(penalty: dict[str, Any]) -> dict[str, Any]:
    """What scikit-learn's estimator takes of these arguments."""
    return {name: value for name, value in penalty.items() if name != "mechanism"}


def tight(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("private", "public", "penalty"), PAIRS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 1e6},
        {"epsilon": 1e6, "mechanism": "additive_wishart"},  # its mean is removed
        {"epsilon": 1e8},
        {"epsilon": 1e8, "neighbours": "replace"},
    ],
    ids=str,
)
def test_linear_models(
    private: Any, public: Any, penalty: Any, fit_intercept: bool, budget: dict[str, Any]
) -> None:
    X, y = table(ROWS)
    mine = private(**(penalty | WIDE | budget), fit_intercept=fit_intercept).fit(X, y)
    theirs = public(**own(penalty), fit_intercept=fit_intercept).fit(X, y)
    tight(mine.coef_, theirs.coef_)
    tight(mine.intercept_, theirs.intercept_)
    tight(mine.predict(X), theirs.predict(X))
    assert mine.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["auto", "whitened_descent", "coinpress", "adassp"])
def test_mechanisms_of_one_line(mechanism: str, neighbours: str, fit_intercept: bool) -> None:
    """A descent clips residuals at seven scales here, which touches none around an intercept."""
    X, y = table(ROWS)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    arguments: dict[str, Any] = {"fit_intercept": fit_intercept, "neighbours": neighbours}
    mine = PrivateLinearRegression(**WIDE, epsilon=1e8, mechanism=mechanism, **arguments).fit(X, y)
    tolerance = 1e-4 if fit_intercept or mechanism == "adassp" else 2e-3
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=tolerance)
    assert mine.intercept_ == pytest.approx(theirs.intercept_, abs=tolerance)
    expected = "whitened_descent" if mechanism == "auto" else mechanism
    assert mine.certificate_.mechanism == expected


@pytest.mark.parametrize(("private", "public", "penalty"), PAIRS)
def test_many_targets_have_bounds_and_coefficients_each(
    private: Any, public: Any, penalty: Any
) -> None:
    X, y = table(ROWS)
    Y = np.column_stack([y, 40 * X[:, 0] - y])
    bounds: dict[str, Any] = {"bounds": (-1, 1), "target_bounds": [(-12, 10), (-60, 60)]}
    mine = private(**penalty, **bounds, epsilon=1e8).fit(X, Y)
    theirs = public(**own(penalty)).fit(X, Y)
    assert mine.coef_.shape == (2, 3)
    assert mine.intercept_.shape == (2,)
    tight(mine.coef_, theirs.coef_)
    tight(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize("count", [None, 1, 2])
@pytest.mark.parametrize("epsilon", [1e6, 1e8])
def test_principal_components(count: int | None, epsilon: float) -> None:
    X = table(ROWS)[0] * [1, 0.5, 0.2] @ [[1, 0.5, 0], [0, 1, 0.5], [0.3, 0, 1]] + [0.2, 0, 0.1]
    mine = PrivatePCA(count, epsilon=epsilon, bounds=[(-2, 2), (-2, 2), (-1, 1)])
    scores = mine.fit_transform(X)
    theirs = PCA(count).fit(X)
    signs = np.sign(np.sum(mine.components_ * theirs.components_, axis=1))
    tight(mine.components_, theirs.components_ * signs[:, None])
    tight(mine.explained_variance_, theirs.explained_variance_)
    tight(mine.explained_variance_ratio_, theirs.explained_variance_ratio_)
    tight(mine.mean_, theirs.mean_)
    tight(scores, theirs.transform(X) * signs)
    tight(mine.inverse_transform(scores), theirs.inverse_transform(theirs.transform(X)))
    assert mine.n_components_ == theirs.n_components_


def test_values_are_clamped_and_missing_ones_are_the_middle_in_fit() -> None:
    X, y = table(ROWS)
    spoilt, target = X.copy(), y.copy()
    spoilt[:50, 0], spoilt[50:100, 1], spoilt[100:200, 2] = np.inf, -7, np.nan
    target[200:250] = np.nan
    by_hand, aims = X.copy(), y.copy()
    by_hand[:50, 0], by_hand[50:100, 1], by_hand[100:200, 2] = 1, -2, 1
    aims[200:250] = -1
    mine = PrivateLinearRegression(**WIDE, epsilon=1e8, mechanism="analyze_gauss").fit(
        spoilt, target
    )
    theirs = LinearRegression().fit(by_hand, aims)
    tight(mine.coef_, theirs.coef_)
    tight(mine.intercept_, theirs.intercept_)


def test_predictions_take_cells_as_they_are_but_for_missing_ones() -> None:
    X, y = table(ROWS)
    model = PrivateLinearRegression(**WIDE, epsilon=1e8).fit(X, y)
    rows = np.array([[100.0, -50.0, 3.0], [np.nan, np.nan, np.nan]])
    wanted = [[100.0, -50.0, 3.0], [0.0, -0.25, 1.0]]
    np.testing.assert_array_equal(model.predict(rows), model.predict(wanted))
    np.testing.assert_allclose(model.predict(wanted), wanted @ model.coef_ + model.intercept_)
    text = np.array([["100", " -50.0", "3"], [None, "nothing", {"a": 1}]], dtype=object)
    np.testing.assert_array_equal(model.predict(text), model.predict(wanted))
    assert np.isinf(model.predict([[np.inf, 0, 0]])[0])


def test_clipped_rows_and_other_mechanisms_are_passed_on() -> None:
    X, y = table(ROWS)
    model = PrivateRidge(**WIDE, epsilon=1e4, row_norm=1.5, mechanism="additive_wishart").fit(X, y)
    assert model.certificate_.mechanism == "additive_wishart"
    assert model.moments_.schema.row_norm == 1.5
    with simulation.door(3):
        assert PrivateRidge(**WIDE).fit(X, y).certificate_.simulated
