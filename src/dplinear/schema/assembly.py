"""From declarations to columns and features, in order, and what clips rows."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dplinear.arguments import positive, rejection, wrong_type
from dplinear.schema.columns import WHERE, Column, check_count, exact_number, read_column
from dplinear.schema.features import Feature, column_features, derived_features, intercept
from dplinear.schema.survey_weights import is_name
from dplinear.schema.terms import Constant, check_labels, check_names

_SMALLEST_NORM = 2.0**-20


def read_columns(mapping: Any, keywords: Mapping[str, Any]) -> dict[str, Column]:
    """Return what columns are declared to hold, in a mapping or by keywords."""
    if mapping is not None and not isinstance(mapping, Mapping):
        raise wrong_type("mapping", WHERE, "a mapping of column names to declarations", mapping)
    twice = sorted(set(mapping or ()) & set(keywords))
    if twice:
        raise rejection("mapping", WHERE, "free of names also given as keywords", twice)
    declared: dict[Any, Any] = dict(mapping or {}) | dict(keywords)
    for name in declared:
        if not is_name(name):
            raise wrong_type("mapping", WHERE, "keyed by printable column names", name)
    return {name: read_column(name, what) for name, what in declared.items()}


def build_features(
    columns: Mapping[str, Column], own: Sequence[str], derived: Sequence[str], *, constant: bool
) -> tuple[Feature, ...]:
    """Return the features of columns and derived terms, after a `constant` if there is one.

    `own` are the columns that have features of their own: those that split rows into groups do not.
    """
    built: list[Feature] = [intercept()] if constant else []
    for name in own:
        features = column_features(name, columns, shift=constant)
        check_count(len(built) + len(features), name)
        built.extend(features)
    for index, text in enumerate(derived):
        features = derived_features(index, text, columns, shift=constant)
        check_count(len(built) + len(features), "derived")
        built.extend(features)
    if not columns or not built:
        raise rejection("mapping", WHERE, "a description of at least one column", "none")
    check_names(built)
    check_labels([*([Constant.label] if constant else []), *columns, *derived], built)
    return tuple(built)


def read_row_norm(row_norm: Any, norm_squared: int) -> Fraction | None:
    """Return the norm that rows are clipped to; None if none of them is longer."""
    if row_norm is None:
        return None
    if not isinstance(row_norm, str):  # text is how `to_dict` writes a fraction
        positive(row_norm, "row_norm", WHERE)
    exact = exact_number(row_norm, "row_norm", "a number", row_norm)
    if exact < _SMALLEST_NORM:
        raise rejection("row_norm", WHERE, "at least 2^-20", row_norm)
    return exact if exact * exact < norm_squared else None
