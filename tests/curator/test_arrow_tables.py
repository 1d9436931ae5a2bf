"""Arrow's ways to hold the same cells: dictionaries of any kind, slices, chunks, names."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.curator import Schema, SourceError, second_moments
from dplinear.curator.sources.ordered import open_rows
from refusals import refused

SCHEMA = Schema({"word": ["a", "b"], "x": (0, 9)})
WORDS, NUMBERS = pa.array(["a", "b", None, "a"]), pa.array([1.0, 2.0, None, 3.0])


def coded(codes: list[int | None], values: list[Any], kind: Any = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, kind or pa.int8()), pa.array(values))


TABLES: dict[str, tuple[Any, Any]] = {
    "a value twice": (coded([0, 1, None, 2], ["a", "b", "a"]), NUMBERS),
    "a missing value": (coded([0, 1, 2, 3], ["a", "b", None, "a"]), NUMBERS),
    "a value that nobody has": (coded([0, 1, None, 0], [b"a", b"b", b"\xff"]), NUMBERS),
    "large codes": (coded([0, 1, None, 0], ["a", "b"], pa.uint64()), NUMBERS),
    "numbers": (WORDS, coded([0, 1, 2, 3], [1.0, 2.0, None, 3.0])),
    "slices": (
        coded([1, 0, 1, None, 0], ["a", "b"]).slice(1),
        pa.array([7.0, 1.0, 2.0, None, 3.0]).slice(1),
    ),
    "another dictionary in each chunk": (
        pa.chunked_array([coded([0, 1], ["a", "b"]), coded([None, 1], ["b", "a"])]),
        pa.chunked_array([NUMBERS.slice(0, 3), NUMBERS.slice(3)]),
    ),
}


def through_a_file(table: pa.Table) -> Any:
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(out, table.schema, options=options) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(out.getvalue())


@pytest.mark.parametrize("hold", [pa.table, pa.Table.to_reader, through_a_file])
@pytest.mark.parametrize("name", TABLES)
def test_cells_are_the_same_however_they_are_held(name: str, hold: Callable[..., Any]) -> None:
    want = second_moments(pa.table({"word": WORDS, "x": NUMBERS}), SCHEMA)
    other = pa.array([1, 2, 3, 4])
    table = pa.table([other, *TABLES[name], other], ["z", "word", "x", "z"])
    assert second_moments(hold(table), SCHEMA) == want


COUNT = 12_347
DATE = {"type": "date", "low": "1970-01-01", "high": "1999-01-01"}
LONGER = 10**8  # rows, for which no buffer has room


@pytest.mark.parametrize("hold", [pa.ipc.open_stream, Path])
@pytest.mark.parametrize(
    "kind", [pa.float64(), pa.int64(), pa.date32(), pa.string(), pa.string_view(), None], ids=str
)
def test_a_table_that_says_more_rows_than_it_has_is_damaged(
    kind: pa.DataType | None, hold: Callable[..., Any], tmp_path: Path
) -> None:
    """A sentence of ours, which says nothing of rows; Arrow itself reads beyond them."""
    cells = pa.array([17] * COUNT, pa.int32())
    column = cells.dictionary_encode() if kind is None else cells.cast(kind)
    out = io.BytesIO()
    with pa.ipc.new_stream(out, pa.schema({"x": column.type})) as writer:
        writer.write_batch(pa.record_batch([column], ["x"]))
    damaged = out.getvalue().replace(COUNT.to_bytes(8, "little"), LONGER.to_bytes(8, "little"))
    assert damaged != out.getvalue()
    (tmp_path / "rows.arrows").write_bytes(damaged)
    data = hold(damaged) if hold is not Path else tmp_path / "rows.arrows"
    schema = Schema({"x": (0, 99)} if kind != pa.date32() else {"x": DATE})
    with pytest.raises(SourceError, match=r"Reading .* failed, so nothing was computed") as caught:
        second_moments(data, schema)
    assert str(LONGER) not in str(caught.value)


def test_a_view_that_leads_nowhere_is_missing_in_files_too(tmp_path: Path) -> None:
    views = np.zeros((3, 4), np.int32)
    views[:, :2] = 1, ord("a")
    views[2] = (20, 0, 7, 0)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(b"x" * 64)]
    column = pa.Array.from_buffers(pa.string_view(), 3, buffers)
    file = tmp_path / "rows.arrow"
    with pa.ipc.new_file(file, pa.schema({"word": column.type})) as writer:
        writer.write(pa.record_batch([column], ["word"]))
    schema = Schema({"word": ["a", "b"]})
    assert second_moments(file, schema) == second_moments(
        pa.table({"word": ["a", "a", None]}), schema
    )


@pytest.mark.parametrize("last", [{"x": 1.0}, None], ids=str)
def test_columns_of_structs_are_no_tables(last: Any) -> None:
    """A row that is null as a whole cannot be one of a batch, and would raise after the spend."""
    structs = pa.array([{"x": 1.0}, last], pa.struct([("x", pa.float64())]))
    for data in (structs, pa.chunked_array([structs])):
        with refused("data", "second_moments", kind=ArgumentTypeError):
            second_moments(data, Schema({"x": (0, 10)}))
        with refused("data", "second_moments", kind=ArgumentTypeError):
            open_rows(data, Schema({"x": (0, 10)}), "test")
