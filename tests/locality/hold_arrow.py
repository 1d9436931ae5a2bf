"""PyArrow: tables that infer or are typed, dictionaries, streams, batches; its own readers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet

from fuzz.dice import Dice

from .holders import source
from .pairs import Table
from .texts import text_of, uniform, written

_NUMBERS = (
    *(pa.float16(), pa.float32(), pa.float64(), pa.float64()),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.bool_(), pa.decimal128(30, 4), pa.decimal256(60, 4)),
)
_TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
_LONGEST_USUAL = 40  # bytes of an ordinary cell
_VIEWS = (pa.string_view(), pa.binary_view())


def _table(table: Table, columns: list[Any]) -> pa.Table:
    return pa.Table.from_arrays(columns, names=table.names)


def _form(made: pa.Table, dice: Dice) -> Any:
    """Return a table in one of the ways that Arrow holds one."""
    size = dice.pick((1, 3, 1000))
    return dice.make(
        (
            lambda: made,
            lambda: made.to_reader(max_chunksize=size),
            lambda: pa.Table.from_batches(made.to_batches(max_chunksize=size), made.schema),
            made.combine_chunks,
        )
    )


@source("arrow_inferred", infers=True, refused=0.15)
def _inferred(table: Table, dice: Dice, _: Path) -> Any:
    """What pa.array finds for a list of cells; mixtures of types, which it refuses, as text."""
    columns = [pa.array(uniform(table.cells(place))) for place in range(len(table.columns))]
    return _form(_table(table, columns), dice)


@source("arrow_numbers", kinds=("number",), plain=True, refused=0.05)
def _numbers(table: Table, dice: Dice, _: Path) -> Any:
    columns = []
    for place in range(len(table.columns)):
        kind = dice.pick(_NUMBERS)
        column = pa.array([_number(cell, kind) for cell in table.cells(place)], kind)
        columns.append(in_codes(column, dice) if dice.chance(0.3) else column)
    return _form(_table(table, columns), dice)


def in_codes(column: pa.Array, dice: Dice) -> pa.ChunkedArray:
    """Return a column as codes of dictionaries, a dictionary for each chunk, of any type.

    Codes are as short as they can be, so that few more values are too many for one dictionary.
    """
    size, nothing = dice.pick((1, 3, 100)), int(dice.chance(0.3))
    chunks = []
    for start in range(0, max(len(column), 1), size):
        values = column.slice(start, size)
        codes = pa.array(range(nothing, len(values) + nothing), pa.int8())
        values = pa.concat_arrays([pa.nulls(nothing, values.type), values])
        chunks.append(pa.DictionaryArray.from_arrays(codes, values))
    return pa.chunked_array(chunks)


def _number(cell: Any, kind: pa.DataType) -> Any:
    """Return a number as its column can hold it: None where it cannot."""
    if pa.types.is_boolean(kind):
        return bool(cell) if cell is not None else None
    if pa.types.is_floating(kind):
        with np.errstate(all="ignore"):
            return np.dtype(kind.to_pandas_dtype()).type(cell) if cell is not None else None
    try:
        if pa.types.is_decimal(kind):
            return pa.scalar(cell, pa.float64()).cast(kind).as_py()
        return pa.scalar(int(cell), kind).as_py()
    except (pa.ArrowException, OverflowError, ValueError):
        return None


@source("arrow_text", kinds=("text", "broken"), refused=0.05)
def _text(table: Table, dice: Dice, _: Path) -> Any:
    columns = []
    for place in range(len(table.columns)):
        column = _text_column(table.cells(place), dice.pick((*_TEXTS, *_VIEWS)))
        columns.append(in_codes(column, dice) if dice.chance(0.3) else column)
    return _form(_table(table, columns), dice)


def _text_column(cells: list[Any], kind: pa.DataType) -> pa.Array:
    """Return text of a type, its bytes as they are: Arrow's producers need not check them."""
    binary = pa.binary()
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        binary = pa.large_binary()
    column = pa.array(
        [
            None if cell is None else text_of(cell).encode("utf-8", "surrogateescape")
            for cell in cells
        ],
        binary,
    )
    if pa.types.is_binary_view(kind) or pa.types.is_string_view(kind):
        return _views(column.to_pylist(), kind)
    return column.view(kind)


def _views(cells: list[Any], kind: pa.DataType) -> pa.Array:
    """Return views, of missing cells such as lead nowhere: Arrow's rules allow them."""
    made = pa.array(cells, pa.binary_view())
    valid, held, *data = made.buffers()
    views = np.frombuffer(held, np.int32).copy().reshape(-1, 4)
    views[np.flatnonzero(made.is_null())] = -5
    return pa.Array.from_buffers(kind, len(made), [valid, pa.py_buffer(views), *data])


