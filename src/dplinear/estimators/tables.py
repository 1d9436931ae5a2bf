"""X and y as one table for the gate, and X as numbers for predictions.

Promises, for every function here: what raises depends on public facts only (the kind of container,
its dtype, its columns, whether X and y are equally long), and no message quotes a cell or a count
of rows. scikit-learn's own array checks do both, so they are not used.
"""

import warnings
from array import array as buffer
from collections import Counter, UserList, deque
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Array, Floats, kind_of
from dplinear.schema import INTERCEPT
from dplinear.schema.canonical import discreet
from dplinear.schema.cells import array_of, numbers_of, objects_of, texts_of_datetimes
from dplinear.schema.columns import Numeric
from dplinear.schema.frames import exportable, series_cells
from dplinear.schema.libraries import library_of, plain_frame, unwrap
from dplinear.schema.storage import has_cells
from dplinear.schema.unit_spans import objects_of_spans

_NUMBERS = "biuf"
_CELL = -1  # what an entry of a list is that is no row
_READABLE = "biufOSU"
_LISTS = (list, tuple, deque, UserList)
_NO_ROW: list[Any] | None = None
_TYPED = ("__array__", "__array_interface__", "__array_struct__", "__arrow_c_stream__")
_NUMBER = Numeric("number", Fraction(0), Fraction(1), Fraction(0))


def features_of(X: Any, where: str, columns: int | None = None) -> Array:
    """Return X as an array of two dimensions, its cells as they are.

    Requires: `columns`, their number, where that is public. A list has no shape of its own: without
    it, X has as many columns as most of its rows (docs/locality.md).
    """
    table = _array(X, "X", where, columns)
    if table.ndim != 2:
        hint = (
            "Reshape your data: X.reshape(-1, 1) is a table of one column, X.reshape(1, -1) of one "
            "row."
        )
        rule = "a table of two dimensions"
        raise rejection("X", where, rule, f"{table.ndim} dimension(s)", hint)
    if not table.shape[1]:
        raise rejection("X", where, "a table with at least one column", "0 feature(s)")
    return table


def rows_of(X: Any, where: str) -> Any:
    """Return X as an array or, where it is sparse, as it is: in any of SciPy's formats."""
    if not _is_sparse(X):
        return features_of(X, where)
    if len(X.shape) != 2 or not X.shape[1]:
        raise rejection("X", where, "a table with at least one column", f"{X.shape[1:]}")
    if X.dtype.kind not in _NUMBERS:
        hint = "Complex data not supported." if X.dtype.kind == "c" else ""
        raise rejection("X", where, "of real numbers", kind_of(X.dtype), hint)
    # Not X.tocsr(), which may add up a row's entries in an order that another row's decides.
    return X


def plain_numbers(table: Any) -> Any:
    """Return the numbers of a table as `release_model` reads them, NaN where there is none."""
    if _is_sparse(table):
        return table
    with np.errstate(all="ignore"):
        return numbers_of(_NUMBER, table.ravel()).reshape(table.shape)


def column_of(y: Any, rows: int, where: str, what: str = "targets") -> Array:
    """Return y as one column of targets or labels; a table of one column is taken, with a word."""
    found = targets_of(y, rows, where, 1)
    if found.ndim == 1:
        return found
    if found.shape[1] > 1:
        raise rejection("y", where, f"of one column of {what}", found.shape[1])
    words = "A column-vector y was passed when a 1d array was expected."
    warnings.warn(words, DataConversionWarning, stacklevel=4)
    return np.asanyarray(found[:, 0])


def centre_columns(table: Array, columns: Sequence[Numeric]) -> tuple[Floats, Floats, Floats]:
    """Return the cells that bounds map to [−1, 1], the columns' middles and their half-widths."""
    ends = [(float(column.low), float(column.high)) for column in columns]
    low, high = np.array(ends).T
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    with np.errstate(all="ignore"):
        cells = (np.clip(numbers(table, columns), low, high) - middle) / half
    return np.clip(cells, -1.0, 1.0), middle, half


