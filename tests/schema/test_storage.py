"""How Arrow stores cells decides nothing: chunks, codes, views, extension types."""

import json
import uuid
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.schema.cells import array_of, codes_of, numbers_of
from dplinear.schema.columns import Category, read_column
from dplinear.schema.storage import as_binary, followable, sound
from services import library

NUMBER = read_column("x", (-9, 9))
WORDS = Category(("a", "b"))
BREAKS = b"SECRET\xff"


def coded(values: pa.Array) -> pa.DictionaryArray:
    """Return each value under a short code of its own."""
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.int8()), values)


def read(cells: Any) -> list[Any]:
    """Return a column as gates and as estimators read it, once they agree."""
    numbers = numbers_of(NUMBER, cells)  # type: ignore[arg-type]
    array = array_of(cells)
    np.testing.assert_array_equal(numbers, numbers_of(NUMBER, array))  # type: ignore[arg-type]
    assert codes_of(WORDS, cells).tolist() == codes_of(WORDS, array).tolist()
    return [None if np.isnan(number) else float(number) for number in numbers]


@pytest.mark.parametrize("last", [3, 4, None])
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.int8(), pa.string()], ids=str)
def test_dictionaries_of_chunks_are_never_made_one(kind: pa.DataType, last: int | None) -> None:
    def chunk(cells: list[int | None]) -> pa.Array:
        if pa.types.is_float16(kind):
            return pa.array([None if cell is None else np.float16(cell) for cell in cells], kind)
        return pa.array(cells, pa.int8()).cast(kind)

    chunks = pa.chunked_array([coded(chunk([1, 2, 3])), coded(chunk([1, None, last]))])
    assert read(chunks) == [1, 2, 3, 1, None, last]
    assert read(chunks[2:5]) == [3, 1, None]
    assert read(chunks[:0]) == []


@pytest.mark.parametrize("last", [5.0, 128.0])
def test_codes_do_not_run_out(last: float) -> None:
    parts = [np.arange(64.0), np.arange(64.0, 127.0), np.array([last])]
    assert read(pa.chunked_array([coded(pa.array(part)) for part in parts]))[-1] == last


@pytest.mark.parametrize("last", [[1], [2]])
def test_dictionaries_of_lists_are_missing(last: list[int]) -> None:
    kind = pa.list_(pa.int8())
    assert read(
        pa.chunked_array([coded(pa.array([[1]], kind)), coded(pa.array([last], kind))])
    ) == [
        None,
        None,
    ]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_dictionaries_of_views_are_read(kind: pa.DataType) -> None:
    values = pa.array(["1", "a", "a text of more than twelve letters"], kind)
    assert read(coded(values)) == [1.0, None, None]
    assert codes_of(WORDS, coded(values)).tolist() == [-1, 0, -1]


@pytest.mark.engine
@pytest.mark.parametrize("last", [b"word", BREAKS])
def test_texts_of_pandas_in_many_codes_are_read(last: bytes) -> None:
    pandas = library("pandas")
    from dplinear.schema.frames import series_cells

    raw = pa.array([str(number).encode() for number in range(129)] + [last])
    texts = pa.Array.from_buffers(pa.string(), 130, raw.buffers())
    chunks = [coded(texts[:64]), coded(texts[64:127]), coded(texts[127:])]
    series = pandas.Series(pandas.arrays.ArrowExtensionArray(pa.chunked_array(chunks)))
    assert read(series_cells(series)) == [*range(129), None]


@pytest.mark.engine
def test_a_series_that_cannot_be_converted_is_read_cell_by_cell() -> None:
    """Whatever pandas or Arrow say of a whole column, a cell is missing by itself."""
    from dplinear.schema.frames import series_cells

    pandas = library("pandas")

    def refuse(*_: object, **__: object) -> Any:
        raise ValueError(BREAKS)

    torn = {"to_numpy": refuse, "__arrow_array__": refuse}
    series = type("Torn", (pandas.Series,), torn)(["1", "x", "2"], dtype="string")
    found = numbers_of(NUMBER, series_cells(series))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, [1.0, np.nan, 2.0])


def views(lengths: list[int], valid: int) -> pa.Array:
    held = np.zeros((len(lengths), 4), np.int32)
    held[:, 0], held[:, 1] = lengths, ord("1")
    buffers = [pa.py_buffer(bytes([valid])), pa.py_buffer(held), pa.py_buffer(b"z")]
    return pa.Array.from_buffers(pa.string_view(), len(lengths), buffers)


