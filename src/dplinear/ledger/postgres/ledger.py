"""A ledger in a PostgreSQL database, for a team: one server that others keep, many machines.

Every use is one connection and one transaction, so that nothing is shared between threads or
processes. Writers wait for each other at an advisory lock, which asks for no more rights than
adding a line does; whoever goes past it without asking meets the lines' own key, which holds every
number once. What is not known to have happened has happened: nothing is released over it.
"""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from dplinear.arguments import positive
from dplinear.ledger.address import Address
from dplinear.ledger.budget import Units
from dplinear.ledger.hash_chain import FORMAT, Entry, damage_error, entry
from dplinear.ledger.ledger import BudgetLedger, Lines
from dplinear.ledger.postgres.session import Session, session
from dplinear.ledger.postgres.tables import qualified_name, statements
from dplinear.ledger.postgres.trigger import COLUMNS
from dplinear.ledger.postgres.upgrade import FormerTablesError, upgrade
from dplinear.ledger.postgres.words import (
    NAME_ONE,
    explain_errors,
    explain_unremembered,
    undone_error,
    unsure,
)
from dplinear.ledger.request import LedgerError, refusal
from dplinear.ledger.sqlite import anchor
from dplinear.ledger.sqlite.anchor import Mark, check_age, mark_of
from dplinear.ledger.sqlite.mounts import check_disk

_TIMEOUT = 60.0
_NAMES = ", ".join(name for name, _ in COLUMNS)
_STEP = 200  # lines read at a time
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)  # seconds between looks at a server that went away


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
        try:
            self._look()
        except FormerTablesError:
            self._upgrade()
            self._look()

    def _look(self) -> None:
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
        with explain_errors(address):
            with session(address, timeout) as line:
                line.begin()
                line.check_server()
                line.lock_making(address.ledger)
                if line.table(address.ledger) is not None:
                    hint = "a ledger is never written over; choose another name by ?ledger=."
                    raise refusal(f"There is a ledger {address} already.", hint)
                for statement in statements(address.ledger):
                    line.ask(statement)
                PostgresLines(line, address.ledger).append(first)
                sure = line.commit()
            mark = mark_of(first, first)
            if not sure:
                _look_up(address, timeout, mark)
            _begin_side_file(_side(address, first), mark)
        return cls(url, timeout=timeout)

    @staticmethod
    def exists(url: str, *, timeout: float = _TIMEOUT) -> bool:
        """Return whether there is a ledger of this name in the database."""
        address = Address.parse(url)
        with explain_errors(address), session(address, timeout) as line:
            line.begin()
            return line.table(address.ledger) is not None

    @contextmanager
    def writing(self) -> Iterator[Lines]:
        """Return the lines, to be written to by nobody else until the block ends."""
        address = self._address
        with explain_errors(address):
            with session(address, self.timeout) as line:
                table, first = self._begin(line)
                side = _side(address, first)
                line.lock(table)  # last, as all others wait for it
                lines = PostgresLines(line, address.ledger)
                check_age(lines, self._known_mark(side, lines))
                yield lines
                mark = mark_of(first, lines.newest())
                sure = line.commit()
            # Here, as a server that still waits for this connection keeps its lock.
            if not sure:
                _look_up(address, self.timeout, mark)
        # Only what the side file knows of has happened: nothing is released before.
        with explain_unremembered(address), anchor.hold_lock(side, self.timeout) as known:
            known.move(mark)

    @contextmanager
    def reading(self) -> Iterator[Lines]:
        """Return the lines as they are now, to be read; nobody who writes waits for it."""
        address = self._address
        with explain_errors(address), session(address, self.timeout) as line:
            _, first = self._begin(line)
            # What the side file knows of was there before the lines are looked at as a whole.
            known = self._known_mark(_side(address, first), PostgresLines(line, address.ledger))
            line.ask("ROLLBACK")
            line.begin("REPEATABLE READ, READ ONLY")
            lines = PostgresLines(line, address.ledger)
            check_age(lines, known)
            yield lines

    def _begin(self, line: Session) -> tuple[int, Entry]:
        """Begin a transaction; return the table's number and its first line, if all is safe."""
        address = self._address
        line.begin()
        table = line.table(address.ledger)
        if table is None:
            hint = "make one with dplinear ledger create."
            raise refusal(f"There is no ledger {address}.", hint)
        line.check_server()
        line.check_tables(address.ledger, table)
        return table, PostgresLines(line, address.ledger).first()

    def _known_mark(self, side: Path, lines: "PostgresLines") -> Mark | None:
        """Return what the side file knows of; begin it where it has nothing to remember yet."""
        if not side.exists():
            newest = lines.newest()
            # A ledger that was just made, by somebody who was stopped then, has nothing to forget.
            if self._address.anchor is not None and newest.sequence > 1:
                hint = "bring back what is missing, or copy it from where the ledger was made."
                raise refusal(f"There is no side file {side.name!r} of the ledger.", hint)
            _begin_side_file(side, mark_of(lines.first(), newest))
        return anchor.read_mark(side)

    def _upgrade(self) -> None:
        """Bring tables of an earlier version up to date, if that is the owner's wish and right."""
        address = self._address
        with explain_errors(address), session(address, self.timeout) as line:
            line.begin()
            table = line.table(address.ledger)
            if table is None:
                return
            line.lock(table)
            try:
                line.check_tables(address.ledger, table)
            except FormerTablesError:  # and nobody was faster
                if not line.owns(table):
                    raise
                for statement in upgrade(address.ledger):
                    line.ask(statement)
            line.commit()


