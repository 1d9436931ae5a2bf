"""The cells of pandas and Polars columns that those libraries cannot hand over as Arrow.

Both choose types by looking at cells: one long integer makes a column of Python objects or of 128
bits. An export that fails, or a type that is refused, would tell of that one cell.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from dplinear.schema.canonical import discreet, text_in
from dplinear.schema.cells import Cells
from dplinear.schema.storage import by_chunk, spread, whole
from dplinear.schema.unit_spans import write_span

_LONG = ("Int128", "UInt128")
_NOTHING: Any = None
_NAT = np.iinfo(np.int64).min  # the tick that is no time in NumPy


def series_cells(series: Any) -> Cells:
    """Return the cells of a pandas series.

    Its own Arrow export raises on columns of mixed objects, that is, because of values.
    """
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufOM":
        return series.to_numpy()
    if getattr(series.dtype, "tz", None) is not None and not hasattr(series.dtype, "pyarrow_dtype"):
        return series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    levels = getattr(series.dtype, "categories", None)
    if levels is not None and levels.dtype == object and not all(type(a) is str for a in levels):
        return series.to_numpy(dtype=object)  # some mixtures of objects crash Arrow's own reading
    cells = _export(series)
    return _objects(series) if cells is None else _without_ends(cells)


@discreet(_NOTHING)
def _export(series: Any) -> Any:
    """Return a series as Arrow has it; None where its cells keep it from being exported."""
    return pa.array(series, from_pandas=True)


def _objects(series: Any) -> Cells:
    """Return cells as objects, one by one where a conversion of them all raises because of one."""
    whole = _convert(series)
    if whole is not None:
        return whole
    cells = np.empty(len(series), dtype=object)
    for index in range(len(series)):
        cells[index] = _cell((series, index))
    return cells


@discreet(_NOTHING)
def _convert(series: Any) -> Any:
    return series.to_numpy(dtype=object)


@discreet(_NOTHING)
def _cell(at: tuple[Any, int]) -> Any:
    series, index = at
    return series.iloc[index]


def _without_ends(cells: Any) -> Cells:
    """Return cells, dates as NumPy's: pandas' last tick is a far date, and DuckDB's infinity."""
    coded = pa.types.is_dictionary(cells.type)
    kind = cells.type.value_type if coded else cells.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return cells
    return by_chunk(_dates, cells) if isinstance(cells, pa.ChunkedArray) else _dates(cells)


def _dates(cells: pa.Array) -> Cells:
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return spread(_dates(cells.dictionary), cells.indices, np.datetime64("NaT"))
    whole(cells)
    unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date(kind) else kind.unit
    ticks = cells.cast(pa.int32() if unit == "D" else pa.int64()).cast(pa.int64())
    return np.asarray(ticks.fill_null(_NAT)).view(f"M8[{unit}]")


def _bytes_of(cell: Any) -> bytes | None:
    """Return a cell's text as bytes: half of a letter is none that Polars writes as text."""
    text = text_in(cell)
    return write_span(cell) if text is None else text.encode("utf-8", "surrogatepass")


def exportable(frame: Any) -> Any:
    """Return a Polars frame whose columns all have an Arrow type: some as text, lists as missing.

    Requires: a frame that is no lazy one.
    """
    import polars as pl

    changed = []
    for name, kind in frame.schema.items():
        if str(kind) in _LONG:
            changed.append(frame[name].cast(pl.String))
        elif kind == pl.Object:
            cells = [_bytes_of(cell) for cell in frame[name].to_list()]
            changed.append(pl.Series(name, cells, dtype=pl.Binary))
        elif kind.is_nested():
            changed.append(pl.Series(name, [None] * len(frame), dtype=pl.String))
    return frame.with_columns(changed) if changed else frame
