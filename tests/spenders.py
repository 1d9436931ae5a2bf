"""What other processes do with a ledger, for tests of many at once and of kills."""

import multiprocessing
from itertools import count
from pathlib import Path
from typing import Any

from dplinear.ledger import BudgetExceededError, Request, open_ledger
from dplinear.privacy import ZCDP, Neighbours


def context() -> Any:
    """Processes that start fast, from a server that has imported the library."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["dplinear.ledger.sqlite"])
    return found


def spend_until(address: str, name: int, turns: int, accepted: Any) -> None:
    """Try so many spends; tell how many were accepted."""
    ledger, admitted = open_ledger(address), 0
    for turn in range(turns):
        try:
            ledger.spend(_request(f"{name}/{turn}", 0.001))
        except BudgetExceededError:
            continue
        admitted += 1
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


def _request(name: str, rho: float) -> Request:
    return Request(name, "table", ZCDP(rho), Neighbours.ADD_REMOVE, "test", {})