@source("arrow_astray", kinds=("text", "broken"), refused=0.05, share=0.6)
def _astray(table: Table, dice: Dice, _: Path) -> Any:
    """Views of long texts lead to no buffer, beyond one or before it: nobody checks them."""
    columns, wrong = [], dice.pick(((99, 0), (-1, 0), (0, 2**30), (0, -1)))
    for place in range(len(table.columns)):
        made = _text_column(table.cells(place), dice.pick(_VIEWS))
        valid, held, *data = made.buffers()
        views = np.frombuffer(held, np.int32).copy().reshape(-1, 4)
        views[views[:, 0] > _LONGEST_USUAL, 2:] = wrong
        buffers = [valid, pa.py_buffer(views), *data]
        columns.append(pa.Array.from_buffers(made.type, len(made), buffers))
    return _form(_table(table, columns), dice)


@source("arrow_dictionary", kinds=("text",))
def _dictionary(table: Table, dice: Dice, _: Path) -> Any:
    """Dictionaries: one for all, one for each batch, with doubles, with levels nobody has."""
    columns = []
    for place in range(len(table.columns)):
        index = dice.pick((pa.int8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()))
        texts = [None if cell is None else text_of(cell) for cell in table.cells(place)]
        levels = list(dict.fromkeys(texts if dice.chance(0.5) else reversed(texts)))
        if dice.chance(0.3):
            levels = [*levels, "nobody", None, *levels]
        codes = pa.array([levels.index(text) for text in texts], index)
        values = pa.array(levels, dice.pick((pa.string(), pa.large_string())))
        columns.append(pa.DictionaryArray.from_arrays(codes, values))
    return _form(_table(table, columns), dice)


def _csv_reader(file: Path, dice: Dice) -> Any:
    convert = dice.pick(
        (
            None,
            None,
            pa.csv.ConvertOptions(strings_can_be_null=True),
            pa.csv.ConvertOptions(check_utf8=False),
            pa.csv.ConvertOptions(auto_dict_encode=True),
            pa.csv.ConvertOptions(null_values=["NA"], true_values=["yes"], false_values=["no"]),
        )
    )
    parse = pa.csv.ParseOptions(newlines_in_values=dice.chance(0.5))
    return pa.csv.read_csv(file, convert_options=convert, parse_options=parse)


@source("arrow_csv", infers=True, kinds=("text",), refused=0.05)
def _csv(table: Table, dice: Dice, folder: Path) -> Any:
    file = folder / "table.csv"
    columns = [pa.array([text_of(c) for c in table.cells(i)]) for i in range(len(table.columns))]
    pa.csv.write_csv(_table(table, columns), file)
    return _csv_reader(file, dice)


@source("arrow_reads", infers=True, kinds=("text", "broken"), refused=0.1)
def _reads(table: Table, dice: Dice, folder: Path) -> Any:
    return _csv_reader(written(table, dice, folder), dice)


@source(
    "arrow_streams",
    infers=True,
    kinds=("text", "broken"),
    refused=0.1,
    excused=0.4,
    share=0.3,
)
def _streams(table: Table, dice: Dice, folder: Path) -> Any:
    """A reader of text in blocks, whose types are those of the first block."""
    options = pa.csv.ReadOptions(block_size=dice.pick((64, 4096, 1 << 20)))
    return pa.csv.open_csv(written(table, dice, folder), read_options=options)


@source("arrow_json", infers=True, kinds=("text", "number"), refused=0.2)
def _json(table: Table, dice: Dice, folder: Path) -> Any:
    """Lines of JSON, in which Arrow finds types, times among them; mixtures as text."""
    _ = dice
    columns = [uniform(table.cells(place)) for place in range(len(table.columns))]
    rows = [
        dict(zip(table.names, map(_json_cell, row), strict=True))
        for row in zip(*columns, strict=True)
    ]
    file = folder / "table.json"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return pa.json.read_json(file)


def _json_cell(cell: Any) -> Any:
    return cell if isinstance(cell, str | int | float | None) else text_of(cell)


@source("arrow_files", infers=True, refused=0.15, share=0.6)
def _files(table: Table, dice: Dice, folder: Path) -> Any:
    """Files of types that Arrow found, for us to read."""
    columns = [pa.array(uniform(table.cells(place))) for place in range(len(table.columns))]
    return kept(_table(table, columns), dice, folder)


@source("arrow_text_files", kinds=("text", "broken"), share=0.6)
def _text_files(table: Table, dice: Dice, folder: Path) -> Any:
    """Files of text, its bytes as they are, for us to read."""
    columns = [
        _text_column(table.cells(place), dice.pick(_TEXTS)) for place in range(len(table.columns))
    ]
    return kept(_table(table, columns), dice, folder)


def kept(made: pa.Table, dice: Dice, folder: Path) -> Path:
    """Write a table as Parquet, Feather, or Arrow's stream or file."""
    size = dice.pick((1, 3, 1000))
    kind = dice.pick(("parquet", "feather", "arrow", "arrows"))
    file = folder / f"kept.{kind}"
    if kind == "parquet":
        dictionary = dice.chance(0.5)
        pa.parquet.write_table(made, file, row_group_size=size, use_dictionary=dictionary)
    elif kind == "feather":
        pa.feather.write_feather(made, file, chunksize=size)
    else:
        make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(file), "wb") as out, make(out, made.schema) as writer:
            writer.write_table(made, max_chunksize=size)
    return file
