"""A table that is opened once for each window it is looked at through."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.curator.passes import Table
from dplinear.curator.sources.source import Reader
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.columns import Numeric, write_column

FARTHEST = 1e100  # what no bound may be beyond
_STEPS = {"integer": Fraction(1), "date": Fraction(1, 86_400)}  # of bounds; dates are in days


class TableView(Table):
    """A table through one window."""

    @property
    def middle(self) -> Floats:
        """The middle of each column's interval, in its own units."""
        return np.array([float(feature.centre) for feature in self.schema.features[1:]])

    @property
    def half(self) -> Floats:
        """Half the width of each."""
        return np.array([float(feature.half_width) for feature in self.schema.features[1:]])


class Windowed:
    """A private table that can be looked at through windows.

    Requires: a schema that `check_plain` takes; what opens the table under another schema of the
    same columns, for several passes.
    Promises: a cell is clamped to its window, and a missing one is its column's public constant,
    clamped too; so each row of a view is a bitwise function of one row of the table.
    """

    def __init__(
        self, opened: Callable[[Schema], Reader], schema: Schema, *, in_group: bool = False
    ) -> None:
        self._opened, self.schema = opened, schema
        self._in_group = in_group
        self._last: TableView | None = None
        columns = check_plain(schema, "Windowed")
        self.low = np.array([float(column.low) for column in columns.values()])
        self.high = np.array([float(column.high) for column in columns.values()])

    def through(self, low: Floats, high: Floats) -> TableView:
        """Return the table through a window: an interval for each column, inside its bounds."""
        declared = check_plain(self.schema, "Windowed")
        ends = zip(declared.items(), low.tolist(), high.tolist(), strict=True)
        schema = Schema(
            {name: write_column(_narrow(column, *pair)) for (name, column), *pair in ends},
            unit=self.schema.unit,
            weight=self.schema.weight,
        )
        if self._last is None or self._last.schema != schema:  # rounded rows are kept for the next
            self._last = TableView(self._opened(schema), schema, in_group=self._in_group)
        return self._last


def check_plain(schema: Schema, where: str) -> dict[str, Numeric]:
    """Return the columns of a schema of numbers alone; raise for any other."""
    if not isinstance(schema, Schema):
        raise wrong_type("schema", where, "a Schema", schema)
    columns = schema.declared
    rule = "of numeric columns alone, with an intercept, and without a row_norm"
    odd = [name for name, column in columns.items() if not _is_number(column)]
    odd += [term.label for term in schema.derived_terms]
    if odd or not schema.has_intercept or schema.row_norm is not None:
        hint = "leave out categories, derived terms, indicators of missing cells, and the row_norm."
        raise rejection("schema", where, rule, ", ".join(odd) or schema, hint)
    found = {name: column for name, column in columns.items() if isinstance(column, Numeric)}
    far = [name for name, column in found.items() if max(-column.low, column.high) > FARTHEST]
    if far:
        rule = f"of bounds within ±{FARTHEST:g}, so that squares are numbers"
        raise rejection("schema", where, rule, ", ".join(far))
    return found


def check_counted(schema: Schema, neighbours: Neighbours, where: str) -> None:
    """Raise where replacing a row, or a unit's, changes a count that a proof takes for public."""
    if schema.count_varies and neighbours.rows_are_public:
        rule = "add_remove where rows are left out, have weights or belong to units"
        hint = 'of rows without weights, declare what stands for a missing cell: {"missing": 0}.'
        raise rejection("neighbours", where, rule, str(neighbours), hint)


def _is_number(column: object) -> bool:
    return isinstance(column, Numeric) and not column.missing_indicator


def _narrow(column: Numeric, low: float, high: float) -> Numeric:
    """Return a column with closer bounds: whole numbers, or seconds, where it holds such."""
    if column.type == "boolean":
        return column
    least, most = Fraction(low), Fraction(high)
    if column.type in _STEPS:
        step = _STEPS[column.type]
        least = floor(least / step) * step
        most = max(ceil(most / step) * step, least + step)
    least, most = max(least, column.low), min(most, column.high)
    constant = min(max(column.missing, least), most)
    # Said or not, it is the constant of the whole column, and not the middle of the window.
    return replace(column, low=least, high=most, missing=constant, leave_out=bool(column.leave_out))
