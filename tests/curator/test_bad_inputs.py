"""A named list of bad inputs, each with the error or the result it must give.

Three kinds: schemas that are wrong, tables that cannot be read, and tables full of bad cells. The
first two raise one sentence before any row is read (or nothing is computed); the last never raise.
"""

import gzip
import json
import os
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from dplinear.arguments import ArgumentTypeError
from dplinear.curator import Schema, SecondMoments, SourceError, second_moments
from refusals import refused
from services import library

TWO = Schema({"a": (-1, 1), "b": (0, 10)})

Declared = Callable[[], object]

BAD_SCHEMAS: dict[str, tuple[Declared, type[Exception], str]] = {
    "nothing declared": (Schema, ValueError, "at least one column"),
    "not a mapping": (lambda: Schema([("a", (0, 1))]), TypeError, "mapping"),  # type: ignore[arg-type]
    "name is a number": (lambda: Schema({1: (0, 1)}), TypeError, "column names"),  # type: ignore[dict-item]
    "name is blank": (lambda: Schema({" ": (0, 1)}), TypeError, "column names"),
    "name given twice": (lambda: Schema({"a": (0, 1)}, a=(0, 1)), ValueError, "keywords"),
    "reversed bounds": (lambda: Schema(a=(1, 0)), ValueError, "low below high"),
    "equal bounds": (lambda: Schema(a=(1, 1)), ValueError, "low below high"),
    "infinite bound": (lambda: Schema(a=(0, float("inf"))), ValueError, "finite"),
    "NaN bound": (lambda: Schema(a=(float("nan"), 1)), ValueError, "finite"),
    "text as bound": (lambda: Schema(a=(0, "ten")), TypeError, "finite numbers"),
    "boolean as bound": (lambda: Schema(a=(False, True)), TypeError, "finite numbers"),
    "one bound": (lambda: Schema(a=(1,)), ValueError, "pair"),
    "three bounds": (lambda: Schema(a=(1, 2, 3)), ValueError, "pair"),
    "no bounds": (lambda: Schema(a={"type": "number"}), ValueError, "low and high"),
    "interval float64 cannot resolve": (lambda: Schema(a=(1e15, 1e15 + 1)), ValueError, "2\\^-32"),
    "bound beyond 2^500": (lambda: Schema(a=(0, 1e200)), ValueError, "2\\^500"),
    "denormal width": (lambda: Schema(a=(0, 5e-324)), ValueError, "2\\^-32"),
    "declaration is None": (lambda: Schema({"a": None}), TypeError, "declaration"),
    "declaration is text": (lambda: Schema(a="age"), TypeError, "declaration"),
    "unknown type": (lambda: Schema(a={"type": "float"}), ValueError, "one of"),
    "unknown option": (lambda: Schema(a={"low": 0, "high": 1, "lo": 2}), ValueError, "options"),
    "fractional integer bounds": (
        lambda: Schema(a={"type": "integer", "low": 0.5, "high": 2}),
        ValueError,
        "whole numbers",
    ),
    "date that is none": (
        lambda: Schema(a={"type": "date", "low": "2020-02-30", "high": "2021-01-01"}),
        ValueError,
        "dates",
    ),
    "missing outside bounds": (
        lambda: Schema(a={"low": 0, "high": 1, "missing": 2}),
        ValueError,
        "within the column's bounds",
    ),
    "missing is text": (
        lambda: Schema(a={"low": 0, "high": 1, "missing": "mean"}),
        TypeError,
        "public number",
    ),
    "indicator is text": (
        lambda: Schema(a={"low": 0, "high": 1, "missing_indicator": "yes"}),
        TypeError,
        "true or false",
    ),
    "no categories": (lambda: Schema(a={"type": "category", "levels": []}), ValueError, "category"),
    "category twice": (lambda: Schema(a=["x", "x"]), ValueError, "none twice"),
    "categories of two kinds": (lambda: Schema(a=["x", 1, 2]), ValueError, "pair"),
    "other is no level": (
        lambda: Schema(a={"type": "category", "levels": ["x"], "other": "y"}),
        ValueError,
        "one of the column's levels",
    ),
    "intercept is text": (lambda: Schema(a=(0, 1), intercept="no"), TypeError, "True or False"),  # type: ignore[arg-type]
    "zero row norm": (lambda: Schema(a=(0, 1), row_norm=0), ValueError, "above 0"),
    "negative row norm": (lambda: Schema(a=(0, 1), row_norm=-1), ValueError, "above 0"),
    "NaN row norm": (lambda: Schema(a=(0, 1), row_norm=float("nan")), ValueError, "above 0"),
    "tiny row norm": (lambda: Schema(a=(0, 1), row_norm=1e-9), ValueError, "2\\^-20"),
    "row norm is text": (lambda: Schema(a=(0, 1), row_norm="big"), TypeError, "number"),  # type: ignore[arg-type]
    "derived of an unknown column": (
        lambda: Schema(a=(0, 1), derived=["a*z"]),
        ValueError,
        "declared columns",
    ),
    "derived power of words": (lambda: Schema(a=(0, 1), derived=["a^b"]), ValueError, "declared"),
    "derived power zero": (lambda: Schema(a=(0, 1), derived=["a^0"]), ValueError, "powers"),
    "derived comparison never true": (
        lambda: Schema(a=(0, 1), derived=["a>=2"]),
        ValueError,
        "some value",
    ),
    "derived twice": (
        lambda: Schema(a=(0, 1), derived=["a^2", "a*a"]),
        ValueError,
        "of the same name",
    ),
    "derived is one text": (lambda: Schema(a=(0, 1), derived="a^2"), TypeError, "list of terms"),
    "feature names collide": (
        lambda: Schema({"a": ["x", "y"], "a=y": (0, 1)}),
        ValueError,
        "of the same name",
    ),
    "column called intercept": (
        lambda: Schema({"intercept": (0, 1)}),
        ValueError,
        "of the same name",
    ),
}


