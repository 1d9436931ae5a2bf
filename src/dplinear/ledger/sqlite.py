"""A ledger in one SQLite file, with its side file beside it: for one machine."""

import errno
import os
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dplinear.arguments import positive, rejection
from dplinear.ledger import anchor
from dplinear.ledger.anchor import Anchor, check_age, mark_of
from dplinear.ledger.budget import Units
from dplinear.ledger.chain import FORMAT, Entry, damaged, entry
from dplinear.ledger.ledger import BudgetLedger, Lines
from dplinear.ledger.mounts import check_disk
from dplinear.ledger.request import refusal

_TABLE = """CREATE TABLE lines (
 sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, dataset TEXT NOT NULL,
 request TEXT NOT NULL, digest TEXT NOT NULL, cost INTEGER NOT NULL, cost_delta INTEGER NOT NULL,
 spent INTEGER NOT NULL, spent_delta INTEGER NOT NULL, facts TEXT NOT NULL, previous TEXT NOT NULL,
 hash TEXT NOT NULL, output BLOB)"""
_NEVER = "SELECT RAISE(ABORT, 'a ledger is only ever added to')"
_NOT_NEXT = (
    "NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM lines) OR (NEW.request <> '' AND "
    "EXISTS (SELECT 1 FROM lines WHERE request = NEW.request AND kind = NEW.kind))"
)
_SCHEMA = (
    _TABLE,
    "CREATE INDEX by_dataset ON lines (dataset, kind)",  # in order, so that the last is found fast
    "CREATE INDEX by_cost ON lines (dataset, kind, cost, cost_delta)",
    "CREATE UNIQUE INDEX by_request ON lines (request, kind) WHERE request <> ''",
    f"CREATE TRIGGER never_changed BEFORE UPDATE ON lines BEGIN {_NEVER}; END",
    f"CREATE TRIGGER never_deleted BEFORE DELETE ON lines BEGIN {_NEVER}; END",
    # REPLACE would delete without asking the trigger above.
    f"CREATE TRIGGER never_replaced BEFORE INSERT ON lines WHEN {_NOT_NEXT} BEGIN {_NEVER}; END",
)
_COLUMNS = (
    "sequence, time, kind, dataset, request, digest, cost, cost_delta, spent, spent_delta, "
    "facts, previous, hash"
)
_NAMED = " AND request <> ''"  # so that the index of requests is used
# A rollback journal with its folder synced: a commit that returned survives a loss of power.
_SETTINGS = {
    "journal_mode": "DELETE",
    "synchronous": "EXTRA",
    "cell_size_check": "ON",
    "trusted_schema": "OFF",
}
_SAFE: dict[str, tuple[object, ...]] = {"journal_mode": ("delete",), "synchronous": (2, 3)}
_TIMEOUT = 60.0
_MODE = "rw"


