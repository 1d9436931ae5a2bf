"""Numbers that tell two tables apart, where no density is known: values, bits, a logistic score."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from dplinear import arguments
from dplinear.arrays import Floats

_LAST_BITS = 8
_STEPS = 25
_RIDGE = 1e-3


def numbers_of(released: Any, *, bits: bool) -> Floats:
    """Return what was released as one row of numbers, and the last bits of each if asked for."""
    try:
        values = np.asarray(released, np.float64).ravel()
    except (TypeError, ValueError):
        rule = "one that returns numbers"
        raise arguments.wrong_type("function", "audit_callable", rule, type(released)) from None
    if not bits:
        return values
    words = values.view(np.uint64)
    shifts = np.arange(_LAST_BITS, dtype=np.uint64)
    last = (words[:, None] >> shifts) & np.uint64(1)
    return np.concatenate((values, last.ravel().astype(np.float64)))


def scores(
    training: Sequence[Floats], testing: Sequence[Floats]
) -> tuple[list[Floats], list[Floats]]:
    """Return both tables' training and testing runs with a logistic score as one more column."""
    score = fit_score(training)

    def add_score(part: Floats) -> Floats:
        return np.column_stack((part, score(part)))

    return [add_score(part) for part in training], [add_score(part) for part in testing]


def fit_score(training: Sequence[Floats]) -> Callable[[Floats], Floats]:
    """Return a logistic score of runs, fitted on some of both tables.

    It is of the numbers, their squares, and which of them are no numbers: that is an output, too.
    """
    seen = np.concatenate(list(training))
    seen = np.nan_to_num(seen, nan=0.0, posinf=0.0, neginf=0.0)
    centre = np.median(seen, axis=0)
    spread = np.subtract(*np.quantile(seen, [0.9, 0.1], axis=0))
    spread = np.where(spread > 0, spread, 1.0)

    def features(part: Floats) -> Floats:
        standard = np.nan_to_num((part - centre) / spread, nan=0.0, posinf=9.0, neginf=-9.0)
        standard = np.clip(standard, -9.0, 9.0)
        return np.column_stack((np.ones(len(part)), standard, standard**2, np.isnan(part)))

    known = np.concatenate((np.ones(len(training[0])), np.zeros(len(training[1]))))
    weights = _logistic(np.concatenate([features(part) for part in training]), known)
    return lambda part: np.asarray(features(part) @ weights)


def _logistic(features: Floats, known: Floats) -> Floats:
    """Return the weights of a ridged logistic regression, by Newton's method."""
    weights = np.zeros(features.shape[1])
    penalty = _RIDGE * len(known) * np.eye(len(weights))
    for _ in range(_STEPS):
        probability = expit(features @ weights)
        slope = features.T @ (known - probability) - penalty @ weights
        curve = (features * (probability * (1 - probability))[:, None]).T @ features + penalty
        step = np.linalg.solve(curve, slope)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    return weights
