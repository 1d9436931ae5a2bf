"""`dplinear release`: flags, files of settings, dry runs that open nothing, what comes out."""

import json
import os
from dataclasses import fields
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import dplinear as dpl
from dplinear.cli.columns import read_column
from dplinear.cli.errors import Code
from dplinear.cli.main import main
from dplinear.cli.output import short_path
from dplinear.cli.release import gates, quote
from dplinear.coinpress.centred import CentredCovariance
from dplinear.coinpress.methods import CoinPressCovariance, CoinPressMean
from dplinear.ledger import LedgerError, Request
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.mechanisms import MIProjection
from dplinear.privacy import ZCDP, ApproxDP
from dplinear.registry import MODELS, MOMENTS, ROWS

COLUMNS = ["--column", "age 0 100", "--column", "smoker no,yes", "--column", "charges 0 60000"]
PRIVATE = ["--epsilon", "1", "--delta", "1e-6"]
SETTINGS = """
data = "visits.parquet"
output = "moments.json"
epsilon = 1.0
delta = 1e-6
ledger = "budget.db"
dataset = "visits"

[columns]
age = [0, 100]
smoker = ["no", "yes"]
charges = [0, 60_000]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [{"age": i % 90, "smoker": "no", "charges": 200.0 * i} for i in range(200)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "visits.parquet")
    (tmp_path / "release.toml").write_text(SETTINGS)
    dpl.open_ledger(tmp_path / "budget.db", create=True).declare("visits", ZCDP(0.05))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_opens_no_table(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a file of rows was looked for")

    monkeypatch.setattr("dplinear.curator.sources.expand", opened)
    spent = dpl.open_ledger("budget.db").history()
    for table in ("visits.parquet", "nowhere.parquet"):
        words = ["release", "moments", table, "--config", "release.toml", "--dry-run"]
        assert main([*words, "--json"]) == 0
        found = told(capsys)
        assert found["data"] == [table]
        assert found["guarantee"] == "ε = 1, δ = 1e-06"
        assert found["price"]["cost"] == found["in_other_units"]["rho"] == "ρ = 0.0280145"
        assert found["price"]["after"] == "ρ = 0.0219855"
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "left after  ρ = 0.0219855" in text
    assert max(map(len, text.splitlines())) <= 80
    assert main([word for word in words if word != "--dry-run"]) == 1  # the witness is awake
    capsys.readouterr()
    assert dpl.open_ledger("budget.db").history() == spent
    assert not (folder / "moments.json").exists()


PLAIN = ["--column", "age 0 100", "--column", "charges 0 60000"]


@pytest.mark.parametrize(
    "words",
    [
        ["sketch", *COLUMNS, *PRIVATE],
        ["sketch", *PLAIN, "--mechanism", "mi_projection", "--bits", "0.5", "--rows", "linear"],
        ["rows", *PLAIN, "--bits", "0.5", "--output", "rows.csv"],
        ["model", *COLUMNS, *PRIVATE, "--target", "charges", "--mechanism", "adassp"],
        ["mean", *PLAIN, "--rho", "0.1", "--scale", "10,5000"],
        ["covariance", *PLAIN, *PRIVATE, "--centred"],
        ["bounds", "--columns", "age,charges", "--rho", "0.1", "--within", "-1e6,1e6"],
        ["levels", "--columns", "smoker,ward", *PRIVATE, "--most-levels", "20"],
    ],
    ids=lambda words: "-".join(words[:1] + words[-2:]),
)
def test_every_release_has_a_dry_run(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", *words, "--dry-run", "--json"]) == 0
    found = told(capsys)
    assert found["mechanism"]
    assert found["price"] is None


def test_what_a_dry_run_asks_is_what_a_release_spends(folder: Path) -> None:
    given = {"config": "release.toml", "request": "one", "column": None, "dry_run": True}
    names = ("data", "output", "epsilon", "delta", "ledger", "dataset", "schema")
    asked = gates.order("moments", dict.fromkeys(names) | given)
    before = quote.quote(asked)
    gates.make_release(asked)
    (status,) = dpl.open_ledger("budget.db").status()
    assert before.price is not None
    assert status.remaining == before.price.after
    again = quote.quote(asked).price
    assert again is not None
    assert again.repeated
    (folder / "moments.json").unlink()
    gates.make_release(asked)
    assert dpl.open_ledger("budget.db").status() == [status]


def test_a_ledger_that_cannot_keep_a_release_does_not_lose_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise LedgerError("The ledger cannot be written: the disk is full.\n\nHint: make room.")

    monkeypatch.setattr("dplinear.ledger.sqlite.ledger.SqliteLedger.keep", full)
    words = ["release", "moments", "--config", "release.toml", "--request", "one", "--json"]
    assert main(words) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert "'one' is spent" in found["warning"]
    assert "the disk is full" in " ".join(said.err.split())
    assert "it is the only copy" in " ".join(said.err.split())
    assert dpl.load(folder / "moments.json").certificate.request == found["request"] == "one"
    assert main([*words, "--overwrite"]) == Code.LEDGER
    assert "there is no release of it" in told(capsys)["error"]["sentence"]


def test_a_release_that_comes_from_the_ledger_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in the file by now."""
    monkeypatch.setenv("COLUMNS", "400")
    words = ["release", "moments", "--config", "release.toml", "--request", "one", "--overwrite"]
    assert main(words) == 0
    assert "from the ledger" not in capsys.readouterr().out
    first = (folder / "moments.json").read_bytes()
    other = [{"age": 40, "smoker": "yes", "charges": 100.0}] * 50
    parquet.write_table(pa.Table.from_pylist(other), folder / "visits.parquet")
    assert main(words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "from the ledger" in said
    assert "not computed from the data given now, and it costs nothing" in said
    assert (folder / "moments.json").read_bytes() == first
    assert main([*words, "--json"]) == 0
    assert told(capsys)["from_ledger"] is True
    assert main([*words[:-2], "two", "--overwrite", "--epsilon", "0.1", "--json"]) == 0
    assert told(capsys)["from_ledger"] is False


def test_a_full_disk_below_both_is_told_as_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dplinear.analyst.releases.outputs.Output.complete", full)
    words = ["release", "moments", "--config", "release.toml", "--epsilon", "0.1", "--json"]
    assert main(words) == Code.FILE
    assert "give the same release again" in told(capsys)["error"]["hint"]
    monkeypatch.setattr("dplinear.ledger.sqlite.ledger.SqliteLedger.keep", full)
    assert main(words) == Code.FILE
    assert "no ledger has kept it" in told(capsys)["error"]["hint"]
    assert not (folder / "moments.json").exists()


def test_a_release_whose_name_is_taken_meanwhile_stays(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spend = SqliteLedger.spend

    def slow(self: SqliteLedger, request: Request) -> bytes | None:
        (folder / "moments.json").write_bytes(b"someone else's")
        return spend(self, request)

    monkeypatch.setattr(SqliteLedger, "spend", slow)
    words = ["release", "moments", "--config", "release.toml", "--json"]
    assert main(words) == Code.FILE
    assert (folder / "moments.json").read_bytes() == b"someone else's"
    (left,) = [file for file in folder.iterdir() if file.name.endswith(".tmp")]
    assert left.name in told(capsys)["error"]["sentence"]
    assert dpl.load(left).certificate.dataset == "visits"


def test_a_name_that_is_too_long_is_found_before_the_spend(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(dpl.open_ledger(folder / "budget.db").history())
    for name in ("x" * 216 + ".json", "x" * 300 + ".json"):
        words = ["release", "moments", "--config", "release.toml", "--json", "--output", name]
        assert main(words) == Code.FILE
        assert "nothing was spent" in told(capsys)["error"]["hint"]
    assert len(dpl.open_ledger(folder / "budget.db").history()) == before
    assert not [file for file in folder.iterdir() if file.name.endswith(".tmp")]


def test_a_ledger_that_is_gone_by_then_does_not_hide_a_release(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        (folder / "budget.db").unlink()
        raise LedgerError("The server is gone.")

    monkeypatch.setattr("dplinear.ledger.sqlite.ledger.SqliteLedger.keep", gone)
    assert main(["release", "moments", "--config", "release.toml"]) == 0
    assert "The server is gone" in capsys.readouterr().err
    assert (folder / "moments.json").exists()


def test_flags_win_over_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["release", "moments", "--config", "release.toml", "--dry-run", "--json"]
    assert main([*words, "--epsilon", "0.5", "--column", "age 0 120"]) == 0
    found = told(capsys)
    assert found["guarantee"] == "ε = 0.5, δ = 1e-06"
    assert found["schema"]["columns"]["age"]["high"] == 120
    assert list(found["schema"]["columns"]) == ["age", "smoker", "charges"]
    assert main([*words, "--rho", "0.01", "--engine", "spark"]) == 0
    found = told(capsys)
    assert found["guarantee"] == "ρ = 0.01"
    assert found["in_other_units"] == {"epsilon": str(ZCDP(0.01).to(ApproxDP, delta=1e-6))}
    (folder / "elsewhere").mkdir()
    os.chdir("elsewhere")  # paths of a file are beside it
    words[words.index("release.toml")] = "../release.toml"
    assert main(words) == 0
    assert told(capsys)["output"] == "../moments.json"
    (folder / "release.toml").write_text("overwrite = true\n" + SETTINGS)
    (folder / "moments.json").touch()
    words.remove("--dry-run")
    assert main(words) == 0
    assert dpl.load(folder / "moments.json").certificate.dataset == "visits"
    capsys.readouterr()
    assert main([*words, "--dry-run"]) == 3  # one JSON value, also of a refusal
    assert told(capsys)["price"]["suffices"] is False


def test_what_is_shown_of_paths() -> None:
    assert short_path(Path.cwd() / "a" / "b.json") == "a/b.json"
    assert short_path("postgresql://me:secret@host/ledgers") == "postgresql://…"


@pytest.mark.parametrize(
    ("text", "name", "declared"),
    [
        ("age 0 100", "age", {"type": "number", "low": "0", "high": "100"}),
        ("body mass 1/3 6e1", "body mass 1/3 6e1", None),
        ("body mass .5 6e1", "body mass", {"type": "number", "low": ".5", "high": "6e1"}),
        ("visits integer 0 9", "visits", {"type": "integer", "low": "0", "high": "9"}),
        ("born 1900-01-01 2026-12-31", "born", {"type": "date"}),
        ("smoker no,yes", "smoker", {"type": "category", "levels": ["no", "yes"]}),
        ("stage 0,1", "stage", {"type": "category", "levels": [0, 1]}),
        ("member boolean", "member", "boolean"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_are_read(text: str, name: str, declared: Any) -> None:
    if declared is None:
        assert main(["release", "mean", "--column", text, "--rho", "1", "--dry-run"]) == 2
        return
    found, what = read_column(text)
    assert found == name
    assert what.items() >= declared.items() if isinstance(declared, dict) else what == declared
    dpl.Schema({found: what})


def test_releases_are_written_and_read_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["release", "bounds", "visits.parquet", "--columns", "age,charges", "--rho", "0.5"]
    assert main([*words, "--output", "schema.json"]) == 0
    said = capsys.readouterr()
    assert "dplinear release moments DATA --schema schema.json" in said.out
    assert not said.err
    assert main(["report", "schema.json"]) == 0
    assert "suggest_bounds: ρ = 0.5" in capsys.readouterr().out
    words = ["release", "levels", "visits.parquet", "--columns", "smoker", "--epsilon", "8"]
    assert main([*words, "--delta", "1e-3", "--output", "levels.json"]) == 0
    assert "smoker: " in capsys.readouterr().out
    assert main(["report", "levels.json"]) == 0
    assert dpl.Schema.from_file("levels.json").columns == ("smoker",)
    capsys.readouterr()
    words = ["release", "sketch", "visits.parquet", "--schema", "schema.json", *PRIVATE]
    assert main([*words, "--output", "sketch.json", "--json"]) == 0
    certificate = told(capsys)["certificate"]
    assert dpl.load(folder / "sketch.json").certificate.to_dict() == certificate
    assert main([*words, "--output", "sketch.json", "--overwrite", "--progress", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["output"] == "sketch.json"
    assert "Reading rows" in said.err
    assert "200" not in said.err  # how many is nobody's business
    assert dpl.load(folder / "sketch.json").certificate.request != certificate["request"]


@pytest.mark.parametrize(
    ("name", "words", "following"),
    [
        ("moments", PRIVATE, "dplinear regress new.parquet --target age"),
        ("rows", ["--bits", "0.5"], "dplinear regress new.parquet --target age"),
        ("rows", ["--epsilon", "1", "--k", "1"], "dplinear distances new.parquet --i 0 --count 3"),
    ],
    ids=["moments", "noisy", "projected"],
)
@pytest.mark.usefixtures("folder")
def test_the_command_that_follows_works(
    name: str, words: list[str], following: str, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ["--column", "charges 0 60000", "--column", "age 0 100"]
    if name == "moments":  # a level of the last column is nobody's first question
        columns += ["--column", "smoker no,yes"]
    release = ["release", name, "visits.parquet", *columns, *words, "--output", "new.parquet"]
    assert main(release) == 0
    assert f"next        {following}" in capsys.readouterr().out
    assert main(following.split()[1:]) == 0


def test_a_model_tells_that_nobody_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["release", "model", "visits.parquet", *COLUMNS, *PRIVATE, "--target", "charges"]
    assert main([*words, "--output", "model.json"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "note no ledger was given" in shown
    assert f"request {dpl.load(folder / 'model.json').certificate.request}" in shown


def test_a_release_that_cannot_be_written_is_not_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("COLUMNS", "200")
    with monkeypatch.context() as patched:
        patched.setattr("dplinear.analyst.releases.outputs.Output.complete", full)
        assert main(["release", "moments", "--config", "release.toml"]) == 5
    said = capsys.readouterr().err
    assert "paid for and could not be written (No space left on device)" in said
    name = said.partition("--request '")[2].partition("'")[0]
    assert main(["release", "moments", "--config", "release.toml", "--request", name]) == 0
    assert dpl.load(folder / "moments.json").certificate.request == name


# Python objects, which no flag can carry.
_OBJECTS = {"settings", "drawn", "keep_projection"}
_SET_BY_THE_GATE = {"guarantee", "neighbours", "release"}
_METHODS: dict[str, list[Any]] = {
    "moments": list(MOMENTS.values()),
    "sketch": [MIProjection, MOMENTS["sketch"]],
    "rows": list(ROWS.values()),
    "model": [method for methods in MODELS.values() for method in methods.values()],
    "scores": [],
    "mean": [CoinPressMean],
    "covariance": [CoinPressCovariance, CentredCovariance],
    "bounds": [],
    "levels": [],
    "rows_per_unit": [],
}


# A model in a constraint set is of rows in memory, without a schema: files have columns with names.
_OF_ARRAYS = {
    "constraint",
    "target_bounds",
    "classes",
    "projection",
    "projected",
    "dimension",
    "seed",
    "clip",
    "lift",
    "intercept_scaling",
    "groups",
    "sample_weight",
    "weight_bound",
}


@pytest.mark.parametrize("name", list(gates.GATES))
def test_every_argument_of_a_gate_is_a_flag(name: str) -> None:
    gate = getattr(dpl, gates.GATES[name].function)
    wanted = set(signature(gate).parameters) - {"guarantee", "options", "data"} - _OF_ARRAYS
    for method in _METHODS[name]:
        wanted |= {each.name for each in fields(method) if each.init} - _SET_BY_THE_GATE
    command = getattr(import_module(f"dplinear.cli.release.{name}"), name)
    if name == "scores":  # of a released model, which brings them along
        wanted -= {"target", "features"}
    assert wanted - _OBJECTS <= set(signature(command).parameters)
