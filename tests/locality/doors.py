"""How a table's encoded integers are captured: the ways by which rows reach any mechanism.

- `rows`: `open_rows`, which every source stands behind, in the table's order. `through_sums` holds
  the exact sums that gates read of the same table to those rows.
- `units`: the same rows where they belong to units and have weights, with both (`weighed.py`).
- `fit`: an estimator's `fit(X, y)`, caught where it would release; then as above.
- `labels`: the same for a classifier, whose labels are words or numbers.
- `confined`: the same for a classifier in a constraint set, caught where it would spend.
- `examples`: `read_examples`, the rows of learners in constraint sets.
"""

from collections import UserList, deque
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from dplinear.curator.examples import Rules, check_table, read_examples
from dplinear.curator.gates import constrained
from dplinear.curator.sources import second_moments
from dplinear.curator.sources.ordered import open_rows
from dplinear.estimators import (
    PrivateConstrainedClassifier,
    PrivateLinearRegression,
    PrivateLogisticRegression,
)
from dplinear.schema import Schema

from .weighed import through_units

Rows = npt.NDArray[np.int64]
# The callers that an error of ours may name.
NAMES = ("second_moments", "locality", "read_examples", "Fit", "Labels", "Confined", "Schema")
_BOUNDS = (-100, 100)


def through_rows(data: Any, schema: Schema) -> Rows:
    """Return the encoded rows of a table, in order."""
    with open_rows(data, schema, "locality", threads=1).through(np.copy) as blocks:
        found = list(blocks)
    if not found:
        return np.zeros((0, schema.dimension), np.int64)
    return np.concatenate(found, axis=1).T.astype(np.int64)


def through_sums(data: Any, schema: Schema) -> tuple[Any, int]:
    """Return the exact second moments of a table, and its number of rows."""
    moments = second_moments(data, schema, threads=1)
    return moments.integers, moments.count


def sums_of(rows: Rows) -> Any:
    """Return what `through_sums` must say of rows."""
    whole = rows.astype(object)
    return whole.T @ whole if len(rows) else np.zeros((rows.shape[1],) * 2, object)


class Fit(PrivateLinearRegression):
    """A regression that keeps its table's rows where it would release."""

    def _learn(self, table: Any, asked: Any, names: Any, goals: Any) -> None:
        _ = names, goals
        self.rows_ = through_rows(table, asked["schema"])
        self.coef_ = self.intercept_ = np.zeros(1)
        self.fit_result_ = None  # type: ignore[assignment]  # nothing is released


class Labels(PrivateLogisticRegression):
    """A classifier that keeps its table's rows where it would release."""

    def _model(self, table: Any, goal: str, asked: Any) -> Any:
        _ = goal
        self.rows_ = through_rows(table, asked["schema"])
        raise _CaughtError


class _CaughtError(Exception):
    """The table was caught: nothing is released."""


def _public(X: Any, schema: Schema) -> Any:
    """Return bounds; of lists, a pair for each column: nothing else says how many there are."""
    listed = isinstance(X, list | tuple | deque | UserList)
    return [_BOUNDS] * len(schema.columns) if listed else _BOUNDS


def through_fit(data: Any, schema: Schema) -> Rows:
    """Return the encoded rows of (X, y) as a regression reads them."""
    bounds = _public(data[0], schema)
    model = Fit(bounds=bounds, target_bounds=[_BOUNDS] if isinstance(bounds, list) else _BOUNDS)
    model.fit(*data)
    return model.rows_


def through_labels(data: Any, schema: Schema) -> Rows:
    """Return the encoded rows of (X, y) as a classifier reads them; y's public classes vary."""
    *table, classes = data
    model = Labels(bounds=_public(data[0], schema), classes=classes)
    try:
        model.fit(*table)
    except _CaughtError:
        return model.rows_
    raise AssertionError("nothing was caught")


class Confined(PrivateConstrainedClassifier):
    """A classifier in a constraint set, under a name of its own."""


class _Closed:
    """A ledger that lets nothing be spent: all that is checked before is checked by then."""

    @staticmethod
    def spend(_: object) -> None:
        raise _CaughtError


def through_confined(data: Any, schema: Schema) -> Rows:
    """Return the examples that a classifier in a constraint set would learn of (X, y)."""
    *table, classes = data
    _ = schema
    model = Confined(classes=classes, row_norm=2.0, ledger=_Closed(), dataset="table")
    with patch.object(constrained, "check_table", wraps=check_table) as checked:
        try:
            model.fit(*table)
        except _CaughtError:
            return _examples(*checked.call_args.args[:3])
    raise AssertionError("nothing was caught")


def through_examples(data: Any, schema: Schema) -> Rows:
    """Return the examples of (X, y, options of `Rules`)."""
    X, y, options = data
    _ = schema
    return _examples(X, y, Rules(features=X.shape[1], row_norm=2.0, **options))


def _examples(X: Any, y: Any, rules: Rules) -> Rows:
    found = [_whole(block) for block in read_examples(X, y, rules).blocks()]
    if not found:
        return np.zeros((0, rules.frame.features + 1), np.int64)
    return np.concatenate(found, axis=1).T.astype(np.int64)


def _whole(block: Any) -> Any:
    features = (
        block.features if isinstance(block.features, np.ndarray) else block.features.toarray()
    )
    return np.vstack((features, block.labels))


DOORS = {
    "rows": through_rows,
    "units": through_units,
    "fit": through_fit,
    "labels": through_labels,
    "confined": through_confined,
    "examples": through_examples,
}
