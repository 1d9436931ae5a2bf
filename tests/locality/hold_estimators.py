"""X and y of estimators, in every kind of table that `fit` takes: all columns, and the first."""

from collections import UserList, deque
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fuzz.dice import Dice
from fuzz.tables import Line, objects

from .holders import SOURCES, Hold, Source, source
from .pairs import Demands, Table
from .sources_of import tables


def _split(data: Any, names: list[str], dice: Dice) -> tuple[Any, Any]:
    """Return a table and its first column, as its library gives them."""
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, np.ndarray):
        return data, data[:, 0]
    if isinstance(data, pa.Table):
        return data, data.column(0)
    column = data[names[0]]
    if not hasattr(column, "iloc"):
        return data, column
    holders = (lambda: column, lambda: column.array, lambda: type(data.columns)(column))
    return data, dice.make(holders)


def _fit(hold: Hold) -> Hold:
    def held(table: Table, dice: Dice, folder: Path) -> Any:
        return _split(hold(table, dice, folder), table.names, dice)

    return held


def _labels(hold: Hold) -> Hold:
    """Labels are the first column's; the public classes are two of its ordinary cells."""

    def held(table: Table, dice: Dice, folder: Path) -> Any:
        X, y = _split(hold(table, dice, folder), table.names, dice)
        return X, y, classes_of(table, Dice(table.public))

    return held


def classes_of(table: Table, dice: Dice) -> tuple[Any, Any]:
    """Return two classes that a user may name for the first column, all text or all numbers."""
    declared = table.columns[0].declared
    levels = declared if isinstance(declared, list) else None
    if levels is None and isinstance(declared, dict):
        levels = declared.get("levels")
    if levels is not None:
        return levels[0], levels[1]
    return dice.pick(((0, 1), (3, 41), ("3", "41"), ("true", "false"), ("no", "yes")))


def _lists(table: Table, dice: Dice, folder: Path) -> Any:
    """Lists of several kinds; a line stands for a row of another width."""
    _ = folder
    rows = [row[0].split(",") if type(row[0]) is Line else list(row) for row in table.rows]
    make = dice.pick((list, list, tuple, deque, UserList))
    return make(rows), make(row[0] if len(row) == len(table.columns) else row for row in rows)


def _list_labels(table: Table, dice: Dice, folder: Path) -> Any:
    return *_lists(table, dice, folder), classes_of(table, Dice(table.public))


_IN = (
    "numpy_numbers",
    "numpy_objects",
    "numpy_inferred",
    "numpy_text",
    "numpy_masked",
    "pandas_frame",
    "pandas_objects",
    "pandas_derived",
    "narwhals_pandas",
    "pandas_nullable",
    "pandas_categorical",
    "pandas_arrow",
    "pandas_codes",
    "pandas_csv",
    "polars_frame",
    "polars_codes",
    "polars_csv",
    "arrow_csv",
    "arrow_numbers",
    "arrow_text",
)
_CONFINED = ("pandas_frame", "pandas_csv", "polars_csv", "arrow_csv", "arrow_numbers")
_ENTRIES = ("text", "number", "object", "line")
source("fit_lists", kinds=_ENTRIES, named=False, door="fit")(_lists)
source("labels_lists", kinds=_ENTRIES, named=False, door="labels")(_list_labels)
for _name in _IN:
    _inner = tables()[_name]
    _demands = Demands(_inner.demands.kinds, _inner.demands.plain, named=False)
    _doors = [("fit", _fit), ("labels", _labels)]
    if _name in _CONFINED:
        _doors.append(("confined", _labels))
    for _door, _make in _doors:
        SOURCES[f"{_door}_{_name}"] = Source(
            f"{_door}_{_name}",
            _make(_inner.hold),
            _demands,
            door=_door,
            needs=_inner.needs,
            share=0.5,
            refused=_inner.refused,
            infers=_inner.infers,
        )


def _examples(table: Table, dice: Dice, folder: Path) -> Any:
    """Dense rows of the learners in constraint sets."""
    _ = folder
    cells = [cell for row in table.rows for cell in row]
    X = objects(cells, (len(table.rows), len(table.columns)))
    public = Dice(table.public)
    options: dict[str, Any] = {"intercept": dice.pick((0.0, 1.0))}
    classes = classes_of(table, public)
    options |= {"classes": classes} if dice.chance(0.5) else {"target_bounds": (0.0, 100.0)}
    return X, X[:, 0], options


def _plain_examples(table: Table, dice: Dice, folder: Path) -> Any:
    made = tables()["numpy_numbers"].hold(table, dice, folder)
    options = {"target_bounds": (0.0, 100.0), "intercept": dice.pick((0.0, 1.0))}
    return made, made[:, 0], options


source("examples_objects", named=False, door="examples")(_examples)
source("examples_numbers", kinds=("number",), plain=True, named=False, door="examples")(
    _plain_examples
)
