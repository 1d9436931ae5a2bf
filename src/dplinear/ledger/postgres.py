"""A ledger in a PostgreSQL database, for a team: one server that others keep, many machines.

Every use is one connection and one transaction, so that nothing is shared between threads or
processes. Writers wait for each other at an advisory lock, which asks for no more rights than
adding a line does; whoever goes past it without asking meets the lines' own key, which holds every
number once. What is not known to have happened has happened: nothing is released over it.
"""

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from dplinear.arguments import positive, rejection
from dplinear.ledger import anchor
from dplinear.ledger.address import Address
from dplinear.ledger.anchor import Mark, check_age, mark_of
from dplinear.ledger.budget import Units
from dplinear.ledger.chain import FORMAT, Entry, damaged, entry
from dplinear.ledger.ledger import BudgetLedger, Lines
from dplinear.ledger.mounts import check_disk
from dplinear.ledger.postgres_tables import COLUMNS, DESCRIBE, TABLE, expected, statements
from dplinear.ledger.postgres_words import NAME_ONE, lost, told, unsure
from dplinear.ledger.request import refusal

_TIMEOUT = 60.0
_GRACE = 30.0  # seconds for whatever else a slow machine has to do
_NAMES = ", ".join(name for name, _ in COLUMNS)
_STEP = 200  # lines read at a time
_KEY = 0x64706C00 << 32  # of advisory locks; the table's number is added
# What a server must say of itself, so that a commit that returned survives a loss of power, and so
# that what is damaged is not read over.
SAFE = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_apply"),
    "zero_damaged_pages": ("off",),
    "ignore_checksum_failure": ("off",),
    "session_replication_role": ("origin",),
    "server_encoding": ("UTF8",),
}


class PostgresLedger(BudgetLedger):
    """A ledger in a database that a server keeps.

    Requires: postgresql://user@host/database of a ledger that `create` made; ?ledger= names one of
    several, ?anchor= the side file. `timeout` is how many seconds to wait for others that spend.
    Promises: what `BudgetLedger` does, for any number of machines, killed at any moment, the server
    too. A server that was set back to before what the side file knows of is refused; without
    ?anchor= that is what this user of this machine has seen of the ledger.
    """

    def __init__(self, url: str, *, timeout: float = _TIMEOUT) -> None:
        self._address = Address.parse(url)
        self.timeout = positive(timeout, "timeout", "PostgresLedger")
        side = self._address.anchor
        if side is not None and not side.is_file():
            hint = "bring back what is missing, or copy it from where the ledger was made."
            raise refusal(f"There is no side file {side.name!r} of the ledger.", hint)
        with self.reading():
            pass

    def __repr__(self) -> str:
        return f"PostgresLedger({self._address})"

    @classmethod
    def create(cls, url: str, *, timeout: float = _TIMEOUT) -> "PostgresLedger":
        """Make a ledger without budgets, where there is none yet."""
        address = Address.parse(url)
        if address.anchor is not None and os.path.lexists(address.anchor):
            hint = "a side file is never written over; choose another path."
            raise refusal(f"There is a file {address.anchor.name!r} already.", hint)
        first = entry(None, "ledger", {"format": FORMAT, "id": uuid.uuid4().hex})
        with told(address), _session(address, timeout) as session:
            session.begin()
            session.check_server()
            if session.table(address.ledger) is not None:
                hint = "a ledger is never written over; choose another name by ?ledger=."
                raise refusal(f"There is a ledger {address} already.", hint)
            for statement in statements(address.ledger):
                session.ask(statement)
            PostgresLines(session, address.ledger).append(first)
            session.commit()
            _begun(_side(address, first), mark_of(first, first))
        return cls(url, timeout=timeout)

    @staticmethod
    def exists(url: str, *, timeout: float = _TIMEOUT) -> bool:
        """Return whether there is a ledger of this name in the database."""
        address = Address.parse(url)
        with told(address), _session(address, timeout) as session:
            session.begin()
            return session.table(address.ledger) is not None

    @contextmanager
    def writing(self) -> Iterator[Lines]:
        """Return the lines, to be written to by nobody else until the block ends."""
        with self._opened("pg_advisory_xact_lock") as (session, lines, side):
            yield lines
            mark = mark_of(lines.first(), lines.newest())
            session.commit()
            # Only what the side file knows of has happened: nothing is released before.
            with anchor.locked(side, self.timeout) as known:
                known.move(mark)

    @contextmanager
    def reading(self) -> Iterator[Lines]:
        """Return the lines, to be read."""
        with self._opened("pg_advisory_xact_lock_shared") as (_, lines, _):
            yield lines

    @contextmanager
    def _opened(self, lock: str) -> Iterator[tuple["_Session", "PostgresLines", Path]]:
        address = self._address
        with told(address), _session(address, self.timeout) as session:
            session.begin()
            table = session.table(address.ledger)
            if table is None:
                hint = "make one with dplinear ledger create."
                raise refusal(f"There is no ledger {address}.", hint)
            session.check_server()
            session.check_tables(address.ledger, table)
            lines = PostgresLines(session, address.ledger)
            first = lines.first()
            side = _side(address, first)
            session.ask(f"SELECT {lock}(%s)", _KEY + table)  # last, as all others wait for it
            if address.anchor is None and not side.exists():
                _begun(side, mark_of(first, lines.newest()))
            with anchor.locked(side, self.timeout) as known:
                mark = known.latest()
            check_age(lines, mark)
            yield session, lines, side