def targets_of(y: Any, rows: int, where: str, columns: int | None = None) -> Array:
    """Return y as an array of one or two dimensions, as long as X; `columns` as for X.

    Where there is one, an entry of a list is a cell, or a row of one cell.
    That X and y differ in length is a slip of the program that cut them, not a fact about anybody
    in them, so it may raise; the lengths themselves stay unsaid.
    """
    if columns == 1 and _is_list(y):
        y, columns = [_only_cell(entry) for entry in y], _CELL
    targets = _array(y, "y", where, columns)
    if targets.ndim not in {1, 2}:
        rule = "of one dimension, or of two with a column for each target"
        raise rejection("y", where, rule, f"{targets.ndim} dimension(s)")
    if targets.ndim == 2 and not targets.shape[1]:
        raise rejection("y", where, "of at least one column", "none")
    if len(targets) != rows:
        raise rejection("y", where, "as long as X", "another number of rows")
    return targets


def one_column(values: Any, parameter: str, where: str) -> Array:
    """Return one entry for each row, of any type: those of a list, a series or an array."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        values = _as_objects(values)
    found = _array(values, parameter, where, _CELL)
    if found.ndim == 2 and found.shape[1] == 1:
        found = np.asanyarray(found[:, 0])
    if found.ndim != 1:
        raise rejection(parameter, where, "of one dimension", f"{found.ndim} dimension(s)")
    return found


def has_comparable_cells(values: Any) -> bool:
    """Return whether a column's type says that cells are more than lists, structs or the like.

    True where there is no type, or one of objects: what is in them is private.
    """
    values = unwrap(values)
    library = library_of(values)
    if isinstance(values, pa.Table | pa.RecordBatch):
        kinds = list(values.schema.types)
    elif isinstance(values, pa.Array | pa.ChunkedArray):
        kinds = [values.type]
    elif library not in {"pandas", "polars"} or _lazy(values):
        return True
    else:
        kinds = list(values.dtypes) if hasattr(values, "columns") else [values.dtype]
    if library == "polars":
        return not any(kind.is_nested() for kind in kinds)
    typed = (getattr(kind, "pyarrow_dtype", kind) for kind in kinds)
    return all(has_cells(kind) for kind in typed if isinstance(kind, pa.DataType))


def join_columns(features: Array, targets: Array) -> Array:
    """Return one table: the features, then the targets, masks kept."""
    return _stack([features, targets])


def _stack(parts: Sequence[Array]) -> Array:
    if any(part.dtype.kind not in _NUMBERS for part in parts):
        parts = [objects_of(part) for part in parts]
    masked = any(isinstance(part, np.ma.MaskedArray) for part in parts)
    stack = np.ma.column_stack if masked else np.column_stack
    with np.errstate(all="ignore"):  # a signalling NaN of a short type is no word of ours
        return np.asanyarray(stack(parts))


def numbers(table: Array, columns: Iterable[Numeric]) -> Floats:
    """Return the cells as numbers, read as `fit` reads them, but never clamped.

    Promises: a cell without a number becomes the middle of its column's bounds.
    """
    read = np.empty(table.shape)
    with np.errstate(all="ignore"):
        for index, column in enumerate(columns):
            cells = numbers_of(column, table[:, index])
            read[:, index] = np.where(np.isnan(cells), float(column.missing), cells)
    return read


def column_names(given: Sequence[Any] | None, count: int) -> list[str]:
    """Return the frame's own names where a schema can have them all, otherwise x0, x1, …."""
    names = [] if given is None else [str(name) for name in given]
    fit = [name for name in names if name.strip() and name.isprintable() and name != INTERCEPT]
    if len(set(fit)) == count:
        return names
    return [f"x{index}" for index in range(count)]


