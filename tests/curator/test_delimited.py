"""CSV files: a row is a whole record, and what one record holds changes no other."""

import csv
import gzip
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dplinear.curator import Schema, second_moments
from dplinear.curator.sources import records
from dplinear.curator.sources.delimited import delimited_task
from services import library

BLANK = (b"\n", b"\r\n", b"\r")  # lines, the last of them at the end of a file
Row = list[bytes] | None  # None: a row without cells
ABC = Schema({"a": (0, 9), "b": (0, 9)})
ODD = (b'"', b'""', b"\n", b"\r", b"\r\n", b",", b"x", b"1", b"\x00", b"\xef\xbb\xbf", b"\xff", b"")
LINES = st.lists(st.sampled_from(ODD), max_size=24).map(b"".join)


def reference(content: bytes, longest: int) -> list[tuple[bytes, Row]]:
    """Records one character at a time: their bytes, and their cells."""
    found: list[tuple[bytes, Row]] = []
    cells, cell, start, state = [], b"", 0, "begin"
    for position in range(len(content)):
        one = content[position : position + 1]
        if state == "within" and one != b'"':
            cell += one
        elif state == "within":
            state = "mark"
        elif one == b'"' and state in {"begin", "mark"}:
            cell += one if state == "mark" else b""
            state = "within"
        elif one in b",\n":
            cells.append(cell.removesuffix(b"\r" if one == b"\n" and state == "inside" else b""))
            cell, state = b"", "begin"
            if one == b"\n":
                found.append((content[start : position + 1], cells))
                cells, start = [], position + 1
        else:
            cell, state = cell + one, "inside"
    if content[start:]:
        cell = cell.removesuffix(b"\r" if state == "inside" else b"")
        found.append((content[start:], None if state == "within" else [*cells, cell]))
    return [(text, cells if len(text) <= longest else None) for text, cells in found]


def rows(content: bytes, width: int, longest: int = 10**6) -> list[Row]:
    """What becomes of the reference's records: rows of `width` cells, or of none."""
    found = []
    for text, cells in reference(content, longest):
        if text not in BLANK or width == 1:
            found.append(cells if cells is not None and len(cells) == width else None)
    return found


def read(file: Path, names: str) -> list[Row]:
    """The rows that our reader makes of a file."""
    schema = Schema(dict.fromkeys(names, (0, 1)))
    found: list[Row] = []

    def update(batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            cells = list(row.values())
            found.append(None if None in cells else cells)

    for _ in delimited_task(file, schema)(SimpleNamespace(schema=schema, update=update)):  # type: ignore[arg-type]
        pass
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("delimited")


@settings(deadline=None, max_examples=120)
@given(LINES, st.sampled_from(["a", "ab", "abc"]), st.integers(1, 9), st.integers(3, 40))
@example(b'x,"\n"",\r1\n",1\n1,1\n', "ab", 3, 9)
@example(b'1,x"\n1,1\n1,1\n', "ab", 9, 40)
@example(b'"\r\n\r\r\n\n"', "ab", 9, 40)
def test_rows_are_what_the_grammar_says(
    folder: Path, content: bytes, names: str, chunk: int, longest: int
) -> None:
    file = folder / "t.csv"
    file.write_bytes(",".join(names).encode() + b"\n" + content)
    want = rows(content, len(names))
    assert read(file, names) == want
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_CHUNK", chunk)
        assert read(file, names) == want
        patch.setattr(records, "_LONGEST", max(longest, chunk))
        assert read(file, names) == rows(content, len(names), max(longest, chunk))


def record(content: bytes) -> bytes:
    """One whole record that is a row, of any bytes."""
    text, cells = reference(content + b"\n", 10**6)[0]
    text += b"" if cells is not None else b'"\n'
    return b"x" + text if text in BLANK else text


@settings(deadline=None, max_examples=80)
@given(st.lists(LINES.map(record), min_size=2, max_size=6), LINES.map(record), st.data())
def test_a_record_changes_no_other(
    folder: Path, lines: list[bytes], other: bytes, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(lines) - 1))
    file = folder / "u.csv"
    found = []
    for changed in (lines[place], other, b""):
        file.write_bytes(b"a,b\n" + b"".join([*lines[:place], changed, *lines[place + 1 :]]))
        found.append(read(file, "ab"))
    assert len(found[0]) == len(found[1]) == len(lines)
    for full in found[:2]:
        assert [row for index, row in enumerate(full) if index != place] == found[2]


CELLS = (
    "\r",
    "\r" * 50,
    "1\r2",
    "\r,",
    "x\r\n" * 9,
    "\n\n",
    '"',
    '""',
    '"x',
    'x"',
    'x","y',
    '"\n',
    "\x00",
    "\ufeff",
    "\x0b\x0c\x1c\x85\u2028\u2029",
    "\t",
    "\\",
    '\\"',
    "'",
    "#",
    "",
    " ",
    "NULL",
    "é\u0100",
)


