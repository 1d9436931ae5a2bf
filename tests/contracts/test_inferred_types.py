"""Types that a library guessed: one odd row changes a column's type, and no other row's integers.

Each library reads CSV files with its own reader. A column of such a file holds the cells of one
family, and in one more row an odd cell. What becomes of the family's rows must be, bit for bit,
what becomes of them without that row.
"""

import csv
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dplinear.curator import Schema
from dplinear.curator.sources.ordered import open_rows
from services import library

ENGINE = pytest.mark.engine

# What the rows of a column hold, and the levels of a category of them.
FAMILIES: dict[str, tuple[list[str], list[str]]] = {
    "postcodes": (["02139", "10001", "02140"], ["02139", "10001", "02140"]),
    "floats": (["1.0", "1", "2.50", "-0", "0.1"], ["0", "1.0", "2.5", ".10"]),
    "exponents": (["1e3", "1E3", "1000", "1.5e-3"], ["1e3", "0.0015"]),
    "integers": (["1", "2", "-3", "007"], ["1", "2.0", "-3", "7"]),
    "signs": (["+1", " 2", "3 ", "4."], ["1", "2", "3", "4"]),
    "truth values": (["True", "false", "TRUE"], ["False", "True"]),
    "answers": (["yes", "no", "No"], ["no", "yes", "2"]),
    "short answers": (["t", "f", "T"], ["f", "t"]),
    "women": (["f", "F"], ["f", "m"]),
    "digits and words": (["1", "true"], ["1", "zebra"]),
    "dates": (["2020-01-01", "2020-12-31"], ["2020-01-01", "2020-12-31"]),
    "days with slashes": (["2020/1/1", "2020/12/31"], ["2020-01-01", "2020-12-31"]),
    "compact dates": (["20200101", "20201231"], ["20200101", "20201231"]),
    "moments": (["2020-01-01 12:30:15", "1969-12-31 23:59:59.9999999"], ["2020-01-01 12:30:15"]),
    "midnights": (["2020-01-01 00:00:00", "2020-12-31T00:00"], ["2020-01-01", "2020-12-31"]),
    "zones": (["2020-01-01T12:30:15Z", "2020-01-01T12:30:15+02:00"], ["2020-01-01 12:30:15"]),
    "far dates": (["12020-01-01", "0000-01-01", "9999-12-31"], ["9999-12-31"]),
    "epochs": (["epoch", "epoch"], ["word", "zebra"]),
    "days first": (["13/02/2020", "01/02/2020"], ["zebra", "12.5"]),
    "clocks": (["12:30:00", "00:00:01", "24:00:00"], ["12:30", "00:00:01"]),
    "short clocks": (["12:30", "1:05"], ["12:30", "01:05:00"]),
    "long names": (["12345678901234567", "99999999999999999"], ["12345678901234567"]),
    "64 bits": (["18446744073709551615", "1"], ["18446744073709551615", "1"]),
    "128 bits": (
        ["123456789012345678901234567890", "-5"],
        ["123456789012345678901234567890", "-5"],
    ),
    "40 digits": (["1234567890" * 4, "-1234567890123", "7"], ["1234567890" * 4, "7"]),
    "hexadecimals": (["0x10", "0xFF"], ["16", "255"]),
    "binaries": (["0b11", "0B1"], ["3", "1"]),
    "infinities": (["inf", "-inf"], ["inf", "-inf"]),
    "overflows": (["1e400", "1.5", "1e-400"], ["1e400", "1.5", "0"]),
    "no answers": (["NA", "1"], ["1", "2"]),
    "not numbers": (["nan", "2"], ["1", "2"]),
    "nulls": (["null", "zebra"], ["zebra"]),
    "empty": (["", "1"], ["1", "zebra"]),
    "words": (["no", "zebra", "é"], ["no", "zebra", "é"]),
}
ODD = (
    *("zebra", "", "7", "-3", "12.5", "-0.0", "+1", " 1", "1.", ".5", "1e3", "1e400", "1e-400"),
    *("true", "False", "TRUE", "t", "F", "yes", "NO", "m", "on"),
    *("1" * 17, "1" * 19, "1" * 20, "9" * 30, "-" + "1" * 30, "1" * 40, "-" + "1" * 40, "1" * 400),
    *("inf", "-inf", "Infinity", "nan", "NaN", "NA", "N/A", "null", "NULL", "None", "#N/A"),
    *("0x10", "0b11", "1_000", "1,000", "$1", "1%", "02139", "0.1234567890123456789", "1+2j"),
    *("2020-05-05", "2020/05/05", "2020-5-5", "20200505", "13/02/2020", "02/13/2020", "01.02.2020"),
    *(
        "2020-05-05 10:00",
        "2020-05-05T10:00:00.5",
        "2020-05-05T10:00:00Z",
        "2020-05-05 10:00:00+02",
    ),
    *("2020-05-05 (BC)", "12020-01-01", "0000-01-01", "epoch", "2020-02-30", "2020-W01-1"),
    *("10:00", "10:00:00.25", "24:00:00", "25:00", "1 days", "P1D"),
    *("é", "日本", "١٢", "a,b", 'a"b', "[1]", '{"a": 1}', "550e8400-e29b-41d4-a716-446655440000"),
)
# Dates that do not begin with a year: libraries guess what comes first, which no reading undoes.
GUESSED = {"days first", "epochs"}


