"""What is left of a budget, and what a request would take of it."""

from dataclasses import dataclass

from dplinear.analyst import notebook
from dplinear.ledger.budget import Budget, Units
from dplinear.privacy.compose import Filter


@dataclass(frozen=True, repr=False)
class Status:
    """A dataset's budget and what is left of it."""

    dataset: str
    budget: Budget
    spent: Units
    releases: int

    @property
    def remaining(self) -> Units:
        """What can still be spent."""
        return self.budget.limit.minus(self.spent)

    def __str__(self) -> str:
        spent, left = self.budget.text(self.spent), self.budget.text(self.remaining)
        count = f"{self.releases} release{'' if self.releases == 1 else 's'}"
        return f"{self.dataset}: {self.budget}; {spent} spent in {count}, {left} left"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        spent, limit = self.spent, self.budget.limit
        parts = ((spent.main, limit.main), (spent.delta, limit.delta))
        share = max((used / whole for used, whole in parts if whole), default=0.0)
        facts = [
            ("budget", str(self.budget)),
            ("spent", self.budget.text(spent)),
            ("releases", f"{self.releases:,}"),
            ("left", self.budget.text(self.remaining)),
        ]
        told = notebook.bar(share, f"{100 * share:.0f}% spent"), notebook.pairs(facts)
        return notebook.card(f"Budget of {self.dataset}", *told)


class Statuses(list[Status]):
    """The budgets of a ledger, which print as a list and show as a table in a notebook."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no budget has been declared"

    def _repr_html_(self) -> str:
        heads = ["dataset", "budget", "spent", "left", "releases"]
        rows = [
            [
                each.dataset,
                str(each.budget),
                each.budget.text(each.spent),
                each.budget.text(each.remaining),
                f"{each.releases:,}",
            ]
            for each in self
        ]
        return notebook.card("Privacy budgets", notebook.table(heads, rows))


@dataclass(frozen=True)
class Price:
    """What a request would cost a dataset's budget; nothing where it was paid for before.

    `hint` says what the budget admits instead, where it does not suffice.
    """

    budget: Budget
    cost: Units
    left: Units
    repeated: bool
    hint: str = ""

    @property
    def after(self) -> Units:
        """What would be left; negative where the budget does not suffice."""
        return self.left.minus(self.cost)

    @property
    def suffices(self) -> bool:
        """Whether the request would be admitted."""
        return Filter(self.left, Units(0)).admits(self.cost)