class PostgresLines(Lines):
    """The lines of a ledger, seen through a connection in a transaction."""

    def __init__(self, session: "_Session", name: str) -> None:
        self._session, self._lines = session, f'"{name}".{TABLE}'
        self._first: Entry | None = None
        self._newest: Entry | None = None  # which nobody else can change before the block ends

    def first(self) -> Entry:
        """Return the ledger's own line."""
        self._first = self._first or super().first()
        return self._first

    def newest(self) -> Entry:
        """Return the last line of all."""
        self._newest = self._newest or super().newest()
        return self._newest

    def last(self, kind: str | None = None, **same: str) -> Entry | None:
        """Return the last line of a kind with the same dataset or request, checked."""
        wanted = same if kind is None else {"kind": kind, **same}
        where = "".join(f" AND {name} = %s" for name in wanted)
        if "request" in same:
            where += " AND request <> ''"  # so that the index of requests is used
        return self._one(f"true{where} ORDER BY sequence DESC LIMIT 1", *wanted.values())

    def at(self, sequence: int) -> Entry | None:
        """Return a line, checked."""
        if self._newest is not None and self._newest.sequence == sequence:
            return self._newest
        return self._one("sequence = %s", sequence)

    def total(self, dataset: str) -> Units:
        """Return the sum of a dataset's spends."""
        text = (
            "SELECT coalesce(sum(cost), 0)::text, coalesce(sum(cost_delta), 0)::text "  # noqa: S608
            f"FROM {self._lines} WHERE dataset = %s AND kind = 'spend'"
        )
        ((main, delta),) = self._session.ask(text, dataset)
        return Units(int(main), int(delta))

    def output(self, request: str) -> bytes | None:
        """Return the bytes of a release, or None."""
        text = (
            f"SELECT output FROM {self._lines} "  # noqa: S608 - a name that was checked
            "WHERE request = %s AND kind = 'release' AND request <> ''"
        )
        found = self._session.ask(text, request)
        return found[0][0] if found else None

    def walk(self) -> Iterator[tuple[Entry, bytes | None]]:
        """Return all lines from the first on, unchecked, each with the bytes it keeps."""
        text = (
            f"SELECT {_NAMES}, output FROM {self._lines} "  # noqa: S608 - names that were checked
            "WHERE sequence > %s ORDER BY sequence LIMIT %s"
        )
        seen = -1
        while found := self._session.ask(text, seen, _STEP):
            for *row, output in found:
                yield _entry(row), output
            seen = found[-1][0]
            self._session.renew()

    def append(self, line: Entry, output: bytes | None = None) -> None:
        """Write a line."""
        row = [*vars(line).values()]
        flat = [value for cell in row for value in (cell if isinstance(cell, Units) else (cell,))]
        marks = ", ".join(["%s"] * (len(flat) + 1))
        text = f"INSERT INTO {self._lines} ({_NAMES}, output) VALUES ({marks})"  # noqa: S608
        self._session.ask(text, *flat, output)
        self._newest = line

    def sound(self) -> None:
        """Raise if the lines that an index finds are not those that are there."""
        text = f"SELECT count(*), min(sequence), max(sequence) FROM {self._lines}"  # noqa: S608
        found = []
        for way in ("seqscan", "indexscan"):
            self._session.ask("SET LOCAL enable_bitmapscan = off")
            for each in ("seqscan", "indexscan", "indexonlyscan"):
                self._session.ask(f"SET LOCAL enable_{each} = {'on' if way in each else 'off'}")
            found.append(self._session.ask(text))
        self._session.ask("SET LOCAL enable_seqscan = on")
        if found[0] != found[1]:
            raise damaged("an index does not find the lines that are there")

    def _one(self, where: str, *values: object) -> Entry | None:
        text = f"SELECT {_NAMES} FROM {self._lines} WHERE {where}"  # noqa: S608 - constants
        found = self._session.ask(text, *values)
        return _entry(found[0]).checked() if found else None


def _entry(row: Any) -> Entry:  # noqa: ANN401 - a row of the table
    values = dict(zip((name for name, _ in COLUMNS), row, strict=True))
    values["cost"] = Units(values["cost"], values.pop("cost_delta"))
    values["spent"] = Units(values["spent"], values.pop("spent_delta"))
    return Entry(**values)


# The side file


