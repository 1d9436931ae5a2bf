"""`--unit` and `--rows-per-unit`: releases that protect all rows of one id together."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import dplinear as dpl
from dplinear.cli.errors import Code
from dplinear.cli.main import main

PRIVATE = ["--epsilon", "1", "--delta", "1e-6"]
COLUMNS = ["--column", "age 0 100", "--column", "charges 0 60000"]
UNIT = ["--unit", "patient", "--rows-per-unit", "4"]
SCHEMA = 'unit = "patient"\n[columns]\nage = [0, 100]\ncharges = [0, 60_000]\n'
RELEASES = {
    "moments": [*COLUMNS, *PRIVATE],
    "model": [*COLUMNS, *PRIVATE, "--target", "charges"],
    "mean": [*COLUMNS, *PRIVATE],
    "covariance": [*COLUMNS, *PRIVATE],
    "bounds": ["--columns", "age,charges", *PRIVATE],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [{"age": i % 90, "charges": 20.0 * i, "patient": f"p{i % 500}"} for i in range(2_000)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.usefixtures("folder")
def test_a_unit_is_protected_and_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["release", name, "visits.parquet", *RELEASES[name], *UNIT, "--output", "new.json"]
    assert main([*words, "--dry-run"]) == 0
    before = " ".join(capsys.readouterr().out.split())
    assert "protects all rows with one 'patient', counted as at most 4 rows" in before
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "protects all rows with one 'patient', counted as at most 4 rows" in shown
    certificate = dpl.load("new.json").certificate
    assert (certificate.unit, certificate.rows_per_unit) == ("patient", 4)


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.usefixtures("folder")
def test_without_a_unit_single_rows_are_protected(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["release", name, "visits.parquet", *RELEASES[name]]
    assert main([*words, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["protects"].startswith("single rows; a person with")
    assert main([*words, "--output", "new.json"]) == 0
    assert "protects" in (shown := capsys.readouterr().out)
    assert "several rows is protected less" in " ".join(shown.split())


@pytest.mark.usefixtures("folder")
def test_files_name_units_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["release", "moments", "visits.parquet", "--schema", "visits.toml", *PRIVATE]
    assert main([*words, "--dry-run", "--json"]) == 0
    assert "'patient', counted as one row" in json.loads(capsys.readouterr().out)["protects"]
    assert main([*words, "--output", "new.json", "--rows-per-unit", "2"]) == 0
    assert dpl.load("new.json").certificate.rows_per_unit == 2
    private = 'epsilon = 1\ndelta = 1e-6\nunit = "patient"\nrows_per_unit = 3\n'
    Path("all.toml").write_text(f"{private}[columns]\nage = [0, 100]\n")
    settings = ["release", "mean", "visits.parquet", "--config", "all.toml"]
    assert main([*settings, "--output", "mean.json"]) == 0
    certificate = dpl.load("mean.json").certificate
    assert (certificate.unit, certificate.rows_per_unit) == ("patient", 3)
    assert main([*settings, "--output", "flags.json", "--rows-per-unit", "5"]) == 0
    assert dpl.load("flags.json").certificate.rows_per_unit == 5


@pytest.mark.usefixtures("folder")
def test_suggested_bounds_hand_the_unit_on() -> None:
    words = ["release", "bounds", "visits.parquet", *RELEASES["bounds"], "--unit", "patient"]
    assert main([*words, "--output", "found.json"]) == 0
    after = ["release", "moments", "visits.parquet", "--schema", "found.json", *PRIVATE]
    assert main([*after, "--output", "new.json"]) == 0
    assert dpl.load("new.json").certificate.unit == "patient"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["moments", *COLUMNS, *PRIVATE, "--rows-per-unit", "4"], "--unit"),
        (["moments", *COLUMNS, *PRIVATE, *UNIT, "--mechanism", "sketch"], "single rows"),
        (
            ["mean", *COLUMNS, *PRIVATE, "--unit", "patient", "--rows-per-unit", "0"],
            "--rows-per-unit must be",
        ),
        (["sketch", "--schema", "visits.toml", *PRIVATE], "single rows"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else words,
)
@pytest.mark.usefixtures("folder")
def test_units_that_cannot_be_had_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, *rest = words
    line = ["release", kind, "visits.parquet", *rest, "--output", "new.json"]
    assert main(line) == Code.USAGE
    assert said in " ".join(capsys.readouterr().err.split())
    assert not Path("new.json").exists()


@pytest.mark.usefixtures("folder")
def test_a_ledger_counts_for_the_unit_it_was_made_for(capsys: pytest.CaptureFixture[str]) -> None:
    create = ["ledger", "create", "budget.db", "visits", "--rho", "0.5", "--unit", "patient"]
    assert main([*create, "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)
    assert made["budget"] == "ρ = 0.5 (add_remove neighbours of all rows with one 'patient')"
    counted = ["--ledger", "budget.db", "--dataset", "visits"]
    words: list[Any] = ["release", "moments", "visits.parquet", *RELEASES["moments"], *counted]
    assert main([*words, *UNIT, "--output", "new.json"]) == 0
    for dry in ([], ["--dry-run"]):
        assert main([*words, "--output", "rows.json", *dry]) == Code.LEDGER
        assert "all rows with one 'patient'" in " ".join(capsys.readouterr().err.split())
    (status,) = dpl.open_ledger("budget.db").status()
    assert status.releases == 1


@pytest.mark.usefixtures("folder")
def test_budgets_of_units_are_of_whole_rows() -> None:
    words = ["ledger", "create", "budget.db", "visits", "--rho", "0.5", "--unit", "patient"]
    assert main([*words, "--neighbours", "replace"]) == Code.USAGE
    assert not Path("budget.db").exists()


@pytest.mark.usefixtures("folder")
def test_bounds_are_suggested_of_weighted_rows() -> None:
    words = ["release", "bounds", "visits.parquet", "--columns", "charges", *PRIVATE]
    words += ["--weight", "age 0 100"]
    assert main([*words, "--dry-run"]) == 0
    assert main([*words, "--output", "found.json"]) == 0
    weight = dpl.load("found.json", kind="bounds").schema.weight
    assert weight is not None
    assert (weight.column, float(weight.high)) == ("age", 100.0)


@pytest.mark.parametrize("weight", ["", "age", "age 0", "age 0 much"])
@pytest.mark.usefixtures("folder")
def test_weights_without_bounds_are_refused(
    weight: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["release", "bounds", "visits.parquet", "--columns", "charges", *PRIVATE]
    assert main([*words, "--weight", weight, "--output", "found.json"]) == Code.USAGE
    assert "weight" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_clustered_errors_are_a_flag() -> None:
    words = ["release", "model", "visits.parquet", *RELEASES["model"], *UNIT]
    assert main([*words, "--errors", "clustered", "--output", "new.json"]) == 0
    assert "clustered_errors" in dpl.load("new.json").certificate.parameters
