"""A connection to a ledger's server, for one use: it answers in time, or is cut."""

import socket
import threading
import zlib
from contextlib import closing, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from dplinear.arguments import rejection
from dplinear.ledger.address import Address
from dplinear.ledger.hash_chain import damage_error
from dplinear.ledger.postgres.tables import DESCRIBE, expected_tables, qualified_name
from dplinear.ledger.postgres.upgrade import FormerTablesError, is_former
from dplinear.ledger.postgres.words import unreachable_error
from dplinear.ledger.request import refusal

_GRACE = 30.0  # seconds for whatever else a slow machine has to do
# Of advisory locks: the table's number is added to one, a hash of the ledger's name to the other.
KEY, _MAKING = 0x64706C00 << 32, 0x64706C01 << 32
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


class Session:
    """A connection that answers in time, or is cut: some servers do not keep their own limits."""

    def __init__(self, connection: "psycopg.Connection[Any]", timeout: float) -> None:
        self._connection, self._timeout = connection, timeout
        self._warned: list[str] = []
        connection.add_notice_handler(self._note_warning)
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

    def _note_warning(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warned.append(str(notice.message_primary))

    def ask(self, text: str, *values: object) -> list[Any]:
        """Run a statement; return its rows."""
        cursor = self._connection.execute(text.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def begin(self, kind: str = "READ COMMITTED") -> None:
        """Begin a transaction that waits for nothing for ever."""
        wait = max(1, round(1000 * self._timeout))
        work = 2 * wait + round(1000 * _GRACE)
        self.ask(
            f"BEGIN ISOLATION LEVEL {kind}; "
            f"SET LOCAL lock_timeout = {wait}; SET LOCAL statement_timeout = {work}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {work}; "
            "SET LOCAL search_path = pg_catalog, pg_temp"
        )

    def table(self, name: str) -> int | None:
        """Return the number of the table of lines, or None where there is none."""
        ((number,),) = self.ask("SELECT to_regclass(%s)::oid::bigint", qualified_name(name))
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
        found = [self.ask(text, table) for text in DESCRIBE]
        if is_former(name, found):
            hint = "its owner has to open it once with this version: dplinear ledger verify URL"
            fact = f"The tables of the ledger {name!r} were made by an earlier version."
            raise refusal(fact, hint, FormerTablesError)
        if found != expected_tables(name):
            raise damage_error(
                "its tables, or the triggers that guard them, are not as they were made"
            )

    def owns(self, table: int) -> bool:
        """Return whether this role may change the table."""
        text = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = %s"
        return bool(self.ask(text, table)[0][0])

    def lock(self, table: int) -> None:
        """Wait until all others that write have ended, and let none begin before this one ends."""
        self.ask("SELECT pg_advisory_xact_lock(%s)", KEY + table)

    def lock_making(self, name: str) -> None:
        """Wait until all others that make a ledger of this name have ended."""
        self.ask("SELECT pg_advisory_xact_lock(%s)", _MAKING + zlib.crc32(name.encode()))

    def commit(self) -> bool:
        """Let what was appended last; return whether the server said that it does.

        A wait for a standby that was given up is only a warning; a transaction that had failed ends
        with another word, and without an error.
        """
        self._warned.clear()
        try:
            done = self._connection.execute(b"COMMIT").statusmessage
        except psycopg.Error:
            return False
        return done == "COMMIT" and not self._warned

    def commit_all(self) -> bool:
        """Let what was committed here before last; return whether the server said that it does.

        The log is in order: what is written to it now lasts, on the standbys that are waited for
        too, only if everything before it does.
        """
        self.ask("SELECT pg_logical_emit_message(true, 'dplinear', '')")
        return self.commit()


def session(address: Address, timeout: float) -> "closing[Session]":
    """Return a connection that is closed when its block ends."""
    return closing(Session(_connect(address, timeout), timeout))


def _connect(address: Address, timeout: float) -> "psycopg.Connection[Any]":
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
        told = unreachable_error(address, error)
    raise told  # outside, so that it does not bring along what the driver said


def _read(address: Address) -> dict[str, Any]:
    with suppress(psycopg.Error):  # whose text may quote a part of the password
        return dict(conninfo_to_dict(address.url))
    rule = "a URL that PostgreSQL's own library can read"
    raise rejection("path", "open_ledger", rule, address.url)