@pytest.mark.parametrize("name", BAD_SCHEMAS)
def test_a_wrong_schema_is_one_error(name: str) -> None:
    declare, kind, words = BAD_SCHEMAS[name]
    with pytest.raises(kind, match=words) as caught:
        declare()
    assert str(caught.value).startswith("The '")


BAD_SCHEMA_FILES: dict[str, tuple[str, str | bytes, type[Exception], str]] = {
    "not TOML": ("s.toml", "columns = [", ValueError, "well-formed TOML"),
    "not JSON": ("s.json", "{", ValueError, "well-formed JSON"),
    "not UTF-8": ("s.json", b"\xff\xfe", ValueError, "well-formed JSON"),
    "empty": ("s.toml", "", TypeError, "table `columns`"),
    "a list": ("s.json", "[1]", TypeError, "table `columns`"),
    "columns is a number": ("s.json", '{"columns": 3}', TypeError, "table `columns`"),
    "unknown key": ("s.json", '{"columns": {"a": [0, 1]}, "row-norm": 1}', ValueError, "made of"),
    "bounds as text": ("s.toml", 'columns.a = ["0", "x"]\nrow_norm = "x"', TypeError, "number"),
    "bound is a table": ("s.json", '{"columns": {"a": [{}, 1]}}', TypeError, "finite numbers"),
    "intercept is 1": (
        "s.json",
        '{"columns": {"a": [0, 1]}, "intercept": 1}',
        TypeError,
        "True or False",
    ),
    "derived is a number": (
        "s.json",
        '{"columns": {"a": [0, 1]}, "derived": 7}',
        TypeError,
        "list of terms",
    ),
    "derived holds a number": (
        "s.json",
        '{"columns": {"a": [0, 1]}, "derived": [7]}',
        TypeError,
        "list of terms",
    ),
    "unknown ending": ("s.yaml", "columns:", ValueError, "toml or .json"),
}


@pytest.mark.parametrize("name", BAD_SCHEMA_FILES)
def test_a_wrong_schema_file_is_one_error(name: str, tmp_path: Path) -> None:
    file, content, kind, words = BAD_SCHEMA_FILES[name]
    data = content.encode() if isinstance(content, str) else content
    (tmp_path / file).write_bytes(data)
    with pytest.raises(kind, match=words):
        Schema.from_file(tmp_path / file)


def test_a_schema_file_that_is_not_there(tmp_path: Path) -> None:
    with refused("path", "Schema.from_file", "existing file"):
        Schema.from_file(tmp_path / "none.toml")
    with refused("path", "Schema.from_file", kind=ArgumentTypeError):
        Schema.from_file(3)  # type: ignore[arg-type]


