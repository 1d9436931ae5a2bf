"""Cells at the ends of their types: one odd row must not change what becomes of them.

A frame of such cells has a type of its own; beside one odd cell it is a column of objects or text.
All other rows then keep their integers, and nothing warns.
"""

import datetime as dt
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.curator.sources import second_moments
from dplinear.curator.sources.ordered import open_rows
from dplinear.estimators import PrivateLinearRegression
from dplinear.estimators.tables import features_of, numbers, targets_of
from dplinear.noise import simulation
from dplinear.schema import Schema
from dplinear.schema.canonical import canonical, day_in, days_of_datetimes
from dplinear.schema.cells import array_of, codes_of
from dplinear.schema.columns import read_column
from services import library

LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
DATES = Schema({"x": {"type": "date", "low": "1600-01-01", "high": "2300-01-01"}})
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25us", "7D")
TICKS = (0, 1, -1, 3650, -(10**6), 10**9, 10**12, 2**53, -(2**53), 2**62, 2**63 - 1, -(2**63) + 1)


def integers(table: Any, schema: Schema) -> np.ndarray[Any, Any]:
    with open_rows(table, schema, "test", threads=1).through(np.copy) as blocks:
        return np.concatenate(list(blocks), axis=1)


def datetimes() -> Iterator[np.datetime64]:
    for unit in UNITS:
        for ticks in TICKS:
            yield np.array([ticks], np.int64).view(f"M8[{unit}]")[0]


@pytest.mark.engine
@pytest.mark.parametrize("odd", ["?", 5, None])
@pytest.mark.parametrize(
    ("cell", "declared"),
    [
        (LAST, {"type": "date", "low": "2000-01-01", "high": "2030-01-01"}),
        (LAST, {"type": "category", "levels": ["9999-12-31", "2020-01-01"]}),
        (np.datetime64(2**63 - 1, "ns"), (-1, 1)),
        (np.datetime64(-(2**63) + 1, "ns"), (-1, 1)),
        (np.datetime64(2**63 - 1, "us"), (-1, 1)),
        (np.datetime64(-(2**63) + 1, "ns"), DATES.declared["x"]),
        (np.datetime64(2**63 - 1, "s"), DATES.declared["x"]),
    ],
)
def test_an_odd_cell_changes_no_other_row(cell: Any, declared: Any, odd: Any) -> None:
    pandas = library("pandas")
    schema = DATES if declared is DATES.declared["x"] else Schema({"x": declared})
    same = pandas.Series([cell] * 3)
    beside = pandas.Series([*same.astype(object), odd], dtype=object)
    alone = integers(pandas.DataFrame({"x": same}), schema)
    assert (integers(pandas.DataFrame({"x": beside}), schema)[:, :3] == alone).all()


def test_datetimes_of_every_unit_mean_the_same_alone_and_in_an_array() -> None:
    """NumPy's own conversions wrap around; a far date is none, however it is held."""
    for cell in datetimes():
        alone = day_in(cell)
        held = float(days_of_datetimes(np.array([cell, cell]))[1])
        assert alone == held or (np.isnan(alone) and np.isnan(held))
        if not np.isnan(alone):
            assert canonical(cell) == ("day", alone)
    assert day_in(np.datetime64("2020-03", "M")) == day_in("2020-03-01")
    assert day_in(np.datetime64("1969-12-31T23:59:59.999999999", "ns")) == day_in(
        "1969-12-31T23:59:59.999999"
    )
    assert np.isnan(day_in(np.datetime64("NaT")))
    assert np.isnan(days_of_datetimes(np.array(["NaT"], "M8")))[0]


def test_arrays_of_datetimes_are_read_as_their_cells_are() -> None:
    for cell in datetimes():
        typed, objects = np.array([[cell]] * 3), np.empty((3, 1), object)
        objects[:, 0] = [cell] * 3
        assert (integers(typed, DATES) == integers(objects, DATES)).all()


