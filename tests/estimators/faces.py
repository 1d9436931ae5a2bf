"""The five estimators and fixed tables, for all tests of this room."""

from typing import Any

import numpy as np

from dplinear.estimators import (
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePCA,
    PrivateRidge,
)
from dplinear.noise import simulation

REGRESSORS = (PrivateLinearRegression, PrivateRidge, PrivateLasso)
PREDICTORS = (*REGRESSORS, PrivateLogisticRegression)
ALL = (*PREDICTORS, PrivatePCA)


def face(kind: Any, **arguments: Any) -> Any:
    """Return an estimator with bounds for everything."""
    public: dict[str, Any] = {"bounds": (-10, 10)}
    if kind in REGRESSORS:
        public["target_bounds"] = (-10, 10)
    if kind is PrivateLogisticRegression:
        public["classes"] = (0, 1)
    return kind(**(public | arguments))


def table(rows: int = 400, columns: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Return X in [−1, 1] and y within [−10, 10], linear in X but for a little noise."""
    generator = simulation.generator(seed)
    X = generator.uniform(-1, 1, (rows, columns))
    slopes = np.linspace(-1.5, 2, columns)
    return X, X @ slopes + 0.5 + generator.normal(0, 0.1, rows)


def released(model: Any) -> Any:
    """Return the numbers that a fitted estimator made public."""
    if hasattr(model, "moments_"):
        return model.moments_.values
    if hasattr(model, "release_"):
        return model.release_.covariance.values
    return np.append(model.coef_, model.intercept_)
