"""Declarations, derived bounds, exact maps, and the encoding of good and bad cells."""

import datetime as dt
import json
import pickle
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplinear.arguments import ArgumentTypeError
from dplinear.curator import Grid, Schema
from dplinear.schema.encoding import Encoder
from refusals import refused

PEOPLE = {
    "age": {"type": "integer", "low": 0, "high": 100, "missing_indicator": True},
    "bmi": (10, 60),
    "smoker": ["no", "yes"],
    "employed": "boolean",
    "visit": {"type": "date", "low": "2020-01-01", "high": "2030-01-01"},
    "ward": {"type": "category", "levels": [1, 2, 3], "other": 1},
}
DERIVED = ["age*smoker", "bmi^2", "age>=65", "smoker*ward", "age*bmi^3"]


def encode(schema: Schema, **columns: Any) -> dict[str, list[float]]:
    cells = schema.encode(pa.record_batch(columns))
    return dict(zip(schema.names, cells.tolist(), strict=True))


def encoded(schema: Schema, columns: dict[str, Any], rows: int) -> np.ndarray[Any, Any]:
    encoder = Encoder(schema)
    return encoder.finish(encoder.columns(columns, rows))


def test_names_and_order_come_from_the_schema_alone() -> None:
    schema = Schema(PEOPLE, derived=DERIVED)
    assert schema.names == (
        "intercept",
        "age",
        "age:missing",
        "bmi",
        "smoker=yes",
        "smoker=other",
        "employed",
        "visit",
        "ward=2",
        "ward=3",
        "age*smoker=yes",
        "age*smoker=other",
        "bmi^2",
        "age>=65",
        "smoker=yes*ward=2",
        "smoker=yes*ward=3",
        "smoker=other*ward=2",
        "smoker=other*ward=3",
        "age*bmi^3",
    )
    assert schema.columns == tuple(PEOPLE)
    assert schema.dimension == 19
    # one for the intercept, each column and each derived term: levels exclude one another
    assert schema.norm_squared == 1 + 6 + 5
    assert schema.bound == 12**0.5


def test_derived_bounds_are_exact() -> None:
    schema = Schema(
        {"x": (-2, 3), "y": (Fraction(1, 3), 0.5), "c": ["a", "b"]},
        derived=["x^2", "x*y", "x*x*x", "x*c"],
    )
    bounds: dict[str, Any] = {f.name: (f.low, f.high) for f in schema.features}
    assert bounds["x^2"] == (0, 9)
    assert bounds["x*y"] == (-1, Fraction(3, 2))
    assert bounds["x^3"] == (-8, 27)
    assert bounds["x*c=b"] == (-2, 3)


@given(
    st.fractions(-(10**6), 10**6),
    st.fractions(Fraction(1, 100), 10**6),
    st.fractions(0, 1),
    st.booleans(),
)
def test_the_affine_map_is_undone_exactly(
    low: Fraction, width: Fraction, position: Fraction, intercept: bool
) -> None:
    feature = Schema({"x": (low, low + width)}, intercept=intercept).features[-1]
    value = low + position * width
    assert -1 <= feature.cell(value) <= 1
    assert feature.value(feature.cell(value)) == value


def test_without_an_intercept_nothing_is_shifted() -> None:
    feature: Any = Schema({"x": (0, 10)}, intercept=False).features[0]
    assert (feature.centre, feature.half_width) == (0, 10)


def test_files_dicts_and_keywords_say_the_same(tmp_path: Path) -> None:
    toml = tmp_path / "schema.toml"
    toml.write_text(
        """
        derived = ["age^2"]
        row_norm = 1.5
        [columns]
        age = [0, 100]
        smoker = ["no", "yes"]
        visit = { type = "date", low = 2020-01-01, high = 2030-01-01T12:00:00 }
        """
    )
    by_file = Schema.from_file(toml)
    by_words = Schema(
        age=(0, 100),
        smoker=["no", "yes"],
        visit=(dt.date(2020, 1, 1), dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)),
        derived=["age^2"],
        row_norm=1.5,
    )
    assert by_file == by_words
    again = tmp_path / "schema.json"
    again.write_text(json.dumps(by_words.to_dict()))
    assert Schema.from_file(again) == by_words
    assert pickle.loads(pickle.dumps(by_words)) == by_words
    assert by_words != Schema(by_words.to_dict()["columns"])


def test_every_schema_survives_its_dict() -> None:
    schema = Schema(PEOPLE, derived=DERIVED, row_norm=Fraction(1, 3), intercept=False)
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert again.features == schema.features
    assert again.row_norm == Fraction(1, 3)


