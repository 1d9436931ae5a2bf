"""One canonical form of cells: every type that a value may come as, alone or in a column."""

import asyncio
import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dplinear.curator import Schema, second_moments
from dplinear.curator.examples import Rules
from dplinear.curator.sources.ordered import open_rows
from dplinear.schema.canonical import canonical, day_in, number_in, text_in, text_of, time_in
from dplinear.schema.cells import array_of, codes_of, numbers_of
from dplinear.schema.columns import Category, Numeric, read_column
from refusals import refused
from services import library

NUMBER = Numeric("number", Fraction(-9), Fraction(9), Fraction(0))
DATE = Numeric("date", Fraction(-9), Fraction(9), Fraction(0))

NOON = dt.datetime(2020, 1, 2, 12, 0, tzinfo=dt.UTC)
# Each list: what libraries make of one cell, by the types that they give its column.
ALIKE: dict[str, list[Any]] = {
    "a postcode": ["02139", "2139", 2139, 2139.0, np.int64(2139), Decimal("2139.00"), b"02139"],
    "one": ["1", "1.0", " 1", "+1", "1e0", 1, 1.0, True, np.True_, "true", "True", "T", "YES"],
    "zero": ["0", "-0", "0.0", 0, -0.0, False, "false", "f", "No"],
    "a tenth": [".1", "0.1", "1e-1", 0.1, Decimal("0.10"), Fraction(0.1)],
    "17 digits": ["12345678901234567", 12345678901234567, 1.2345678901234568e16],
    "40 digits": ["1" * 40, int("1" * 40), float("1" * 40), Decimal("1" * 40)],
    "hexadecimal": ["0x10", "0X10", "0b10000", 16, "16"],
    "infinity": ["inf", "Infinity", "1e400", math.inf, 10**400],
    "a day": [
        *("2020-01-02", "2020/1/2", "2020.01.02", "2020-01-02T00:00", "2020-01-02 00:00:00Z"),
        *(dt.date(2020, 1, 2), NOON.replace(hour=0), np.datetime64("2020-01-02")),
    ],
    "a moment": [
        *("2020-01-02 12:00", "2020-01-02T13:00+01:00", "2020-01-02 1200"),
        *("2020-01-02 12:00:00.0000009", "2020-01-02 12:00:00 UTC"),
        *(NOON, NOON.replace(tzinfo=None), np.datetime64(NOON.replace(tzinfo=None))),
    ],
    "a next day": ["2020-01-02 24:00", "2020-01-02 23:59:60", "2020-01-03"],
    "a time": ["12:30", "12:30:00", "12:30:00.0000001", dt.time(12, 30)],
    "nothing": [
        *("", "NA", "nan", "-NaN", "null", None, math.nan, np.datetime64("NaT"), object()),
        *("01/02/2020", "13.02.20", "1-2-3", "12020-01-01", "0000-01-01", "epoch", "2020-02-30"),
    ],
    "a word": ["zebra", b"zebra", np.str_("zebra")],
}


@pytest.mark.parametrize("meaning", ALIKE)
def test_cells_of_one_meaning_have_one_key(meaning: str) -> None:
    keys = {canonical(cell) for cell in ALIKE[meaning]}
    assert len(keys) == 1
    assert (keys == {None}) == (meaning == "nothing")


def test_cells_of_different_meaning_have_different_keys() -> None:
    assert len({canonical(cells[0]) for cells in ALIKE.values()}) == len(ALIKE)


CELLS = st.one_of(
    st.sampled_from([cell for cells in ALIKE.values() for cell in cells]),
    st.text(max_size=8),
    st.text("0123456789-/.: TZeExXna+", max_size=20),
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.none(),
)


@given(CELLS)
def test_text_of_the_same_meaning_has_the_same_key(cell: Any) -> None:
    text = text_in(cell)
    assert canonical(text) == canonical(cell)
    assert text is None or isinstance(text, str)


@given(CELLS)
def test_numbers_of_keys_are_the_numbers_of_cells(cell: Any) -> None:
    kind, value = canonical(cell) or ("", math.nan)
    wanted = float(value) + 0.0 if kind == "number" else math.nan  # -0.0 is 0.0 as a key
    np.testing.assert_equal(number_in(cell) + 0.0, wanted)


LEVELS = Category(
    ("2139", "true", "0", "0.1", "16", "inf", "2020-01-02", "2020-01-02 12:00", "12:30", "zebra")
)


def _is_cut(cell: Any, held: Any) -> bool:
    """Whether a coarser unit of time left something out."""
    if isinstance(cell, dt.datetime):
        return bool(held.replace(tzinfo=None) != cell.replace(tzinfo=None))
    return isinstance(cell, dt.time) and held != cell


