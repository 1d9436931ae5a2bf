"""What a dry run says of each column: type, bounds or levels, missing cells, features."""

import json
from pathlib import Path
from typing import Any

import pytest

from dplinear.cli.main import main
from dplinear.schema import Schema
from dplinear.schema.describe import describe_columns

SCHEMA = """
derived = ["age^2"]
[columns]
age = [0, 100]
bmi = { low = 10, high = 60, missing = 25, missing_indicator = true }
weight = { low = 0, high = 300, missing = "leave_out" }
smoker = ["no", "yes"]
city = { type = "category", levels = ["A", "B", "C", "D", "E", "F"], other = "F" }
member = "boolean"
day = ["2020-01-01", "2024-12-31"]
noon = { type = "date", low = "2020-01-01T12:00", high = "2024-12-31T12:00" }
ward = { type = "category", levels = [1, 2.5] }
"""
FACTS = {
    "age": ("number", "0 to 100", "50, the middle", "age"),
    "bmi": ("number", "10 to 60", "25; bmi:missing is 1", "bmi, bmi:missing"),
    "weight": ("number", "0 to 300", "row left out", "weight"),
    "smoker": ("category", "no, yes", "smoker=other", "smoker=yes, smoker=other"),
    "city": ("category", "A, B and 4 more", "count as F", "city=B, city=C, city=D, city=E, city=F"),
    "member": ("boolean", "0 or 1", "0.5, the middle", "member"),
    "day": ("date", "2020-01-01 to 2024-12-31", "2022-07-02, the middle", "day"),
    "noon": (
        "date",
        "2020-01-01T12:00:00 to 2024-12-31T12:00:00",
        "2022-07-02T12:00:00, the middle",
        "noon",
    ),
    "ward": ("category", "1, 5/2", "ward=other", "ward=5/2, ward=other"),
    "age^2": ("derived", "0 to 10,000", "", "age^2"),
}
PRIVATE = ["--epsilon", "1", "--delta", "1e-6", "--dry-run"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA)
    return str(path)


def test_every_kind_of_column_is_described(file: str) -> None:
    found = {
        each.name: (each.type, each.allowed, each.missing, ", ".join(each.features))
        for each in describe_columns(Schema.from_file(file), most=3)
    }
    assert found == FACTS


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["release", *words, *PRIVATE, "--json"]) == 0
    return {each["name"]: each for each in json.loads(capsys.readouterr().out)["columns"]}


def test_a_dry_run_shows_the_columns_that_are_read(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    every = said(capsys, "moments", "--schema", file)
    assert list(every) == list(FACTS)
    assert every["age"]["missing"] == "50, the middle"
    model = ["model", "--schema", file, "--target", "age", "--features", "bmi,smoker=yes"]
    some = said(capsys, *model)
    assert list(some) == ["age", "bmi", "smoker"]
    assert some["age"]["missing"] == "row left out"  # as a model does where nothing is said
    assert some["bmi"]["missing"] == "25; bmi:missing is 1"


def test_the_table_fits_a_terminal(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["release", "moments", "--schema", file, *PRIVATE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (head,) = [line for line in lines if line.startswith("column ")]
    assert " ".join(head.split()) == "column type bounds or levels missing cells features"
    (age,) = [line for line in lines if line.startswith("age ")]
    assert " ".join(age.split()) == "age number 0 to 100 50, the middle age"


def test_a_dry_run_of_bounds_says_what_text_counts_as(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["release", "bounds", "--columns", "age,bmi", "--rho", "0.1", "--dry-run"]
    assert main([*words, "--public-types"]) == 0
    assert "all text and dates too, count as 0" in " ".join(capsys.readouterr().out.split())
