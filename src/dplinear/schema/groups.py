"""Groups of rows: which of the public levels of some columns a row holds.

A row's group is a function of that row alone. A cell that is no level of a category is in the level
`other`, or in the one that the schema names; a truth value that is missing is in no group, unless
the schema says which of the two it stands for, and then its row is left out of all of them. Where
groups are listed, rows of the combinations that are not are in none.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.arguments import rejection, wrong_type
from dplinear.schema.canonical import canonical
from dplinear.schema.columns import Category, Numeric, check_levels, write_number
from dplinear.schema.encoding import Encoder
from dplinear.schema.factor_values import level_codes
from dplinear.schema.terms import DerivedTerm

if TYPE_CHECKING:
    from dplinear.arrays import Floats
    from dplinear.schema.columns import Column
    from dplinear.schema.schema import Schema

MOST_GROUPS = 1_000
_MOST_NUMBERS = 2**24  # of all groups' matrices together
_MOST_COMBINATIONS = 2**53  # so that floats count them
OTHER = "other"

Level = str | int | float | bool
# What the argument `by` may be: a column, several, or a list of chosen combinations of levels.
By = str | Sequence[str] | Mapping[str, object] | Sequence[Mapping[str, object]]


def read_by(schema: Schema, by: object, where: str) -> Schema:
    """Return the schema split by columns; raise where `by` does not say public groups.

    `by` names a column, or several: every combination of their levels is a group. A mapping of
    columns to levels names those that are, and a list of mappings of columns to one level each
    names the combinations one by one.
    Requires: anything at all; a wrong one raises before any row is read.
    Promises: groups in the schema's order, however they were listed. A list of all of them is none.
    """
    names, chosen = _read(by, where)
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
    sizes = [len(column_levels(schema.declared[name])) for name in names]
    if math.prod(sizes) > _MOST_COMBINATIONS:
        rule = "columns of at most 2^53 combinations of levels"
        raise rejection("by", where, rule, ", ".join(names))
    listed = _list_codes(schema, names, chosen, sizes, where)
    split = schema.split_by(names, listed)
    groups = math.prod(sizes) if listed is None else len(listed)
    if groups > MOST_GROUPS or groups * split.dimension**2 > _MOST_NUMBERS:
        rule = f"of at most {MOST_GROUPS} groups, with at most 2^24 numbers in all their matrices"
        hint = 'list the groups that you need: by={"hospital": ["north", "south"]}.'
        raise rejection("by", where, rule, f"{groups} groups of {split.dimension} features", hint)
    return split


def _read(by: object, where: str) -> tuple[tuple[str, ...], list[dict[str, Any]] | None]:
    """Return the columns, and the combinations of their levels as they are listed, if they are."""
    if isinstance(by, Mapping):
        names = _names(list(by), where)
        each = [own if isinstance(own, list | tuple) else [own] for own in by.values()]
        if math.prod(map(len, each)) > MOST_GROUPS:
            rule = f"a list of at most {MOST_GROUPS} groups"
            raise rejection("by", where, rule, f"{math.prod(map(len, each))} groups")
        return names, [dict(zip(names, own, strict=True)) for own in itertools.product(*each)]
    if isinstance(by, list | tuple) and any(isinstance(entry, Mapping) for entry in by):
        rule = "a list of groups, each a mapping of the same columns to one level each"
        if not all(isinstance(entry, Mapping) for entry in by):
            raise wrong_type("by", where, rule, "a list that holds others, too")
        names = _names(list(by[0]), where)
        if any(set(entry) != set(names) for entry in by):
            raise rejection("by", where, rule, "mappings of different columns")
        return names, [dict(entry) for entry in by]
    return _names(by, where), None


def _names(by: object, where: str) -> tuple[str, ...]:
    rule = "the name of a column, or a list of names, none twice"
    hint = 'or list groups: {"hospital": ["north", "south"]}, or [{"hospital": "north"}, …].'
    listed = [by] if isinstance(by, str) else by
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise wrong_type("by", where, rule, type(by), hint)
    if not listed or len(set(listed)) < len(listed):
        raise rejection("by", where, rule, ", ".join(listed) or "none", hint)
    return tuple(listed)


def _list_codes(
    schema: Schema,
    names: tuple[str, ...],
    chosen: list[dict[str, Any]] | None,
    sizes: list[int],
    where: str,
) -> tuple[int, ...] | None:
    """Return the codes of the groups that are listed, in order; None: all combinations are."""
    if chosen is None:
        return None
    if not chosen:
        raise rejection("by", where, "a list of at least one group", "none")
    known = {name: _level_codes(schema.declared[name]) for name in names}
    codes = []
    for own in chosen:
        code = 0
        for name, size in zip(names, sizes, strict=True):
            code = code * size + _level_code(known[name], name, own[name], where)
        codes.append(code)
    if len(set(codes)) < len(codes):
        rule = "free of groups that are listed twice, so that a row is in one group at the most"
        hint = "levels are compared by what they mean: 1, 1.0 and true are one level."
        raise rejection("by", where, rule, ", ".join(names), hint)
    return None if len(codes) == math.prod(sizes) else tuple(sorted(codes))


def _level_codes(column: Column) -> dict[object, int]:
    """Return the code of each level of a column, by what it means."""
    levels = column.levels if isinstance(column, Category) else (False, True)
    found: dict[object, int] = {canonical(level): code for code, level in enumerate(levels)}
    if isinstance(column, Category) and column.other is None:
        found[canonical(OTHER)] = len(levels)
    return found


def _level_code(known: Mapping[object, int], name: str, level: object, where: str) -> int:
    rule = f"made of declared levels of {name!r}, one for each group"
    if not isinstance(level, str | numbers.Real | dt.date):
        raise wrong_type("by", where, rule, type(level))  # rows may stand here by mistake
    key = canonical(level)
    if key is None or key not in known:
        raise rejection("by", where, rule, level)
    return known[key]


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
    if schema.listed is None:
        return each[0] if len(each) == 1 else tuple(itertools.product(*each))
    indices = zip(*np.unravel_index(schema.listed, [len(own) for own in each]), strict=True)
    found = [tuple(own[i] for own, i in zip(each, index, strict=True)) for index in indices]
    return tuple(level[0] for level in found) if len(each) == 1 else tuple(found)


def combinations(schema: Schema) -> int:
    """Return how many groups there would be if none were listed."""
    return math.prod(len(column_levels(schema.declared[name])) for name in schema.by)


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
    return codes if schema.listed is None else _places(codes, np.array(schema.listed, float))


def _places(codes: Floats, listed: Floats) -> Floats:
    """Return where each code is among those that are listed, in order; −1 where it is not."""
    places = np.minimum(np.searchsorted(listed, codes), len(listed) - 1)
    return np.where(listed[places] == codes, places.astype(np.float64), -1.0)


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