def _look_up(address: Address, timeout: float, mark: Mark) -> None:
    """Return if a line whose commit was not answered stands, and raise if not, or if nobody knows.

    Requires: the connection that wrote it is closed. The transaction has held the lock that is
    asked for here, so that it has ended, for better or worse, once the lock is given.
    Promises: where it returns, the line lasts; where it says that nothing was written, that holds
    for good. It writes no line, so nothing is spent twice.
    """
    until = time.monotonic() + timeout
    for pause in _PAUSES:
        stands: bool | None = None
        with suppress(psycopg.Error, LedgerError):
            stands = _stands(address, timeout, mark)
        if stands:
            return
        if stands is not None:
            raise undone_error(address)
        if time.monotonic() + pause > until:
            break
        time.sleep(pause)
    raise unsure()


def _stands(address: Address, timeout: float, mark: Mark) -> bool | None:
    """Return whether a line is there to last; None if the server does not say so."""
    with session(address, timeout) as line:
        line.begin()
        line.check_server()
        line.lock_making(address.ledger)
        table = line.table(address.ledger)
        if table is None:
            return False
        line.lock(table)
        found = PostgresLines(line, address.ledger).at(mark.sequence)
        if found is None or found.hash != mark.hash:
            return False
        return True if line.commit_all() else None


class PostgresLines(Lines):
    """The lines of a ledger, seen through a connection in a transaction."""

    def __init__(self, line: Session, name: str) -> None:
        self._session, self._lines = line, qualified_name(name)
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
        """Return the sum of a dataset's spends.

        That is what the last of them says: the trigger holds each to the sum of the one before, and
        `verify` adds all of them up.
        """
        latest = self.last("spend", dataset=dataset)
        return Units(0) if latest is None else latest.spent

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
        for *row, output in self._rows(f"{_NAMES}, output", 0):
            yield _entry(row), output

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Return the lines after one of them, in order, unchecked, without the bytes they keep."""
        return map(_entry, self._rows(_NAMES, after))

    def budgets(self) -> list[Entry]:
        """Return the lines that give a dataset its budget, in order, checked."""
        text = f"SELECT {_NAMES} FROM {self._lines} WHERE kind = 'budget' ORDER BY sequence"  # noqa: S608
        return [_entry(row).check() for row in self._session.ask(text)]

    def spends(self, dataset: str) -> int:
        """Return how many spends a dataset has."""
        text = f"SELECT count(*) FROM {self._lines} WHERE dataset = %s AND kind = 'spend'"  # noqa: S608
        return int(self._session.ask(text, dataset)[0][0])

    def _rows(self, names: str, after: int) -> Iterator[Any]:
        text = (
            f"SELECT {names} FROM {self._lines} "  # noqa: S608 - names that were checked
            "WHERE sequence > %s ORDER BY sequence LIMIT %s"
        )
        while found := self._session.ask(text, after, _STEP):
            yield from found
            after = found[-1][0]
            self._session.renew()

    def append(self, line: Entry, output: bytes | None = None) -> None:
        """Write a line; what the server has of it then is the newest."""
        row = [*vars(line).values()]
        flat = [value for cell in row for value in (cell if isinstance(cell, Units) else (cell,))]
        marks = ", ".join(["%s"] * (len(flat) + 1))
        text = (
            f"INSERT INTO {self._lines} ({_NAMES}, output) "  # noqa: S608 - names that were checked
            f"VALUES ({marks}) RETURNING {_NAMES}"
        )
        self._newest = _entry(self._session.ask(text, *flat, output)[0])

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
            raise damage_error("an index does not find the lines that are there")

    def _one(self, where: str, *values: object) -> Entry | None:
        text = f"SELECT {_NAMES} FROM {self._lines} WHERE {where}"  # noqa: S608 - constants
        found = self._session.ask(text, *values)
        return _entry(found[0]).check() if found else None


def _entry(row: Any) -> Entry:
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


def _begin_side_file(side: Path, mark: Mark) -> None:
    side.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):  # another process was faster, and its mark holds
        anchor.begin(side, mark)
