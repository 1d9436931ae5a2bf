"""Arrow's ways to hold the same cells: dictionaries of any kind, slices, chunks, names."""

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from dplinear.curator import Schema, second_moments

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
