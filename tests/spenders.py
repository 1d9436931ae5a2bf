"""What other processes do with a ledger, for tests of many at once and of kills."""

import multiprocessing
import time
from itertools import count
from pathlib import Path
from typing import Any

from dplinear.ledger import BudgetExceededError, LedgerError, Request, open_ledger
from dplinear.privacy import ZCDP, Neighbours


def context() -> Any:
    """Processes that start fast, from a server that has imported the library."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["dplinear.ledger.sqlite.ledger", "psycopg"])
    return found


def spend_until(address: str, name: int, turns: int, accepted: Any) -> None:
    """Try so many spends; tell how many were accepted, whatever happens."""
    admitted = 0
    try:
        ledger = open_ledger(address)
        for turn in range(turns):
            try:
                ledger.spend(_request(f"{name}/{turn}", 0.001))
            except BudgetExceededError:
                continue
            admitted += 1
    finally:
        accepted.put(admitted)


def spend_for_ever(address: str, name: int, told: Path, ready: Any) -> None:
    """Spend, keep, and write down what was returned, until killed."""
    ledger = open_ledger(address)
    with told.open("a", buffering=1, encoding="utf-8") as returned:
        ready.set()
        for turn in count():
            request = f"{name}/{turn}"
            ledger.spend(_request(request, 1e-6))
            ledger.keep(request, request.encode())
            returned.write(f"{request}\n")


def spend_through(address: str, name: int, told: Path) -> None:
    """Spend until killed, whatever happens to the server; write down what was returned."""
    ledger = None
    with told.open("a", buffering=1, encoding="utf-8") as returned:
        for turn in count():
            try:
                ledger = ledger or open_ledger(address)
                ledger.spend(_request(f"{name}/{turn}", 1e-6))
            except LedgerError:
                time.sleep(0.1)
                continue
            returned.write(f"{name}/{turn}\n")


def _request(name: str, rho: float) -> Request:
    return Request(name, "table", ZCDP(rho), Neighbours.ADD_REMOVE, "test", {})