def target_names(features: Sequence[str], targets: Array) -> list[str]:
    """Return y, or y0, y1, …, none of them the name of a feature.

    One target has one name, in a column or in a table: lists without rows cannot tell which.
    """
    several = targets.ndim > 1 and targets.shape[1] > 1
    names = [f"y{index}" for index in range(targets.shape[1])] if several else ["y"]
    while set(names) & set(features):
        names = [f"target {name}" for name in names]
    return names


def _array(values: Any, parameter: str, where: str, columns: int | None = None) -> Array:
    """Return an array, with the dtype its holder gave it; lists have none, so theirs is object."""
    values = unwrap(values)
    if _is_sparse(values):
        rule = "dense: sparse input is not supported"
        raise wrong_type(parameter, where, rule, type(values), "pass values.toarray().")
    if isinstance(values, np.ndarray):
        return _readable(values, parameter, where)
    # A list's dtype would be chosen by its cells: one complex number makes all of them complex.
    array = _of_lists(values, columns) if _is_list(values) else _of_frame(values, parameter, where)
    return _readable(_as_objects(array), parameter, where)


def _as_objects(array: Array) -> Array:
    """Return cells of any dtype as ones that are readable: a frame's dtypes may follow its cells.

    Spans of time stay spans, as beside a cell that makes a column one of objects; a cast would make
    integers.
    """
    if array.dtype.kind == "M":  # by text: NumPy makes integers of far dates
        return texts_of_datetimes(array.ravel()).reshape(array.shape)
    if array.dtype.kind == "m":
        return objects_of_spans(array)
    return array if array.dtype.kind in _READABLE else array.astype(object)


def _of_frame(values: Any, parameter: str, where: str) -> Array:
    hint, names, array = _lazy(values), [], np.asarray(None)
    if not hint:
        try:
            names, array = _names_of(values), _whole(values)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - the words of another library may quote cells
            array = np.asarray(None)
    if not array.ndim:
        rule = "an array, a data frame or a list of rows"
        raise wrong_type(parameter, where, rule, type(values), hint)
    if len(set(names)) < len(names):
        raise rejection(parameter, where, "a table whose columns have different names", names)
    return array


def _lazy(values: Any) -> str:
    """Return what to do about a table that is yet to be computed; nothing where it is one."""
    known = set(dir(type(values)))
    if "__dask_graph__" in known:
        return "compute a Dask collection first: values.compute()."
    return "collect a lazy frame first." if "collect" in known and "shape" not in known else ""


def _whole(values: Any) -> Array:
    """Return a frame or a column as an array.

    An Arrow table is read column by column: one type for all of them depends on what is missing.
    """
    library = library_of(values)
    if library == "pandas" and not hasattr(values, "iloc"):  # an index, or what a series holds
        return _of_pandas_array(values)
    if hasattr(values, "iloc"):
        return _of_pandas(values)
    if isinstance(values, pa.Array):
        return array_of(values)
    if not (hasattr(values, "__array__") and hasattr(values, "__arrow_c_stream__")):
        return np.asarray(values)
    polars = library == "polars"
    if not hasattr(values, "columns"):
        column = exportable(values.to_frame()).to_series() if polars else values
        return array_of(pa.chunked_array(column))
    if polars:
        values = exportable(values)
    columns = [array_of(column) for column in pa.table(values).columns]
    return _stack(columns) if columns else np.asarray(values)


def _of_pandas_array(values: Any) -> Array:
    """Return an index, or what a series holds, as an array.

    A series guesses the type of objects anew, and raises over some, so it is made of typed ones.
    """
    from pandas import Series
    from pandas.arrays import NumpyExtensionArray

    if isinstance(values, NumpyExtensionArray) or isinstance(values.dtype, np.dtype):
        return _as_objects(np.asarray(values))
    return _of_pandas(Series(values))


