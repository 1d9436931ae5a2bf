"""Whoever may write to the .db alone, and not to its side file, cannot raise a budget."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dplinear.ledger import BudgetExceededError, DamagedLedgerError, LedgerError
from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.hash_chain import Entry, entry
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.ledger.sqlite.lines import SqliteLines
from dplinear.ledger.sqlite.tables import SCHEMA
from dplinear.ledger.verification import STATE
from dplinear.privacy import ZCDP
from ledger.histories import ask

PER = 10**11
MORE = Budget(ZCDP(9.0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a budget of 1, of which 0.3 is spent."""
    file = tmp_path / "budget.db"
    ledger = SqliteLedger.create(file)
    ledger.declare("table", ZCDP(1.0))
    for turn in range(3):
        ledger.spend(ask(f"request {turn}", 0.1))
    return file


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """Take every guard of the file away, change it, and put all of them back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        found = connection.execute("SELECT type, name FROM sqlite_master WHERE name <> 'lines'")
        for kind, name in found.fetchall():
            connection.execute(f"DROP {kind} {name}")
        yield connection
        for statement in SCHEMA[1:]:
            connection.execute(statement)


def rewrite(connection: sqlite3.Connection, sequence: int, **changes: Any) -> None:
    """Change a line, and give it the hash that it would have had."""
    lines = SqliteLines(connection)
    before = lines.at(sequence)
    assert before is not None
    line = replace(before, **changes)
    connection.execute("DELETE FROM lines WHERE sequence = ?", (sequence,))
    lines.append(replace(line, hash=line.expected_hash()))


def more_budget(lines: SqliteLines) -> Entry:
    return entry(lines.newest(), "budget", MORE.facts(), dataset="table", cost=MORE.limit)


def spend(lines: SqliteLines, cost: Units, spent: Units, **more: Any) -> Entry:
    said = {"dataset": "table", "request": "forged", "cost": cost, "spent": spent}
    return entry(lines.newest(), "spend", {"parameters": {}}, **(said | more))


APPENDED: dict[str, Callable[[SqliteLines], Entry]] = {
    "a second budget": more_budget,
    "a refund": lambda lines: spend(lines, Units(-2 * PER), Units(PER)),
    "a refund of delta": lambda lines: spend(lines, Units(0, -1), Units(3 * PER, -1)),
    "a sum that is less": lambda lines: spend(lines, Units(0), Units(0)),
    "a spend beyond the budget": lambda lines: spend(lines, Units(8 * PER), Units(11 * PER)),
    "a spend without a budget": lambda lines: spend(lines, Units(0), Units(0), dataset="other"),
    "a line that does not follow": lambda lines: replace(
        spend(lines, Units(1), Units(3 * PER + 1)), previous="0" * 64
    ),
}


@pytest.mark.parametrize("name", list(APPENDED))
def test_lines_that_break_the_rules_are_not_let_in(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        lines = SqliteLines(connection)
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            lines.append(APPENDED[name](lines))


@pytest.mark.parametrize("name", list(APPENDED))
def test_lines_that_were_forced_in_are_refused(path: Path, name: str) -> None:
    side = path.with_name("budget.db.anchor").read_bytes()
    try:
        with unguarded(path) as connection:
            lines = SqliteLines(connection)
            line = APPENDED[name](lines)
            lines.append(replace(line, hash=line.expected_hash()))
    except sqlite3.IntegrityError:
        assert name == "a second budget"  # for which there is no unique index
        return
    for use in (
        lambda: SqliteLedger(path).spend(ask("much", 5.0)),
        lambda: SqliteLedger(path).spend(ask("little", 0.1)),
        SqliteLedger(path).status,
        SqliteLedger(path).verify,
    ):
        with pytest.raises(DamagedLedgerError):
            use()
    assert path.with_name("budget.db.anchor").read_bytes() == side


def test_a_line_that_was_added_by_the_rules_counts(path: Path) -> None:
    """As after a crash between the commit and the side file: what may have happened has."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        lines = SqliteLines(connection)
        lines.append(spend(lines, Units(PER), Units(4 * PER)))
        lines.append(entry(lines.newest(), "budget", MORE.facts(), dataset="b", cost=MORE.limit))
    assert [each.spent.main for each in SqliteLedger(path).status()] == [4 * PER, 0]
    SqliteLedger(path).spend(ask("another", 0.1))
    assert SqliteLedger(path).verify() == 8