class SqliteLedger(BudgetLedger):
    """A ledger in a file on this machine's own disk.

    Requires: the path of a ledger that `create` made; its side file (the same name and .anchor)
    beside it. `timeout` is how many seconds to wait for others that are spending.
    Promises: what `BudgetLedger` does, for any number of processes and threads, killed at any
    moment. An older copy of the file is refused, unless the side file is as old.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = _TIMEOUT) -> None:
        self.path = _file(path)
        self.timeout = positive(timeout, "timeout", "SqliteLedger")
        with _told(self.path.name):
            missing = [file.name for file in (self.path, self._side) if not file.is_file()]
        if missing:
            hint = "make one with dplinear ledger create, or bring back what is missing."
            name, gone = self.path.name, " and ".join(missing)
            raise refusal(f"There is no ledger {name!r}: {gone} missing.", hint)
        check_disk(self.path)

    def __repr__(self) -> str:
        return f"SqliteLedger({str(self.path)!r})"

    @property
    def _side(self) -> Path:
        return _side(self.path)

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, timeout: float = _TIMEOUT) -> "SqliteLedger":
        """Make a ledger without budgets, where there is none yet."""
        file = _file(path)
        with _told(file.name):
            if os.path.lexists(file) or os.path.lexists(_side(file)):
                hint = "a ledger is never written over; choose another path."
                told = f"There is a file {file.name!r} or {_side(file).name!r} already."
                raise refusal(told, hint)
            if not file.parent.is_dir():
                raise refusal(f"There is no folder for the ledger {file.name!r}.")
        check_disk(file)
        first = entry(None, "ledger", {"format": FORMAT, "id": uuid.uuid4().hex})
        with _told(file.name):
            anchor.create(_side(file))
            with (
                anchor.locked(_side(file), timeout) as side,
                closing(_connected(file, timeout, "rwc")) as connection,
            ):
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    connection.execute(statement)
                SqliteLines(connection).append(first)
                connection.execute("COMMIT")
                side.move(mark_of(first, first))
        return cls(file, timeout=timeout)

    @contextmanager
    def writing(self) -> Iterator[Lines]:
        """Return the lines, to be written to by nobody else until the block ends."""
        with self._opened() as (lines, side):
            yield lines
            lines.commit()
            # Only what the side file knows of has happened: nothing is released before.
            side.move(mark_of(lines.first(), lines.newest()))

    @contextmanager
    def reading(self) -> Iterator[Lines]:
        """Return the lines, to be read."""
        with self._opened() as (lines, _):
            yield lines

    @contextmanager
    def _opened(self) -> Iterator[tuple["SqliteLines", Anchor]]:
        with (
            _told(self.path.name),
            anchor.locked(self._side, self.timeout) as side,
            closing(_connected(self.path, self.timeout, _MODE)) as connection,
        ):
            connection.execute("BEGIN IMMEDIATE")
            lines = SqliteLines(connection)
            _check_schema(connection)
            check_age(lines, side.latest())
            yield lines, side


class SqliteLines(Lines):
    """The lines of a ledger, seen through a connection in a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def last(self, kind: str | None = None, **same: str) -> Entry | None:
        """Return the last line of a kind with the same dataset or request, checked."""
        wanted = same if kind is None else {"kind": kind, **same}
        where = "".join(f" AND {name} = ?" for name in wanted)
        if "request" in same:
            where += _NAMED
        return self._one(f"1{where} ORDER BY sequence DESC LIMIT 1", *wanted.values())

    def at(self, sequence: int) -> Entry | None:
        """Return a line, checked."""
        return self._one("sequence = ?", sequence)

    def total(self, dataset: str) -> Units:
        """Return the sum of a dataset's spends."""
        text = (
            "SELECT coalesce(sum(cost), 0), coalesce(sum(cost_delta), 0) FROM lines "
            "WHERE dataset = ? AND kind = 'spend'"
        )
        return Units(*self._connection.execute(text, (dataset,)).fetchone())

    def output(self, request: str) -> bytes | None:
        """Return the bytes of a release, or None."""
        text = f"SELECT output FROM lines WHERE request = ? AND kind = 'release'{_NAMED}"  # noqa: S608
        found = self._connection.execute(text, (request,)).fetchone()
        return None if found is None else found[0]

    def walk(self) -> Iterator[tuple[Entry, bytes | None]]:
        """Return all lines from the first on, unchecked, each with the bytes it keeps."""
        text = f"SELECT {_COLUMNS}, output FROM lines ORDER BY sequence"  # noqa: S608 - constants
        for *row, output in self._connection.execute(text):
            yield _entry(row), output

    def append(self, line: Entry, output: bytes | None = None) -> None:
        """Write a line."""
        row = [*vars(line).values()]
        flat = [value for cell in row for value in (cell if isinstance(cell, Units) else (cell,))]
        marks = ", ".join("?" * (len(flat) + 1))
        text = f"INSERT INTO lines ({_COLUMNS}, output) VALUES ({marks})"  # noqa: S608 - constants
        self._connection.execute(text, (*flat, output))

    def sound(self) -> None:
        """Raise if SQLite finds its file damaged."""
        found = [row[0] for row in self._connection.execute("PRAGMA integrity_check(1)")]
        if found != ["ok"]:
            raise damaged(f"SQLite says {found[0]!r}")

    def commit(self) -> None:
        """Let what was appended last."""
        self._connection.execute("COMMIT")

    def _one(self, where: str, *values: object) -> Entry | None:
        text = f"SELECT {_COLUMNS} FROM lines WHERE {where}"  # noqa: S608 - constants, and ? marks
        row = self._connection.execute(text, values).fetchone()
        return None if row is None else _entry(row).checked()


