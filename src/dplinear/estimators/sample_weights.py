"""The weights of `fit(X, y, sample_weight=w)`: survey weights, within a public bound.

Promises: what raises depends on public arguments, on the kind of container and on its length alone;
no message quotes a weight. What a weight does is what it does at a gate (docs/schema.md, "Survey
weights"): it is clamped to [0, `weight_bound`], and one that is no number is 0.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from dplinear.arguments import positive, rejection
from dplinear.arrays import Floats
from dplinear.estimators.tables import one_column, plain_numbers

_NAME = "sample_weight"


def weight_column(names: Collection[str]) -> str:
    """Return the name of the column of weights, which none of the others has."""
    name = _NAME
    while name in names:
        name = f"survey {name}"
    return name


def weight_cells(sample_weight: Any, rows: int, where: str) -> Floats:
    """Return the weights as numbers, NaN where there is none."""
    weights = one_column(sample_weight, _NAME, where)
    if len(weights) != rows:
        raise rejection(_NAME, where, "as long as X", "another number of rows")
    return np.asarray(plain_numbers(weights), np.float64)


def check_weights(weight_bound: Any, sample_weight: object, where: str) -> None:
    """Raise over a wrong `weight_bound`, or weights without one."""
    if weight_bound is not None:
        positive(weight_bound, "weight_bound", where)
    elif sample_weight is not None:
        rule = "the largest weight that counts, a public number, where fit is given sample_weight"
        hint = f"write {where}(weight_bound=..., ...): larger weights are clamped to it."
        raise rejection("weight_bound", where, rule, None, hint)
