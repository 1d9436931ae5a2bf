"""The tables of a ledger in SQLite, the triggers that guard them, and those of former versions.

Whoever may add lines may not add budget: the trigger lets only the next line in, one budget for a
dataset, no negative cost, and no spend but within the budget and on top of the one before it.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from dplinear.ledger.hash_chain import BEGINNING, damage_error

COLUMNS = (
    "sequence, time, kind, dataset, request, digest, cost, cost_delta, spent, spent_delta, "
    "facts, previous, hash"
)
NAMED = " AND request <> ''"  # so that the index of requests is used
_TABLE = """CREATE TABLE lines (
 sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, dataset TEXT NOT NULL,
 request TEXT NOT NULL, digest TEXT NOT NULL, cost INTEGER NOT NULL, cost_delta INTEGER NOT NULL,
 spent INTEGER NOT NULL, spent_delta INTEGER NOT NULL, facts TEXT NOT NULL, previous TEXT NOT NULL,
 hash TEXT NOT NULL, output BLOB)"""
_NEVER = "SELECT RAISE(ABORT, 'a ledger is only ever added to')"
_NUMBERS = ("cost", "cost_delta", "spent", "spent_delta")
_NOT_NEXT = f"""
 NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM lines)
 OR NEW.previous <> coalesce(
  (SELECT hash FROM lines ORDER BY sequence DESC LIMIT 1), '{BEGINNING}')
 OR NEW.kind NOT IN ('ledger', 'budget', 'spend', 'release')
 OR (NEW.kind = 'ledger') <> (NEW.sequence = 1)
 OR (NEW.kind IN ('spend', 'release')) <> (NEW.request <> '')
 OR {" OR ".join(f"typeof(NEW.{name}) <> 'integer' OR NEW.{name} < 0" for name in _NUMBERS)}
 OR EXISTS (SELECT 1 FROM lines WHERE request = NEW.request{NAMED} AND kind = NEW.kind)
 OR (NEW.kind = 'budget' AND EXISTS (
  SELECT 1 FROM lines WHERE dataset = NEW.dataset AND kind = 'budget'))
 OR (NEW.kind = 'spend' AND NOT EXISTS (
  SELECT 1 FROM lines WHERE dataset = NEW.dataset AND kind = 'budget'
   AND NEW.spent <= cost AND NEW.spent_delta <= cost_delta))
 OR (NEW.kind = 'spend' AND (NEW.spent - NEW.cost, NEW.spent_delta - NEW.cost_delta) <> (
  coalesce((SELECT spent FROM lines WHERE dataset = NEW.dataset AND kind = 'spend'
   ORDER BY sequence DESC LIMIT 1), 0),
  coalesce((SELECT spent_delta FROM lines WHERE dataset = NEW.dataset AND kind = 'spend'
   ORDER BY sequence DESC LIMIT 1), 0)))
 OR (NEW.kind = 'release' AND NOT EXISTS (
  SELECT 1 FROM lines WHERE request = NEW.request{NAMED} AND kind = 'spend'
   AND dataset = NEW.dataset))
"""  # noqa: S608 - constants
_BY_DATASET = "CREATE INDEX by_dataset ON lines (dataset, kind)"  # in order, the last found fast
_BY_REQUEST = "CREATE UNIQUE INDEX by_request ON lines (request, kind) WHERE request <> ''"
_NEVER_CHANGED = f"CREATE TRIGGER never_changed BEFORE UPDATE ON lines BEGIN {_NEVER}; END"
_NEVER_DELETED = f"CREATE TRIGGER never_deleted BEFORE DELETE ON lines BEGIN {_NEVER}; END"
_ADDED = (
    "CREATE UNIQUE INDEX one_budget ON lines (dataset) WHERE kind = 'budget'",
    # REPLACE would delete without asking the trigger of deletions.
    f"CREATE TRIGGER only_next BEFORE INSERT ON lines WHEN {_NOT_NEXT} BEGIN {_NEVER}; END",
)
SCHEMA = (_TABLE, _BY_DATASET, _BY_REQUEST, _NEVER_CHANGED, _NEVER_DELETED, *_ADDED)

# Of former versions, whose trigger looked through all lines for each that was added.
_FORMER_NOT_NEXT = (
    "NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM lines) OR (NEW.request <> '' AND "
    "EXISTS (SELECT 1 FROM lines WHERE request = NEW.request AND kind = NEW.kind))"
)
_DROPPED = {
    "INDEX by_cost": "CREATE INDEX by_cost ON lines (dataset, kind, cost, cost_delta)",
    "TRIGGER never_replaced": (
        "CREATE TRIGGER never_replaced BEFORE INSERT ON lines "
        f"WHEN {_FORMER_NOT_NEXT} BEGIN {_NEVER}; END"
    ),
}
FORMER = {*SCHEMA} - {*_ADDED} | {*_DROPPED.values()}


def is_former(connection: sqlite3.Connection) -> bool:
    """Return whether the tables are those of a former version; raise if they are nobody's."""
    found = {row[0] for row in connection.execute("SELECT sql FROM sqlite_master")}
    if found not in ({*SCHEMA}, FORMER):
        raise damage_error("its tables, or the triggers that guard them, are not as they were made")
    return found == FORMER


def renew(connection: sqlite3.Connection) -> None:
    """Give the tables of a former version today's indexes and triggers, within a transaction."""
    for name in _DROPPED:
        connection.execute(f"DROP {name}")
    for statement in _ADDED:
        connection.execute(statement)


# What each index holds, and which lines are in it.
_INDEXES = {
    "by_dataset": (("dataset", "kind"), "{0}.kind <> ''"),
    "by_request": (("request", "kind"), "{0}.request <> ''"),
    "one_budget": (("dataset",), "{0}.kind = 'budget'"),
}
STEP = 500  # lines; so that a reader's lock lasts a few milliseconds


def check_indexes(ask: Callable[..., Sequence[Any]], newest: int) -> None:
    """Raise unless every index finds the lines up to the newest, and no others.

    Requires: `ask`, which runs one statement and returns its rows. In short steps, so that nobody
    who writes has to wait: SQLite's own check holds its lock until it has read the whole file.
    """
    there = {row[0] for row in ask("SELECT name FROM sqlite_master")}
    for name, (columns, among) in _INDEXES.items():
        if name not in there:  # of a former version
            continue
        same = " AND ".join(f"i.{column} = t.{column}" for column in (*columns, "sequence"))
        step = (
            "SELECT count(*), coalesce(sum(EXISTS (SELECT 1 FROM lines AS i "  # noqa: S608
            f"INDEXED BY {name} WHERE {same} AND {among.format('i')})), 0) "
            "FROM lines AS t NOT INDEXED "
            f"WHERE t.sequence > ? AND t.sequence <= ? AND {among.format('t')}"
        )
        lines = found = 0
        for start in range(0, newest, STEP):
            ((some, seen),) = ask(step, start, min(start + STEP, newest))
            lines, found = lines + some, found + seen
        whole = (
            f"SELECT count(*) FROM lines AS i INDEXED BY {name} "  # noqa: S608 - names above
            f"WHERE i.sequence <= ? AND {among.format('i')}"
        )
        ((held,),) = ask(whole, newest)
        if not lines == found == held:
            raise damage_error(f"its index {name} does not find the lines that are there")
