"""Groups of rows: which of the public levels of some columns a row holds.

A row's group is a function of that row alone. A cell that is no level of a category is in the level
`other`, or in the one that the schema names; a truth value that is missing is in no group, unless
the schema says which of the two it stands for, and then its row is left out of all of them.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from dplinear.arguments import rejection, wrong_type
from dplinear.schema.columns import Category, Numeric, check_levels, write_number
from dplinear.schema.encoding import Encoder, level_codes
from dplinear.schema.terms import DerivedTerm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dplinear.arrays import Floats
    from dplinear.schema.columns import Column
    from dplinear.schema.schema import Schema

MOST_GROUPS = 1_000
_MOST_NUMBERS = 2**24  # of all groups' matrices together
OTHER = "other"

Level = str | int | float | bool


def read_by(schema: Schema, by: object, where: str) -> Schema:
    """Return the schema split by columns, by name; raise where they do not say public groups.

    Requires: anything at all; a wrong one raises before any row is read.
    """
    names = _names(by, where)
    for name in names:
        _check_column(schema, name, where)
    used = {
        factor.column
        for feature in schema.features
        if isinstance(feature.term, DerivedTerm)
        for factor in feature.factors
    }
    if used & set(names):
        rule = "columns that no derived term is made of"
        hint = "within a group its own level is the same in every row: leave those terms out."
        raise rejection("by", where, rule, ", ".join(sorted(used & set(names))), hint)
    if set(schema.columns) <= set(names):
        raise rejection("by", where, "some of the columns, and not all", ", ".join(names))
    split = schema.split_by(names)
    groups = math.prod(len(column_levels(schema.declared[name])) for name in names)
    if groups > MOST_GROUPS or groups * split.dimension**2 > _MOST_NUMBERS:
        rule = f"of at most {MOST_GROUPS} groups, with at most 2^24 numbers in all their matrices"
        raise rejection("by", where, rule, f"{groups} groups of {split.dimension} features")
    return split


def _names(by: object, where: str) -> tuple[str, ...]:
    rule = "the name of a column, or a list of names, none twice"
    listed = [by] if isinstance(by, str) else by
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise wrong_type("by", where, rule, type(by))
    if not listed or len(set(listed)) < len(listed):
        raise rejection("by", where, rule, ", ".join(listed) or "none")
    return tuple(listed)


def _check_column(schema: Schema, name: str, where: str) -> None:
    column = schema.declared.get(name)
    if not isinstance(column, Category) and not (
        isinstance(column, Numeric) and column.type == "boolean"
    ):
        rule = "a column that the schema declares as a category or a truth value"
        hint = 'levels are public: declare them, as in {"hospital": ["north", "south"]}.'
        raise rejection("by", where, rule, name, hint)
    if schema.unit == name:
        rule = "another column than the unit of privacy, whose ids are private"
        raise rejection("by", where, rule, name)
    if isinstance(column, Category):
        check_levels(column.levels, name, where)
        if column.other is None and OTHER in column.levels:
            hint = f'declare it as the level that all other cells join: other = "{OTHER}".'
            raise rejection("by", where, "free of a level with the name other", name, hint)


def column_levels(column: Column) -> tuple[Level, ...]:
    """Return the public levels of a column, one behind the other as codes count them."""
    if not isinstance(column, Category):
        return (False, True)
    levels = tuple(
        level if isinstance(level, str) else write_number(level) for level in column.levels
    )
    return levels if column.other is not None else (*levels, OTHER)


def group_levels(schema: Schema) -> tuple[Level | tuple[Level, ...], ...]:
    """Return the levels of a schema's groups in their order: of several columns, tuples."""
    each = [column_levels(schema.declared[name]) for name in schema.by]
    return each[0] if len(each) == 1 else tuple(itertools.product(*each))


def group_codes(schema: Schema, table: Mapping[str, Floats]) -> Floats:
    """Return the index of each row's group among `group_levels`; −1: the row is in none.

    Requires: what `decode` returned, or equal slices of it.
    """
    codes: Floats | None = None
    for name in schema.by:
        column = schema.declared[name]
        own = _column_codes(column, table[name])
        if codes is None:
            codes = own
            continue
        both = codes * len(column_levels(column)) + own
        codes = np.where((codes < 0) | (own < 0), -1.0, both)
    assert codes is not None  # noqa: S101 - by the callers
    return codes


def _column_codes(column: Column, values: Floats) -> Floats:
    """Return the index of each cell's level: what `decode` made of the cell, or where that goes."""
    if isinstance(column, Category):
        known = level_codes(column, values)
        return np.where(known < 0, float(len(column.levels)), known)
    constant = -1.0
    if not column.leave_out and column.missing in {0, 1}:
        constant = float(column.missing)
    return np.where(np.isnan(values), constant, np.clip(values, 0.0, 1.0))


class GroupEncoder:
    """Cells of rows in groups that are seen through schemas of their own, as `Encoder` maps them.

    Promises: each row's cells are those that the encoder of its group makes of it.
    """

    def __init__(self, schema: Schema, scale: float) -> None:
        self._encoders = [Encoder(group, scale) for group in schema.group_schemas]
        self._missing = np.hstack([encoder.missing for encoder in self._encoders])
        self._dimension = schema.dimension

    def map_values(self, table: Mapping[str, Floats], codes: Floats) -> Floats:
        """Map what `decode` returned, or equal slices of it; rows of no group are 0."""
        cells = np.zeros((self._dimension, len(codes)))
        for code, encoder in enumerate(self._encoders):
            chosen = np.flatnonzero(codes == code)
            if len(chosen):
                own = {name: values[chosen] for name, values in table.items()}
                cells[:, chosen] = encoder.map_values(own, len(chosen))
        return cells

    def missing(self, codes: Floats) -> Floats:
        """Return the public cells that replace NaN in each row."""
        return np.asarray(self._missing[:, np.maximum(codes, 0).astype(np.int64)])
