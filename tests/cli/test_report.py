"""`dplinear report`: a release in words, and as a page with what belongs to it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.audit.audit import AuditResult
from dplinear.cli.main import main
from dplinear.convex.sets import L2Ball
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, ApproxDP, Guarantee, PureDP

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
    model = dpl.release_model(table, schema, "charges", epsilon=1.0, delta=1e-6, mechanism="adassp")
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


LINE = np.linspace(-1, 1, 100)
MODEL: dict[str, Any] = {"row_norm": 1.0, "target_bounds": (-1, 1), "projection": None}
BOUND = dpl.Schema({"x": (-1, 1), "y": (-1, 1)})


def learnt(guarantee: Guarantee, **more: Any) -> Any:
    return dpl.release_model(LINE[:, None], target=LINE, guarantee=guarantee, **(MODEL | more))


def perturbed(guarantee: Guarantee) -> Any:
    table = np.column_stack([LINE, LINE])
    return dpl.release_rows(table, BOUND, k=2, noise="perturbed", guarantee=guarantee)


PAIR = ApproxDP(1.0, 1e-6)
# A release, by what its noise is audited, and at which claim.
AUDITED: dict[str, tuple[Callable[[], Any], str, float | None]] = {
    "pure-draws": (lambda: learnt(PureDP(1.0), constraint=1.0), "frank_wolfe", 1.0),
    "draws": (
        lambda: learnt(ZCDP(0.02), constraint=1.0, mechanism="frank_wolfe", steps=4),
        "frank_wolfe (one of its steps)",
        0.2,  # of ρ = 0.02/4 each, that is ε²/8
    ),
    "directions": (
        lambda: learnt(PAIR, constraint=L2Ball(1), mechanism="frank_wolfe"),
        "frank_wolfe",
        None,
    ),
    "whitened": (
        lambda: learnt(PAIR, constraint=1.0, mechanism="whitened"),
        "whitened_descent",
        None,
    ),
    "whitened-huber": (
        lambda: learnt(PAIR, constraint=1.0, mechanism="whitened", loss="huber"),
        "huber_descent",
        None,
    ),
    "perturbed": (lambda: perturbed(ZCDP(0.1)), "projection (perturbed gaussian)", None),
    "perturbed-pure": (lambda: perturbed(PureDP(1.0)), "projection (perturbed)", 1.0),
}


@pytest.mark.parametrize("name", list(AUDITED))
def test_every_noise_that_a_release_may_have_is_audited(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("dplinear.noise.entropy.system", lambda: simulation.entropy(7))
    make, mechanism, claim = AUDITED[name]
    file = str(tmp_path / ("rows.arrow" if "perturbed" in name else "release.json"))
    make().save(file)
    assert main(["report", file, "--audit", "--trials", "100", "--html", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["audit"]["mechanism"] == mechanism
    assert found["audit"]["verdict"].startswith("holds")
    assert mechanism in Path(found["page"]).read_text(encoding="utf-8")
    if claim is not None:
        assert found["audit"]["claimed"] == pytest.approx(claim, rel=1e-6)


def test_words_are_for_terminals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "model.json", "--audit", "--trials", "100"]) == 0
    said = capsys.readouterr()
    assert "Linear model of charges" in said.out
    assert "guarantee   adassp: ε = 1, δ = 1e-06" in said.out
    assert "is proved, μ = 0.237 claimed" in " ".join(said.out.split())
    assert main(["report", "model.json", "--target", "age"]) == 2
    assert not list(folder.glob("*.html"))
