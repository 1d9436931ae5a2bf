"""Which columns may have cells filled in: their missing cells become a number, or a level.

A column with `missing_indicator` is none of them: its indicator says where cells were missing.
"""

from dplinear.schema.columns import Category, Numeric
from dplinear.schema.schema import Schema


def numbers_filled(schema: Schema) -> tuple[str, ...]:
    """Return the columns of numbers, truth values and dates whose missing cells are filled in."""
    return tuple(
        name
        for name, column in schema.declared.items()
        if isinstance(column, Numeric)
        and not column.leave_out
        and not column.missing_indicator
        and name not in schema.by
    )


def levels_filled(schema: Schema) -> tuple[str, ...]:
    """Return the categories of which cells that hold no level join a declared one."""
    return tuple(
        name
        for name, column in schema.declared.items()
        if isinstance(column, Category) and column.other is not None and name not in schema.by
    )


def filled_columns(schema: Schema) -> tuple[str, ...]:
    """Return the columns that may have cells filled in, in the order in which they are counted."""
    return (*numbers_filled(schema), *levels_filled(schema))


def filled_features(schema: Schema) -> tuple[int, ...]:
    """Return the indices of the features of `numbers_filled`: NaN there is a cell to fill in."""
    return tuple(schema.own_features(name)[0] for name in numbers_filled(schema))
