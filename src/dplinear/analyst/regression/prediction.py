"""The features of an analyst's own rows, encoded as the private rows were."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dplinear.analyst.regression.formulas import CONSTANT, Formula
from dplinear.arguments import listed, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.schema import Schema
from dplinear.schema.cells import Cells
from dplinear.schema.encoding import Encoder
from dplinear.schema.frames import exportable, series_cells
from dplinear.schema.libraries import library_of, plain_frame, unwrap

WHERE = "predict"
_KINDS = (
    "an array with the model's features, or a table with its source columns (pandas, Polars, "
    "Arrow, a structured array, or a mapping of columns)"
)


def design(schema: Schema, names: Sequence[str], data: Any) -> Floats:
    """Return the features of some rows in their own units: rows x names.

    Requires: an array or list of rows, features in the order of `names`, taken as it is; or a table
    that has the source columns of those features, whatever else it has.
    """
    if _is_array(data):
        return _array(names, data)
    # Clipping of whole rows would make a prediction depend on columns outside the model.
    needed = schema.select(names, clip=False)
    columns, rows = _columns(needed, data)
    encoder = Encoder(needed)
    cells = encoder.finish(encoder.columns(columns, rows))
    chosen = [needed.names.index(name) for name in names]
    features = [needed.features[index] for index in chosen]
    centre = np.array([float(feature.centre) for feature in features])
    width = np.array([float(feature.half_width) for feature in features])
    return np.asarray(cells[chosen].T * width + centre)


def formula_design(schema: Schema, formula: Formula, data: Any) -> Floats:
    """Return the columns of a formula for some rows, but for the constant: as `design` does."""
    names = tuple(name for name in formula.names if name != CONSTANT)
    if _is_array(data):
        return _array(names, data)
    rows = design(schema, formula.features, data)
    if formula.constant:
        rows = np.column_stack((np.ones(len(rows)), rows))
    own = [index for index, name in enumerate(formula.names) if name != CONSTANT]
    return np.asarray(rows @ formula.combination[:, own])


def _is_array(data: Any) -> bool:
    structured = isinstance(data, np.ndarray) and data.dtype.names is not None
    return isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and not structured)


def _array(names: Sequence[str], data: Any) -> Floats:
    rule = f"of shape (rows, {len(names)}): {', '.join(names)}"
    try:
        rows = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        hint = "categories and dates go by name: pass a table with the source columns."
        raise wrong_type("data", WHERE, "an array of numbers", type(data).__name__, hint) from None
    if rows.ndim != 2 or rows.shape[1] != len(names):
        hint = "a table with the source columns may have more of them, in any order."
        raise rejection("data", WHERE, rule, f"shape {rows.shape}", hint)
    return rows


def _columns(schema: Schema, data: Any) -> tuple[dict[str, Cells], int]:
    """Return the needed columns of a table, and its number of rows."""
    data = unwrap(data)
    library = library_of(data)
    if library == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if library == "polars" and hasattr(data, "schema"):
        data = exportable(data)
    if library == "pandas" and hasattr(data, "columns"):
        data = plain_frame(data)
        _check_names(schema, data.columns)
        return {name: series_cells(data[name]) for name in schema.columns}, len(data)
    if isinstance(data, np.ndarray):
        _check_names(schema, data.dtype.names or ())
        return {name: data[name] for name in schema.columns}, len(data)
    if isinstance(data, Mapping):
        _check_names(schema, data)
        return _alike({name: _cells(data[name]) for name in schema.columns})
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not hasattr(data, "__arrow_c_stream__"):
        raise wrong_type("data", WHERE, _KINDS, type(data).__name__)
    table = (
        data if isinstance(data, pa.Table) else pa.RecordBatchReader.from_stream(data).read_all()
    )
    _check_names(schema, table.column_names)
    return {name: table[name] for name in schema.columns}, table.num_rows


def _check_names(schema: Schema, names: Any) -> None:
    absent = [name for name in schema.columns if name not in set(names)]
    if absent:
        rule = "a table with every column that the model needs"
        hint = f"the model needs {listed(schema.columns, 12)}."
        raise rejection("data", WHERE, rule, f"one without {', '.join(absent)}", hint)


def _cells(column: Any) -> Cells:
    """Return a column of a mapping as an array; lists may hold anything, as cells may."""
    if isinstance(column, pa.Array | pa.ChunkedArray | np.ndarray):
        return column
    if isinstance(column, str | bytes) or not hasattr(column, "__iter__"):
        raise wrong_type("data", WHERE, "a mapping of names to columns of values", column)
    listed = list(column)
    cells = np.empty(len(listed), dtype=object)
    cells[:] = listed
    return cells


def _alike(columns: dict[str, Cells]) -> tuple[dict[str, Cells], int]:
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        shown = ", ".join(f"{name}: {len(column)}" for name, column in columns.items())
        raise rejection("data", WHERE, "made of columns of one length", shown)
    return columns, lengths.pop()