def _side(address: Address, first: Entry) -> Path:
    """Return the side file: as named, or by the ledger's id in this user's folder of state."""
    if address.anchor is not None:
        side = address.anchor
    else:
        side = _state() / "dplinear" / f"{first.content()['id']}.anchor"
    check_disk(side)
    return side


def _state() -> Path:
    named = os.environ.get("XDG_STATE_HOME")
    try:
        return Path(named) if named else Path.home() / ".local" / "state"
    except RuntimeError:
        raise refusal("This user has no folder for a side file.", NAME_ONE) from None


def _begun(side: Path, mark: Mark) -> None:
    side.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):  # another process was faster, and its mark holds
        anchor.begin(side, mark)


# The connection


class _Session:
    """A connection that answers in time, or is cut: some servers do not keep their own limits."""

    def __init__(self, connection: "psycopg.Connection[Any]", timeout: float) -> None:
        self._connection, self._timeout = connection, timeout
        self._warned: list[str] = []
        connection.add_notice_handler(self._noticed)
        self._line = socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
        self._limit = self._timer()

    def _timer(self) -> threading.Timer:
        limit = threading.Timer(3 * self._timeout + 2 * _GRACE, self._cut)
        limit.daemon = True
        limit.start()
        return limit

    def _cut(self) -> None:
        with suppress(OSError):  # it is gone already
            self._line.shutdown(socket.SHUT_RDWR)

    def renew(self) -> None:
        """Give what comes next as much time as what came before."""
        self._limit.cancel()
        self._limit = self._timer()

    def close(self) -> None:
        """Let the connection go."""
        self._limit.cancel()
        self._limit.join()
        self._line.close()
        self._connection.close()

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warned.append(str(notice.message_primary))

    def ask(self, text: str, *values: object) -> list[Any]:
        """Run a statement; return its rows."""
        cursor = self._connection.execute(text.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def begin(self) -> None:
        """Begin a transaction that waits for nothing for ever."""
        wait = max(1, round(1000 * self._timeout))
        work = 2 * wait + round(1000 * _GRACE)
        self.ask(
            "BEGIN ISOLATION LEVEL READ COMMITTED; "
            f"SET LOCAL lock_timeout = {wait}; SET LOCAL statement_timeout = {work}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {work}; "
            "SET LOCAL search_path = pg_catalog, pg_temp"
        )

    def table(self, name: str) -> int | None:
        """Return the number of the table of lines, or None where there is none."""
        ((number,),) = self.ask("SELECT to_regclass(%s)::oid::bigint", f'"{name}".{TABLE}')
        return None if number is None else int(number)

    def check_server(self) -> None:
        """Raise unless what the server says it wrote lasts."""
        named = (
            "SELECT name, current_setting(name), pg_is_in_recovery() "
            "FROM unnest(%s::text[]) AS name"
        )
        for setting, found, follows in self.ask(named, list(SAFE)):
            if follows:
                hint = "what it says may be old: name the server that is written to."
                raise refusal("The server is a copy that follows another one.", hint)
            safe = SAFE[setting]
            if found not in safe:
                hint = (
                    "a spend might be forgotten, or damage go unseen. Somebody who may has to "
                    f"set {setting} = {safe[0]} for the database or the server."
                )
                raise refusal(f"PostgreSQL's {setting} is {found}, which is not safe.", hint)

    def check_tables(self, name: str, table: int) -> None:
        """Raise unless the tables are as they were made."""
        if [self.ask(text, table) for text in DESCRIBE] != expected(name):
            raise damaged("its tables, or the triggers that guard them, are not as they were made")

    def commit(self) -> None:
        """Let what was appended last, or say that nobody knows whether it does."""
        try:
            self._warned.clear()
            done = self._connection.execute(b"COMMIT").statusmessage
        except psycopg.Error:
            raise unsure() from None
        # A wait for a standby that was given up is only a warning; a transaction that had failed
        # ends with another word, and without an error.
        if done != "COMMIT" or self._warned:
            raise unsure()


def _session(address: Address, timeout: float) -> "closing[_Session]":
    return closing(_Session(_connected(address, timeout), timeout))


def _connected(address: Address, timeout: float) -> "psycopg.Connection[Any]":
    options: dict[str, Any] = {
        "connect_timeout": max(2, round(timeout)),
        "keepalives_idle": 10,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "application_name": "dplinear ledger",
    }
    said = _read(address)
    try:
        return psycopg.connect(
            **(options | said | {"client_encoding": "UTF8"}),
            autocommit=True,
            prepare_threshold=None,
        )
    except (psycopg.Error, OSError, UnicodeError) as error:
        told = lost(address, error)
    raise told  # outside, so that it does not bring along what the driver said


def _read(address: Address) -> dict[str, Any]:
    with suppress(psycopg.Error):  # whose text may quote a part of the password
        return dict(conninfo_to_dict(address.url))
    rule = "a URL that PostgreSQL's own library can read"
    raise rejection("path", "open_ledger", rule, address.url)