def test_the_last_moments_of_a_year_are_as_near_as_they_are() -> None:
    """A cell that is there in a bounded change stays there: nothing is rounded out of a year."""
    ends = [LAST.replace(microsecond=part) for part in (999_000, 999_900, 999_980, 999_999)]
    table = pa.table({"x": pa.array(ends, pa.timestamp("us"))})
    found = integers(table, DATES)[-1]
    assert len(set(found.tolist())) == 1
    assert found[0] == found.max() > 0
    texts = pa.table({"x": [end.isoformat() for end in ends]})
    assert (integers(texts, DATES)[-1] == found).all()
    assert np.isnan(day_in("10000-01-01"))
    assert day_in(LAST) == day_in(LAST.isoformat()) < day_in("9999-12-31") + 1


@pytest.mark.parametrize("odd", [None, 1.0, [1.0, 2.0], [], bytearray(b"1"), np.array(1.0), "x"])
def test_one_entry_of_a_list_does_not_say_what_the_others_are(odd: Any) -> None:
    X, rows, cells = np.zeros((6, 1)), [[1.0]] * 6, [1.0] * 6
    for entries in (rows, cells):
        before = targets_of(entries, len(X), "fit")
        after = targets_of([*entries[:5], odd], len(X), "fit")
        assert before.shape == after.shape
        assert before[:5].tolist() == after[:5].tolist()
    table = features_of([[1.0, 2.0]] * 5 + [odd], "fit")
    assert table.shape == (6, 2)
    assert table[:5].tolist() == [[1.0, 2.0]] * 5


@pytest.mark.engine
def test_far_dates_are_no_numbers_for_estimators() -> None:
    far = [np.datetime64("10000-01-01", "s")] * 3
    seen = []
    for odd in (far[0], "?"):
        table = features_of(library("pandas").DataFrame({"x": [*far, odd]}), "fit")
        seen.append(numbers(table, [read_column("x", (-10, 10))])[:3, 0])  # type: ignore[list-item]
    assert seen[0].tolist() == seen[1].tolist() == [0.0] * 3


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("bounds", [((-50, 50),), ((0, 100), (0, 100)), ((-50, 50), (0, 7))])
@pytest.mark.parametrize("intercept", [True, False])
def test_short_types_are_mapped_in_float64(kind: Any, bounds: Any, intercept: bool) -> None:
    """Old NumPy computes a short array and one float64 number in the short type."""
    names = {f"c{index}": pair for index, pair in enumerate(bounds)}
    schema = Schema(names, intercept=intercept)
    drawn = simulation.generator(1).uniform(0, 100, (40, len(bounds))).astype(kind)
    assert (integers(drawn, schema) == integers(drawn.astype(np.float64), schema)).all()


def test_no_label_warns() -> None:
    """A signalling NaN of a short type makes NumPy speak where it is cast."""
    X = simulation.generator(2).uniform(-1, 1, (60, 3))
    y = (X[:, 0] > 0).astype(np.float32)
    y.view(np.uint32)[7] = 0x7FA00000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with simulation.door(0):
            asked: dict[str, Any] = {"row_norm": 3.0, "constraint": 2.0, "classes": (0, 1)}
            dpl.release_model(X, target=y, **asked, loss="logistic", epsilon=1.0)
            PrivateLinearRegression(bounds=(-3, 3), target_bounds=(-3, 3)).fit(X, y)


@pytest.mark.engine
@pytest.mark.parametrize("odd", ["?", None])
@pytest.mark.parametrize("wide", ["category", "plain"])
def test_the_last_tick_of_pandas_is_no_infinity(wide: str, odd: Any) -> None:
    """DuckDB's "inf" beside dates is that tick; in pandas it is a far date, in every container."""
    pandas, schema = library("pandas"), Schema({"x": (-1, 1)})
    typed = pandas.Series(np.array([2**63 - 1] * 3 + [0]).view("M8[us]"))
    objects = typed.astype(object)
    objects.iloc[-1] = odd
    found = []
    for series in (typed, objects):
        held = series.astype("category") if wide == "category" else series
        found.append(integers(pandas.DataFrame({"x": held}), schema)[:, :3])
    arrow = pandas.Series(pandas.array(typed, dtype=pandas.ArrowDtype(pa.timestamp("us"))))
    found.append(integers(pandas.DataFrame({"x": arrow}), schema)[:, :3])
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


