"""What a ledger says of one dataset: its budget, what is left of it, and every line."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from dplinear.arguments import rejection, wrong_type
from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.hash_chain import Entry
from dplinear.ledger.ledger import BudgetLedger
from dplinear.ledger.opening import as_ledger
from dplinear.report.forest import shorten_name
from dplinear.report.panels import Table

_WHERE = "release_page"
_KINDS = {"budget": "budget set", "spend": "spent", "release": "kept"}


@dataclass(frozen=True)
class Account:
    """A dataset's budget as a page shows it. `share` is the part that is spent, 0 to 1.

    `counted` says whether the ledger has a spend for the page's release, `line` which one;
    `together` are figures for all releases, had they been settled beforehand.
    """

    dataset: str
    budget: str
    spent: str
    left: str
    share: float
    spends: int
    history: Table
    counted: bool
    line: int | None
    together: tuple[str, ...]


def account(ledger: Any, dataset: str | None, requests: Collection[str]) -> Account:
    """Return the account of one dataset, with the lines of no other.

    Requires: a ledger with budgets (or its path), and the name of a dataset that has one;
    `requests`, those of the release: several, where it was joined of several.
    """
    book = as_ledger(ledger)
    if not isinstance(book, BudgetLedger):
        raise wrong_type("ledger", _WHERE, "a ledger with budgets, or its path", ledger)
    if dataset is None:
        hint = "the release names none; say whose budget it is."
        raise rejection("dataset", _WHERE, "the name of a dataset", dataset, hint)
    status = next((each for each in book.status() if each.dataset == dataset), None)
    if status is None:
        raise rejection("dataset", _WHERE, "one that has a budget in the ledger", dataset)
    lines = book.history(dataset)
    paid = [each for each in lines if each.kind == "spend" and each.request in requests]
    return Account(
        dataset=dataset,
        budget=str(status.budget),
        spent=status.budget.text(status.spent),
        left=status.budget.text(status.remaining),
        share=_share(status.spent, status.budget.limit),
        spends=status.releases,
        history=_history(lines, status.budget, requests),
        counted={each.request for each in paid} == set(requests),
        line=paid[0].sequence if paid else None,
        together=tuple(map(str, book.figures(dataset).figures)),
    )


def _share(spent: Units, limit: Units) -> float:
    pairs = ((spent.main, limit.main), (spent.delta, limit.delta))
    return min(max((used / whole for used, whole in pairs if whole), default=0.0), 1.0)


def _history(lines: list[Entry], budget: Budget, requests: Collection[str]) -> Table:
    rows = []
    for line in lines:
        facts = line.content()
        own = ", this one" if line.request in requests and line.kind == "spend" else ""
        cost = budget.text(line.cost) if line.kind in {"budget", "spend"} else ""
        total = budget.text(line.spent) if line.kind == "spend" else ""
        rows.append(
            (
                str(line.sequence),
                line.time.replace("T", " ").replace("+00:00", ""),
                _KINDS.get(line.kind, line.kind) + own,
                str(facts.get("mechanism", "")),
                cost,
                total,
                shorten_name(line.request),
            )
        )
    return Table(
        "Every line of the ledger for this dataset, in order",
        ("line", "time (UTC)", "what", "mechanism", "amount", "spent in all", "request"),
        tuple(rows),
        left=(1, 2, 3, 6),
    )
