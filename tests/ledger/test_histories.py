"""The checker of histories sees what it is there for: each lie of a caller or a ledger."""

import json
from pathlib import Path

import pytest

from dplinear.ledger import BudgetExceededError, LedgerError, open_ledger
from dplinear.privacy import ZCDP
from ledger import histories
from ledger.histories import Notes, ask, check, events


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    """A ledger of three spends, all of them spent, one with a release; and its notes."""
    path, told = tmp_path / "budget.db", tmp_path / "notes"
    ledger = open_ledger(path, create=True)
    ledger.declare("table", ZCDP(0.003))
    notes = Notes(told)
    notes.read(ledger)
    for name in "abc":
        assert notes.spend(ledger, ask(name)) is None
    notes.keep(ledger, "a", b"release")
    assert notes.spend(ledger, ask("a")) == b"release"
    with pytest.raises(BudgetExceededError):
        notes.spend(ledger, ask("d"))
    with pytest.raises(LedgerError):
        notes.spend(ledger, ask("b"))
    notes.read(ledger)
    return path, told


def test_an_honest_history_is_found_so(made: tuple[Path, Path]) -> None:
    found = check(*made)
    assert found == {
        "spend: spent": 3,
        "spend: returned": 1,
        "spend: over budget": 1,
        "spend: failed": 1,
        "keep: kept": 1,
        "read: returned": 2,
    }


def test_who_did_not_live_to_tell_may_have_spent_or_not(made: tuple[Path, Path]) -> None:
    _, told = made
    lines = told.read_text(encoding="utf-8").splitlines()
    asked = next(line for line in lines if '"spend", "b"' in line)
    number = json.loads(asked)[0]
    kept = [line for line in lines if line == asked or json.loads(line)[0] != number]
    told.write_text("\n".join(kept), encoding="utf-8")
    assert check(*made)["spend: killed"] == 1


LIES = {
    "forgotten": (["9", "spend", "x", ""], ["9", "spent"], "forgotten"),
    "twice": (["9", "spend", "a", ""], ["9", "spent"], "newly spent twice"),
    "other bytes": (["9", "spend", "a", ""], ["9", "00"], "returned other bytes"),
    "never kept": (["9", "spend", "b", ""], ["9", "00"], "returned other bytes"),
    "keep forgotten": (["9", "keep", "b", "00"], ["9", "kept"], "is not kept"),
    "lines gone": (["9", "read", "", ""], ["9", ["00"]], "lines that are gone"),
}


@pytest.mark.parametrize("name", list(LIES))
def test_a_lie_is_found(made: tuple[Path, Path], name: str) -> None:
    *lines, sentence = LIES[name]
    with made[1].open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    with pytest.raises(AssertionError, match=sentence):
        check(*made)


def test_what_nobody_asked_for_is_found(made: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nobody asked for"):
        check(made[0], tmp_path / "other notes")


def test_a_refusal_with_room_is_found(tmp_path: Path) -> None:
    path, told = tmp_path / "budget.db", tmp_path / "notes"
    open_ledger(path, create=True).declare("table", ZCDP(0.003))
    told.write_text('["1", "spend", "a", ""]\n["1", "over budget"]\n', encoding="utf-8")
    assert events(told) == [histories.Event("spend", "a", "", histories.REFUSED)]
    with pytest.raises(AssertionError, match="for which there was room"):
        check(path, told)
