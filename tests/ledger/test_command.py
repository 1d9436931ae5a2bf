"""`python -m dplinear.ledger`."""

from pathlib import Path

import pytest

from dplinear.ledger import Request, open_ledger
from dplinear.ledger.__main__ import main
from dplinear.privacy import ZCDP, Neighbours


def test_a_ledger_is_made_shown_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = str(tmp_path / "budget.db")
    assert main(["create", path, "visits", "--rho", "0.5"]) == 0
    assert main(["create", path, "cells", "--bits", "2", "--neighbours", "element"]) == 0
    request = Request("monday", "visits", ZCDP(0.125), Neighbours.ADD_REMOVE, "[b]test", {})
    open_ledger(path).spend(request)
    capsys.readouterr()
    assert main(["show", path]) == 0
    shown = capsys.readouterr().out
    assert "visits" in shown
    assert "ρ = 0.375" in shown
    assert "2 bits (element neighbours)" in shown
    assert main(["history", path, "--dataset", "visits"]) == 0
    told = capsys.readouterr().out
    assert "monday" in told
    assert "[b]test" in told
    assert "cells" not in told
    assert main(["verify", path]) == 0
    assert capsys.readouterr().out.startswith("4 lines")


@pytest.mark.parametrize(
    "budget",
    [
        [],
        ["--rho", "1", "--mu", "1"],
        ["--rho", "1", "--delta", "1e-6"],
        ["--delta", "1e-6"],
        ["--rho", "-1"],
        ["--epsilon", "1", "--delta", "2"],
    ],
    ids=" ".join,
)
def test_budgets_that_are_none_make_no_ledger(
    tmp_path: Path, budget: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "budget.db"
    assert main(["create", str(path), "visits", *budget]) == 1
    assert capsys.readouterr().err
    assert not path.exists()


def test_what_goes_wrong_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "budget.db")
    assert main(["show", path]) == 1
    assert "There is no ledger 'budget.db'" in capsys.readouterr().err
    assert main(["create", path, "visits", "--epsilon", "1", "--delta", "1e-6"]) == 0
    assert main(["create", path, "visits", "--mu", "1"]) == 1
    assert "has a budget already" in capsys.readouterr().err
