"""A ledger is made whole or not at all, and what was cut short stands in nobody's way."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.ledger import DamagedLedgerError, LedgerError, Request, open_ledger
from dplinear.ledger.hash_chain import FORMAT, entry
from dplinear.ledger.opening import is_there
from dplinear.ledger.sqlite import anchor
from dplinear.ledger.sqlite import ledger as sqlite
from dplinear.ledger.sqlite.anchor import Mark
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.ledger.sqlite.lines import SqliteLines
from dplinear.ledger.sqlite.tables import SCHEMA
from dplinear.privacy import ZCDP, Neighbours
from ledger.histories import ask
from refusals import refused

STEPS = ("SqliteLines.append", "anchor.Anchor.restart", "sync_folder", "Path.rename")


@pytest.mark.parametrize("step", STEPS)
def test_whatever_fails_while_a_ledger_is_made_it_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "budget.db"

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(f"dplinear.ledger.sqlite.ledger.{step}", broken)
        with pytest.raises(LedgerError, match="Input/output error"):
            SqliteLedger.create(path)
    assert not is_there(path)
    with pytest.raises(LedgerError, match=r"There is no ledger 'budget\.db'"):
        SqliteLedger(path)
    SqliteLedger.create(path).declare("table", ZCDP(1.0))
    assert SqliteLedger(path).verify() == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["budget.db", "budget.db.anchor"]


def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    SqliteLedger.create(tmp_path / "budget.db")
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    assert modes == {"budget.db": 0o600, "budget.db.anchor": 0o600}


def test_a_ledger_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    """Its side file knows that something was declared: the file is to be brought back."""
    path = tmp_path / "budget.db"
    SqliteLedger.create(path).declare("table", ZCDP(1.0))
    path.unlink()
    with pytest.raises(LedgerError, match="already"):
        SqliteLedger.create(path)


def test_a_ledger_that_is_gone_and_was_never_used_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    SqliteLedger.create(path)
    first = SqliteLedger(path).history()[0]
    with pytest.raises(LedgerError, match="already"):
        SqliteLedger.create(path)
    path.unlink()
    SqliteLedger.create(path)
    assert SqliteLedger(path).history()[0].hash != first.hash
    with anchor.hold_lock(path.with_name("budget.db.anchor"), 1.0) as side:
        assert side.marks().count(None) == 1


def test_what_stands_beside_a_new_ledger_is_not_played_back_into_it(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    for suffix in ("-journal", "-wal", "-shm"):
        (tmp_path / f"budget.db{suffix}").write_bytes(b"of a file that is gone")
    SqliteLedger.create(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["budget.db", "budget.db.anchor"]


# What former versions left when they were killed: they made the file under its own name.


def blank(path: Path) -> Path:
    anchor.create(path.with_name(f"{path.name}.anchor"))
    return path


def no_file(_: Path) -> None:
    pass


def an_empty_file(path: Path) -> None:
    path.touch()


def a_file_of_one_line(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in SCHEMA:
            connection.execute(statement)
        SqliteLines(connection).append(entry(None, "ledger", {"format": FORMAT, "id": "a"}))


@pytest.mark.parametrize("leave", [no_file, an_empty_file, a_file_of_one_line])
def test_what_former_versions_left_is_made_to_its_end(
    tmp_path: Path, leave: Callable[[Path], None]
) -> None:
    path = blank(tmp_path / "budget.db")
    leave(path)
    assert not is_there(path)
    open_ledger(path, create=True).declare("table", ZCDP(1.0))
    assert is_there(path)
    assert SqliteLedger(path).verify() == 2


def test_a_file_with_more_than_its_own_line_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    SqliteLedger.create(path).declare("table", ZCDP(1.0))
    side = path.with_name("budget.db.anchor")
    side.write_bytes(b" " * 512)
    with pytest.raises(LedgerError, match="already"):
        SqliteLedger.create(path)
    with pytest.raises(DamagedLedgerError, match="no whole record"):
        SqliteLedger(path).spend(ask("one"))


def test_another_database_is_not_written_over(tmp_path: Path) -> None:
    path = blank(tmp_path / "budget.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE visits (age INTEGER)")
    before = path.read_bytes()
    with pytest.raises(DamagedLedgerError, match="not as they were made"):
        SqliteLedger.create(path)
    assert path.read_bytes() == before


# The side file


def test_a_side_file_that_was_replaced_while_one_waited_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, lock = tmp_path / "side", anchor._lock
    anchor.begin(side, Mark("a", 1, "b"))
    turns: list[int] = []

    def replaced(handle: int, timeout: float) -> None:
        lock(handle, timeout)
        turns.append(handle)
        if len(turns) == 1:
            side.unlink()
        if len(turns) == 2:
            side.unlink()
            anchor.begin(side, Mark("a", 2, "c"))

    monkeypatch.setattr(anchor, "_lock", replaced)
    with pytest.raises(FileNotFoundError), anchor.hold_lock(side, 1.0):
        pass
    with anchor.hold_lock(side, 1.0, make=True) as held:
        assert held.latest() == Mark("a", 2, "c")


def test_a_reader_waits_a_moment_for_a_record_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, mark = tmp_path / "side", Mark("a", 1, "b")
    anchor.create(side)
    assert anchor.read_mark(side) is None
    found = iter([None, None, mark])
    monkeypatch.setattr(anchor.Anchor, "latest", lambda _: next(found))
    assert anchor.read_mark(side) == mark


@pytest.mark.parametrize(
    ("content", "unmade"),
    [
        (b"", True),
        (b" " * 512, True),
        (Mark("a", 1, "b").record(), True),
        (Mark("a", 1, "b").record()[:40], True),
        (Mark("a", 1, "b").record() * 2, True),
        (Mark("a", 2, "b").record(), False),
        (Mark("a", 1, "b").record() + Mark("a", 2, "b").record(), False),
        (b" " * 513, False),
        (b"somebody's notes", False),
        (b" " * 256 + b"somebody's notes", False),
    ],
)
def test_a_side_file_tells_whether_its_ledger_was_used(
    tmp_path: Path, content: bytes, unmade: bool
) -> None:
    side = tmp_path / "side"
    side.write_bytes(content)
    with anchor.hold_lock(side, 1.0) as held:
        assert held.is_unused() is unmade
        if unmade:
            held.restart(Mark("b", 1, "c"))
            assert held.latest() == Mark("b", 1, "c")
            assert side.stat().st_size == 512


# What would be destroyed by words of other types


def test_a_request_of_another_type_leaves_the_ledger_as_it_is(tmp_path: Path) -> None:
    ledger = SqliteLedger.create(tmp_path / "budget.db")
    ledger.declare("table", ZCDP(1.0))
    odd = Request(5, "table", ZCDP(0.1), Neighbours.ADD_REMOVE, "test", {})  # type: ignore[arg-type]
    with refused("request", "spend", kind=ArgumentTypeError):
        ledger.spend(odd)
    ledger.spend(ask("5"))
    assert ledger.verify() == 3


def test_a_line_that_would_not_read_back_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SqliteLedger.create(tmp_path / "budget.db")
    ledger.declare("table", ZCDP(1.0))
    append = SqliteLines.append

    def converted(lines: SqliteLines, line: object, output: bytes | None = None) -> None:
        append(lines, line, output)  # type: ignore[arg-type]
        lines._connection.execute("DROP TRIGGER never_changed")
        lines._connection.execute("UPDATE lines SET time = 5 WHERE sequence = 3")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteLines, "append", converted)
        with pytest.raises(LedgerError):
            ledger.spend(ask("one"))
    ledger.spend(ask("one"))
    assert ledger.verify() == 3


def test_indexes_that_miss_a_line_are_found(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = SqliteLedger.create(path)
    ledger.declare("table", ZCDP(1.0))
    ledger.spend(ask("one"))
    with sqlite._connect(path, 1.0, sqlite._WRITING) as connection:
        statement = next(each for each in SCHEMA if "INDEX by_request" in each)
        connection.execute("DROP INDEX by_request")
        connection.execute(f"{statement} AND kind = 'release'")  # of which there is none
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name = 'by_request'", (statement,)
        )
    with pytest.raises(DamagedLedgerError, match="its index by_request does not find"):
        ledger.verify()
