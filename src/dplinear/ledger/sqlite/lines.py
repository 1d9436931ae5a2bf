"""The lines of a ledger in SQLite, up to one of them: what is only added to stays as it was."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from dplinear.ledger.budget import Units
from dplinear.ledger.hash_chain import Entry, damage_error
from dplinear.ledger.ledger import DatedLines
from dplinear.ledger.sqlite import forks
from dplinear.ledger.sqlite.tables import COLUMNS, NAMED, STEP, check_indexes
from dplinear.ledger.verification import state_of

_ALL = 2**63 - 1
_SHORT = 4096  # bytes of a release that is read together with its line
_NAMES = COLUMNS.split(", ")


class SqliteLines(DatedLines):
    """The lines of a ledger up to `newest`, seen through a connection.

    They need no transaction to stay what they are, as no line is ever changed; who adds lines has
    one, and sees all. `known` says that the side file vouches for the budgets and what is spent.
    """

    def __init__(
        self, connection: sqlite3.Connection, newest: int = _ALL, *, known: bool = False
    ) -> None:
        self._connection, self._newest, self._known = connection, newest, known

    def as_of(self, sequence: int) -> "SqliteLines":
        """Return the lines up to one of them."""
        return SqliteLines(self._connection, sequence, known=self._known)

    def mark_checked(self) -> "SqliteLines":
        """Return the same lines, whose budgets and sums were checked against the side file."""
        return SqliteLines(self._connection, self._newest, known=True)

    def last(self, kind: str | None = None, **same: str) -> Entry | None:
        """Return the last line of a kind with the same dataset or request, checked."""
        wanted = same if kind is None else {"kind": kind, **same}
        where = "".join(f" AND {name} = ?" for name in wanted)
        if "request" in same:
            where += NAMED
        return self._one(f"true{where}", *wanted.values())

    def at(self, sequence: int) -> Entry | None:
        """Return a line, checked."""
        return self._one("sequence = ?", sequence)

    def total(self, dataset: str) -> Units:
        """Return the sum of a dataset's spends, if none of them gives anything back."""
        text = (
            "SELECT coalesce(sum(cost), 0), coalesce(sum(cost_delta), 0), "
            "coalesce(min(cost), 0), coalesce(min(cost_delta), 0) FROM lines "
            "WHERE dataset = ? AND kind = 'spend' AND sequence <= ?"
        )
        main, delta, *least = self._ask(text, dataset, self._newest)[0]
        if min(least) < 0:
            raise damage_error(f"a spend of {dataset!r} has a negative cost")
        return Units(main, delta)

    def output(self, request: str) -> bytes | None:
        """Return the bytes of a release, or None."""
        text = (
            "SELECT output FROM lines "  # noqa: S608 - constants
            f"WHERE request = ? AND kind = 'release' AND sequence <= ?{NAMED}"
        )
        found = self._ask(text, request, self._newest)
        return found[0][0] if found else None

    def walk(self) -> Iterator[tuple[Entry, bytes | None]]:
        """Return all lines from the first on, unchecked, each with the bytes it keeps."""
        short = f"CASE WHEN length(output) <= {_SHORT} THEN output END, length(output)"
        whole = "SELECT output FROM lines WHERE sequence = ?"
        for *row, output, length in self._rows(0, f"{COLUMNS}, {short}"):
            long = output is None and length is not None
            # One at a time, as it may be very long.
            yield _entry(row), self._ask(whole, row[0])[0][0] if long else output

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Return the lines after one of them, in order, unchecked, without the bytes they keep."""
        return map(_entry, self._rows(after, COLUMNS))

    def _rows(self, after: int, columns: str) -> Iterator[list[Any]]:
        """Return the lines after one of them, in steps between which anybody may write."""
        text = (
            f"SELECT {columns} FROM lines "  # noqa: S608 - constants
            "WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
        )
        while rows := self._ask(text, after, self._newest, STEP):
            yield from rows
            after = rows[-1][0]

    def budgets(self) -> list[Entry]:
        """Return the lines that give a dataset its budget, in order, checked."""
        text = (
            f"SELECT {COLUMNS} FROM lines "  # noqa: S608 - constants
            "WHERE kind = 'budget' AND sequence <= ? ORDER BY dataset"
        )
        rows = self._ask(text, self._newest)
        found = sorted((_entry(row).check() for row in rows), key=lambda line: line.sequence)
        if len({line.dataset for line in found}) < len(found):
            raise damage_error("a dataset has two budgets")
        return found

    def spends(self, dataset: str) -> int:
        """Return how many spends a dataset has."""
        text = "SELECT count(*) FROM lines WHERE dataset = ? AND kind = 'spend' AND sequence <= ?"
        return int(self._ask(text, dataset, self._newest)[0][0])

    def adds_up(self, dataset: str, spent: Units) -> bool:
        """Return whether what a dataset's last spend says is spent is what was spent."""
        if self._known:
            return True
        self.budgets()
        return self.total(dataset) == spent

    def state(self) -> str:
        """Return the digest of all budgets and what is spent of them."""
        text = (
            "SELECT b.dataset, b.hash, coalesce((SELECT s.hash FROM lines AS s WHERE s.dataset = "
            "b.dataset AND s.kind = 'spend' AND s.sequence <= ? ORDER BY s.sequence DESC LIMIT 1), "
            "'') FROM lines AS b WHERE b.kind = 'budget' AND b.sequence <= ? ORDER BY b.dataset"
        )
        return state_of(self._ask(text, self._newest, self._newest))

    def append(self, line: Entry, output: bytes | None = None) -> None:
        """Write a line."""
        row = [*vars(line).values()]
        flat = [value for cell in row for value in (cell if isinstance(cell, Units) else (cell,))]
        marks = ", ".join("?" * (len(flat) + 1))
        text = f"INSERT INTO lines ({COLUMNS}, output) VALUES ({marks})"  # noqa: S608 - constants
        self._ask(text, *flat, output)

    def sound(self) -> None:
        """Raise if an index does not find the lines that are there."""
        check_indexes(self._ask, self.newest().sequence)

    def _one(self, where: str, *values: object) -> Entry | None:
        text = (
            f"SELECT {COLUMNS} FROM lines "  # noqa: S608 - constants, and ? marks
            f"WHERE {where} AND sequence <= ? ORDER BY sequence DESC LIMIT 1"
        )
        rows = self._ask(text, *values, self._newest)
        return _entry(rows[0]).check() if rows else None

    def _ask(self, text: str, *values: object) -> list[Any]:
        """Run a statement to its end, so that its lock is let go, and no thread forks meanwhile."""
        with forks.no_forks():
            return self._connection.execute(text, values).fetchall()


def _entry(row: Sequence[Any]) -> Entry:
    values = dict(zip(_NAMES, row, strict=True))
    values["cost"] = Units(values["cost"], values.pop("cost_delta"))
    values["spent"] = Units(values["spent"], values.pop("spent_delta"))
    return Entry(**values)
