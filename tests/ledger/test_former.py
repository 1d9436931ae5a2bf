"""Ledgers that former versions made: they open, and their next spend brings them up to date."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dplinear.ledger import DamagedLedgerError, LedgerError, Request
from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.fingerprint import fingerprint
from dplinear.ledger.hash_chain import FORMAT, Entry, entry, sha256
from dplinear.ledger.sqlite import anchor
from dplinear.ledger.sqlite.anchor import mark_of
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.ledger.sqlite.lines import SqliteLines
from dplinear.ledger.sqlite.tables import FORMER, SCHEMA
from dplinear.ledger.verification import SO_FAR, STATE
from dplinear.privacy import ZCDP, Neighbours

PER = 10**11
BUDGET = Budget(ZCDP(1.0), Neighbours.ELEMENT, 0.5)


def asked(name: str, rho: float = 0.1, **half_ranges: float) -> Request:
    told = {"change": 0.5, "half_ranges": half_ranges}
    return Request(name, "table", ZCDP(rho), Neighbours.ELEMENT, "test", told)


def digest_of(request: Request) -> str:
    said = [request.dataset, request.mechanism, str(request.neighbours), request.guarantee]
    return fingerprint([*said, dict(request.parameters)])


def lines_of_old(count: int) -> list[tuple[Entry, bytes | None]]:
    """Return the lines of a budget, so many spends and the release of the first."""
    lines: list[tuple[Entry, bytes | None]] = [
        (entry(None, "ledger", {"format": FORMAT, "id": "an old one"}), None)
    ]

    def add(kind: str, facts: dict[str, Any], output: bytes | None = None, **said: Any) -> None:
        lines.append((entry(lines[-1][0], kind, facts, dataset="table", **said), output))

    add("budget", BUDGET.facts(), cost=BUDGET.limit)
    for turn in range(count):
        request = asked(f"request {turn}", age=50.0)
        facts = {"neighbours": "element", "parameters": dict(request.parameters), "figures": {}}
        said: dict[str, Any] = {"request": request.request, "digest": digest_of(request)}
        add("spend", facts, **said, cost=Units(PER), spent=Units(PER * (turn + 1)))
    add("release", {"bytes": 7}, b"release", request="request 0", digest=sha256(b"release"))
    return lines


def write(path: Path, lines: list[tuple[Entry, bytes | None]]) -> None:
    table = next(statement for statement in FORMER if "CREATE TABLE" in statement)
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in (table, *sorted(FORMER - {table})):
            connection.execute(statement)
        for line, output in lines:
            SqliteLines(connection).append(line, output)
    anchor.begin(path.with_name(f"{path.name}.anchor"), mark_of(lines[0][0], lines[-1][0]))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of a former version, with a budget of 1 of which 0.3 is spent."""
    file = tmp_path / "budget.db"
    write(file, lines_of_old(3))
    return file


def test_a_ledger_of_a_former_version_is_read_and_left_as_it_is(path: Path) -> None:
    before, ledger = path.read_bytes(), SqliteLedger(path)
    (status,) = ledger.status()
    assert (status.spent.main, status.releases) == (3 * PER, 3)
    assert ledger.verify() == 6
    assert ledger.kept_release("request 0") == b"release"
    assert ledger.price(asked("request 0", age=50.0)).repeated
    assert path.read_bytes() == before


def test_its_next_spend_brings_it_up_to_date(path: Path) -> None:
    ledger = SqliteLedger(path)
    assert ledger.spend(asked("request 0", age=50.0)) == b"release"
    with pytest.raises(LedgerError, match="those of age were others when 'request 0' was released"):
        ledger.spend(asked("other ranges", age=60.0))
    ledger.spend(asked("new", age=50.0, bmi=25.0))
    with pytest.raises(LedgerError, match="those of bmi were others when 'new' was released"):
        ledger.spend(asked("other ranges", bmi=26.0))
    with closing(sqlite3.connect(path)) as connection:
        found = {row[0] for row in connection.execute("SELECT sql FROM sqlite_master")}
    assert found == set(SCHEMA)
    newest = ledger.history()[-1].content()
    assert newest[SO_FAR] == {"spends": 4, "half_ranges": {"age": 50.0, "bmi": 25.0}}
    assert STATE in newest
    ledger.spend(asked("last", age=50.0))
    (status,) = ledger.status()
    assert (status.spent.main, status.releases) == (5 * PER, 5)
    assert ledger.verify() == 8
    assert ledger.spend(asked("request 0", age=50.0)) == b"release"
    with pytest.raises(LedgerError, match="with other arguments"):
        ledger.spend(asked("request 0", 0.2, age=50.0))


def refused(path: Path) -> None:
    """It is not brought up to date over what is not sound."""
    for use in (lambda one: one.spend(asked("new")), SqliteLedger.verify):
        with pytest.raises(DamagedLedgerError):
            use(SqliteLedger(path))
    with closing(sqlite3.connect(path)) as connection:
        found = {row[0] for row in connection.execute("SELECT sql FROM sqlite_master")}
    assert found == FORMER


def test_a_second_budget_is_found(tmp_path: Path) -> None:
    lines, more = lines_of_old(3), Budget(ZCDP(9.0), Neighbours.ELEMENT, 0.5)
    second = entry(lines[-1][0], "budget", more.facts(), dataset="table", cost=more.limit)
    write(tmp_path / "budget.db", [*lines, (second, None)])
    refused(tmp_path / "budget.db")
    with pytest.raises(DamagedLedgerError, match="two budgets"):
        SqliteLedger(tmp_path / "budget.db").status()


def test_a_refund_is_found(tmp_path: Path) -> None:
    lines = lines_of_old(3)
    said: dict[str, Any] = {"dataset": "table", "request": "refund"}
    back = entry(lines[-1][0], "spend", {}, **said, cost=Units(-PER), spent=Units(2 * PER))
    write(tmp_path / "budget.db", [*lines, (back, None)])
    refused(tmp_path / "budget.db")
    with pytest.raises(DamagedLedgerError, match="a negative cost"):
        SqliteLedger(tmp_path / "budget.db").status()


def test_a_sum_that_is_wrong_is_found(tmp_path: Path) -> None:
    lines = lines_of_old(3)
    line = replace(lines[4][0], spent=Units(PER))
    lines[4] = (replace(line, hash=line.expected_hash()), None)
    write(tmp_path / "budget.db", lines)
    refused(tmp_path / "budget.db")
    with pytest.raises(DamagedLedgerError, match="do not add up"):
        SqliteLedger(tmp_path / "budget.db").status()
