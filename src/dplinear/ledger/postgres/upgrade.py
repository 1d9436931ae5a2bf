"""Ledgers whose tables an earlier version made: their owner brings them up to date by opening them.

The trigger of before checked neither hashes nor who writes. Nothing that is in the table
changes: a column says from now on which role wrote a line, and the trigger's function is replaced.
"""

import hashlib
from typing import Any

from dplinear.ledger.postgres.tables import ROLE, expected_tables, follows, qualified_name
from dplinear.ledger.request import LedgerError

# Of the function `follows` as it was, with {} for the name of the ledger.
_FORMER = "7bb166e17ab48667128b13311bea30986a4c19d4e8f265245cf6396855066930"
_BODY = 6  # where the description of a trigger has its function's text


class FormerTablesError(LedgerError):
    """A ledger with tables of an earlier version."""


def is_former(name: str, found: list[list[tuple[Any, ...]]]) -> bool:
    """Return whether tables are, to the letter, as an earlier version made them."""
    settings, columns, indexes, triggers = expected_tables(name)
    changed, adding = triggers
    if found[:3] != [settings, columns[:-1], indexes] or len(found[3]) != len(triggers):
        return False
    body = str(found[3][1][_BODY]).replace(f'"{name}"', '"{}"')
    same = (*found[3][1][:_BODY], adding[_BODY], *found[3][1][_BODY + 1 :])
    told = hashlib.sha256(body.encode()).hexdigest()
    return found[3][0] == changed and same == adding and told == _FORMER


def upgrade(name: str) -> list[str]:
    """Return what brings tables up to date; lines of before were written by nobody knows whom."""
    lines = qualified_name(name)
    return [
        f"ALTER TABLE {lines} ADD COLUMN {ROLE} DEFAULT ''",
        f"ALTER TABLE {lines} ALTER COLUMN role DROP DEFAULT",
        follows(name),
    ]
