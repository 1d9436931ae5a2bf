"""Ids have the same key whatever type holds them, and it depends on the cell alone."""

import datetime as dt
import decimal
import re
import uuid
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplinear.schema.canonical import canonical
from dplinear.schema.unit_keys import keys_of

TEXTS = [
    *("a", "A", "007", "7", "7.0", "1e3", "NA", "", "null", "nan", "yes", "true", "epoch", "t"),
    *("2020-01-01", "2020-01-01 00:00:00", "12:30", "  x", "é", "-0", "0", "0x10", "inf", "INF"),
    *("f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6", "nanny"),
    *("2020/1/2", "01/02/2020", "N/A", "nullable", "12345678901234567890", "p\x00q", "epochal"),
    *("1/2/2020", "1/2/2021", "123-45-6789", "123-45-6788", "001-02-0003", "1/2/2020 12:00"),
    *("12345678901234567", "12345678901234568", "012345678901234567.0", "-12345678901234567"),
    *("9007199254740992", "9007199254740993", "9007199254740993.5", "9.007199254740993e15"),
    *(
        "123456789012.000001",
        "123456789012.000002",
        "123456789012.0000020",
        "0.1",
        "0.30000000000000004",
    ),
    *(
        "0.3000000000000000400",
        "0.30000000000000003",
        ".1000000000000000055",
        "1234567890123456e-8",
    ),
    *("12345678.90123456", "12345678.901234561", "12345678901234561e-9", "0.00000000000000000001"),
    *("1e999", "2e999", "10e998", "1e400", "1" + "0" * 400, "1e99999999999999999999", "1e-999"),
    *("0x20000000000001", "0x20000000000002", "12345678901234567e0", " 12345678901234568 "),
]


def meaning(text: str) -> Any:
    """Say what a text means as an id, by the reader of levels and by exact arithmetic."""
    key = canonical(text)
    if key is None:
        parts = re.fullmatch(r"\s*(\d{1,7})([-/. ])(\d{1,2})([-/. ])(\d{1,7})\s*", text, re.ASCII)
        return parts and [int(p) if p.isdigit() else p for p in parts.groups()]
    kind, value = key
    if kind != "number" or not isinstance(value, float):
        return key
    if abs(value) < 2**53 and _is_short(text):
        return key
    exact = Fraction(int(text, 0)) if "x" in text else _decimal(text)
    if exact is None or (abs(value) < 2**53 and _is_written(value, exact)):
        return key
    return exact


def _is_short(text: str) -> bool:
    """Whether a text has so few digits that no other one of as few has its float64."""
    return "x" in text or len(re.sub(r"[eE].*|\.", "", text).strip(" +-0")) <= 15


def _is_written(value: float, exact: Fraction) -> bool:
    """Whether a number is what libraries write for a float64."""
    return Fraction(repr(value)) == exact


def _decimal(text: str) -> Fraction | None:
    far = re.search(r"[eE][+-]?\d{6,}", text)  # more digits than there is room for
    return None if far or "inf" in text.lower() else Fraction(text.strip())


def same(cells: list[Any]) -> list[list[bool]]:
    """Say which cells are one id."""
    keys = [meaning(cell) for cell in cells]
    return [[one == other and one is not None for other in keys] for one in keys]


def holders(texts: list[str]) -> list[Any]:
    return [
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.array(texts).dictionary_encode(),
        pa.chunked_array([texts[:1], texts[1:]]),
        pa.array(["other", *texts])[1:],
        np.array(texts, object),
        pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.binary()),
        pc.run_end_encode(pa.array(texts)),
    ]


def check(texts: list[str]) -> None:
    expected = same(texts)
    for cells in holders(texts):
        keys = keys_of(cells).to_pylist()
        assert [[a == b and a is not None for b in keys] for a in keys] == expected


def test_texts_are_told_apart_as_levels_are() -> None:
    check(TEXTS)


@given(
    st.lists(
        st.one_of(st.sampled_from(TEXTS), st.text(st.characters(codec="utf-8"), max_size=12)),
        min_size=1,
        max_size=20,
    )
)
def test_texts_of_any_kind_are_told_apart_as_levels_are(texts: list[str]) -> None:
    check(texts)


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (pa.array([7]), "7"),
        (pa.array([7], pa.uint8()), "007"),
        (pa.array([7.0]), "7"),
        (pa.array([decimal.Decimal("7.00")]), "7"),
        (np.array([7]), "7"),
        (np.array([7.0], np.float32), "7.0"),
        (pa.array([-0.0]), "0"),
        (pa.array([True]), "true"),
        (pa.array([dt.date(2020, 1, 1)]), "2020-01-01"),
        (pa.array([dt.datetime(2020, 1, 1)]), "2020-01-01"),
        (np.array(["2020-01-01"], "M8[D]"), "2020-01-01 00:00"),
        (np.array([uuid.UUID(int=5)], object), str(uuid.UUID(int=5)).upper()),
        (pa.array([12345678901234567]), "12345678901234567"),
        (pa.array([2**64 - 1], pa.uint64()), str(2**64 - 1)),
        (pa.array([decimal.Decimal(12345678901234567890123)]), "12345678901234567890123.0"),
        (np.array([-12345678901234567]), "-12345678901234567"),
        (np.array([12345678901234567], object), "12345678901234567"),
        (np.array([10**5000 + 1], object), "1" + "0" * 4999 + "1"),
        (np.array([np.longdouble(2**53) + 1]), str(int(np.longdouble(2**53) + 1))),
        (pa.array([1e23]), str(int(1e23))),
        (np.array([2.0**70]), str(2**70)),
        (np.array([np.inf]), "inf"),
        (np.array([np.inf], np.longdouble), "Infinity"),
    ],
)
def test_other_types_have_the_keys_of_their_texts(cells: Any, text: str) -> None:
    assert keys_of(cells).to_pylist() == keys_of(pa.array([text])).to_pylist()
    assert keys_of(cells)[0].is_valid


