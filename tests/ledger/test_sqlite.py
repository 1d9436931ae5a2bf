"""A ledger in a file: whatever goes wrong, it fails closed, and says so in a sentence."""

import errno
import fcntl
import os
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.ledger import grow
from dplinear.ledger import BudgetExceededError, LedgerError, Request, open_ledger, opening
from dplinear.ledger.sqlite import anchor
from dplinear.ledger.sqlite import ledger as sqlite
from dplinear.ledger.sqlite import mounts as mounts_module
from dplinear.ledger.sqlite import words as sqlite_words
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.ledger.sqlite.lines import SqliteLines
from dplinear.ledger.sqlite.mounts import file_system
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, Neighbours

PER = 10**11
_REST = (
    "time, kind, dataset, request, digest, 0, 0, 0, 0, facts, previous, hash, output"  # a refund
)


def asked(name: str, rho: float = 0.1) -> Request:
    return Request(name, "table", ZCDP(rho), Neighbours.ADD_REMOVE, "test", {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a budget of 1, of which 0.3 is spent."""
    file = tmp_path / "budget.db"
    ledger = SqliteLedger.create(file)
    ledger.declare("table", ZCDP(1.0))
    for turn in range(3):
        ledger.spend(asked(f"request {turn}"))
    ledger.keep("request 0", b"release " * 100)
    return file


def spent(path: Path) -> int:
    (status,) = SqliteLedger(path).status()
    return status.spent.main


WRITING: list[Callable[[SqliteLedger], object]] = [
    lambda ledger: ledger.spend(asked("another")),
    lambda ledger: ledger.spend(asked("request 0")),
    lambda ledger: ledger.keep("request 1", b"a release"),
    lambda ledger: ledger.declare("other", ZCDP(1.0)),
]
READING: list[Callable[[SqliteLedger], object]] = [SqliteLedger.status, SqliteLedger.verify]


def refused(
    path: Path,
    match: str,
    timeout: float = 60.0,
    uses: list[Callable[[SqliteLedger], object]] | None = None,
) -> None:
    """Every use of the ledger is refused, in the same words."""
    for use in uses or [*WRITING, *READING]:
        with pytest.raises(LedgerError, match=match):
            use(SqliteLedger(path, timeout=timeout))


def test_an_older_copy_is_refused(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    SqliteLedger(path).spend(asked("later"))
    newest = path.read_bytes()
    shutil.copy(copy, path)
    refused(path, "older copy of the ledger, or another one: it ends with line 6, and line 7")
    path.write_bytes(newest)
    assert spent(path) == 4 * PER


def test_another_history_of_the_same_length_is_refused(path: Path) -> None:
    folder = path.parent / "aside"
    folder.mkdir()
    for name in (path.name, f"{path.name}.anchor"):
        shutil.copy(path.with_name(name), folder)
    SqliteLedger(path).spend(asked("one"))
    SqliteLedger(folder / path.name).spend(asked("two"))
    shutil.copy(folder / path.name, path)
    refused(path, "older copy of the ledger, or another one")


def test_a_side_file_that_is_missing_damaged_or_of_another_ledger_is_refused(path: Path) -> None:
    side = path.with_name(f"{path.name}.anchor")
    content = side.read_bytes()
    side.unlink()
    with pytest.raises(LedgerError, match=r"budget.db.anchor missing"):
        SqliteLedger(path)
    side.write_bytes(b" " * len(content))
    refused(path, "side file holds no whole record")
    SqliteLedger.create(path.with_name("other.db"))
    shutil.copy(path.with_name("other.db.anchor"), side)
    refused(path, "belongs to another ledger")
    side.write_bytes(content)
    assert spent(path) == 3 * PER


def test_a_side_file_that_was_being_written_still_holds(path: Path) -> None:
    side = path.with_name(f"{path.name}.anchor")
    whole = side.read_bytes()
    records = [anchor.Mark.read(whole[:256]), anchor.Mark.read(whole[256:])]
    assert sorted(mark.sequence for mark in records if mark is not None) == [5, 6]
    place = 256 * [mark is not None and mark.sequence == 6 for mark in records].index(True)
    side.write_bytes(whole[: place + 40] + b"x" * 20 + whole[place + 60 :])
    assert SqliteLedger(path).verify() == 6
    SqliteLedger(path).spend(asked("later"))
    assert spent(path) == 4 * PER
    marks = [anchor.Mark.read(side.read_bytes()[at : at + 256]) for at in (0, 256)]
    assert [mark.sequence for mark in marks if mark is not None].count(7) == 1


def test_nothing_is_returned_that_the_side_file_does_not_know_of(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(LedgerError, match="Input/output error"):
            SqliteLedger(path).spend(asked("another"))
    assert spent(path) == 4 * PER  # what may have happened has
    with pytest.raises(LedgerError, match="spent, and there is no release"):
        SqliteLedger(path).spend(asked("another"))


@pytest.mark.parametrize("failing", ["pwrite", "fsync"])
def test_a_moments_fault_of_the_side_file_burns_no_spend(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    really, calls = getattr(os, failing), []

    def broken(*words: Any) -> Any:
        calls.append(words)
        if len(calls) == 1:
            raise OSError(5, "Input/output error")
        return really(*words)

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, broken)
        assert SqliteLedger(path).spend(asked("another")) is None
    assert len(calls) == 2
    assert spent(path) == 4 * PER


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE lines SET cost = 0",
        "DELETE FROM lines WHERE sequence = 6",
        "INSERT OR REPLACE INTO lines SELECT * FROM lines WHERE sequence = 5",
        f"REPLACE INTO lines SELECT 7, {_REST} FROM lines WHERE sequence = 5",
    ],
)
def test_lines_are_only_ever_added(path: Path, change: str) -> None:
    before = path.read_bytes()
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="only ever added to"),
        connection,
    ):
        connection.execute(change)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE lines SET facts = replace(facts, '1.0', '9.0') WHERE sequence = 2",
        "UPDATE lines SET cost = 1 WHERE sequence = 5",
        "UPDATE lines SET spent = 1 WHERE sequence = 5",
        "UPDATE lines SET dataset = 'other' WHERE sequence = 5",
        "DELETE FROM lines WHERE sequence = 5",
        "DELETE FROM lines WHERE sequence = 2",
    ],
)
def test_lines_that_were_changed_all_the_same_are_found(path: Path, change: str) -> None:
    guards = _forced(path, change)
    refused(path, "triggers that guard them, are not as they were made")
    _guarded(path, guards)
    with pytest.raises(LedgerError, match="The ledger is damaged"):
        SqliteLedger(path).verify()
    with pytest.raises(LedgerError, match="The ledger is damaged"):
        SqliteLedger(path).spend(asked("another"))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE lines SET cost = 1 WHERE sequence = 4",
        "UPDATE lines SET dataset = 'other' WHERE sequence = 4",
        "DELETE FROM lines WHERE sequence = 4",
    ],
)
def test_what_is_spent_does_not_shrink_with_lines_of_long_ago(path: Path, change: str) -> None:
    """What stands on the lines in between is found by `verify`; a spend does not rest on them."""
    _guarded(path, _forced(path, change))
    assert spent(path) == 3 * PER
    with pytest.raises(BudgetExceededError):
        SqliteLedger(path).spend(asked("another", 0.7000001))
    with pytest.raises(LedgerError, match="The ledger is damaged"):
        SqliteLedger(path).verify()


def _forced(path: Path, change: str) -> list[str]:
    """Take the triggers away and change a ledger; return the triggers."""
    with closing(sqlite3.connect(path)) as connection, connection:
        text = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        found = connection.execute(text).fetchall()
        for name, _ in found:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(change)
    return [guard for _, guard in found]


def _guarded(path: Path, guards: list[str]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for guard in guards:
            connection.execute(guard)


def test_a_line_that_is_gone_breaks_the_chain(path: Path) -> None:
    SqliteLedger(path).keep("request 1", b"release")
    SqliteLedger(path).spend(asked("later"))
    _guarded(path, _forced(path, "DELETE FROM lines WHERE sequence = 7"))
    with pytest.raises(LedgerError, match="line 8 does not follow the one before it"):
        SqliteLedger(path).verify()


def test_a_record_of_the_side_file_with_any_change_is_none() -> None:
    record = anchor.Mark("a", 6, "b").record()
    assert anchor.Mark.read(record) == anchor.Mark("a", 6, "b")
    for other in (record.replace(b"6", b"4", 1), record.replace(b'"a"', b'"c"'), record[:-1], b"3"):
        assert anchor.Mark.read(other) is None


def test_a_side_file_moves_forward_only(tmp_path: Path) -> None:
    side = tmp_path / "side"
    anchor.begin(side, anchor.Mark("a", 5, "b"))
    before = side.read_bytes()
    with anchor.hold_lock(side, 1.0) as held:
        for other in (anchor.Mark("a", 5, "c"), anchor.Mark("a", 4, "d")):
            held.move(other)
            assert side.read_bytes() == before
        held.move(anchor.Mark("a", 6, "e"))
        held.move(anchor.Mark("a", 7, "f"))
        assert [mark and mark.sequence for mark in held.marks()] == [7, 6]
        assert held.latest() == anchor.Mark("a", 7, "f")


def test_a_side_file_lasts_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    synced: list[object] = []
    really_open, really_fsync = os.open, os.fsync

    def noted(*words: Any, **more: Any) -> int:
        opened.append(really_open(*words, **more))
        return opened[-1]

    def syncing(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        really_fsync(handle)

    side = tmp_path / "side"

    def folder(path: Path) -> None:
        assert side.exists()
        synced.append(path)

    monkeypatch.setattr(os, "open", noted)
    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(anchor, "sync_folder", folder)
    anchor.begin(side, anchor.Mark("a", 1, "b"))
    # The empty file, its first record, and then the name that it has been given.
    assert synced == [side.stat().st_ino, side.stat().st_ino, tmp_path]
    assert [path.name for path in tmp_path.iterdir()] == ["side"]
    assert len(opened) == 2
    for handle in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(handle)
    with pytest.raises(FileExistsError):
        anchor.create(side)


def test_a_ledger_is_there_once_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "budget.db"
    assert not opening.is_there(path)
    SqliteLedger.create(path)
    assert opening.is_there(path)
    assert opening.is_there(str(path))

    class Server:
        @staticmethod
        def exists(url: str) -> bool:
            return url == "postgresql://here/ledger"

    monkeypatch.setattr(opening, "_postgres", lambda: Server)
    assert opening.is_there("postgresql://here/ledger")
    assert not opening.is_there("postgresql://elsewhere/ledger")


def test_an_address_is_opened_by_the_ledgers_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    class Server:
        made = False

        def __init__(self, url: str) -> None:
            self.url = url

        @classmethod
        def create(cls, url: str) -> "Server":
            found = cls(url)
            found.made = True
            return found

    monkeypatch.setattr(opening, "_postgres", lambda: Server)
    for kind in ("postgresql", "postgres"):
        for create in (False, True):
            opened: Any = open_ledger(f"{kind}://here/ledger", create=create)
            assert (opened.url, opened.made) == (f"{kind}://here/ledger", create)


def test_a_driver_is_loaded_when_it_is_asked_for() -> None:
    assert not hasattr(opening, "PostgresLedger")
    pytest.importorskip("psycopg")
    assert opening._postgres().__name__ == "PostgresLedger"


def test_a_release_that_was_changed_is_not_returned(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b"release release", b"release RELEASE", 1))
    with pytest.raises(LedgerError, match="is not as it was kept"):
        SqliteLedger(path).spend(asked("request 0"))
    with pytest.raises(LedgerError, match="is not as it was kept"):
        SqliteLedger(path).verify()


def test_damage_anywhere_never_lets_more_be_spent(path: Path) -> None:
    """Sixty pieces of the file are overwritten, one at a time: what is admitted is still right."""
    content, generator = path.read_bytes(), simulation.generator(7)
    outcomes = set()
    for place in generator.integers(0, len(content) - 32, 60).tolist():
        noise = generator.bytes(32)
        path.write_bytes(content[:place] + noise + content[place + 32 :])
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
        side = path.with_name(f"{path.name}.anchor")
        known = side.read_bytes()
        try:
            SqliteLedger(path).spend(asked("all that is left and more", 0.7000001))
        except LedgerError:
            outcomes.add("refused")
        except BudgetExceededError:
            outcomes.add("counted")
        else:
            pytest.fail(f"damage at {place} gave budget back")
        assert side.read_bytes() == known
    assert outcomes == {"refused", "counted"}


def test_what_is_no_ledger_is_refused(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(b"not a database, but long enough to look at " * 100)
    refused(path, "not a database")
    path.write_bytes(b"")
    refused(path, "not as they were made")
    path.write_bytes(content[: len(content) // 2])
    refused(path, "damaged")


def test_a_locked_ledger_is_refused_after_a_while(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        refused(path, "locked by another process", timeout=0.01)
    with anchor.hold_lock(path.with_name(f"{path.name}.anchor"), 1.0):
        refused(path, "locked for 0.01 seconds", timeout=0.01, uses=WRITING)
        assert SqliteLedger(path, timeout=0.01).verify() == 6  # who reads waits for nobody
    assert spent(path) == 3 * PER


def test_a_lock_that_fails_while_waiting_is_not_held(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_: int, how: int) -> None:
        raise BlockingIOError if how & fcntl.LOCK_NB else OSError

    locks = SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX, LOCK_NB=fcntl.LOCK_NB, LOCK_UN=8)
    monkeypatch.setattr(anchor, "_locks", lambda: locks)
    with pytest.raises(LedgerError, match="locked for 60 seconds"):
        SqliteLedger(path).spend(asked("another"))


def test_whoever_gave_up_waiting_holds_no_lock(path: Path) -> None:
    side = path.with_name(f"{path.name}.anchor")
    with anchor.hold_lock(side, 1.0), pytest.raises(LedgerError), anchor.hold_lock(side, 0.01):
        pytest.fail("locked twice")
    with anchor.hold_lock(side, 60.0) as opened:
        assert opened.latest() is not None


def test_a_full_disk_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of pages, by SQLite's own limit; then of bytes, by the system's."""
    with monkeypatch.context() as patch:
        patch.setitem(sqlite._WRITING, "max_page_count", "1")
        with pytest.raises(LedgerError, match="the disk is full"):
            SqliteLedger(path).keep("request 1", b"x" * 10**6)
    size = path.stat().st_size
    with _at_most(size + 4096), pytest.raises(LedgerError, match=r"cannot be (used|written)"):
        SqliteLedger(path).keep("request 1", b"x" * 10**6)
    assert SqliteLedger(path).verify() == 6
    SqliteLedger(path).keep("request 1", b"x" * 10**6)


@contextmanager
def _at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_read_only_ledger_spends_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_MODE", "ro")
    with pytest.raises(LedgerError, match="cannot be written: it is read-only"):
        SqliteLedger(path).spend(asked("another"))
    monkeypatch.undo()
    assert spent(path) == 3 * PER


@pytest.mark.parametrize(
    ("suffix", "mode", "match"),
    [
        (
            "",
            0o444,
            "(?s)cannot be written: it is read-only.*nothing is released; ask for the right",
        ),
        ("", 0o000, "(?s)'budget.db' cannot be opened.*nothing is released; ask for the right"),
        (".anchor", 0o444, r"(?s)Permission denied.*nothing is released; ask for .*side file"),
    ],
    ids=["only to be read", "not even that", "the side file"],
)
def test_files_that_may_not_be_written_to_spend_nothing(suffix: str, mode: int, match: str) -> None:
    """As somebody whom the system refuses: root may write to every file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        SqliteLedger.create(path).declare("table", ZCDP(1.0))
        SqliteLedger(path).spend(asked("request 0"))
        Path(folder).chmod(0o777)
        for file in Path(folder).iterdir():
            file.chmod(mode if file.name == f"budget.db{suffix}" else 0o666)
        with _nobody(), pytest.raises(LedgerError, match=match):
            SqliteLedger(path).spend(asked("another"))
        for file in Path(folder).iterdir():
            file.chmod(0o666)
        assert spent(path) == PER


@contextmanager
def _nobody() -> Iterator[None]:
    """Be a user without rights for a while, if one is root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("name", "value"), [("synchronous", "NORMAL"), ("synchronous", "OFF"), ("journal_mode", "WAL")]
)
def test_unsafe_settings_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setitem(sqlite._WRITING, name, value)
    refused(path, f"SQLite's {name} is .*, which is not safe enough", uses=WRITING)


def test_commits_that_are_synced_in_full_are_safe_enough(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sqlite._WRITING, "synchronous", "FULL")
    assert spent(path) == 3 * PER


def test_a_connection_that_is_refused_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*words: str, **more: bool) -> sqlite3.Connection:
        # Whether a library reads what is no URI as one is settled when it is compiled.
        assert words[0].startswith("file:/") is more["uri"] is True
        made.append(connect(*words, **more))  # type: ignore[call-overload]
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    monkeypatch.setitem(sqlite._WRITING, "synchronous", "OFF")
    with pytest.raises(LedgerError, match="not safe enough"):
        SqliteLedger(path).spend(asked("another"))
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


