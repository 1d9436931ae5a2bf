"""From a path or a URL to a ledger."""

import os
import re
from typing import TYPE_CHECKING, Any

from dplinear.arguments import is_url, rejection, wrong_type
from dplinear.ledger.ledger import BudgetLedger
from dplinear.ledger.request import Ledger, refusal

if TYPE_CHECKING:
    from dplinear.ledger.postgres.ledger import PostgresLedger

AnyLedger = Ledger | str | os.PathLike[str]
_SERVERS = ("postgresql", "postgres")
_PAIR = re.compile(r"\s*(host(addr)?|port|dbname|user|passfile|service)\s*=", re.IGNORECASE)
_RULE = "the path of a file, or a URL that starts with postgresql://"
_HINT = "a ledger on a server is named postgresql://user@host/database, in this form alone."


def open_ledger(path: str | os.PathLike[str], *, create: bool = False) -> BudgetLedger:
    """Open the ledger in a file or on a server; with `create`, make it where there is none yet.

    Requires: the path of a file on a disk of this machine, or postgresql://user@host/database. A
    new ledger has no budgets: give each dataset its own, once, by `declare`.
    """
    from dplinear.ledger.sqlite.ledger import SqliteLedger

    url = _url(path)
    if url is not None:
        return _postgres().create(url) if create else _postgres()(url)
    return SqliteLedger.create(path) if create else SqliteLedger(path)


def is_there(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a file, or a ledger on the server."""
    from dplinear.ledger.sqlite.ledger import SqliteLedger

    url = _url(path)
    return SqliteLedger.exists(path) if url is None else _postgres().exists(url)


def as_ledger(given: Any) -> Any:
    """Return the ledger that a path names; anything else as it is."""
    return open_ledger(given) if isinstance(given, str | os.PathLike) else given


def _url(path: object) -> str | None:
    """Return the URL of a server, or None for a path."""
    if not isinstance(path, str | os.PathLike):
        raise wrong_type("path", "open_ledger", "the path of a ledger, or a URL", path)
    said: Any = os.fspath(path)  # bytes, from some objects that stand for a path
    if not isinstance(said, str):
        return None
    if _PAIR.match(said):  # libpq's host=… password=…, of which nothing is shown
        raise rejection("path", "open_ledger", _RULE, "…", _HINT)
    if not is_url(said):
        return None
    kind, mark, _ = said.partition("://")
    if kind not in _SERVERS or not mark:
        raise rejection("path", "open_ledger", _RULE, said, _HINT)
    return said[:]  # and not one that veils itself, as the driver is to see all of it


def _postgres() -> "type[PostgresLedger]":
    try:
        from dplinear.ledger.postgres.ledger import PostgresLedger
    except ImportError:
        hint = "pip install 'dplinear[postgres]'"
        raise refusal("A ledger in PostgreSQL needs psycopg.", hint) from None
    return PostgresLedger
