"""A checker of histories: what callers of a ledger saw, against what the ledger says in the end.

For any ledger, by its contract alone. Each caller, in whatever process, uses the ledger through
`Notes`, which write down what is asked before it is asked and what came of it after; a process that
is killed leaves the question without an answer, and both are possible then. `check` opens the
ledger afresh and raises AssertionError unless

- it opens, every line verifies, and a further spend works (or is refused by the budget);
- every acknowledged spend is in the chain, once, and at its cost;
- nothing is in the chain that nobody asked for, and no budget is overspent;
- a request was acknowledged as newly spent at most once, and a refusal by the budget was right;
- every release that was returned belongs to a spend in the chain, and has the bytes that were kept;
- every release whose keeping was acknowledged is there, with its bytes;
- every chain that a reader saw is a beginning of the chain that is there now.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dplinear.ledger import BudgetExceededError, LedgerError, Request, open_ledger
from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.hash_chain import Entry, sha256
from dplinear.ledger.ledger import BudgetLedger
from dplinear.privacy import ZCDP, Neighbours

# As they were when this module was read: a test may break them afterwards.
_open, _write, _close = os.open, os.write, os.close
_Found = TypeVar("_Found")
REFUSED, FAILED = "over budget", "failed"


def ask(name: str, rho: float = 0.001, dataset: str = "table") -> Request:
    """Return a spend of `rho`."""
    return Request(name, dataset, ZCDP(rho), Neighbours.ADD_REMOVE, "test", {})


@dataclass(frozen=True)
class Event:
    """What one call asked, and what came of it; None where the caller did not live to tell.

    `answer` of a spend is "spent", the digest of a release, REFUSED or FAILED; of a keep "kept" or
    FAILED; of a reading the hashes of the lines.
    """

    call: str
    request: str
    detail: str
    answer: Any = None


class Notes:
    """Notes of one caller, in a file of its own or one that several append to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0

    def spend(self, ledger: BudgetLedger, request: Request) -> bytes | None:
        """Spend, and write down what came of it; an error is raised on."""
        return self._noted(
            "spend", request.request, "", lambda: ledger.spend(request), _answer_of_spend
        )

    def keep(self, ledger: BudgetLedger, request: str, content: bytes) -> None:
        """Keep a release, and write down what came of it; an error is raised on."""
        self._noted(
            "keep",
            request,
            sha256(content),
            lambda: ledger.keep(request, content),
            lambda _: "kept",
        )

    def read(self, ledger: BudgetLedger) -> Sequence[Entry]:
        """Read the chain, and write down what was seen."""
        return self._noted("read", "", "", ledger.history, lambda seen: [one.hash for one in seen])

    def _noted(
        self,
        call: str,
        request: str,
        detail: str,
        use: Callable[[], _Found],
        answer: Callable[[_Found], Any],
    ) -> _Found:
        self._number += 1
        number = f"{os.getpid()}/{id(self)}/{self._number}"
        self._tell([number, call, request, detail])
        try:
            found = use()
        except BudgetExceededError:
            self._tell([number, REFUSED])
            raise
        except BaseException:
            self._tell([number, FAILED])
            raise
        self._tell([number, answer(found)])
        return found

    def _tell(self, line: list[Any]) -> None:
        handle = _open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            _write(handle, json.dumps(line).encode() + b"\n")  # at once, so that a kill halves none
        finally:
            _close(handle)


def _answer_of_spend(found: bytes | None) -> str:
    return "spent" if found is None else sha256(found)


def events(*paths: Path) -> list[Event]:
    """Return what was written down."""
    asked: dict[str, list[str]] = {}
    answers: dict[str, Any] = {}
    for path in paths:
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            number, *rest = json.loads(text)
            if number in asked:
                (answers[number],) = rest
            else:
                asked[number] = rest
    return [
        Event(call, request, detail, answers.get(number))
        for number, (call, request, detail) in asked.items()
    ]


