"""From a path to a ledger."""

import os
from typing import Any

from dplinear.arguments import mistyped, rejection
from dplinear.ledger.ledger import BudgetLedger
from dplinear.ledger.request import Ledger

AnyLedger = Ledger | str | os.PathLike[str]


def open_ledger(path: str | os.PathLike[str], *, create: bool = False) -> BudgetLedger:
    """Open the ledger in a file; with `create`, make it where there is none yet.

    Requires: the path of a file on a disk of this machine. A new ledger has no budgets: give each
    dataset its own, once, by `declare`.
    """
    from dplinear.ledger.sqlite import SqliteLedger  # noqa: PLC0415 - few programs need SQLite

    if not isinstance(path, str | os.PathLike):
        raise mistyped("path", "open_ledger", "the path of a ledger", path)
    if "://" in os.fspath(path):
        hint = "ledgers are SQLite files so far."
        kind = os.fspath(path).partition("://")[0]
        raise rejection("path", "open_ledger", "the path of a file", f"{kind}://…", hint)
    return SqliteLedger.create(path) if create else SqliteLedger(path)


def as_ledger(given: Any) -> Any:  # noqa: ANN401 - the caller's argument, checked at the gate
    """Return the ledger that a path names; anything else as it is."""
    return open_ledger(given) if isinstance(given, str | os.PathLike) else given
