"""A ledger in one SQLite file, with its side file beside it: for one machine.

Writers hold the side file's lock, one at a time. Readers hold none: lines are only ever added, so
what was there when a reader began stays as it was, and is read in short steps between which anybody
may write. A rollback journal, and not a write-ahead log: all that is committed is in one file.
"""

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dplinear.analyst.releases.files import sync_folder
from dplinear.arguments import positive, rejection
from dplinear.ledger.hash_chain import FORMAT, entry, sha256
from dplinear.ledger.ledger import BudgetLedger, Lines
from dplinear.ledger.request import refusal
from dplinear.ledger.sqlite import anchor, forks
from dplinear.ledger.sqlite.anchor import Anchor, Mark, check_age, mark_of
from dplinear.ledger.sqlite.lines import SqliteLines
from dplinear.ledger.sqlite.mounts import check_disk
from dplinear.ledger.sqlite.tables import SCHEMA, is_former, renew
from dplinear.ledger.sqlite.words import explain_errors
from dplinear.ledger.verification import check_state, verify_lines

_READING = {"cell_size_check": "ON", "trusted_schema": "OFF"}
# A rollback journal with its folder synced: a commit that returned survives a loss of power.
_WRITING = {"journal_mode": "DELETE", "synchronous": "EXTRA", **_READING}
_SAFE: dict[str, tuple[object, ...]] = {"journal_mode": ("delete",), "synchronous": (2, 3)}
_TIMEOUT = 60.0
_MODE = "rw"