def check(address: str | os.PathLike[str], *paths: Path, cost: int = 10**9) -> dict[str, int]:
    """Check what was written down against a ledger whose spends all cost `cost` units.

    Return how many calls of each kind had which answer, to be shown.
    """
    told = events(*paths)
    ledger = open_ledger(address)
    lines = ledger.history()
    assert ledger.verify() == len(lines), "verify and history see chains of different lengths"
    _check_budgets(ledger, lines)
    _check_spends(told, lines, cost)
    _check_refusals(told, lines, cost)
    _check_releases(told, lines, ledger)
    for event in told:
        if event.call == "read" and isinstance(event.answer, list):
            seen = [line.hash for line in lines[: len(event.answer)]]
            assert seen == event.answer, "a reader saw lines that are gone"
    _check_use(ledger, lines, cost)
    return dict(Counter(f"{event.call}: {_kind(event)}" for event in told))


def _kind(event: Event) -> str:
    if event.answer is None:
        return "killed"
    if event.answer in ("spent", "kept", REFUSED, FAILED):
        return str(event.answer)
    return "returned"


def _check_budgets(ledger: BudgetLedger, lines: Iterable[Entry]) -> None:
    budgets: dict[str, Units] = {}
    spent: Counter[str] = Counter()
    for line in lines:
        if line.kind == "budget":
            assert line.dataset not in budgets, f"{line.dataset} has two budgets"
            budgets[line.dataset] = Budget.from_facts(line.content()).limit
        if line.kind == "spend":
            spent[line.dataset] += line.cost.main
            assert line.spent.main == spent[line.dataset], f"line {line.sequence} does not add up"
            assert line.spent.within(budgets[line.dataset]), f"line {line.sequence} overspends"
    said = {status.dataset: status.spent.main for status in ledger.status()}
    assert said == {name: spent[name] for name in budgets}, "status tells another sum"


def _check_spends(told: Iterable[Event], lines: Iterable[Entry], cost: int) -> None:
    paid = Counter(line.request for line in lines if line.kind == "spend")
    assert all(count == 1 for count in paid.values()), "a request is in the chain twice"
    assert all(line.cost.main == cost for line in lines if line.kind == "spend"), "another cost"
    asked = {event.request for event in told if event.call == "spend"}
    assert set(paid) <= asked, f"nobody asked for {sorted(set(paid) - asked)[:3]}"
    spent = Counter(event.request for event in told if event.answer == "spent")
    assert all(count == 1 for count in spent.values()), "a request was newly spent twice"
    assert set(spent) <= set(paid), f"forgotten: {sorted(set(spent) - set(paid))[:3]}"


def _check_refusals(told: Iterable[Event], lines: Sequence[Entry], cost: int) -> None:
    """What is spent only grows, so a refusal that was right then is right in the end."""
    if not any(event.answer == REFUSED for event in told):
        return
    limits = {line.dataset: line.cost.main for line in lines if line.kind == "budget"}
    last = {line.dataset: line.spent.main for line in lines if line.kind == "spend"}
    full = [last.get(name, 0) + cost > limit for name, limit in limits.items()]
    assert any(full), "a spend was refused for which there was room"


def _check_releases(told: Iterable[Event], lines: Iterable[Entry], ledger: BudgetLedger) -> None:
    paid = {line.request for line in lines if line.kind == "spend"}
    kept = {line.request: line.digest for line in lines if line.kind == "release"}
    assert set(kept) <= paid, "a release is there that nobody paid for"
    offered: dict[str, set[str]] = {}
    for event in told:
        if event.call == "keep":
            offered.setdefault(event.request, set()).add(event.detail)
            if event.answer == "kept":
                assert kept.get(event.request) == event.detail, f"{event.request} is not kept"
    for request, digest in kept.items():
        assert digest in offered.get(request, set()), f"nobody kept {request}"
        content = ledger.kept_release(request)
        assert content is not None, f"the release of {request} is gone"
        assert sha256(content) == digest, f"the release of {request} has other bytes"
    for event in told:
        if event.call == "spend" and _kind(event) == "returned":
            assert kept.get(event.request) == event.answer, f"{event.request} returned other bytes"


def _check_use(ledger: BudgetLedger, lines: Sequence[Entry], cost: int) -> None:
    """Whatever happened, the ledger is still of use: it spends, or says that it is spent."""
    for status in ledger.status():
        name = f"afterwards {len(lines)} {status.dataset}"
        try:
            ledger.spend(ask(name, cost / 10**12, status.dataset))
        except BudgetExceededError:
            assert status.remaining.main < cost, "refused, and there was room"
        except LedgerError as error:
            raise AssertionError(f"after all that, it refuses: {error}") from error
        else:
            assert status.remaining.main >= cost, "admitted, and there was no room"
