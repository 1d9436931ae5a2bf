"""The containers that hold a table: arrays, frames, streams and files.

What they do depends on flavours and public throws alone, never on cells, so that neighbours are
held alike. `flavours_of` says which flavours of cells a container can hold.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

from services import library

from .dice import Dice
from .tables import EARLY, FLAVOURS, LATE, Line, Private, objects

_ARROW = {
    "float": pa.float64(),
    "integer": pa.int64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us"),
    "decimal": pa.decimal128(20, 5),
}
_PLAIN = tuple(_ARROW)
_OTHERS = {
    "float": (pa.float32(), pa.float16()),
    "text": (pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()),
    "bytes": (pa.large_binary(), pa.binary_view()),
    "time": (
        pa.timestamp("ns"),
        pa.timestamp("s"),
        pa.date32(),
        pa.date64(),
        pa.timestamp("ms", "UTC"),
    ),
}


def _arrow_type(flavour: str, dice: Dice) -> pa.DataType:
    others = _OTHERS.get(flavour)
    return dice.pick(others) if others and dice.chance(0.3) else _ARROW[flavour]


def _arrow_array(cells: list[Any], kind: pa.DataType, flavour: str) -> pa.Array:
    if flavour == "time" and pa.types.is_timestamp(kind) and kind.unit == "ns":
        cells = [min(max(one, EARLY), LATE) for one in cells]
    if kind == pa.float16():
        with np.errstate(all="ignore"):
            return pa.array(np.array(cells, np.float64).astype(np.float16), kind)
    if pa.types.is_dictionary(kind):
        return pa.array(cells, pa.string()).dictionary_encode().cast(kind)
    return pa.array(cells, kind)


def arrow(table: Private, dice: Dice) -> pa.Table:
    kinds = [_arrow_type(flavour, dice) for flavour in table.flavours]
    columns = [
        _arrow_array(table.column(place), kind, flavour)
        for place, (kind, flavour) in enumerate(zip(kinds, table.flavours, strict=True))
    ]
    return pa.Table.from_arrays(columns, names=list(table.names))


def _numbers(table: Private, dice: Dice) -> Any:
    kind = dice.pick(("f8", "f8", "f4", "g", ">f8"))
    with np.errstate(all="ignore"):
        cells = np.array(table.rows, np.float64).reshape(len(table.rows), len(table.names))
        array: Any = cells.astype(kind)
    return dice.make(
        (
            lambda: array,
            lambda: np.asfortranarray(array),
            lambda: array[::-1],
            lambda: np.ma.masked_invalid(array),
        )
    )


def _object_array(table: Private, dice: Dice) -> Any:
    _ = dice
    cells = [one for row in table.rows for one in row]
    return objects(cells, (len(table.rows), len(table.names)))


def _structured(table: Private, dice: Dice) -> Any:
    _ = dice
    array = np.empty(len(table.rows), [(name, "f8") for name in table.names])
    for place, name in enumerate(table.names):
        array[name] = table.column(place)
    return array


def _sparse(table: Private, dice: Dice) -> Any:
    made = np.array(table.rows, float).reshape(len(table.rows), len(table.names))
    return dice.pick((scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array))(made)


def _pandas(table: Private, dice: Dice) -> Any:
    pandas = library("pandas")
    _ = dice
    columns = [_series(pandas, table.column(place)) for place in range(len(table.names))]
    frame = pandas.concat(columns, axis=1) if columns else pandas.DataFrame()
    frame.columns = list(table.names)
    return frame


def _series(pandas: Any, cells: list[Any]) -> Any:
    """Return a column of the type that pandas finds for its cells, as far as they let it look."""
    try:
        return pandas.Series(objects(cells, (-1,))).infer_objects()
    except (RuntimeError, ValueError):
        return pandas.Series(objects(cells, (-1,)), dtype=object)


def _polars(table: Private, dice: Dice) -> Any:
    polars = library("polars")
    frame = polars.from_arrow(_plain(table))
    return frame.lazy() if dice.chance(0.5) else frame


def _plain(table: Private) -> pa.Table:
    columns = [
        _arrow_array(table.column(place), _ARROW[flavour], flavour)
        for place, flavour in enumerate(table.flavours)
    ]
    return pa.Table.from_arrays(columns, names=list(table.names))


def _batch(table: Private, dice: Dice) -> Any:
    whole = arrow(table, dice).combine_chunks()
    found = whole.to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema=whole.schema)


def _duck(table: Private, dice: Dice) -> Any:
    _ = dice
    duckdb = library("duckdb")
    made = _plain(table)  # noqa: F841 - DuckDB finds it by its name
    return duckdb.sql("SELECT * FROM made")


def _file(folder: Path, suffix: str) -> Path:
    return folder / f"table{suffix}"


def _parquet(table: Private, dice: Dice, folder: Path) -> Any:
    file = _file(folder, ".parquet")
    pq.write_table(_plain(table), file, row_group_size=dice.pick((3, 1000)))
    return dice.pick((str(file), file, [file], str(folder)))


def _ipc(table: Private, dice: Dice, folder: Path) -> Any:
    file = _file(folder, ".arrow")
    whole = _plain(table)
    make = dice.pick((pa.ipc.new_file, pa.ipc.new_stream))
    with pa.OSFile(str(file), "wb") as out, make(out, whole.schema) as writer:
        writer.write_table(whole)
    return file


def _csv(table: Private, dice: Dice, folder: Path) -> Any:
    file = _file(folder, dice.pick((".csv", ".tsv")))
    mark = "\t" if file.suffix == ".tsv" else ","
    lines = [mark.join(_quoted(name) for name in table.names)]
    lines += [_line(row, mark) for row in table.rows]
    end = dice.pick(("\n", "\r\n"))
    file.write_bytes((end.join(lines) + end).encode("utf-8", "surrogateescape"))
    return file


def _line(row: list[Any], mark: str) -> str:
    if row and isinstance(row[0], Line):
        return row[0]
    return mark.join(_written(one) for one in row)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _written(value: Any) -> str:
    if isinstance(value, bytes):
        return _quoted(value.decode("utf-8", "surrogateescape"))
    return _quoted(str(value))


def _stream(table: Private, dice: Dice) -> Any:
    return arrow(table, dice).to_reader()


_IN_MEMORY: dict[str, tuple[tuple[str, ...], Callable[[Private, Dice], Any]]] = {
    "numbers": (("float",), _numbers),
    "objects": (FLAVOURS, _object_array),
    "structured": (("float",), _structured),
    "sparse": (("float",), _sparse),
    "pandas": (FLAVOURS, _pandas),
    "polars": (_PLAIN, _polars),
    "arrow": (_PLAIN, arrow),
    "batch": (_PLAIN, _batch),
    "stream": (_PLAIN, _stream),
    "duckdb": (_PLAIN, _duck),
}
_STORED: dict[str, tuple[tuple[str, ...], Callable[[Private, Dice, Path], Any]]] = {
    "parquet": (_PLAIN, _parquet),
    "ipc": (_PLAIN, _ipc),
    "csv": (_PLAIN, _csv),
}
CONTAINERS = (*_IN_MEMORY, *_STORED)


def flavours_of(container: str) -> tuple[str, ...]:
    """Return which flavours of cells a container can hold."""
    return {**_IN_MEMORY, **_STORED}[container][0]


def held(table: Private, container: str, dice: Dice, folder: Path) -> Any:
    """Return a table in a container."""
    if container in _IN_MEMORY:
        return _IN_MEMORY[container][1](table, dice)
    return _STORED[container][1](table, dice, folder)