class SqliteLedger(BudgetLedger):
    """A ledger in a file on this machine's own disk.

    Requires: the path of a ledger that `create` made; its side file (the same name and .anchor)
    beside it; no second name (a hard link) of the file. `timeout` is how many seconds to wait for
    others that are spending.
    Promises: what `BudgetLedger` does, for any number of processes and threads, killed or forked at
    any moment. An older copy of the file is refused, unless the side file is as old; and so are
    budgets, or sums, that were changed in the file alone. Whoever reads delays nobody who writes.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = _TIMEOUT) -> None:
        self.path = _file(path)
        self.timeout = positive(timeout, "timeout", "SqliteLedger")
        with explain_errors(self.path.name):
            real, side = self._files()
            missing = [file.name for file in (real, side) if not file.is_file()]
        if missing:
            hint = "make one with dplinear ledger create, or bring back what is missing."
            name, gone = self.path.name, " and ".join(missing)
            raise refusal(f"There is no ledger {name!r}: {gone} missing.", hint)
        check_disk(real)

    def __repr__(self) -> str:
        return f"SqliteLedger({str(self.path)!r})"

    def _files(self) -> tuple[Path, Path]:
        """Return the file itself, wherever symbolic links lead, and the one side file beside it."""
        real = self.path.resolve()
        return real, _side(real)

    @staticmethod
    def exists(path: str | os.PathLike[str]) -> bool:
        """Return whether there is a file, unless its making was cut short."""
        file = _file(path)
        with explain_errors(file.name):
            side = _side(file.resolve())
            return file.exists() and not (side.is_file() and not side.read_bytes().strip())

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, timeout: float = _TIMEOUT) -> "SqliteLedger":
        """Make a ledger without budgets, where there is none yet.

        Whole or not at all: one whose making was cut short at any moment is made anew.
        """
        file = _file(path)
        with explain_errors(file.name):
            _check_free(file)
            check_disk(file)
            with anchor.hold_lock(_side(file), timeout, make=True) as side, forks.no_forks():
                _make(file, side, timeout)
        return cls(file, timeout=timeout)

    @contextmanager
    def writing(self) -> Iterator[Lines]:
        """Return the lines, to be written to by nobody else until the block ends."""
        with explain_errors(self.path.name):
            real, beside = self._files()
            with (
                anchor.hold_lock(beside, self.timeout) as side,
                forks.no_forks(),
                _connect(real, self.timeout, _WRITING) as connection,
            ):
                lines = _begin(connection, side.latest())
                yield lines
                mark = mark_of(lines.first(), lines.newest())
                connection.execute("COMMIT")
                # Only what the side file knows of has happened: nothing is released before.
                side.move(mark)

    @contextmanager
    def reading(self) -> Iterator[Lines]:
        """Return the lines as they are now, to be read; others may add to them meanwhile."""
        with explain_errors(self.path.name):
            real, side = self._files()
            known = anchor.read_mark(side)  # first: the lines are at least as new
            with _connect(real, self.timeout, _READING) as connection:
                with forks.no_forks():
                    connection.execute("BEGIN")
                    is_former(connection)
                    newest = SqliteLines(connection).newest().sequence
                    lines = _check_lines(SqliteLines(connection, newest), known)
                    connection.execute("COMMIT")
                yield lines


def _begin(connection: sqlite3.Connection, known: Mark | None) -> SqliteLines:
    """Return the lines, to be added to until a commit; those of a former version, renewed."""
    connection.execute("BEGIN IMMEDIATE")
    former = is_former(connection)
    lines = _check_lines(SqliteLines(connection), known)
    if former:
        verify_lines(lines)  # once, as from now on each line vouches for those before it
        renew(connection)
    return lines


def _check_lines(lines: SqliteLines, known: Mark | None) -> SqliteLines:
    """Return the lines, if they are those that the side file knows of, or later ones."""
    check_age(lines, known)
    assert known is not None  # noqa: S101 - or it had raised
    return lines.mark_checked() if check_state(lines, known.sequence) else lines


# Making one


def _check_free(file: Path) -> None:
    """Raise where something else stands in the way of a new ledger."""
    side = _side(file)
    if file.is_symlink() or side.is_symlink() or (os.path.lexists(file) and not side.exists()):
        raise _taken_error(file)
    if not file.parent.is_dir():
        raise refusal(f"There is no folder for the ledger {file.name!r}.")


def _taken_error(file: Path) -> Exception:
    hint = "a ledger is never written over; choose another path."
    return refusal(f"There is a file {file.name!r} or {_side(file).name!r} already.", hint)


def _make(file: Path, side: Anchor, timeout: float) -> None:
    """Make the ledger of a side file that is locked, and has never known of one that was used.

    Under another name, until it is whole: where the file is there, all of it is. The side file
    knows of it before; alone, it says that nothing was ever declared, and stands in nobody's way.
    """
    if not side.is_unused() or (os.path.lexists(file) and not _is_unfinished(file, side, timeout)):
        raise _taken_error(file)
    beside = file.with_name(f".{sha256(os.fsencode(file.name))[:16]}.tmp")
    for leftover in (file, beside):  # of somebody who was cut short; a journal would be played back
        _remove(leftover)
    try:
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        first = entry(None, "ledger", {"format": FORMAT, "id": uuid.uuid4().hex})
        with _connect(beside, timeout, _WRITING) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.execute(statement)
            SqliteLines(connection).append(first)
            connection.execute("COMMIT")
        side.restart(mark_of(first, first))
        sync_folder(file.parent)
        beside.rename(file)
        sync_folder(file.parent)
    finally:
        _remove(beside)


def _is_unfinished(file: Path, side: Anchor, timeout: float) -> bool:
    """Return whether a file is what a former version left when its making was cut short.

    It has taken the name before it was whole, and its side file was blank.
    """
    if side.latest() is not None:
        return False
    with _connect(file, timeout, _READING) as connection:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            is_former(connection)
            if SqliteLines(connection).newest().sequence > 1:
                return False
    return True


def _remove(file: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _side(path: Path) -> Path:
    return path.with_name(path.name + ".anchor")


# The connection


@contextmanager
def _connect(path: Path, timeout: float, settings: dict[str, str]) -> Iterator[sqlite3.Connection]:
    """Return a connection that is as safe as SQLite's can be, or raise.

    A child that has inherited it leaves it alone: it is its parent's to end.
    """
    owner = os.getpid()
    with forks.no_forks():
        _check_names(path)
        uri = f"file:{quote(str(path.resolve()))}?mode={_MODE}"
        connection = sqlite3.connect(uri, timeout=timeout, isolation_level=None, uri=True)
    try:
        with forks.no_forks():
            for name, value in settings.items():
                connection.execute(f"PRAGMA {name} = {value}")
            _check_settings(connection, settings)
        yield connection
    finally:
        if os.getpid() == owner:
            with forks.no_forks():
                connection.close()


def _check_names(path: Path) -> None:
    """Raise for a file with two names: SQLite's journal has the name that the file was opened by.

    What one left there when it was killed, the other would not find.
    """
    if path.stat().st_nlink > 1:
        hint = "remove the other name (a hard link); for a second copy, copy the file."
        raise refusal(f"The ledger {path.name!r} has more than one name.", hint)


def _check_settings(connection: sqlite3.Connection, settings: dict[str, str]) -> None:
    for name, safe in _SAFE.items():
        (found,) = connection.execute(f"PRAGMA {name}").fetchone()
        if name in settings and found not in safe:
            hint = "a spend might be forgotten when the power fails."
            raise refusal(f"SQLite's {name} is {found}, which is not safe enough.", hint)


def _file(path: Any) -> Path:
    """Return a path that may be a file's, or raise."""
    said = os.fspath(path)
    try:
        if isinstance(said, str) and b"\0" not in os.fsencode(said) and Path(said).name:
            return Path(said)
    except UnicodeEncodeError:
        pass
    raise rejection("path", "open_ledger", "the path of a file", ascii(said))
