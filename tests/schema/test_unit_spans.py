"""Spans of time are ids: told apart exactly, whatever holds them, and nothing but ids."""

import datetime as dt
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplinear.curator.sources import second_moments
from dplinear.schema import Schema
from dplinear.schema.canonical import canonical
from dplinear.schema.cells import array_of
from dplinear.schema.levels import levels_of
from dplinear.schema.unit_keys import keys_of
from dplinear.schema.unit_spans import key_of_written, write_span
from services import library

DAY = dt.timedelta(days=1)
SPANS = [
    *(DAY, 24 * dt.timedelta(hours=1), dt.timedelta(0), -DAY, None, dt.timedelta(microseconds=1)),
    *(dt.timedelta.max, dt.timedelta.min, dt.timedelta(seconds=86_400), 7 * DAY, DAY / 2),
]
# How many seconds a unit has, by the definition; months and years as databases compare them.
SECONDS: dict[str, Any] = {
    "as": Fraction(1, 10**18),
    "fs": Fraction(1, 10**15),
    "ps": Fraction(1, 10**12),
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1_000),
    "s": 1,
    "m": 60,
    "h": 3_600,
    "D": 86_400,
    "W": 7 * 86_400,
    "M": 30 * 86_400,
    "Y": 360 * 86_400,
}
TICKS = [0, 1, -1, 60, 3_600, 86_400, 1_000, 10**6, 2**53, 2**53 + 1, 2**63 - 1, -(2**63) + 1]


def shared(keys: pa.Array | list[Any]) -> list[list[bool]]:
    """Say which cells are one id."""
    known = keys.to_pylist() if isinstance(keys, pa.Array) else keys
    return [[one == other and one is not None for other in known] for one in known]


def of_objects(cells: list[Any]) -> Any:
    found = np.empty(len(cells), object)
    for index, cell in enumerate(cells):
        found[index] = cell
    return found


def test_spans_are_one_id_where_they_are_as_long_in_every_unit() -> None:
    """Against fractions, in arrays of NumPy's and as single cells, in steps of one tick or five."""
    cells, lengths = [], []
    for unit, seconds in SECONDS.items():
        for step in (1, 5):
            ticks = np.array([*TICKS, np.iinfo(np.int64).min]).view(f"m8[{step}{unit}]")
            keys = keys_of(ticks).to_pylist()
            assert keys == keys_of(of_objects(list(ticks))).to_pylist()
            assert keys == keys_of(ticks.astype(ticks.dtype.newbyteorder(">"))).to_pylist()
            assert keys[-1] is None
            cells += keys[:-1]
            lengths += [tick * step * seconds for tick in TICKS]
    assert shared(cells) == shared(lengths)
    plain = keys_of(np.array(TICKS).view("m8")).to_pylist()  # of no unit
    assert shared(plain) == shared(TICKS)
    assert not set(plain) & set(cells)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_arrow_has_the_spans_of_numpy(unit: str) -> None:
    ticks = np.array([*TICKS, -(2**63)])
    known = keys_of(ticks.view(f"m8[{unit}]")).to_pylist()
    cells = pa.array(ticks).cast(pa.duration(unit))
    longer = pa.concat_arrays([cells.slice(0, 1), cells, pa.nulls(1, cells.type)])
    assert keys_of(cells).to_pylist() == known
    assert keys_of(longer).to_pylist() == [known[0], *known, None]
    assert keys_of(longer.slice(1, len(known))).to_pylist() == known
    assert keys_of(longer.dictionary_encode()).to_pylist() == keys_of(longer).to_pylist()
    assert keys_of(pa.chunked_array([cells, longer])).to_pylist()[: len(known)] == known
    assert keys_of(array_of(longer)).to_pylist() == keys_of(longer).to_pylist()


@given(st.lists(st.one_of(st.none(), st.timedeltas(), st.sampled_from(SPANS)), max_size=20))
def test_pythons_spans_have_the_keys_of_columns(spans: list[Any]) -> None:
    keys = keys_of(of_objects(spans)).to_pylist()
    assert shared(keys) == shared(spans)
    near = [span if span is None or abs(span) < 10**5 * DAY else None for span in spans]
    own = [key if span is not None else None for key, span in zip(keys, near, strict=True)]
    assert keys_of(pa.array(near, pa.duration("us"))).to_pylist() == own
    assert keys_of(np.array(near, "m8[us]")).to_pylist() == own
    assert keys_of(np.ma.array(np.array(near, "m8[us]"), mask=True)).null_count == len(near)


