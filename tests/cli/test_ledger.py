"""`dplinear ledger`."""

import json
from pathlib import Path

import pytest

from dplinear.cli.main import main
from dplinear.ledger import LedgerError, Request, open_ledger
from dplinear.ledger.budget import Units
from dplinear.privacy import ZCDP, Neighbours


def test_a_ledger_is_made_shown_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = str(tmp_path / "budget.db")
    assert main(["ledger", "create", path, "visits", "--rho", "0.5"]) == 0
    cells = ["cells", "--bits", "2", "--neighbours", "element"]
    assert main(["ledger", "create", path, *cells]) == 0
    request = Request("monday", "visits", ZCDP(0.125), Neighbours.ADD_REMOVE, "[b]test", {})
    open_ledger(path).spend(request)
    capsys.readouterr()
    assert main(["ledger", "show", path]) == 0
    shown = capsys.readouterr().out
    assert "visits" in shown
    assert "ρ = 0.375" in shown
    assert "2 bits (element neighbours)" in shown
    assert "visits, if all releases had been fixed before the first: ε = " in shown
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["ledger", "show", path]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["ledger", "history", path, "--dataset", "visits"]) == 0
    told = capsys.readouterr().out
    assert "monday" in told
    assert "[b]test: ρ = 0.125" in told
    assert "cells" not in told
    assert main(["ledger", "verify", path]) == 0
    assert capsys.readouterr().out.startswith("4 lines")


def test_scripts_get_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "budget.db")
    assert main(["ledger", "create", path, "visits", "--mu", "0.5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told[0]["dataset"] == "visits"
    assert told[0]["left"] == "μ² = 0.25"
    assert told[0]["settled_beforehand"] == []
    assert main(["ledger", "history", path, "--json"]) == 0
    assert [line["kind"] for line in json.loads(capsys.readouterr().out)] == ["ledger", "budget"]
    assert main(["ledger", "verify", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"lines": 2, "sound": True}


@pytest.mark.parametrize(
    "budget",
    [
        [],
        ["--rho", "1", "--mu", "1"],
        ["--rho", "1", "--delta", "1e-6"],
        ["--delta", "1e-6"],
        ["--rho", "-1"],
        ["--epsilon", "1", "--delta", "2"],
        ["--rho", "1", "--neighbours", "adjacent"],
        ["--rho", "1", "--change", "0.5"],
        ["--rho", "1", "--neighbours", "element", "--missing-public"],
    ],
    ids=" ".join,
)
def test_budgets_that_are_none_make_no_ledger(
    tmp_path: Path, budget: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "budget.db"
    assert main(["ledger", "create", str(path), "visits", *budget]) == 2
    assert capsys.readouterr().err.startswith("Error: ")
    assert not path.exists()


def test_what_goes_wrong_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "budget.db")
    assert main(["ledger", "show", path]) == 4
    assert "There is no ledger 'budget.db'" in capsys.readouterr().err
    assert main(["ledger", "create", path, "visits", "--epsilon", "1", "--delta", "1e-6"]) == 0
    assert main(["ledger", "create", path, "visits", "--mu", "1"]) == 4
    assert "has a budget already" in capsys.readouterr().err


def test_a_price_is_what_a_spend_would_cost_and_costs_nothing(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("visits", ZCDP(0.5))
    asked = Request("a", "visits", ZCDP(0.375), Neighbours.ADD_REMOVE, "test", {})
    found = ledger.price(asked)
    assert (found.cost, found.left) == (Units(375 * 10**9), Units(500 * 10**9))
    assert found.suffices
    assert not found.repeated
    assert [line.kind for line in ledger.history()] == ["ledger", "budget"]
    ledger.spend(asked)
    other = Request("b", "visits", ZCDP(0.375), Neighbours.ADD_REMOVE, "test", {})
    assert ledger.price(other).left == found.after == Units(125 * 10**9)
    assert not ledger.price(other).suffices
    with pytest.raises(LedgerError, match="there is no release of it"):
        ledger.price(asked)
    ledger.keep("a", b"release")
    again = ledger.price(asked)
    assert again.repeated
    assert again.cost == Units(0)
    for name, words in ((None, "none was named"), ("rows", "has no budget")):
        with pytest.raises(LedgerError, match=words):
            ledger.price(Request("c", name, ZCDP(0.1), Neighbours.ADD_REMOVE, "test", {}))
