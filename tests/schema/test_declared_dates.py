"""Two dates in a declaration are the bounds of a column of dates, and never two levels."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from dplinear.cli.columns import read_column
from dplinear.schema import Schema
from dplinear.schema.columns import Category, Numeric
from refusals import refused

FIRST, LAST = "2020-01-01", "2024-12-31"
WANTED = Schema({"day": (dt.date(2020, 1, 1), dt.date(2024, 12, 31))})


@pytest.mark.parametrize(
    "declared",
    [
        (FIRST, LAST),
        [FIRST, LAST],
        (FIRST, dt.date(2024, 12, 31)),
        ("2020-01-01T00:00", "2024-12-31T00:00:00+00:00"),
        {"type": "date", "low": FIRST, "high": LAST},
    ],
)
def test_two_dates_are_bounds(declared: Any) -> None:
    assert Schema({"day": declared}) == WANTED


@pytest.mark.parametrize("text", ['["2020-01-01", "2024-12-31"]', "[2020-01-01, 2024-12-31]"])
def test_two_dates_in_a_file_are_bounds(text: str, tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(f"[columns]\nday = {text}\n")
    assert Schema.from_file(file) == WANTED


@pytest.mark.parametrize("text", ["day 2020-01-01 2024-12-31", "day 2020-01-01,2024-12-31"])
def test_two_dates_of_a_flag_are_bounds(text: str) -> None:
    assert Schema(dict([read_column(text)])) == WANTED


@pytest.mark.parametrize(
    "pair",
    [
        ("2020-1-1", "2021-01-01"),
        ("2020-01", "2021-01"),
        ("2020-02-30", LAST),
        (FIRST, "2024-13-01"),
        (f" {FIRST}", LAST),
    ],
)
def test_two_texts_like_dates_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"'day' parameter .* must be a pair of dates") as told:
        Schema({"day": pair})
    assert '{"type": "category", "levels":' in str(told.value)


def test_dates_in_the_wrong_order_are_refused() -> None:
    with refused("day", "Schema", "low below high"):
        Schema({"day": (LAST, FIRST)})


def test_dates_that_are_said_to_be_levels_are_levels() -> None:
    declared = Schema(
        {
            "two": declared_levels(),
            "three": [FIRST, "2022-01-01", LAST],
            "text": ["no", "yes"],
            "day": (FIRST, LAST),
        }
    ).declared
    kinds = {name: type(column) for name, column in declared.items()}
    assert kinds == {"two": Category, "three": Category, "text": Category, "day": Numeric}
    again = Schema.from_dict(Schema({"two": declared_levels()}).to_dict())
    assert isinstance(again.declared["two"], Category)


def declared_levels() -> dict[str, Any]:
    return {"type": "category", "levels": [FIRST, LAST]}
