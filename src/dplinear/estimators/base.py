"""What all estimators share: their public arguments, the way through the gate, and cloning."""

import copy
import warnings
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dplinear.analyst.design_effect import weight_scale
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.location import CovarianceRelease, MeanRelease
from dplinear.analyst.releases.model import ModelRelease
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import wrong_type
from dplinear.arrays import Array, Floats
from dplinear.curator.gates.moments import release_moments
from dplinear.estimators.bounds import Bounds, by_index, columns_of, for_columns, read_bounds
from dplinear.estimators.groups import check_units, named_arguments, unit_codes, unit_column
from dplinear.estimators.sample_weights import check_weights, weight_cells, weight_column
from dplinear.estimators.tables import column_names, features_of, join_columns, numbers
from dplinear.ledger import AnyLedger
from dplinear.ledger.address import check_shown, savable, veil
from dplinear.mechanisms.checks import read_guarantee
from dplinear.privacy.guarantees import Guarantee
from dplinear.schema import Schema
from dplinear.schema.columns import Numeric

FEWEST = 2  # rows that a release must show to say anything


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator whose `fit` makes one release, of second moments unless it says otherwise.

    `moments_` is that release, `certificate_` what it promises, `schema_` the public description of
    the table. Subclasses take, in their own constructors, the arguments named here.
    """

    epsilon: float | None
    delta: float | None
    guarantee: Guarantee | None
    bounds: Any
    row_norm: float | None
    neighbours: str
    rows_per_unit: int | None  # of those whose `fit` takes groups
    unit: str | None  # what ledgers and certificates call them
    weight_bound: float | None  # of those whose `fit` takes sample_weight
    mechanism: str
    ledger: AnyLedger | None
    dataset: str | None
    moments_: MomentsRelease
    schema_: Schema
    certificate_: Certificate
    n_features_in_: int

    @property
    def _where(self) -> str:
        return type(self).__name__

    def _named(self) -> AbstractContextManager[None]:
        """Return what makes errors of a gate name this estimator and its own parameters."""
        return named_arguments(self._where, self.get_params(deep=False))

    def _check_guarantee(self) -> None:
        """Raise over a wrong guarantee before any table is touched."""
        check_shown(self.ledger, self._where)
        read_guarantee(self._where, self.epsilon, self.delta, self.guarantee)

    def _features(self, X: Any, *targets: Any) -> tuple[Array, list[str]]:
        """Return the table of X and its columns' names, and remember what is public about it."""
        columns = columns_of(read_bounds(self.bounds, self._where))
        table = features_of(X, self._where, columns)
        validate_data(self, X if hasattr(X, "shape") else table, *targets, skip_check_array=True)
        given = getattr(self, "feature_names_in_", None)
        return table, column_names(given, table.shape[1])

    def _named_bounds(self, bounds: Bounds, names: list[str]) -> dict[str, Any]:
        """Return the bounds of the columns of X, which `_features` remembered, by their names."""
        own = getattr(self, "feature_names_in_", None)
        return for_columns(by_index(bounds, own, self._where), names, "bounds", self._where)

    def _numbers(self, X: Any) -> Floats:
        """Return X as numbers, for a model that has been fitted."""
        check_is_fitted(self)
        table = features_of(X, self._where)
        validate_data(self, X if hasattr(X, "shape") else table, reset=False, skip_check_array=True)
        declared = list(self.schema_.declared.values())[: self.n_features_in_]
        return numbers(table, [column for column in declared if isinstance(column, Numeric)])

    def _check_rows(self, groups: object, sample_weight: object) -> None:
        """Raise over wrong units of privacy, or weights, before any table is touched."""
        check_units(self.rows_per_unit, self.unit, groups, self._where)
        check_weights(self.weight_bound, sample_weight, self._where)

    def _with_rows(
        self, table: Array, columns: dict[str, Any], groups: Any, sample_weight: Any
    ) -> tuple[Array, dict[str, Any]]:
        """Return the table, with its rows' weights and ids, and what every gate is told."""
        unit = weight = None
        rows, own = len(table), {}
        if sample_weight is not None:
            weight = (weight_column(columns), 0, self.weight_bound)
            table = join_columns(table, weight_cells(sample_weight, rows, self._where))
        if groups is not None:
            unit = unit_column(self.unit, columns, self._where)
            own = {"rows_per_unit": self.rows_per_unit}
            table = join_columns(table, unit_codes(groups, rows, self._where))
        return table, self._gate_arguments(columns, unit, weight) | own

    def _of_rows(
        self, rows: int, columns: Collection[str], groups: Any, sample_weight: Any
    ) -> dict[str, Any]:
        """Return what a gate without a schema is told of whose rows they are, and their weights."""
        told: dict[str, Any] = {}
        if sample_weight is not None:
            weights = weight_cells(sample_weight, rows, self._where)
            told |= {"sample_weight": weights, "weight_bound": self.weight_bound}
        if groups is not None:
            unit = unit_column(self.unit, columns, self._where)
            ids = unit_codes(groups, rows, self._where)
            told |= {"groups": ids, "unit": unit, "rows_per_unit": self.rows_per_unit}
        return told

    def _gate_arguments(
        self, columns: dict[str, Any], unit: str | None = None, weight: Any = None
    ) -> dict[str, Any]:
        """Return what every gate is told."""
        self.schema_ = Schema(columns, row_norm=self.row_norm, unit=unit, weight=weight)
        return {
            "schema": self.schema_,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "guarantee": self.guarantee,
            "neighbours": self.neighbours,
            "ledger": self.ledger,
            "dataset": self.dataset,
        }

    def _release(self, table: Array, asked: dict[str, Any], mechanism: str) -> MomentsRelease:
        """Cross the wall; return the release as it is to be analysed, and keep it as it is."""
        with self._named():
            self.moments_ = release_moments(table, **asked, mechanism=mechanism)
        self.certificate_ = self.moments_.certificate
        return self._usable(self.moments_)

    def _usable(self, moments: MomentsRelease) -> MomentsRelease:
        """Return moments that can be analysed even where noise hides that there are rows at all.

        A search over many fits must not break off because of one draw of the noise.
        """
        known = moments.rows is not None and moments.schema.row_norm is None
        total = moments.weight if known else float(moments.unbiased_estimate[0, 0])
        if total >= FEWEST:
            return moments
        self._warn()
        ends = {name: _ends(what) for name, what in moments.schema.declared.items()}
        schema = Schema(ends, unit=moments.schema.unit, weight=moments.schema.weight)
        return replace(moments, schema=schema, rows=FEWEST)

    def _warn_if_hidden(self, release: ModelRelease | MeanRelease | CovarianceRelease) -> None:
        """Say so where a release shows next to no rows."""
        if release.rows is not None or release.count is None:
            return
        scale = weight_scale(release.schema, release.certificate.rows_per_unit)
        if release.count / scale < FEWEST:
            self._warn()

    def _warn(self) -> None:
        """Say that the release shows no rows; that is public, as the release is."""
        warnings.warn(
            f"{self._where}: the noise is larger than the table, so the model says nothing.\n\n"
            "Hint: use more rows, fewer columns, tighter bounds or a larger epsilon.",
            stacklevel=5,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        # scikit-learn, and those who log its models, print what an estimator was given.
        super().__setattr__(name, veil(value) if name == "ledger" else value)

    def __getstate__(self) -> dict[str, Any]:
        # Whatever saves a model, a password is not saved with it.
        state: dict[str, Any] = super().__getstate__()
        return {
            name: savable(value) if name == "ledger" else value for name, value in state.items()
        }

    def __copy__(self) -> Self:
        # Which would otherwise be what is saved, and so without the password.
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        # A copy of a ledger might have a budget of its own.
        memo[id(self.ledger)] = self.ledger
        for name, value in self.__dict__.items():
            twin.__dict__[name] = copy.deepcopy(value, memo)
        return twin

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Cells that hold no number are missing, whatever they hold, since an error would tell.
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    def __sklearn_clone__(self) -> Self:
        # scikit-learn copies arguments in depth; a copy of a ledger would have a budget of its own.
        bare = copy.copy(self)
        bare.ledger = None
        twin: Self = super(PrivateEstimator, bare).__sklearn_clone__()
        twin.ledger = self.ledger
        return twin


def _ends(column: object) -> tuple[Any, Any]:
    assert isinstance(column, Numeric)  # noqa: S101 - estimators declare nothing else
    return column.low, column.high


def check_flag(value: object, parameter: str, where: str) -> bool:
    """Return a truth value, if it is one."""
    if not isinstance(value, bool | np.bool_):
        raise wrong_type(parameter, where, "True or False", value)
    return bool(value)