CHANGED: dict[str, Callable[[sqlite3.Connection], object]] = {
    "the budget": lambda lines: rewrite(
        lines, 2, cost=MORE.limit, facts=json.dumps(MORE.facts(), ensure_ascii=False)
    ),
    "the last spend": lambda lines: rewrite(lines, 5, cost=Units(0), spent=Units(0)),
    "no spends": lambda lines: lines.execute("UPDATE lines SET dataset = 'x' WHERE sequence = 5"),
}


@pytest.mark.parametrize("name", list(CHANGED))
def test_lines_that_were_rewritten_with_hashes_that_fit_are_refused(path: Path, name: str) -> None:
    ledger = SqliteLedger(path)
    ledger.declare("other", ZCDP(1.0))  # so that the side file knows a later line by its hash
    with unguarded(path) as connection:
        CHANGED[name](connection)
    for use in (lambda: ledger.spend(ask("much", 5.0)), ledger.status, ledger.verify):
        with pytest.raises(DamagedLedgerError):
            use()
    with pytest.raises(DamagedLedgerError):
        ledger.spend(ask("little", 0.1))


def test_a_state_that_was_never_true_is_found(path: Path) -> None:
    with SqliteLedger(path).writing() as lines:
        facts = {**MORE.facts(), STATE: "0" * 64}
        lines.append(entry(lines.newest(), "budget", facts, dataset="b", cost=MORE.limit))
    with pytest.raises(DamagedLedgerError, match="not what was written"):
        SqliteLedger(path).spend(ask("further", 0.1))


# Names


def test_a_ledger_with_two_names_is_refused(path: Path) -> None:
    other = path.with_name("other.db")
    os.link(path, other)
    os.link(path.with_name("budget.db.anchor"), path.with_name("other.db.anchor"))
    for name in (path, other):
        for use in (lambda one: one.spend(ask("another", 0.1)), SqliteLedger.status):
            with pytest.raises(LedgerError, match="has more than one name"):
                use(SqliteLedger(name))
    other.unlink()
    SqliteLedger(path).spend(ask("another", 0.1))


def test_symbolic_links_lead_to_one_ledger_and_one_side_file(path: Path) -> None:
    """Whatever stands beside the link: a second side file would know less."""
    folder = path.parent / "elsewhere"
    folder.mkdir()
    link = folder / "link.db"
    link.symlink_to(path)
    shutil.copy(path.with_name("budget.db.anchor"), folder / "link.db.anchor")
    known = (folder / "link.db.anchor").read_bytes()
    SqliteLedger(link).spend(ask("another", 0.1))
    assert (folder / "link.db.anchor").read_bytes() == known
    assert SqliteLedger(path).status()[0].spent.main == 4 * PER
    with pytest.raises(BudgetExceededError):
        SqliteLedger(link).spend(ask("much", 0.7))
    with pytest.raises(LedgerError, match="already"):
        SqliteLedger.create(link)
    nowhere = folder / "nowhere.db"
    nowhere.symlink_to(folder / "no file")
    with pytest.raises(LedgerError, match="already"):
        SqliteLedger.create(nowhere)
    with pytest.raises(LedgerError, match="There is no ledger"):
        SqliteLedger(nowhere)


@pytest.mark.parametrize("column", ["hash", "dataset"])
@pytest.mark.parametrize("sequence", [1, 2, 3])
def test_bytes_in_the_place_of_a_text_are_damage(path: Path, column: str, sequence: int) -> None:
    true = SqliteLedger(path).status()
    with unguarded(path) as connection:
        change = f"UPDATE lines SET {column} = CAST({column} AS BLOB) WHERE sequence = ?"
        connection.execute(change, (sequence,))
    with suppress(DamagedLedgerError):  # which looks at the lines it rests on alone
        assert SqliteLedger(path).status() == true
    with pytest.raises(DamagedLedgerError):
        SqliteLedger(path).verify()
