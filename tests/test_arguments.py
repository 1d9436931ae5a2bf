"""The one error sentence: parameter, rule, what came; a hint on a line of its own."""

import math
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear import arguments


@pytest.mark.parametrize("value", [1, 1.5, Fraction(1, 3), np.float32(0.5), np.int64(2)])
def test_real_accepts_real_numbers(value: Any) -> None:
    assert arguments.real(value, "x", "f") == float(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_real_rejects_what_is_not_finite(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^The 'x' parameter of f must be a finite number. Got "):
        arguments.real(value, "x", "f")


@pytest.mark.parametrize("value", ["1", None, True, 1j, [1.0], np.array([1.0]), Decimal(1)])
def test_real_rejects_other_types(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^The 'x' parameter of f must be a finite number. Got "):
        arguments.real(value, "x", "f")


def test_the_sentence_names_the_interval_and_the_hint() -> None:
    with pytest.raises(ValueError, match="delta") as caught:
        arguments.real(
            2, "delta", "release", low=0, high=1, open_low=True, open_high=True, hint="h"
        )
    expected = "The 'delta' parameter of release must be in (0, 1). Got 2.\n\nHint: h"
    assert str(caught.value) == expected


def test_long_values_are_shortened_to_one_line() -> None:
    with pytest.raises(ValueError, match="one of") as caught:
        arguments.choice("a\nb" * 100, "kind", "f", ["x"])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 140


@pytest.mark.parametrize("value", [1.0, "1", None, True, np.float64(2)])
def test_integer_rejects_other_types(value: Any) -> None:
    with pytest.raises(TypeError, match=r"an integer of at least 1"):
        arguments.integer(value, "x", "f", low=1)


def test_integer_keeps_its_bounds() -> None:
    assert arguments.integer(np.int32(3), "x", "f", low=1, high=3) == 3
    with pytest.raises(ValueError, match=r"an integer in \[1, 3\]. Got 4."):
        arguments.integer(4, "x", "f", low=1, high=3)


def test_rational_is_exact() -> None:
    assert arguments.rational(0.1, "x", "f") == Fraction(0.1)
    assert arguments.rational(Fraction(1, 3), "x", "f") == Fraction(1, 3)
    for bad in (0, -1, Fraction(-1, 3), math.nan):
        with pytest.raises(ValueError, match="a finite number above 0"):
            arguments.rational(bad, "x", "f")


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://me:hush@host",
        "Postgres:/me:hush@host",
        b"postgresql:/hush",
        ["x://hush"],
        "://hush",
    ],
)
def test_of_a_url_only_its_kind_is_told(value: Any) -> None:
    assert "hush" not in arguments.describe(value)
    assert "://…" in arguments.describe(value)


@pytest.mark.parametrize(
    "value",
    [
        "host=h password=hush",
        "PASSWORD = hush",
        "user=hush dbname=hush",
        ["host=h password=hush"],
        "host/base?password=hush",
        "host/base?sslmode=require&password=hush",
        b"base?a=b&sslpassword=hush",
    ],
)
def test_of_libpqs_pairs_nothing_is_told(value: Any) -> None:
    assert arguments.describe(value) in {"…", "'…'"}


@pytest.mark.parametrize("text", ["a" * 100_000, "postgres/" + "a:" * 100_000])
def test_a_long_text_is_looked_at_once(text: str) -> None:
    began = time.monotonic()
    assert len(arguments.describe(text)) < 200
    assert time.monotonic() - began < 10  # from each of its letters anew, it took minutes


def test_a_path_is_no_url_because_of_a_word_in_it() -> None:
    for path in ("/data/postgres:old/budget.db", "budget.db", "C:/data/budget.db"):
        assert arguments.describe(path) == repr(path)
    for word in ("postgresql/budget.db", "host=web", "data/host=web/user=me/rows.parquet"):
        assert arguments.describe(word) == repr(word)