def _entry(row: Sequence[Any]) -> Entry:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    values["cost"] = Units(values["cost"], values.pop("cost_delta"))
    values["spent"] = Units(values["spent"], values.pop("spent_delta"))
    return Entry(**values)


def _side(path: Path) -> Path:
    return path.with_name(path.name + ".anchor")


def _connected(path: Path, timeout: float, mode: str) -> sqlite3.Connection:
    """Return a connection that is as safe as SQLite's can be, or raise."""
    uri = f"file:{quote(str(path.resolve()))}?mode={mode}"
    connection = sqlite3.connect(uri, timeout=timeout, isolation_level=None, uri=True)
    try:
        for name, value in _SETTINGS.items():
            connection.execute(f"PRAGMA {name} = {value}")
        _check_settings(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_settings(connection: sqlite3.Connection) -> None:
    for name, safe in _SAFE.items():
        (found,) = connection.execute(f"PRAGMA {name}").fetchone()
        if found not in safe:
            hint = "a spend might be forgotten when the power fails."
            raise refusal(f"SQLite's {name} is {found}, which is not safe enough.", hint)


def _check_schema(connection: sqlite3.Connection) -> None:
    found = {row[0] for row in connection.execute("SELECT sql FROM sqlite_master")}
    if found != set(_SCHEMA):
        raise damaged("its tables, or the triggers that guard them, are not as they were made")


_FACTS = (
    ("locked", "is locked by another process", "try again when it has ended."),
    ("busy", "is locked by another process", "try again when it has ended."),
    ("full", "cannot be written: the disk is full", "make room on the disk, and ask again."),
    ("readonly", "cannot be written: it is read-only", "ask for the right to write to the file."),
    ("unable to open", "cannot be opened", "ask for the right to read it and to write to it."),
)
_DAMAGE = ("malformed", "not a database", "decode", "corrupt", "overflow")
_DENIED = (
    "nothing is released; ask for the right to write to the file, to its side file (.anchor) and "
    "to their folder."
)
_HINTS = {
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
    errno.ENOSPC: "nothing is released; make room on the disk, and ask again.",
}


def _file(path: Any) -> Path:  # noqa: ANN401 - the caller's argument
    """Return a path that may be a file's, or raise."""
    said = os.fspath(path)
    try:
        if isinstance(said, str) and b"\0" not in os.fsencode(said) and Path(said).name:
            return Path(said)
    except UnicodeEncodeError:
        pass
    raise rejection("path", "open_ledger", "the path of a file", ascii(said))


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Say in a sentence what keeps a ledger from being used."""
    try:
        yield
    except sqlite3.Error as error:
        said = str(error)
        if any(word in said for word in _DAMAGE):
            raise damaged(f"SQLite says {said!r}") from None
        for word, fact, hint in _FACTS:
            if word in said:
                raise refusal(
                    f"The ledger {name!r} {fact}.", f"nothing is released; {hint}"
                ) from None
        raise refusal(f"The ledger {name!r} cannot be used: SQLite says {said!r}.") from None
    except UnicodeDecodeError:  # SQLite's own words, quoting what is damaged
        raise damaged("it holds what is no text") from None
    except OSError as error:
        fact = f"The ledger {name!r} cannot be used: {error.strerror or error}."
        raise refusal(fact, _HINTS.get(error.errno or 0, "")) from None
