"""`dplinear report`: a release in words, and as a page with what belongs to it."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.audit.audit import AuditResult
from dplinear.cli.main import main
from dplinear.noise import simulation
from dplinear.privacy import ZCDP

pytestmark = pytest.mark.heavy


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw = simulation.generator(1)
    age = draw.uniform(0, 100, 5000)
    table = pa.table({"age": age, "charges": 300 * age + draw.normal(0, 3000, 5000)})
    schema = dpl.Schema({"age": (0, 100), "charges": (0, 60_000)})
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("visits", ZCDP(1.0))
    moments = dpl.release_moments(
        *(table, schema), epsilon=1.0, delta=1e-6, ledger=ledger, dataset="visits", request="one"
    )
    moments.save(tmp_path / "moments.json")
    model = dpl.release_model(table, schema, "charges", epsilon=1.0, delta=1e-6, method="adassp")
    model.save(tmp_path / "model.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_page_has_what_belongs_to_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", "moments.json", "--html", "--target", "charges", "--ledger", "budget.db"]
    assert main([*words, "--audit", "--trials", "300", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["page"] == "moments.html"
    assert found["audit"]["verdict"].startswith("holds")
    assert found["budget"][0].startswith("visits: ρ = 1")
    page = (folder / "moments.html").read_text(encoding="utf-8")
    for text in ("Regression of charges", "300", "whitened_descent", "visits"):
        assert text in page
    assert main(words) == 5
    assert "--overwrite" in capsys.readouterr().err


def test_the_noise_that_was_released_is_audited(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"age": [1.0, 2.0], "charges": [3.0, 4.0]})
    schema = dpl.Schema({"age": (0, 100), "charges": (0, 60_000)})
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3}
    normal: dict[str, Any] = {"k": 2, "noise": "gaussian", "output": folder / "rows.arrow"}
    dpl.release_rows(table, schema, **asked, **normal)
    ways: dict[str, Any] = {"mechanism": "sketch", "least_eigenvalue_share": 0.5}
    dpl.release_moments(table, schema, **asked, **ways).save(folder / "sketched.json")
    words = ["--audit", "--trials", "100", "--json"]
    for file, name in (
        ("rows.arrow", "projection (gaussian)"),
        ("sketched.json", "sketch (least eigenvalue)"),
    ):
        assert main(["report", file, *words]) == 0
        assert json.loads(capsys.readouterr().out)["audit"]["mechanism"] == name
    monkeypatch.setattr(AuditResult, "broken", property(lambda _: True))
    assert main(["report", "moments.json", *words]) == 6


def test_words_are_for_terminals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "model.json", "--audit", "--trials", "100"]) == 0
    said = capsys.readouterr()
    assert "Linear model of charges" in said.out
    assert "promise     adassp: ε = 1, δ = 1e-06" in said.out
    assert main(["report", "model.json", "--target", "age"]) == 2
    assert not list(folder.glob("*.html"))