def by_csv(rows: list[Any], **options: Any) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, **options)
    writer.writerows([("a", "note", "b"), *rows])
    return out.getvalue().encode()


def by_arrow(rows: list[Any]) -> bytes:
    out = io.BytesIO()
    columns = [list(column) for column in zip(*rows, strict=True)]
    pyarrow.csv.write_csv(pa.table(columns, names=["a", "note", "b"]), out)
    return out.getvalue()


def by_pandas(rows: list[Any], **options: Any) -> bytes:
    frame = library("pandas").DataFrame(rows, columns=["a", "note", "b"])
    return bytes(frame.to_csv(index=False, **options).encode())


def by_polars(rows: list[Any], **options: Any) -> bytes:
    frame = library("polars").DataFrame(rows, schema=["a", "note", "b"], orient="row")
    return bytes(frame.write_csv(**options).encode())


def by_duckdb(rows: list[Any], folder: Path) -> bytes:
    columns = [list(column) for column in zip(*rows, strict=True)]
    connection = library("duckdb").connect()
    connection.register("people", pa.table(columns, names=["a", "note", "b"]))
    file = folder / "written.csv"
    connection.sql(f"COPY people TO '{file}' (HEADER)")
    return file.read_bytes()


ENGINE = pytest.mark.engine
WRITERS = [
    pytest.param(lambda rows, _: by_csv(rows), id="csv"),
    pytest.param(lambda rows, _: by_csv(rows, lineterminator="\n"), id="csv of Unix"),
    pytest.param(lambda rows, _: by_csv(rows, quoting=csv.QUOTE_ALL), id="csv, all quoted"),
    pytest.param(lambda rows, _: by_arrow(rows), id="pyarrow"),
    pytest.param(lambda rows, _: by_pandas(rows), id="pandas", marks=ENGINE),
    pytest.param(
        lambda rows, _: by_pandas(rows, lineterminator="\r\n"), id="pandas, CRLF", marks=ENGINE
    ),
    pytest.param(lambda rows, _: by_polars(rows), id="polars", marks=ENGINE),
    pytest.param(
        lambda rows, _: by_polars(rows, line_terminator="\r\n"), id="polars, CRLF", marks=ENGINE
    ),
    pytest.param(by_duckdb, id="duckdb", marks=ENGINE),
]


@pytest.mark.parametrize("write", WRITERS)
def test_what_one_cell_holds_adds_and_removes_no_row(write: Any, tmp_path: Path) -> None:
    """A lone carriage return in a column that no one reads made 5,200 rows of 200."""
    file = tmp_path / "t.csv"
    people = [(i % 10, "plain", (7 * i) % 10) for i in range(20)]
    for cell in CELLS:
        for place in (0, 11, 19):
            odd = [*people]
            odd[place] = (odd[place][0], cell, odd[place][2])
            file.write_bytes(write(odd, tmp_path))
            assert read(file, "ab") == [[b"%d" % a, b"%d" % b] for a, _, b in people], repr(cell)


def test_a_lone_carriage_return_stays_in_its_cell(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b'a\nx\ry\n"\r"\nz\r\n\r\r\n')
    assert read(file, "a") == [[b"x\ry"], [b"\r"], [b"z"], [b"\r"]]


def test_rows_without_end_in_an_undeclared_column_are_one_row(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b"a,b,note\n" + b"1,2,x\n" * 200)
    plain = second_moments(file, ABC)
    file.write_bytes(b"a,b,note\n" + b"1,2,x\n" * 199 + b"1,2," + b"\r9,9,x" * 5000 + b"\n")
    odd = second_moments(file, ABC)
    assert plain.count == odd.count == 200


@pytest.mark.parametrize("ends", [b"", b"1,2\r", b"\r", b"1,2\r3,4\r", b"1,2\n3,4"])
@pytest.mark.parametrize("header", [b"a,b\r", b'"a",b\r', b'"a\n",a,b\r'])
def test_lines_that_end_in_a_carriage_return_alone_are_refused(
    header: bytes, ends: bytes, tmp_path: Path
) -> None:
    for name, content in (("t.csv", header + ends), ("t.csv.gz", gzip.compress(header + ends))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=r"'data' parameter .* lines that end in"):
            second_moments(tmp_path / name, ABC)


def test_a_record_too_long_to_be_held_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_CHUNK", 50)
    monkeypatch.setattr(records, "_LONGEST", 200)
    file = tmp_path / "t.csv"
    for filling in (b"x" * 400, b'"' + b"x\n" * 200 + b'"', b'"' + b'""' * 200 + b'"', b"," * 400):
        file.write_bytes(b"a,b,note\n1,2,x\n3,4," + filling + b"\n5,6,x\n")
        assert read(file, "ab") == [[b"1", b"2"], None, [b"5", b"6"]]


def test_names_of_other_columns_may_look_like_ours(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b"1,0,z,z\n0.5,0.25,x,y\n")
    assert read(file, "01") == [[b"0.25", b"0.5"]]