def test_settings_are_in_force(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:  # somebody's tool has left it like this
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    SqliteLedger(path).spend(asked("later"))
    assert spent(path) == 4 * PER
    with sqlite._connect(path, 1.0, sqlite._WRITING) as connection:
        wanted = {"journal_mode": "delete", "synchronous": 3, "cell_size_check": 1}
        for name, value in (wanted | {"trusted_schema": 0}).items():
            assert connection.execute(f"PRAGMA {name}").fetchone() == (value,)
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (1000,)
        assert connection.isolation_level is None  # transactions begin where we say so


def test_a_ledger_waits_as_long_as_it_was_made_to(tmp_path: Path) -> None:
    made = SqliteLedger.create(tmp_path / "budget.db", timeout=3.0)
    assert made.timeout == 3.0
    assert [line.kind for line in made.history()] == ["ledger"]


def test_requests_are_found_by_their_index(path: Path) -> None:
    with sqlite._connect(path, 1.0, sqlite._READING) as connection:
        plans: list[str] = []

        class Explained:
            def execute(self, text: str, values: tuple[object, ...]) -> sqlite3.Cursor:
                rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", values)
                plans.extend(row[3] for row in rows)
                return connection.execute(text, values)

        lines = SqliteLines(Explained())  # type: ignore[arg-type]
        assert lines.last("spend", request="request 1") is not None
        assert lines.output("request 0") is not None
    assert len(plans) == 2
    assert all("USING INDEX by_request" in plan for plan in plans)


def test_nothing_is_looked_through_for_a_spend(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in steps of SQLite's machine, of which a look-up takes as many at any length."""
    steps, connect = [0], sqlite3.connect

    def counting(*words: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*words, **more)

        def step() -> None:
            steps[0] += 1

        connection.set_progress_handler(step, 1)
        return connection

    def counted(use: Callable[[SqliteLedger], object]) -> int:
        steps[0] = 0
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", counting)
            use(SqliteLedger(path))
        return steps[0]

    found = []
    for length in (10, 1000):
        grow(SqliteLedger(path), length, b"a release")
        name = f"at {length}"
        spend, keep = asked(name, 1e-9), partial(SqliteLedger.keep, request=name, content=b"it")
        uses: list[Callable[[SqliteLedger], object]] = [
            partial(SqliteLedger.spend, request=spend),
            keep,
            SqliteLedger.status,
        ]
        found.append([counted(use) for use in uses])
    assert min(found[0]) > 100
    assert all(after <= 1.1 * before for before, after in zip(*found, strict=True))


SAID = {
    "database is locked": "'budget.db' is locked by another process",
    "database is busy": "'budget.db' is locked by another process",
    "database or disk is full": "cannot be written: the disk is full",
    "attempt to write a readonly database": "cannot be written: it is read-only",
    "database disk image is malformed": "The ledger is damaged: SQLite says",
    "file is not a database": "The ledger is damaged: SQLite says",
    "Could not decode to UTF-8 column 'kind'": "The ledger is damaged: SQLite says",
    "database is corrupt": "The ledger is damaged: SQLite says",
    "integer overflow": "The ledger is damaged: SQLite says",
    "unable to open database file": "'budget.db' cannot be opened",
    "something else": "'budget.db' cannot be used: SQLite says 'something else'",
}


def test_what_sqlite_says_becomes_a_sentence() -> None:
    for said, match in SAID.items():
        with pytest.raises(LedgerError, match=match), sqlite_words.explain_errors("budget.db"):
            raise sqlite3.OperationalError(said)
    with (
        pytest.raises(LedgerError, match="holds what is no text"),
        sqlite_words.explain_errors("budget.db"),
    ):
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    full = "(?s)cannot be used: No space left.*Hint: nothing is released; make room"
    with pytest.raises(LedgerError, match=full), sqlite_words.explain_errors("it"):
        raise OSError(28, "No space left on device")
    denied = r"(?s)cannot be used.*side file \(.anchor\)"
    for code in (errno.EPERM, errno.EROFS):
        with pytest.raises(LedgerError, match=denied), sqlite_words.explain_errors("it"):
            raise OSError(code, os.strerror(code))
    with pytest.raises(LedgerError, match=r"error\.$"), sqlite_words.explain_errors("it"):
        raise OSError(errno.EIO, "Input/output error")


OTHERS = (
    "9p afs beegfs ceph cifs coda davfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 smb2 smb3 "
    "smbfs fuse fuse.sshfs fuse.s3fs fuseblk virtiofs vboxsf drvfs fakeowner exfat vfat "
    "a-kind-that-nobody-has-heard-of"
)


@pytest.mark.parametrize("kind", OTHERS.split())
def test_file_systems_that_are_not_known_to_keep_locks_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = path.with_name("mounts")
    mounts.write_text(f"1 0 0:9 / / rw - {kind} host: rw", encoding="utf-8")
    assert file_system(path, mounts) == kind
    monkeypatch.setattr(mounts_module, "file_system", lambda _: kind)
    with pytest.raises(LedgerError, match=f"on a file system of kind {kind}") as told:
        SqliteLedger(path)
    assert "ext4" in str(told.value)
    with pytest.raises(LedgerError, match="on a file system of kind"):
        SqliteLedger.create(path.with_name("new.db"))
    assert not list(path.parent.glob("new.db*"))


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", None])
def test_disks_of_this_machine_are_known(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str | None
) -> None:
    monkeypatch.setattr(mounts_module, "file_system", lambda _: kind)
    assert spent(path) == 3 * PER


@pytest.mark.parametrize("name", ["é ü", "\u2028", os.fsdecode(b"\xff"), "a\\134b"], ids=range(4))
def test_mounts_of_any_name_are_found(tmp_path: Path, name: str) -> None:
    mounts, folder = tmp_path / "mounts", tmp_path.resolve() / name
    place = os.fsencode(folder).replace(b"\\", b"\\134").replace(b" ", b"\\040")
    mounts.write_bytes(
        b"1 0 8:1 / / rw - xfs /dev/sda rw\n2 1 0:9 / " + place + b" rw - nfs h: rw\n"
    )
    assert file_system(folder / "budget.db", mounts) == "nfs"
    assert file_system(tmp_path, mounts) == "xfs"


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="only Linux tells")
def test_what_the_system_has_mounted_is_read() -> None:
    assert file_system(Path("/proc/self")) == "proc"


def test_the_nearest_mount_counts(path: Path) -> None:
    mounts = path.with_name("mounts")
    folder = str(path.parent.resolve()).replace("_", r"\137")
    lines = ["1 0 8:1 / / rw - ext4 /dev/sda rw", f"2 1 0:9 / {folder} rw shared:1 - nfs4 host: rw"]
    mounts.write_text("\n".join(lines), encoding="utf-8")
    assert file_system(path, mounts) == "nfs4"
    assert file_system(path.parent.parent, mounts) == "ext4"
    mounts.write_text("\n".join([*lines, lines[1].replace("nfs4", "xfs")]), encoding="utf-8")
    assert file_system(path, mounts) == "xfs"
    assert file_system(path, path.with_name("nowhere")) is None
    mounts.write_text(lines[1], encoding="utf-8")
    assert file_system(path.parent.parent, mounts) is None


def test_ledgers_are_made_once_and_opened_where_they_are(path: Path) -> None:
    path.with_name("other.anchor").write_text("somebody's notes", encoding="utf-8")
    path.with_name("third").touch()
    for create in (path, path.with_name("other"), path.with_name("third")):
        with pytest.raises(LedgerError, match="already"):
            open_ledger(create, create=True)
    with pytest.raises(LedgerError, match="no folder"):
        open_ledger(path / "below" / "budget.db", create=True)
    with pytest.raises(LedgerError, match="There is no ledger 'none"):
        open_ledger(path.with_name("none.db"))
    with pytest.raises(TypeError, match="the path of a ledger"):
        open_ledger(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Got 'mysql://…'") as error:
        open_ledger("mysql://name:word@host/base")
    assert "word" not in str(error.value)