@pytest.mark.engine
@pytest.mark.parametrize(
    "column",
    [
        lambda: pa.array([0, 1, 2, 2**30], pa.int32()).view(pa.date32()),
        lambda: pa.array([0, 1, 2, 2**62]).view(pa.timestamp("us", "Europe/Berlin")),
        lambda: pa.array([b"a", b"b", b"c", b"\xff"]).view(pa.string()),
        lambda: pa.array([0, 1, 2, 86_400 * 10**6]).view(pa.time64("us")),
    ],
)
def test_arrow_columns_of_pandas_raise_for_no_cell(column: Any) -> None:
    pandas = library("pandas")
    held = column()
    made = pandas.array(held, dtype=pandas.ArrowDtype(held.type))
    frame = pandas.DataFrame({"a": pandas.Series(made), "b": [1.0, 2.0, 3.0, 4.0]})
    assert features_of(frame, "fit").shape == (4, 2)


def test_midnight_at_the_end_of_a_day_is_not_that_at_its_beginning() -> None:
    levels = read_column("y", ["00:00:00", "24:00:00"])
    typed = pa.array([0, 86_400 * 10**6, -1, 86_400 * 10**6 + 5]).view(pa.time64("us"))
    texts = pa.array(["00:00:00", "24:00:00", None, None])
    for cells in (typed, array_of(typed), texts, array_of(texts)):
        assert codes_of(levels, cells).tolist() == [0, 1, -1, -1]  # type: ignore[arg-type]


class Rude(list[float]):
    """A row that will not be read."""

    def __iter__(self) -> Iterator[float]:
        raise RuntimeError("a private number")


def test_a_row_that_will_not_be_read_is_missing() -> None:
    table = features_of([[1.0, 2.0], Rude([1.0, 2.0]), [3.0, 4.0], [5.0, 6.0]], "fit")
    assert table.tolist() == [[1.0, 2.0], [None, None], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.engine
def test_codes_of_no_value_and_far_local_dates_raise_for_nobody() -> None:
    pandas = library("pandas")
    codes = pa.array([0, 1, 7, -3], pa.int32())
    for values in (pa.array([0, 1]).view(pa.timestamp("us")), pa.array(["a", "b"])):
        strays = pa.DictionaryArray.from_arrays(codes, values, safe=False)
        assert array_of(strays)[2:].tolist() == [None, None]
        series = pandas.Series(pandas.array(strays, dtype=pandas.ArrowDtype(strays.type)))
        frame = pandas.DataFrame({"x": series, "b": [1.0] * 4})
        assert features_of(frame, "fit").shape == (4, 2)
        assert integers(frame[["x"]], DATES).shape[1] == 4
    moments = pandas.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"], utc=True)
    far = pandas.Series(moments.as_unit("us").append(pandas.DatetimeIndex([LAST], tz="UTC")))
    local = far.dt.tz_convert("Europe/Berlin").astype("category")
    assert features_of(pandas.DataFrame({"x": local, "b": [1.0] * 4}), "fit").shape == (4, 2)


class _Hostile(np.ndarray):
    """An array that says what it holds when it is asked for anything."""

    def astype(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(str(np.asarray(self)))

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(str(np.asarray(self)))


def test_arrays_of_a_class_of_their_own_are_read_as_plain_ones() -> None:
    schema = Schema({"x": (0, 9)})
    plain = np.array([(1.0,), (2.0,)], dtype=[("x", "f8")])
    for array in (plain, plain["x"][:, None], plain.astype([("x", "f4")]), plain.view(np.recarray)):
        want = second_moments(array, schema)
        assert second_moments(array.view(_Hostile), schema) == want
