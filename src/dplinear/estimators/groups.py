"""The ids of `fit(X, y, groups=ids)`: which rows belong to one unit of privacy, such as a person.

Promises: ids may be of any type that can be compared, and mean what they mean at a gate
(`schema/unit_keys.py`); what raises depends on the kind of container, on its type and on its length
alone; no message quotes an id. Lists and structs are no ids: a container whose type is of them is
refused, and where cells have no common type they are rows of nobody.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.arguments import ArgumentError, integer, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.estimators.tables import has_comparable_cells, one_column
from dplinear.privacy.units import MOST_ROWS
from dplinear.schema.unit_keys import keys_of

_NAME = "groups"


def unit_column(unit: str | None, names: Collection[str], where: str) -> str:
    """Return the name of the column of ids, which none of the others has: the unit's, if given."""
    if unit is not None:
        if unit in names:
            rule = "a name that no column of X has: ids come as groups"
            raise rejection("unit", where, rule, unit)
        return unit
    name = _NAME
    while name in names:
        name = f"unit {name}"
    return name


def unit_codes(groups: Any, rows: int, where: str) -> Floats:
    """Return the ids as numbers: equal exactly where the ids are, NaN where there is none.

    Beside them numbers stay numbers. Which code an id gets depends on other rows; what is released
    depends only on which rows share one. That X and `groups` differ in length is a slip of the
    program that cut them, as for y.
    """
    if not has_comparable_cells(groups):
        rule = "an array or a series of ids: texts, numbers, dates, times or spans of time"
        raise rejection(_NAME, where, rule, "lists, structs or the like", "give them as text.")
    ids = one_column(groups, _NAME, where)
    if len(ids) != rows:
        raise rejection(_NAME, where, "as long as X", "another number of rows")
    codes = keys_of(ids).dictionary_encode().indices
    return np.asarray(pc.cast(codes, pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def check_units(rows_per_unit: Any, unit: Any, groups: object, where: str) -> None:
    """Raise over a wrong `rows_per_unit` or `unit`, or one without ids that say whose rows are."""
    if rows_per_unit is not None:
        integer(rows_per_unit, "rows_per_unit", where, low=1, high=MOST_ROWS)
    if unit is not None and not (isinstance(unit, str) and unit.strip() and unit.isprintable()):
        raise wrong_type(
            "unit", where, 'the name of what an id stands for, such as "patient"', unit
        )
    if groups is None:
        rule = "None where fit is not given groups"
        hint = "write fit(..., groups=ids), with one id a row; in a search, set_fit_request too."
        for name, value in (("rows_per_unit", rows_per_unit), ("unit", unit)):
            if value is not None:
                raise rejection(name, where, rule, value, hint)


@contextmanager
def named_arguments(where: str, parameters: Collection[str]) -> Iterator[None]:
    """Name the estimator and its `parameters`, `groups` or `sample_weight`, where a gate raises."""
    try:
        yield
    except ArgumentError as error:
        if error.parameter in parameters and error.parameter != "unit":
            raise error.rename(where).with_traceback(error.__traceback__) from None
        if error.parameter == "loss" and "mechanism" in parameters:  # the class has one loss
            facts = ("mechanism", where, "one that takes the loss", error.got, error.hint)
            raise ArgumentError(*facts).with_traceback(error.__traceback__) from None
        weights = error.parameter == "schema" and "survey weights" in error.rule
        if error.parameter != "unit" and not weights:
            raise
        named = ("sample_weight", "weights") if weights else (_NAME, "ids")
        facts = (named[0], where, error.rule, named[1], error.hint)
        raise ArgumentError(*facts).with_traceback(error.__traceback__) from None