def _declared(kind: str, family: str) -> Any:
    if kind == "levels":
        return {"type": "category", "levels": FAMILIES[family][1], "drop_first": False}
    if kind == "numbers as levels":
        return {"type": "category", "levels": [0, 1, 2, 2139, 16, 0.5], "drop_first": False}
    large = max(map(len, FAMILIES[family][0])) > 16
    bounds: dict[str, Any] = {
        "number": (-1e45, 1e45) if large else (-3000, 3000),
        "boolean": {"type": "boolean", "missing_indicator": True},
        "date": {"type": "date", "low": "1969-01-01", "high": "2021-01-01"},
    }
    return bounds[kind]


KINDS = ("levels", "numbers as levels", "number", "boolean", "date")

Columns = dict[str, list[str]]
Read = Callable[[Path], Any]


def _pandas(**options: Any) -> Read:
    return lambda path: library("pandas").read_csv(path, **options)


def _polars(**options: Any) -> Read:
    return lambda path: library("polars").read_csv(path, infer_schema_length=None, **options)


def _polars_lazy(path: Path) -> Any:
    return library("polars").scan_csv(path, infer_schema_length=None, try_parse_dates=True)


def _duckdb(path: Path) -> Any:
    return library("duckdb").read_csv(str(path), sep=",", quotechar='"', header=True)


def _duckdb_arrow(path: Path) -> Any:
    return pa.table(_duckdb(path))


def _dask(path: Path) -> Any:
    return library("dask.dataframe").read_csv(path)


def _parquet_of(read: Read, write: str) -> Read:
    """Written by a library with the types that it guessed, read here."""

    def written(path: Path) -> Any:
        file = path.with_suffix(".parquet")
        getattr(read(path), write)(str(file))
        return file

    return written


READERS: dict[str, tuple[Read, Any]] = {
    "arrow": (pa.csv.read_csv, ()),
    "our own": (lambda path: path, ()),
    "pandas": (_pandas(), ENGINE),
    "pandas, words kept": (_pandas(keep_default_na=False), ENGINE),
    "pandas, Arrow types": (_pandas(dtype_backend="pyarrow"), ENGINE),
    "polars": (_polars(try_parse_dates=True), ENGINE),
    "polars, no dates": (_polars(), ENGINE),
    "polars lazy": (_polars_lazy, ENGINE),
    "polars parquet": (_parquet_of(_polars(try_parse_dates=True), "write_parquet"), ENGINE),
    "duckdb": (_duckdb, ENGINE),
    "duckdb arrow": (_duckdb_arrow, ENGINE),
    "duckdb parquet": (_parquet_of(_duckdb, "write_parquet"), ENGINE),
    "dask": (_dask, ENGINE),
}
every_reader = pytest.mark.parametrize(
    "read", [pytest.param(read, marks=marks, id=name) for name, (read, marks) in READERS.items()]
)