def test_views_that_lead_nowhere_are_not_followed() -> None:
    """Of a missing cell, as Arrow allows; or of 2^31 bytes, which Polars writes as a negative."""
    for column in (views([1, -5, 1], 0b101), views([1, -5, 1], 0b111)):
        assert (np.frombuffer(sound(column).buffers()[1], np.int32)[::4] >= 0).all()
    assert as_binary(views([1, -5, 1], 0b101)).to_pylist() == [b"1", None, b"1"]
    assert as_binary(views([1, -(2**31) + 12, 1], 0b111)).to_pylist() == [b"1", None, b"1"]
    assert as_binary(views([1, 1, -1, 1], 0b1101).slice(1)).to_pylist() == [None, None, b"1"]


LONG = [(20, 0, 7, 0), (20, 0, -1, 0), (20, 0, 0, 2**30), (20, 0, 0, -1), (20, 0, 0, 45)]


def test_only_views_within_their_buffers_are_followed() -> None:
    """The same without following any."""
    held = np.array([*LONG, (20, 0, 0, 44), (12, 0, 9, -9)], np.int32)
    column = pa.Array.from_buffers(
        pa.binary_view(), len(held), [None, pa.py_buffer(held), pa.py_buffer(b"x" * 64)]
    )
    valid = np.asarray(sound(column).is_valid()).tolist()  # an array that is shown is followed
    assert valid == [False] * len(LONG) + [True, True]


def test_only_offsets_within_their_data_are_followed() -> None:
    """The same without following any."""
    for offsets in ((0, 1, 99, 3), (0, 1, -9, 3), (0, 3, 1, 3)):
        buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"123")]
        found = followable(pa.Array.from_buffers(pa.binary(), 3, buffers), np.dtype(np.int32))
        missing = found.null_count
        assert missing > 0


@pytest.mark.parametrize("view", [*LONG, (2**31 - 1, 0, 0, 2**31 - 1)])
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_views_outside_of_their_buffers_are_missing(kind: pa.DataType, view: Any) -> None:
    """Nobody checks them, in files either: one that is followed ends the process."""
    held = np.zeros((4, 4), np.int32)
    held[:, :2] = 1, ord("1")
    held[2], held[3] = view, (20, int.from_bytes(b"xxxx", "little"), 0, 44)
    buffers = [None, pa.py_buffer(held), pa.py_buffer(b"x" * 64)]
    column = pa.Array.from_buffers(kind, 4, buffers)
    assert as_binary(column).to_pylist() == [b"1", b"1", None, b"x" * 20]
    assert read(column[1:]) == [1.0, None, None]
    assert read(coded(column)) == [1.0, 1.0, None, None]


@pytest.mark.parametrize("offsets", [(0, 1, 99, 3), (0, 1, -9, 3), (0, 3, 1, 3)], ids=str)
@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()])
def test_offsets_outside_of_their_data_are_missing(kind: pa.DataType, offsets: Any) -> None:
    wide = np.int64 if "large" in str(kind) else np.int32
    buffers = [None, pa.py_buffer(np.array(offsets, wide)), pa.py_buffer(b"123")]
    column = pa.Array.from_buffers(kind, 3, buffers)
    pairs = pairwise(offsets)
    known = [b"123"[a:b] if 0 <= a <= b <= 3 else None for a, b in pairs]
    assert as_binary(column).to_pylist() == known
    assert as_binary(column[1:]).to_pylist() == known[1:]
    assert read(column) == [float(cell) if cell else None for cell in known]


def test_views_become_bytes_of_any_length() -> None:
    for kind in (pa.string_view(), pa.binary_view(), pa.large_string()):
        assert as_binary(pa.array(["1"], kind)).type == pa.large_binary()
        assert not len(as_binary(pa.nulls(0, kind)))


@pytest.mark.long
@pytest.mark.heavy
def test_views_of_more_than_2_31_bytes_in_all_are_read() -> None:
    """Takes 3 GB: the same megabyte two thousand times."""
    count, length = 2000, 1_073_742
    held = np.zeros((count, 4), np.int32)
    held[:, 0], held[:, 1] = length, int.from_bytes(b"zzzz", "little")
    data = pa.py_buffer(b"z" * length)
    column = pa.Array.from_buffers(pa.string_view(), count, [None, pa.py_buffer(held), data])
    assert set(read(column)) == {None}


@pytest.mark.long
@pytest.mark.heavy
def test_chunks_of_more_than_2_31_bytes_in_all_are_read() -> None:
    """Takes 6 GB."""
    long = pa.array(["z" * (2**30 + 100)])
    assert array_of(pa.chunked_array([long, pa.array(["1"]), long]))[1] == "1"