GOOD = pa.table({"a": [0.5, -0.5], "b": [1.0, 9.0]})


def parquet(folder: Path, table: pa.Table = GOOD, name: str = "t.parquet") -> Path:
    pq.write_table(table, folder / name, row_group_size=1)
    return folder / name


def text(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return folder / name


def truncated(folder: Path, keep: float, name: str = "t.parquet") -> Path:
    path = parquet(folder, name=name)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    return path


def corrupt_pages(folder: Path) -> Path:
    table = pa.table({"a": np.linspace(-1, 1, 5000), "b": np.arange(5000.0)})
    path = folder / "t.parquet"
    pq.write_table(table, path, row_group_size=1000, compression="gzip")
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 4000] = b"\xa5" * 4000
    path.write_bytes(bytes(data))
    return path


def corrupt_gzip(folder: Path) -> Path:
    data = gzip.compress(b"a,b\n" + b"0.5,1\n" * 10_000)
    return text(folder, data[: len(data) // 2], "t.csv.gz")


def truncated_ipc(folder: Path) -> Path:
    path = folder / "t.arrows"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, GOOD.schema) as writer:
        for _ in range(50):
            writer.write_table(GOOD)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    return path


def symlink_loop(folder: Path) -> Path:
    (folder / "one.parquet").symlink_to(folder / "two.parquet")
    (folder / "two.parquet").symlink_to(folder / "one.parquet")
    return folder / "one.parquet"


def empty_folder(folder: Path) -> Path:
    (folder / "sub").mkdir()
    (folder / "sub" / "_SUCCESS").touch()
    return folder / "sub"


def failing_reader(_: Path) -> pa.RecordBatchReader:
    def batches() -> Any:
        yield GOOD.to_batches()[0]
        raise ValueError("the private value 42.4242 cannot be read")

    return pa.RecordBatchReader.from_batches(GOOD.schema, batches())


def strays() -> pa.DictionaryArray:
    codes = pa.array([0, 7, -3], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array([0.5]), safe=False)


def twice(*names: str) -> pa.Table:
    return pa.Table.from_arrays([pa.array([0.5])] * len(names), names=list(names))


Table = Callable[[Path], object]

BAD_TABLES: dict[str, tuple[Table, type[Exception], str]] = {
    "None": (lambda _: None, TypeError, "a NumPy array"),
    "a number": (lambda _: 3, TypeError, "a NumPy array"),
    "a list of rows": (lambda _: [[0.5, 1.0]], TypeError, "a NumPy array"),
    "an empty list": (lambda _: [], TypeError, "a NumPy array"),
    "array of one dimension": (lambda _: np.zeros(4), ValueError, "shape"),
    "array of three dimensions": (lambda _: np.zeros((2, 2, 2)), ValueError, "shape"),
    "array with a column too many": (lambda _: np.zeros((2, 3)), ValueError, "shape"),
    "array without columns": (lambda _: np.zeros((5, 0)), ValueError, "shape"),
    "array of raw bytes": (lambda _: np.zeros((2, 2), "V4"), ValueError, "real numbers"),
    "structured array without a column": (
        lambda _: np.zeros(3, [("a", float)]),
        ValueError,
        "which lacks '",
    ),
    "sparse of another width": (lambda _: scipy.sparse.eye_array(3), ValueError, "shape"),
    "table without columns": (lambda _: pa.table({}), ValueError, "which lacks '"),
    "duplicated column": (lambda _: twice("a", "b", "b"), ValueError, "more than once"),
    "reader that fails midway": (failing_reader, SourceError, "the stream failed"),
    "file that is not there": (lambda p: p / "none.parquet", ValueError, "readable file"),
    "glob without a match": (lambda p: str(p / "*.parquet"), ValueError, "at least one file"),
    "folder without files": (empty_folder, ValueError, "folder with files"),
    "loop of links": (symlink_loop, ValueError, "readable file"),
    "path with a null byte": (lambda _: "a\0b.parquet", ValueError, "path"),
    "empty path": (lambda _: "", ValueError, "readable file"),
    "unknown ending": (lambda p: text(p, "a,b\n", "t.xlsx"), ValueError, "known format"),
    "zero-byte Parquet": (lambda p: text(p, "", "t.parquet"), SourceError, "the footer"),
    "CSV called Parquet": (lambda p: text(p, "a,b\n1,2\n", "t.parquet"), SourceError, "footer"),
    "truncated Parquet": (lambda p: truncated(p, 0.5), SourceError, "the footer"),
    "Parquet without its last byte": (lambda p: truncated(p, 0.999), SourceError, "the footer"),
    "corrupt Parquet pages": (corrupt_pages, SourceError, "row group"),
    "Parquet without a column": (
        lambda p: parquet(p, GOOD.select(["a"])),
        ValueError,
        "which lacks '",
    ),
    "second file without a column": (
        lambda p: [parquet(p), parquet(p, GOOD.select(["b"]), "u.parquet")],
        ValueError,
        "'u.parquet', which lacks 'a'",
    ),
    "zero-byte CSV": (lambda p: text(p, ""), ValueError, "header line"),
    "CSV with another header": (lambda p: text(p, "x,y\n1,2\n"), ValueError, "which lacks '"),
    "CSV with a column twice": (lambda p: text(p, "a,b,a\n1,2,3\n"), ValueError, "more than once"),
    "truncated gzip": (corrupt_gzip, SourceError, "t.csv.gz"),
    "plain text called gzip": (
        lambda p: text(p, "a,b\n1,2\n", "t.csv.gz"),
        SourceError,
        "the header",
    ),
    "zero-byte Arrow": (lambda p: text(p, "", "t.arrow"), SourceError, "metadata"),
    "rubbish called Arrow": (lambda p: text(p, "ARROW1 no", "t.arrow"), SourceError, "metadata"),
    "truncated Arrow stream": (truncated_ipc, SourceError, "t.arrows"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_an_unreadable_table_is_one_error(name: str, tmp_path: Path) -> None:
    make, kind, words = BAD_TABLES[name]
    data = make(tmp_path)
    with pytest.raises(kind, match=words) as caught:
        second_moments(data, TWO)
    assert "42.4242" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "schema is a dict": ({"schema": {"a": (0, 1)}}, TypeError, "a Schema"),
    "no threads": ({"threads": 0}, ValueError, "threads"),
    "threads is text": ({"threads": "all"}, TypeError, "threads"),
    "unknown engine": ({"engine": "flink"}, ValueError, "engine"),
    "engine for a table": ({"engine": "dask"}, TypeError, "path or glob"),
    "progress is text": ({"progress": "yes"}, TypeError, "progress"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_a_wrong_argument_is_one_error(name: str) -> None:
    options, kind, words = BAD_ARGUMENTS[name]
    with pytest.raises(kind, match=words):
        second_moments(GOOD, **({"schema": TWO} | options))


def rows(*pairs: tuple[float, float]) -> SecondMoments:
    return second_moments(np.array(pairs, dtype=float).reshape(-1, 2), TWO)


def alike(found: SecondMoments, want: SecondMoments) -> bool:
    """Whether rows are read as others that say the same; cells that are filled in are not told."""
    return found.count == want.count and bool((found.integers == want.integers).all())


class Stubborn(Fraction):
    """A number that will not be one."""

    def __float__(self) -> NoReturn:
        raise RuntimeError(str(self))


def objects(*pairs: tuple[Any, Any]) -> Any:
    array = np.empty((len(pairs), 2), object)
    for index, pair in enumerate(pairs):
        array[index, 0], array[index, 1] = pair
    return array


NAN, INF = float("nan"), float("inf")

# Tables that must be read without a word, and the clean rows they must equal. A cell that is no
# number becomes the middle of its bounds: 0 for a, 5 for b.
BAD_CELLS: dict[str, tuple[Table, SecondMoments]] = {
    "no rows": (lambda _: GOOD.slice(0, 0), rows()),
    "one row": (lambda _: GOOD.slice(0, 1), rows((0.5, 1))),
    "zero-row Parquet": (lambda p: parquet(p, GOOD.slice(0, 0)), rows()),
    "CSV of a header only": (lambda p: text(p, "a,b\n"), rows()),
    "CSV header without newline": (lambda p: text(p, "a,b"), rows()),
    "column of NaN": (lambda _: np.array([[NAN, 1], [NAN, 2]]), rows((0, 1), (0, 2))),
    "column of None": (lambda _: pa.table({"a": [None], "b": [1.0]}), rows((0, 1))),
    "infinities": (lambda _: np.array([[INF, -INF]]), rows((1, 0))),
    "1e308": (lambda _: np.array([[1e308, -1e308]]), rows((1, 0))),
    "denormals": (lambda _: np.array([[5e-324, 5e-324]]), rows((0, 0))),
    "float16": (lambda _: np.array([[0.5, 1]], np.float16), rows((0.5, 1))),
    "long double": (lambda _: np.array([[0.5, 1]], np.longdouble), rows((0.5, 1))),
    "int8": (lambda _: np.array([[-1, 7]], np.int8), rows((-1, 7))),
    "uint64 beyond int64": (lambda _: np.array([[2**64 - 1] * 2], np.uint64), rows((1, 10))),
    "booleans": (lambda _: np.array([[True, False]]), rows((1, 0))),
    "text array": (lambda _: np.array([["0.5", "x"]]), rows((0.5, 5))),
    "byte strings": (lambda _: np.array([[b"0.5", b"\xff"]]), rows((0.5, 5))),
    "objects of many kinds": (
        lambda _: objects((None, "1"), (Decimal("0.5"), 10**400), ("x", object()), ({}, [])),
        rows((0, 1), (0.5, 10), (0, 5), (0, 5)),
    ),
    "integers too long to be written": (
        lambda _: objects((10**5000, -(10**5000)), (Fraction(-(10**5000), 3), 1)),
        rows((1, 0), (-1, 1)),
    ),
    "numbers whose class refuses": (lambda _: objects((Stubborn(1, 2), Stubborn(1))), rows((0, 5))),
    "white space that float does not know": (
        lambda _: pa.table({"a": ["1\x1c", "\x1f-1", "1\x85"], "b": ["\x1d2", "inf\x1e", "3"]}),
        rows((0, 5), (0, 5), (1, 3)),
    ),
    "spans of time among objects": (
        lambda _: objects((np.timedelta64(1, "ns"), np.timedelta64(1, "s")), ("x", 1)),
        rows((0, 5), (0, 1)),
    ),
    "masked array": (
        lambda _: np.ma.MaskedArray([[0.5, 1.0], [9.0, 2.0]], [[False, True], [True, False]]),
        rows((0.5, 5), (0, 2)),
    ),
    "structured array with extra fields": (
        lambda _: np.array([(0.5, "x", 1)], [("a", "f4"), ("u", "U3"), ("b", "i2")]),
        rows((0.5, 1)),
    ),
    "negative strides": (
        lambda _: np.array([[1, 0.5]] * 2)[::-1, ::-1],
        rows((0.5, 1), (0.5, 1)),
    ),
    "numpy matrix": (lambda _: np.asmatrix([[0.5, 1.0]]), rows((0.5, 1))),
    "read-only array": (
        lambda _: np.broadcast_to(np.array([0.5, 1]), (3, 2)),
        rows(*[(0.5, 1)] * 3),
    ),
    "sparse with explicit NaN": (
        lambda _: scipy.sparse.csc_array(np.array([[NAN, 0.0], [0.0, 3.0]])),
        rows((0, 0), (0, 3)),
    ),
    "text column": (
        lambda _: pa.table({"a": ["0.5", "", None, "-inf", "1e999"], "b": ["1"] * 5}),
        rows((0.5, 1), (0, 1), (0, 1), (-1, 1), (1, 1)),
    ),
    "decimal column": (
        lambda _: pa.table({"a": [Decimal("0.5")], "b": [Decimal("1e20")]}),
        rows((0.5, 10)),
    ),
    "column of times for numbers": (
        lambda _: pa.table({"a": [0.5], "b": pa.array([1], pa.timestamp("s"))}),
        rows((0.5, 5)),
    ),
    "column of durations for numbers": (
        lambda _: pa.table({"a": [0.5], "b": pa.array([1], pa.duration("s"))}),
        rows((0.5, 5)),
    ),
    "duplicated column that is not needed": (lambda _: twice("a", "b", "z", "z"), rows((0.5, 0.5))),
    "CSV that is not UTF-8": (
        lambda p: text(p, b"a,b,n\xe9\n0.5,1,\xff\xfe\n\xe9,2,x\n"),
        rows((0.5, 1), (0, 2)),
    ),
    "CSV with a byte order mark": (lambda p: text(p, "\ufeffa,b\n0.5,1\n"), rows((0.5, 1))),
    "CSV with a ragged line": (
        lambda p: text(p, "a,b\n0.5,1\n0.5\n0.5,1,2\n-0.5,2\n"),
        rows((0.5, 1), (0, 5), (0, 5), (-0.5, 2)),
    ),
    "CSV of ragged lines only": (lambda p: text(p, "a,b\n1\n2\n"), rows((0, 5), (0, 5))),
    "CSV with blank lines": (lambda p: text(p, "a,b\n\n0.5,1\n\n\n"), rows((0.5, 1))),
    "CSV with Windows line ends": (lambda p: text(p, "a,b\r\n0.5,1\r\n"), rows((0.5, 1))),
    "CSV with quotes and newlines": (
        lambda p: text(p, 'a,z,b\n"0.5","x\ny, ""z""",1\n'),
        rows((0.5, 1)),
    ),
    "CSV of many blocks with newlines in quotes": (
        lambda p: text(p, "a,z,b\n" + '0.5,"{}",1\n'.format("x,y\n" * 200) * 12_000),
        rows(*[(0.5, 1)] * 12_000),
    ),
    "CSV with a quoted header of two lines": (
        lambda p: text(p, '"z\nz",a,b\n0,0.5,1\n'),
        rows((0.5, 1)),
    ),
    "CSV of words": (lambda p: text(p, "a,b\nmaybe,never\n"), rows((0, 5))),
    "CSV of answers": (lambda p: text(p, "a,b\nyes,False\n"), rows((1, 0))),
    "lists in a file": (
        lambda p: parquet(p, pa.table({"a": [[1.0], None], "b": [1.0, 2.0]})),
        rows((0, 1), (0, 2)),
    ),
    "structs in a file": (
        lambda p: parquet(p, pa.table({"a": [{"x": 1}], "b": [1.0]})),
        rows((0, 1)),
    ),
    "complex array": (lambda _: np.array([[0.5, 1], [1j, 2]]), rows((0.5, 1), (0, 2))),
    "array of durations": (lambda _: np.zeros((2, 2), "m8[s]"), rows((0, 5), (0, 5))),
    "dictionary codes of no value": (
        lambda _: pa.table({"a": strays(), "b": [1.0, 2.0, 3.0]}),
        rows((0.5, 1), (0, 2), (0, 3)),
    ),
    "lists in memory": (lambda _: pa.table({"a": [[1.0]], "b": [1.0]}), rows((0, 1))),
    "structs in memory": (lambda _: pa.table({"a": [{"x": 1}], "b": [1.0]}), rows((0, 1))),
    "TSV": (lambda p: text(p, "a\tb\n0.5\t1\n", "t.tsv"), rows((0.5, 1))),
    "upper-case ending": (lambda p: text(p, "a,b\n0.5,1\n", "T.CSV"), rows((0.5, 1))),
    "folder with other files": (
        lambda p: (text(p, "x", "_SUCCESS"), text(p, "x", ".hid.csv"), parquet(p))[2].parent,
        rows((0.5, 1), (-0.5, 9)),
    ),
    "path with a bracket in its name": (
        lambda p: parquet(p, name="t[1].parquet"),
        rows((0.5, 1), (-0.5, 9)),
    ),
}


@pytest.mark.parametrize("name", BAD_CELLS)
def test_bad_cells_are_read_without_a_word(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    make, want = BAD_CELLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the table may warn; reading it may not
        data = make(tmp_path)
    capfd.readouterr()
    recwarn.clear()
    assert alike(second_moments(data, TWO), want)
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


BAD_FRAMES: dict[str, tuple[dict[str, Any], SecondMoments]] = {
    "objects of many kinds": (
        {"a": [0.5, "x", None], "b": ["1", 2, b"\xff"]},
        rows((0.5, 1), (0, 2), (0, 5)),
    ),
    "column of None": ({"a": [None, None], "b": [1, 2]}, rows((0, 1), (0, 2))),
    "huge integers": ({"a": [10**30, 0], "b": [1, -(10**30)]}, rows((1, 1), (0, 0))),
    "spans of time beside text": (
        {"a": [np.timedelta64(1, "ns"), "x"], "b": [np.timedelta64(9, "ns")] * 2},
        rows((0, 5), (0, 5)),
    ),
    "complex numbers": ({"a": [1j], "b": [1.0]}, rows((0, 1))),
    "a complex number beside real ones": (
        {"a": [0.5, -1, None, 1j], "b": [7, 8, 9, 1 + 1j]},
        rows((0.5, 7), (-1, 8), (0, 9), (0, 5)),
    ),
    "sets and dicts": ({"a": [{1}], "b": [{"k": 1}]}, rows((0, 5))),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_pandas_cells_are_read_without_a_word(name: str) -> None:
    columns, want = BAD_FRAMES[name]
    assert alike(second_moments(library("pandas").DataFrame(columns), TWO), want)


@pytest.mark.engine
def test_a_pandas_column_twice_is_one_error() -> None:
    frame = library("pandas").DataFrame([[1, 2, 3]], columns=["a", "b", "b"])
    with refused("data", "second_moments", got="more than once"):
        second_moments(frame, TWO)


def test_the_list_is_long_enough() -> None:
    named = (BAD_SCHEMAS, BAD_SCHEMA_FILES, BAD_TABLES, BAD_ARGUMENTS, BAD_CELLS, BAD_FRAMES)
    assert sum(len(inputs) for inputs in named) >= 60


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_the_right_to_read(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    path.chmod(0)
    with pytest.raises(SourceError, match="the footer"):
        second_moments(path, TWO)


def test_a_schema_file_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"columns": {"a": [-1, 1], "b": [0, 10]}}))
    assert Schema.from_file(path) == TWO


@pytest.mark.parametrize(
    "cell", [10**5000, Stubborn(1, 2), np.timedelta64(3, "ns"), 1j, "b\x1c"], ids=type
)
def test_what_no_category_holds_is_no_level(cell: Any) -> None:
    table = np.empty((2, 1), object)
    table[:, 0] = ["b", cell]
    schema = Schema(a=["a", "b"])
    want = second_moments(np.array([["b"], ["neither"]]), schema)
    assert second_moments(table, schema) == want


@pytest.mark.parametrize(
    "column", [(0, 1), ["a", "b"], ("2020-01-01", "2021-01-01")], ids=["number", "category", "date"]
)
@pytest.mark.parametrize("cell", [np.datetime64("NaT"), np.datetime64("2020-03-01"), 0.5, 1j, "b"])
def test_the_type_that_numpy_finds_is_no_error(column: Any, cell: Any) -> None:
    # np.array finds dates or numbers where one row decides; the cells mean what objects do.
    schema = Schema(a=column)
    objects = np.empty((1, 1), object)
    objects[0, 0] = cell
    assert second_moments(np.array([[cell]]), schema) == second_moments(objects, schema)


@pytest.mark.engine
def test_a_complex_number_changes_no_other_rows_level() -> None:
    schema = Schema(a=["0.5", "2"])
    frame = library("pandas").DataFrame({"a": [0.5, 2, 2, 1j]})
    assert second_moments(frame, schema) == second_moments(
        np.array([["0.5"], ["2"], ["2"], ["neither"]]), schema
    )


@pytest.mark.engine
def test_categories_of_mixed_objects_do_not_bring_the_process_down() -> None:
    pandas = library("pandas")
    cells = [np.datetime64("2020-01-01", "ns"), np.float32(0.5), "maybe", None]
    frame = pandas.DataFrame({"x": pandas.Series(cells, dtype=object).astype("category")})
    held = second_moments(frame, Schema(x=(0, 1)))
    plain = second_moments(pandas.DataFrame({"x": [None, 0.5, None, None]}), Schema(x=(0, 1)))
    assert held == plain


def test_an_empty_line_of_one_column_is_a_missing_cell(tmp_path: Path) -> None:
    # Otherwise a table and its neighbour with one cell missing would differ in their public rows.
    file, one = tmp_path / "one.csv", Schema({"x": (0, 1)})
    for text, rows in (("x\n0.1\n0.2\n0.3\n", 3), ("x\n0.1\n\n0.3\n", 3), ("x\n\n", 1), ("x\n", 0)):
        file.write_text(text)
        assert second_moments(file, one).count == rows
    file.write_text("a,b\n1,2\n\n3,4\n")
    assert second_moments(file, TWO).count == 2