def _of_pandas(values: Any) -> Array:
    """Return a frame or a series of pandas as an array.

    Categories are taken by their codes: NumPy asks each what it is, and some raise.
    """
    if getattr(values, "ndim", 0) == 2:
        if library_of(values) == "pandas":
            values = plain_frame(values)
        columns = [_of_pandas(values.iloc[:, index]) for index in range(values.shape[1])]
        return _stack(columns) if columns else np.asarray(values)
    levels = getattr(values.dtype, "categories", None)
    if isinstance(values.dtype, np.dtype):
        return _as_objects(np.asarray(values))
    if levels is None or levels.dtype != object:  # pandas' own conversion may raise
        cells = series_cells(values)
        return _as_objects(cells if isinstance(cells, np.ndarray) else array_of(cells))
    known = np.empty(len(levels) + 1, dtype=object)  # a code of -1 is the last one: missing
    for index, level in enumerate(levels):
        known[index] = level
    return np.asarray(known[np.asarray(values.cat.codes)])


def _names_of(values: Any) -> list[str]:
    """Return the names of a frame's columns: of some kinds `columns` are the cells themselves."""
    named = getattr(values, "column_names" if hasattr(values, "column_names") else "columns", ())
    return [str(name) for name in named if isinstance(name, str | int | float | tuple)]


def _is_list(values: object) -> bool:
    """Return whether a container is a list to us: it has a length and entries, but no type.

    Text is none, nor is what NumPy reads by a type of its own, such as a buffer.
    """
    kind = type(values)
    if issubclass(kind, _LISTS):
        return True
    if _is_sparse(values) or issubclass(kind, str | bytes | bytearray | memoryview | buffer):
        return False
    # Not dir(kind): an enumeration says there what its class has, and its members lack.
    known = {name for base in kind.__mro__ for name in vars(base)}
    typed = {*_TYPED, "keys", "collect"} & known
    return not typed and {"__len__", "__getitem__"} <= known


def _of_lists(values: Sequence[Any], columns: int | None) -> Array:
    """Return a list of cells, or of rows, as an array of objects.

    A row is a list or an array. NumPy would ask every cell what it is: some raise, and others are
    sequences that it takes apart. An entry that is no row of so many columns is missing, and
    changes no other. Where `columns` is None, what most entries are is what a list is one of.
    """
    values = list(values)
    rows = [_cells(row) for row in values]
    width = _usual(rows) if columns is None else columns
    if width == _CELL:
        array = np.empty(len(rows), dtype=object)
        for index, cell in enumerate(values):
            array[index] = cell
        return array
    table = np.full((len(rows), width), None, dtype=object)
    for index, row in enumerate(rows):
        if row is not None and len(row) == width:
            for column, cell in enumerate(row):
                table[index, column] = cell
    return table


def _usual(rows: list[list[Any] | None]) -> int:
    """Return how long most rows are, or that most entries are cells.

    No rule that looks at nothing but rows keeps one of them from deciding: between a list of one
    width and one of another there are lists that differ in a row each, and in one of these steps
    the width changes. This rule puts it where half of the rows are of another width.
    """
    seen = Counter(_CELL if row is None else len(row) for row in rows)
    return max(seen, key=lambda each: (seen[each], each), default=_CELL)


@discreet(_NO_ROW)
def _cells(row: Any) -> list[Any] | None:
    kind = type(row)
    nested = issubclass(kind, _LISTS) or (issubclass(kind, np.ndarray) and row.ndim > 0)
    return list(row) if nested else None


def _only_cell(entry: Any) -> Any:
    row = _cells(entry)
    if row is None:
        return entry
    return row[0] if len(row) == 1 else None


def _readable(array: Array, parameter: str, where: str) -> Array:
    if array.dtype.kind in _READABLE:
        return array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
    rule = "of real numbers, of text or of objects"
    hint = "Complex data not supported." if array.dtype.kind == "c" else ""
    raise rejection(parameter, where, rule, kind_of(array.dtype), hint)


def _is_sparse(values: object) -> bool:
    return bool(sparse.issparse(values))