def columns_of(cell: Any) -> list[pa.Array]:
    """One cell in every Arrow type that can hold it as it is."""
    numbers = [pa.int8(), pa.int64(), pa.uint64(), pa.float64()]
    zoned = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]
    kinds = {
        str: [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()],
        bytes: [pa.string(), pa.binary()],
        bool: [pa.bool_()],
        int: [*numbers, pa.decimal128(38, 2), pa.decimal256(76, 2)],
        float: [pa.float64()],
        Decimal: [pa.decimal128(38, 2), pa.decimal256(76, 2)],
        dt.date: [pa.date32(), pa.date64(), *zoned],
        dt.datetime: zoned,
        dt.time: [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
        type(None): [pa.null(), pa.string(), pa.date32(), *numbers],
    }
    found = []
    for kind in kinds.get(type(cell), []):
        try:
            column = pa.array([None, cell, None], kind)
        except (pa.ArrowException, OverflowError):
            continue
        if not _is_cut(cell, column[1].as_py()):
            found.append(column)
    return [*found, *(column.dictionary_encode() for column in found)]


@settings(deadline=None)
@given(CELLS)
def test_every_type_of_column_agrees_with_the_single_cell(cell: Any) -> None:
    """Also far dates, which Arrow holds and Python does not."""
    keys = {canonical(level): code for code, level in enumerate(LEVELS.levels)}
    code = keys.get(canonical(cell) or ("none", ""), -1)
    objects = np.empty(1, object)
    objects[0] = cell
    number, day = numbers_of(NUMBER, objects), numbers_of(DATE, objects)
    assert codes_of(LEVELS, objects).tolist() == [code]
    for column in columns_of(cell):
        assert codes_of(LEVELS, column).tolist() == [-1, code, -1], column.type
        np.testing.assert_equal(numbers_of(NUMBER, column)[1] + 0.0, number[0] + 0.0)
        np.testing.assert_equal(numbers_of(DATE, column)[1], day[0])
        assert codes_of(LEVELS, array_of(column)).tolist() == [-1, code, -1], column.type


def test_far_and_endless_dates_are_read_as_their_text_is() -> None:
    """DuckDB has years that text has not, and makes dates of a column of nothing but "inf"."""
    days = pa.array([2**31 - 1, -(2**31) + 1, 2_932_897, -719_163, 0, None], pa.int32())
    column = days.cast(pa.date32())
    texts = ["inf", "-inf", "10000-01-01", "0000-12-31", "1970-01-01", None]
    for kind in (NUMBER, DATE):
        want = numbers_of(kind, pa.array(texts))
        np.testing.assert_array_equal(numbers_of(kind, column), want)
    levels = Category(("-inf", "1970-01-01", "inf"))
    assert codes_of(levels, column).tolist() == [2, 0, -1, -1, 1, -1]
    endless = pa.array([2**63 - 1, -(2**63) + 1, 0], pa.int64()).cast(pa.timestamp("us"))
    assert codes_of(levels, endless).tolist() == [2, 0, 1]


@pytest.mark.skipif(not hasattr(pa, "opaque"), reason="this Arrow has no opaque types")
def test_long_integers_of_duckdb_are_integers() -> None:
    stored = [b"\x80\x00\x01\x07", b"\x7f\xff\xfe\xfa", None, b"\x80\x00\x09\x01" + bytes(8)]
    kind = pa.opaque(pa.binary(), "bignum", "DuckDB")
    column = pa.ExtensionArray.from_storage(kind, pa.array([b"", *stored], pa.binary())).slice(1)
    np.testing.assert_array_equal(numbers_of(NUMBER, column), [7, -5, np.nan, 2.0**64])
    assert codes_of(Category(("7.0", "-5")), column).tolist() == [0, 1, -1, -1]


COINCIDE = [
    ["02139", "2139"],
    ["1", "1.0"],
    ["true", "1"],
    ["yes", "t"],
    ["F", "f"],
    ["12345678901234567", "12345678901234568"],
    ["2020-01-01", "2020/1/1 00:00"],
    ["12:30", "12:30:00"],
    ["0x10", "16"],
    ["inf", "1e400"],
]
UNREADABLE = ["NA", "", "nan", "null", "01/02/2020", "1.2.3", "epoch", "12020-01-01"]


@pytest.mark.parametrize("levels", COINCIDE)
def test_levels_that_libraries_cannot_tell_apart_are_refused(levels: list[str]) -> None:
    with refused("c", "Schema", "different numbers"):
        Schema({"c": ["zebra", *levels]})
    with refused("classes", "Rules", "different numbers"):
        Rules(features=1, row_norm=1.0, classes=(levels[0], levels[1]))


@pytest.mark.parametrize("level", UNREADABLE)
def test_levels_that_libraries_may_take_for_nothing_are_refused(level: str) -> None:
    with refused("c", "Schema", "missing cells"):
        Schema({"c": ["zebra", level]})
    with refused("classes", "Rules", "missing cells"):
        Rules(features=1, row_norm=1.0, classes=("zebra", level))


def test_numbers_that_are_one_float_are_one_level() -> None:
    with refused("c", "Schema", "different numbers"):
        Schema({"c": {"type": "category", "levels": [0.1, Fraction(1, 10)]}})


@pytest.mark.parametrize("level", ["10-19", "2020-01", "a/b/c", "1.2.3.4", "18 to 25", "n", "None"])
def test_other_names_are_levels(level: str) -> None:
    assert Schema({"c": ["zebra", level]}).names == ("intercept", f"c={level}", "c=other")


def test_schemas_of_older_releases_are_read_but_no_table_is_read_with_them() -> None:
    content = {"columns": {"c": ["zebra", "NA"]}}
    with refused("c", "Schema", "missing cells"):
        Schema.from_dict(content)
    old = Schema.from_release(content)
    assert Schema.from_release(old.to_dict()) == old
    table = pa.table({"c": ["zebra"]})
    with refused("c", "Schema", "missing cells"):
        second_moments(table, old)
    with refused("c", "Schema", "missing cells"):
        open_rows(table, old, "release_rows")
    with refused("c", "Schema", "missing cells"):
        Schema.from_dict(content)


@given(st.datetimes())
@example(dt.datetime(2060, 1, 1, 0, 5, 1, 7901))
@example(dt.datetime(9999, 12, 31, 23, 59, 59, 999999))
def test_a_moment_written_down_is_the_same_moment(moment: dt.datetime) -> None:
    day = day_in(moment)
    assert day_in(text_of("day", day)) == day


LONG = 300_000  # characters: whatever looks at pairs of them does not end


@pytest.mark.parametrize(
    "begin", ["", "-", "1", "1.", ".", "1e", "0x", "0b", "1:1:1.", "2020-", "a"]
)
@pytest.mark.parametrize("run", ["1", "0", " ", "\t", "1 ", " 1", ".", "+"])
def test_long_cells_are_read_in_one_walk(begin: str, run: str) -> None:
    cell = begin + run * (LONG // len(run))
    for text in (cell + "x", cell + " x", " " * 9 + cell):
        number_in(text), day_in(text), time_in(text), canonical(text)


class Ends:
    """A cell that ends the program, or a class in disguise, whatever is asked of it."""

    def __init__(self, error: type[BaseException], times: int) -> None:
        object.__setattr__(self, "left", [error] * times)

    @property
    def __class__(self) -> Any:
        left = object.__getattribute__(self, "left")
        if left:
            raise left.pop()("private words")
        return float

    @__class__.setter
    def __class__(self, _: object) -> None:
        raise TypeError


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_nothing_that_a_cell_raises_gets_out(error: type[BaseException]) -> None:
    for read in (number_in, day_in, time_in, canonical, text_in):
        found = read(Ends(error, 100))
        assert found is None or math.isnan(found)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_ends_the_program_while_a_cell_is_read_gets_out(error: type[BaseException]) -> None:
    """The handler of a signal raises once: read again, the cell does not."""
    with pytest.raises(error):
        day_in(Ends(error, 1))


DATES = {"type": "date", "low": "1960-01-01", "high": "2030-01-01"}


@pytest.mark.engine
@pytest.mark.parametrize("zone", ["GMT", "gmt", "UTC", "UCT", "Etc/UTC", "Etc/GMT", "Zulu", "+02"])
def test_moments_of_duckdb_with_a_zone_are_read_as_their_text_is(zone: str, tmp_path: Path) -> None:
    file, day = tmp_path / "rows.csv", read_column("d", DATES)
    text = f"2029-06-01 12:00:00{zone}" if zone == "+02" else f"2029-06-01 12:00:00 {zone}"
    found = []
    for last in (text, "unknown"):
        file.write_text("\n".join(["d", *[text] * 5, last]) + "\n", encoding="utf-8")
        table = library("duckdb").read_csv(str(file), header=True).to_arrow_table()
        found.append(numbers_of(day, table.column(0))[:5].tolist())  # type: ignore[arg-type]
    assert found[0] == found[1] == [21701.5 - (zone == "+02") / 12] * 5


@pytest.mark.engine
@pytest.mark.parametrize("text", ["epoch", "Epoch", " epoch"])
def test_the_epoch_is_a_day_to_all(text: str) -> None:
    duckdb = library("duckdb")
    typed = duckdb.sql(f"SELECT CAST('{text}' AS DATE) AS d").to_arrow_table().column(0)
    day = read_column("d", DATES)
    for cells in (typed, pa.array([text]), np.array([text], object)):
        assert numbers_of(day, cells).tolist() == [0.0]  # type: ignore[arg-type]