def write(path: Path, columns: Columns) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", *columns])
        writer.writerows(
            [number, *cells] for number, cells in enumerate(zip(*columns.values(), strict=True))
        )
    return path


def rows_of(data: Any, schema: Schema) -> Any:
    with open_rows(data, schema, "test", threads=1).through(np.array) as blocks:
        return np.hstack(list(blocks))


@functools.cache
def schema_of(kind: str, families: tuple[str, ...]) -> Schema:
    left_out = GUESSED if kind == "date" else set()
    declared = {name: _declared(kind, name) for name in families if name not in left_out}
    return Schema(declared, intercept=False)


def encoded(data: Any, families: tuple[str, ...]) -> dict[str, Any]:
    """The integers that each column becomes, of each kind that it may be declared."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        schema = schema_of(kind, families)
        for feature, integers in zip(schema.features, rows_of(data, schema), strict=True):
            key = f"{kind} of {feature.factors[0].column}"
            found.setdefault(key, []).append(integers.tolist())
    return found


def computed(data: Any) -> None:
    """Let a library read to the end, by its own means."""
    for method in ("collect", "compute", "to_arrow_table"):
        if hasattr(data, method):
            getattr(data, method)()
    if isinstance(data, Path) and data.suffix == ".parquet":
        pq.read_schema(data)  # Polars writes 128 bits in a type that Arrow's reader refuses


def legible(read: Read, path: Path, columns: Columns) -> tuple[str, ...]:
    """The columns that a library can read: its own errors come before ours, and are none of it."""
    try:
        computed(read(write(path, columns)))
    except Exception:
        if len(columns) == 1:
            return ()
        names = list(columns)
        parts = (names[: len(names) // 2], names[len(names) // 2 :])
        halves = ({name: columns[name] for name in part} for part in parts)
        return tuple(name for half in halves for name in legible(read, path, half))
    return tuple(columns)


def table(families: Sequence[str], odd: str | None) -> Columns:
    """One column for each family, its cells again and again so that all are equally long."""
    last = [] if odd is None else [odd]
    return {
        name: [FAMILIES[name][0][i % len(FAMILIES[name][0])] for i in range(5)] + last
        for name in families
    }


def renamed(read: Read, folder: Path, odd_cells: Sequence[str]) -> tuple[list[str], int]:
    """The columns in which an odd cell changes another row, and how many were compared."""
    path = folder / "table.csv"
    found, compared, known = [], 0, {}
    plain = legible(read, path, table(tuple(FAMILIES), None))
    for odd in odd_cells:
        families = legible(read, path, table(plain, odd))
        if families not in known:  # the grid depends on how many columns there are
            data = read(write(path, table(families, None)))
            known[families] = encoded(data, families)
        got = encoded(read(write(path, table(families, odd))), families)
        compared += len(families)
        for name, want in known[families].items():
            if [feature[:-1] for feature in got[name]] != want:
                found.append(f"{name} by {odd[:30]}")
    return found, compared


@every_reader
@pytest.mark.parametrize(
    "odd_cells", [ODD[::2], pytest.param(ODD[1::2], marks=pytest.mark.long)], ids=["half", "rest"]
)
@pytest.mark.filterwarnings("ignore")  # of libraries, about mixed types, before they come here
def test_an_odd_cell_leaves_all_other_rows_as_they_were(
    read: Read, odd_cells: tuple[str, ...], tmp_path: Path
) -> None:
    found, compared = renamed(read, tmp_path, odd_cells)
    assert found == []
    assert compared > 0.85 * len(odd_cells) * len(FAMILIES)
