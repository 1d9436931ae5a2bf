"""Whether the lines of a ledger are what was written, and its budgets what was declared.

Two ways. `verify_lines` walks all lines. `check_state` checks in a moment what a spend rests on:
every line says the digest of the state before it (each dataset's budget, and its last spend, by
their hashes), and the side file knows the newest line by its hash. So whoever may write to the
lines and not to the side file can neither change a budget nor what is spent of it; they can only
add lines, and those are held to the rules here.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.hash_chain import BEGINNING, Entry, damage_error, sha256
from dplinear.privacy.compose import Filter

if TYPE_CHECKING:
    from dplinear.ledger.ledger import DatedLines, Lines

STATE, SO_FAR = "state", "so_far"  # what lines say of those before them
NOTHING = Units(0)


def state_of(rows: Iterable[tuple[object, object, object]]) -> str:
    """Return the digest of a state: names of datasets, hashes of budgets and of last spends."""
    texts = [list(map(_text, row)) for row in rows]
    return sha256(json.dumps(sorted(texts), ensure_ascii=False).encode())


def _text(cell: object) -> str:
    if not isinstance(cell, str):
        raise damage_error("a line has something else where a text was written")
    return cell


def check_state(lines: "DatedLines", sequence: int) -> bool:
    """Raise unless a line that is known to be true tells of this state, and rules are kept since.

    Return False where that line, of an older version, tells nothing.
    """
    line = lines.at(sequence)
    said = None if line is None else line.content().get(STATE)
    if said is None:
        return False
    if lines.as_of(sequence - 1).state() != said:
        raise damage_error("its budgets, or what is spent of them, are not what was written")
    for later in lines.entries(sequence):
        before = lines.as_of(later.sequence - 1)
        _check_next(later.check(), before.newest())
        budget = before.last("budget", dataset=later.dataset)
        spend = before.last("spend", dataset=later.dataset)
        limit = None if budget is None else _limit(budget)
        _check_rules(later, limit, NOTHING if spend is None else spend.spent)
    return True


def verify_lines(lines: "Lines") -> int:
    """Check every line, every sum and every release; return how many lines there are, or raise."""
    before: Entry | None = None
    books: dict[str, _Book] = {}
    changed: dict[str, _Book] = {}  # what the last line has changed, as it was before
    for line, output in lines.walk():
        _check_next(line.check(), before)
        book = books.get(line.dataset, _Book())
        _check_rules(line, book.limit, book.spent)
        changed = {line.dataset: book}
        books[line.dataset] = book.after(line)
        if line.kind == "release" and (output is None or sha256(output) != line.digest):
            raise damage_error(f"the release in line {line.sequence} is not as it was kept")
        before = line
    for dataset, book in books.items():
        if book.limit is not None and lines.total(dataset) != book.spent:
            raise damage_error(f"the spends of {dataset!r} do not add up")
    if before is None:
        return 0
    told = {name: book for name, book in (books | changed).items() if book.limit is not None}
    state = state_of((name, book.budget, book.spend) for name, book in told.items())
    if before.content().get(STATE, state) != state:
        raise damage_error(
            f"line {before.sequence} tells of another state than the lines before it"
        )
    return before.sequence


@dataclass(frozen=True)
class _Book:
    """What the lines so far say of one dataset: its budget, what is spent, and their hashes."""

    limit: Units | None = None
    spent: Units = NOTHING
    count: int = 0
    budget: str = ""
    spend: str = ""

    def after(self, line: Entry) -> "_Book":
        if line.kind == "budget":
            return replace(self, limit=_limit(line), budget=line.hash)
        if line.kind != "spend":
            return self
        if line.content().get(SO_FAR, {}).get("spends", self.count + 1) != self.count + 1:
            raise damage_error(f"line {line.sequence} counts other spends than those before it")
        return replace(self, spent=line.spent, count=self.count + 1, spend=line.hash)


def _limit(budget: Entry) -> Units:
    return Budget.from_facts(budget.content()).limit


def _check_next(line: Entry, before: Entry | None) -> None:
    expected = (1, BEGINNING) if before is None else (before.sequence + 1, before.hash)
    if (line.sequence, line.previous) != expected:
        raise damage_error(f"line {line.sequence} does not follow the one before it")


def _check_rules(line: Entry, limit: Units | None, spent: Units) -> None:
    """Raise for a second budget, and for a spend of what is not there."""
    if line.kind == "budget" and limit is not None:
        raise damage_error(f"line {line.sequence} gives {line.dataset!r} a second budget")
    if line.kind == "spend":
        counted = line.spent == spent.plus(line.cost)
        if not (counted and limit is not None and Filter(limit, spent).admits(line.cost)):
            raise damage_error(f"line {line.sequence} spends what is not there")