def test_long_ids_are_told_apart_in_every_type() -> None:
    """One float64 stands for all of these: as one id, they would not be hidden from each other."""
    long = [12345678901234560 + place for place in range(8)]
    for cells in (
        *(pa.array(long), pa.array(long, pa.uint64()), np.array(long), np.array(long, object)),
        *(pa.array(map(str, long)), pa.array([decimal.Decimal(one) for one in long])),
    ):
        assert len(set(keys_of(cells).to_pylist())) == len(long)


def test_long_ids_with_a_point_are_told_apart_in_every_type() -> None:
    """Such as a number of a person and one of a household: they are as long as those above."""
    texts = [f"123456789012.{place:06}" for place in range(8)]
    numbers = [decimal.Decimal(text) for text in texts]
    held = [*holders(texts), pa.array(numbers, pa.decimal128(38, 12)), np.array(numbers, object)]
    for cells in held:
        assert keys_of(cells).to_pylist() == keys_of(held[0]).to_pylist()
        assert len(set(keys_of(cells).to_pylist())) == len(texts)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_a_float_has_the_key_of_what_libraries_write_for_it(value: float) -> None:
    own = keys_of(np.array([value])).to_pylist()
    for cells in (*holders([repr(value)]), np.array([decimal.Decimal(repr(value))])):
        assert keys_of(cells).to_pylist() == own


def test_digests_of_one_length_are_ids() -> None:
    digests = [b"\x00\xff\x01\x02", b"\xff\x00\x01\x02", b"\x00\xff\x01\x02", b"0007"]
    keys = keys_of(pa.array([*digests, None], pa.binary(4))).to_pylist()
    assert keys == keys_of(pa.array([*digests, None], pa.binary())).to_pylist()
    assert keys[0] == keys[2]
    assert len(set(keys)) == 4
    assert keys[3] == keys_of(np.array([7])).to_pylist()[0]


def test_cells_that_mean_nothing_have_no_key() -> None:
    missing = [
        pa.array([None, "NA", ""]),
        pa.array([None, 1.5]).slice(0, 1),
        np.array([np.nan]),
        np.ma.array([1.0], mask=[True]),
        np.array([None, np.nan], object),
        np.array(["NaT"], "M8[D]"),
        pa.array([[1]]),
    ]
    for cells in missing:
        assert keys_of(cells).null_count == len(cells)


@pytest.mark.parametrize(
    ("kind", "end"), [(pa.date32(), 2**31 - 1), (pa.timestamp("us"), 2**63 - 1)]
)
def test_an_endless_day_is_an_id_like_any_other(kind: pa.DataType, end: int) -> None:
    # DuckDB's 'infinity', which Arrow itself cannot show.
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    keys = keys_of(pc.cast(pa.array([0, end, -end, end, None], width), kind)).to_pylist()
    assert keys[1:4:2] == keys_of(np.array([np.inf, np.inf])).to_pylist()
    assert keys[2] == keys_of(np.array([-np.inf])).to_pylist()[0]
    assert keys[0] == keys_of(pc.cast(pa.array([0], width), kind)).to_pylist()[0]
    assert keys[4] is None


@pytest.mark.parametrize("kind", [">i8", "<i8", ">u8", "<u8"])
def test_ids_in_either_order_of_bytes_are_alike(kind: str) -> None:
    ids = [1, 2**53 - 1, 2**53 + 1, 2**60 + 1]
    assert keys_of(np.array(ids, kind)).to_pylist() == keys_of(np.array(ids, object)).to_pylist()


@pytest.mark.parametrize("start", [1.0, 0.1, 2.0**53, 2.0**62])
def test_long_floats_that_share_a_float64_are_told_apart(start: float) -> None:
    first = np.longdouble(start)
    ids = np.array([first, np.nextafter(first, np.longdouble(np.inf)), first])
    keys = keys_of(ids).to_pylist()
    assert keys[0] == keys[2]
    assert (keys[0] == keys[1]) == (ids[0] == ids[1])
    assert keys == keys_of(ids.astype(object)).to_pylist()
    assert keys[0] == keys_of(np.array([start])).to_pylist()[0]