def test_good_cells() -> None:
    got = encode(
        Schema(PEOPLE, derived=DERIVED),
        age=[0, 50, 100],
        bmi=[10.0, 35.0, 60.0],
        smoker=["no", "yes", "pipe"],
        employed=[True, False, None],
        visit=[dt.date(2020, 1, 1), dt.date(2025, 1, 1), dt.date(2030, 1, 1)],
        ward=[1, 2, 3],
    )
    assert got["intercept"] == [1, 1, 1]
    assert got["age"] == [-1, 0, 1]
    assert got["age:missing"] == [0, 0, 0]
    assert got["bmi"] == [-1, 0, 1]
    assert got["smoker=yes"] == [0, 1, 0]
    assert got["smoker=other"] == [0, 0, 1]
    assert got["employed"] == [1, -1, 0]
    assert got["visit"] == pytest.approx([-1, 0, 1], abs=1e-3)
    assert got["ward=2"] == [0, 1, 0]
    assert got["age*smoker=yes"] == [0, 0.5, 0]
    assert got["age*smoker=other"] == [0, 0, 1]
    assert got["age>=65"] == [0, 0, 1]
    assert got["smoker=yes*ward=2"] == [0, 1, 0]
    assert got["bmi^2"] == [-1, pytest.approx((35**2 - 1850) / 1750), 1]


BAD_NUMBERS: list[tuple[Any, float]] = [
    (None, 0.0),
    (float("nan"), 0.0),
    (float("inf"), 1.0),
    (float("-inf"), -1.0),
    (1e308, 1.0),
    (-1e308, -1.0),
    (5e-324, 5e-324),
    (10**400, 1.0),
    (-(10**400), -1.0),
    (Decimal("sNaN"), 0.0),
    (Decimal("1E+999999"), 1.0),
    (Fraction(1, 2), 0.5),
    (True, 1.0),
    (np.float32(0.5), 0.5),
    (np.int8(-1), -1.0),
    ("0.5", 0.5),
    (" +.5e0 ", 0.5),
    ("1e999", 1.0),
    ("-inf", -1.0),
    ("nan", 0.0),
    ("0x1p-1", 0.0),
    ("1_0", 0.0),
    ("٣", 0.0),
    ("", 0.0),
    ("half", 0.0),
    (b"\xff\xfe", 0.0),
    (b"0.25", 0.25),
    (1j, 0.0),
    ([1], 0.0),
    (object(), 0.0),
    (dt.date(2020, 1, 1), 0.0),
]


def shown(value: object) -> str:
    return repr(value).partition(" at 0x")[0][:30]  # no addresses: they differ between processes


@pytest.mark.parametrize(("cell", "expected"), BAD_NUMBERS, ids=shown)
def test_a_bad_number_changes_its_own_cell_only(cell: Any, expected: float) -> None:
    schema = Schema({"x": (-1, 1), "y": (-1, 1)})
    column = np.empty(3, object)
    column[:] = [0.25, cell, -0.25]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cells = encoded(schema, {"x": column, "y": np.array([0.5, 0.5, 0.5])}, 3)
    assert cells.tolist() == [[1, 1, 1], [0.25, expected, -0.25], [0.5, 0.5, 0.5]]


TYPES = [
    pa.int8(),
    pa.int64(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(25, 3),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.int64()),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_the_type_a_reader_chose_does_not_change_the_bits(kind: pa.DataType) -> None:
    values = pa.array([3, 7, None, 100])
    if pa.types.is_dictionary(kind):
        column = values.cast(kind.value_type).dictionary_encode().cast(kind)
    elif kind in {pa.string_view(), pa.binary()}:
        column = pa.array(["3", "7", None, "100"], kind)
    else:
        column = values.cast(kind)
    schema = Schema({"x": (0, 30)}, derived=["x^2"])
    want = schema.encode(pa.record_batch({"x": values.cast(pa.float64())}))
    got = schema.encode(pa.record_batch({"x": column}))
    assert got.tobytes() == want.tobytes()
    levels = Schema({"x": {"type": "category", "levels": [3, 7], "drop_first": False}})
    assert levels.encode(pa.record_batch({"x": column})).tolist()[1:] == [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 1],
    ]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([dt.datetime(2025, 3, 4, 5, 6, 7), None], pa.timestamp(unit))
        for unit in ("s", "ms", "us", "ns")
    ]
    + [
        pa.array(["2025-03-04T05:06:07", "soon"]),
        np.array(["2025-03-04T05:06:07", "NaT"], "datetime64[s]"),
        np.array(["2025-03-04T05:06:07", "NaT"], "datetime64[ns]"),
        np.array([dt.datetime(2025, 3, 4, 5, 6, 7), 3], object),
    ],
    ids=lambda column: str(getattr(column, "type", getattr(column, "dtype", ""))),
)
def test_a_moment_has_the_same_bits_in_every_unit(column: Any) -> None:
    schema = Schema({"t": (dt.date(2020, 1, 1), dt.date(2030, 1, 1))})
    exact = (Fraction(dt.date(2025, 3, 4).toordinal()) - dt.date(1970, 1, 1).toordinal()) + (
        Fraction(5 * 3600 + 6 * 60 + 7, 86400)
    )
    feature = schema.features[1]
    want = (float(exact) - float(feature.centre)) * float(1 / feature.half_width)
    assert encoded(schema, {"t": column}, 2)[1].tolist() == [want, 0.0]


