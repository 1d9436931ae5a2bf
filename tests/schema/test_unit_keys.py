"""Ids have the same key whatever type holds them, and it depends on the cell alone."""

import datetime as dt
import decimal
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
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
]


def same(cells: list[Any]) -> list[list[bool]]:
    """Say which cells are one id, by the reader of single cells."""
    keys = [canonical(cell) for cell in cells]
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
    ],
)
def test_other_types_have_the_keys_of_their_texts(cells: Any, text: str) -> None:
    assert keys_of(cells).to_pylist() == keys_of(pa.array([text])).to_pylist()
    assert keys_of(cells)[0].is_valid


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