def test_intervals_are_compared_as_databases_do() -> None:
    cells: list[Any] = [
        *((0, 1, 0), (0, 0, 86_400 * 10**9), (1, 0, 0), (0, 30, 0), (12, 0, 1), (0, 360, 1)),
        *((2**31 - 1, -(2**31), 2**63 - 1), (0, 0, -(2**63)), (-1, 30, 0), (0, 0, 0), None),
    ]
    held = pa.array(
        [None if cell is None else pa.MonthDayNano(cell) for cell in cells],
        pa.month_day_nano_interval(),
    )
    days = [
        None if cell is None else Fraction(cell[0] * 30 + cell[1]) + Fraction(cell[2], 864 * 10**11)
        for cell in cells
    ]
    keys = keys_of(held)
    assert shared(keys) == shared(days)
    assert keys_of(held.slice(3)).to_pylist() == keys.to_pylist()[3:]
    assert keys_of(of_objects(held.to_pylist())).to_pylist() == keys.to_pylist()
    assert keys_of(array_of(held)).to_pylist() == keys.to_pylist()
    assert keys[0].as_py() == keys_of(of_objects([DAY])).to_pylist()[0]


def test_spans_are_no_levels_and_no_other_ids() -> None:
    cells = of_objects([DAY, np.timedelta64(5, "D"), pa.MonthDayNano([1, 2, 3])])
    assert levels_of(cells).null_count == len(cells)
    assert [canonical(cell) for cell in cells] == [None] * 3
    texts = [key.as_py()[1:].decode() for key in keys_of(cells)]
    others = keys_of(pa.array([*texts, *map(str, cells), "P1D", "1 day"])).to_pylist()
    assert not set(others) & set(keys_of(cells).to_pylist())


def test_a_text_that_stands_for_a_span_is_no_level_and_breaks_nothing() -> None:
    span = write_span(DAY)
    assert span is not None
    mark = span[: -len("86400000000000000000000")]
    assert key_of_written(span) == keys_of(of_objects([DAY])).to_pylist()[0]
    cells = pa.array([span, mark, mark + b"n\x00", mark + b"\xff"], pa.binary())
    assert keys_of(cells).null_count == 0
    assert levels_of(cells).null_count == len(cells)


# Tables, whose units are spans


SCHEMA = Schema({"x": (-1, 1)}, unit="id")
LENGTHS = [DAY, 2 * DAY, DAY / 2, None, DAY, DAY, 2 * DAY, 3 * DAY]
XS = np.linspace(-1, 1, len(LENGTHS))


def expected() -> Any:
    ids = [None if span is None else str(span) for span in LENGTHS]
    return second_moments(pa.table({"x": XS, "id": ids}), SCHEMA)


def test_units_are_spans_in_tables(tmp_path: Any) -> None:
    known = expected()
    table = pa.table({"x": XS, "id": pa.array(LENGTHS, pa.duration("ms"))})
    pq.write_table(table, tmp_path / "t.parquet")
    objects = of_objects(LENGTHS)
    array = np.column_stack([of_objects(XS.tolist()), objects])
    fields = np.array(
        list(zip(XS, np.array(LENGTHS, "m8[s]"), strict=True)), [("x", float), ("id", "m8[s]")]
    )
    for held in (table, tmp_path / "t.parquet", array, fields):
        assert second_moments(held, SCHEMA) == known


@pytest.mark.engine
def test_units_are_spans_in_frames_and_relations() -> None:
    known, pandas, polars = expected(), library("pandas"), library("polars")
    frame = pandas.DataFrame({"x": XS, "id": LENGTHS})
    assert frame["id"].dtype.kind == "m"
    eager = polars.DataFrame({"x": XS, "id": LENGTHS})
    boxed = polars.DataFrame({"x": XS, "id": polars.Series(LENGTHS, dtype=polars.Object)})
    connection = library("duckdb").connect()
    table = pa.table({"x": XS, "id": pa.array(LENGTHS, pa.duration("us"))})
    relation = connection.from_arrow(table).project("x, CAST(id AS INTERVAL) AS id")
    frames = [frame, frame.astype({"id": object}), frame.astype({"id": "category"})]
    dask = library("dask.dataframe").from_pandas(frame, npartitions=3)
    for held in (*frames, eager, eager.lazy(), boxed, relation, dask):
        assert second_moments(held, SCHEMA) == known


@pytest.mark.engine
def test_pandas_own_spans_are_read_to_the_nanosecond() -> None:
    pandas = library("pandas")
    ticks = [10**15, 10**15 + 1, -(10**15), 10**15, 1]
    spans = [pandas.Timedelta(tick, "ns") for tick in ticks]
    keys = keys_of(of_objects(spans)).to_pylist()
    assert shared(keys) == shared(ticks)
    assert keys == keys_of(np.array(ticks).view("m8[ns]")).to_pylist()
    assert keys_of(of_objects([pandas.NaT])).null_count == 1