def test_nanoseconds_have_the_bits_of_microseconds(generator: Any) -> None:
    ticks = generator(8).integers(1_577_836_800 * 10**6, 1_893_456_000 * 10**6, 2000)
    schema = Schema({"t": (dt.date(2020, 1, 1), dt.date(2030, 1, 1))})
    want = encoded(schema, {"t": pa.array(ticks, pa.timestamp("us"))}, 2000)
    got = encoded(schema, {"t": pa.array(ticks * 1000, pa.timestamp("ns"))}, 2000)
    objects = np.array(pa.array(ticks, pa.timestamp("us")).to_pylist(), object)
    assert got.tobytes() == want.tobytes() == encoded(schema, {"t": objects}, 2000).tobytes()


@given(st.data())
def test_a_row_is_encoded_alone(data: st.DataObject) -> None:
    cell = st.one_of(
        st.none(), st.floats(), st.integers(), st.text(max_size=5), st.booleans(), st.binary()
    )
    rows = data.draw(st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=8))
    schema = Schema(
        {"a": (-3, 5), "b": {"type": "integer", "low": 0, "high": 9}, "c": ["a", "0", "yes"]},
        derived=["a*c", "a*b", "b>=3"],
    )

    def alone(part: list[Any]) -> np.ndarray[Any, Any]:
        columns = {}
        for index, name in enumerate("abc"):
            columns[name] = np.empty(len(part), object)
            columns[name][:] = [row[index] for row in part]
        return encoded(schema, columns, len(part))

    whole = alone(rows)
    assert np.abs(whole).max() <= 1
    assert (np.square(whole).sum(axis=0) <= schema.norm_squared).all()
    for index, row in enumerate(rows):
        assert alone([row])[:, 0].tobytes() == whole[:, index].tobytes()


def test_the_fast_path_has_the_same_bits(generator: Any) -> None:
    block = generator(3).normal(0, 2, (500, 3))
    block[::7, 1] = np.nan
    block[::11, 2] = np.inf
    block[5, 0] = 1e308
    schema = Schema({"a": (-1, 1), "b": {"low": 0, "high": 3, "missing": 0.1}, "c": (-0.5, 2.5)})
    assert schema.is_plain
    encoder = Encoder(schema, 12345.0)
    slow = encoder.columns({n: block[:, j] for j, n in enumerate("abc")}, 500)
    for fast in (encoder.array(block), encoder.array(np.asfortranarray(block))):
        assert np.array_equal(encoder.finish(fast), encoder.finish(slow.copy()))


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 40, 100, 1000, 5000])
def test_the_grid_is_fine_and_its_blocks_exact(dimension: int) -> None:
    grid = Grid.of(Schema({f"x{j}": (0, 1) for j in range(dimension)}, intercept=False))
    assert 4096 * grid.largest_cell**2 <= 2**53
    assert dimension * grid.steps_per_unit**2 <= grid.sensitivity == 4**grid.exponent
    assert grid.steps_per_unit >= 7e5
    assert grid.bound**2 >= dimension


def test_a_mapping_is_taken_for_a_schema() -> None:
    columns = {"age": (0, 100), "smoker": ["no", "yes"]}
    schema = Schema(columns)
    assert Schema.of(schema, "release_moments") is schema
    assert Schema.of(columns, "release_moments") == schema
    for other in (None, 3, [("age", (0, 100))], "schema.toml"):
        with refused("schema", "release_moments", "a Sch", kind=ArgumentTypeError):
            Schema.of(other, "release_moments")
    with refused("columns", "plan", kind=ArgumentTypeError):
        Schema.of(None, "plan", "columns")
    with refused("age", "Schema", kind=ArgumentTypeError):
        Schema.of({"age": 3}, "release_moments")