def test_chunks_of_text_are_never_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in little: whoever joins them runs out of offsets."""

    def refused(*_: object) -> None:
        raise pa.ArrowCapacityError("too long")

    monkeypatch.setattr(pa, "concat_arrays", refused)
    assert read(pa.chunked_array([["1"], ["x", "2"]])) == [1.0, None, 2.0]
    assert read(pa.chunked_array([], pa.string())) == []


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_short_long_integers_of_duckdb_are_missing(kind: pa.DataType) -> None:
    stored = pa.array([b"\x80\x00\x01\x07", b"", b"\x80", None], kind)
    column = pa.ExtensionArray.from_storage(pa.opaque(kind, "bignum", "DuckDB"), stored)
    assert read(column) == [7.0, None, 0.0, None]


def test_what_only_says_that_it_is_a_long_integer_is_missing() -> None:
    column = pa.ExtensionArray.from_storage(
        pa.opaque(pa.int8(), "bignum", "DuckDB"), pa.array([1, 2], pa.int8())
    )
    assert read(column) == [None, None]


_JSON = ['"a"', ' "b"', "1", "1.5e0", '"2"', "true", "null", None, "[1]", '{"a": 1}', '"a']
_JSON_MEANT = ["a", "b", 1.0, 1.5, 2.0, 1.0, None, None, None, None, None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_cells_of_json_are_their_values(kind: pa.DataType) -> None:
    """A string is its text, whatever stands beside it; what holds others is missing."""
    column = pa.ExtensionArray.from_storage(pa.json_(kind), pa.array(_JSON, kind))
    for cells in (column, pa.chunked_array([column[:3], column[3:]]), coded(column)):
        numbers = [None if isinstance(cell, str) else cell for cell in _JSON_MEANT]
        assert read(cells) == numbers
        assert codes_of(WORDS, cells).tolist() == [0, 1] + [-1] * 9
    assert read(column[:0]) == []


def test_texts_in_json_are_read_without_their_escapes() -> None:
    texts = ["é", 'a"b', "a\\b\n", "\x01", "\U0001f600", "[1, 2]", "null", " a "]
    cells = [json.dumps(text, ensure_ascii=short) for short in (True, False) for text in texts]
    broken = ['"' + "[" * 100_000, "[" * 100_000, '"\udcff"', '"a" b']
    storage = pa.array(
        [*map(str.encode, cells), *(b.encode("utf-8", "surrogateescape") for b in broken)]
    )
    column = pa.ExtensionArray.from_storage(pa.json_(), storage.view(pa.string()))
    assert array_of(column).tolist()[: len(cells)] == texts * 2
    assert array_of(column).tolist()[len(cells) :] == [None] * len(broken)


def test_identifiers_are_their_text_however_they_are_stored() -> None:
    """DuckDB makes a type of its own of their texts, which knows no capital letters."""
    texts = ["3AFA2856-a3da-4c33-bb7f-3ead6b5bce79", "00000000-0000-0000-0000-000000000001"]
    ids = [uuid.UUID(text) for text in texts]
    column = Category(tuple(texts))
    stored = pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([*(one.bytes for one in ids), None], pa.binary(16))
    )
    forms: tuple[Any, ...] = (
        stored,
        coded(stored),
        pa.array([*map(str, ids), None]),
        pa.array([*(str(one).upper() for one in ids), None]),
        np.array([*ids, None], dtype=object),
        np.array([*texts, None], dtype=object),
    )
    for cells in forms:
        assert codes_of(column, cells).tolist() == [0, 1, -1]
        assert np.isnan(numbers_of(NUMBER, cells)).all()  # type: ignore[arg-type]
    assert codes_of(column, array_of(stored)).tolist() == [0, 1, -1]


@pytest.mark.parametrize("order", ["<", ">"])
def test_letters_beyond_unicode_are_missing(order: str) -> None:
    cells = np.array(["1", "2", "a", "b"]).astype(f"{order}U3")
    cells.view(f"{order}u4")[::3][1] = 0x110000
    assert read_array(cells) == [1.0, None, None, None]
    assert codes_of(WORDS, cells).tolist() == [-1, -1, 0, 1]
    hidden = np.ma.MaskedArray(cells, mask=[True, True, False, False])
    assert codes_of(WORDS, hidden).tolist() == [-1, -1, 0, 1]


def read_array(cells: Any) -> list[Any]:
    numbers = numbers_of(NUMBER, cells)  # type: ignore[arg-type]
    return [None if np.isnan(number) else float(number) for number in numbers]
