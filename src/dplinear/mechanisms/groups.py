"""A mechanism that runs on each of the groups of a table, all within one guarantee.

A row is in one group, and the weights of a unit add up to at most 1 over all of them. Proofs, and
for which neighbours and mechanisms they hold: docs/theory/groups.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from dplinear.mechanisms.contract import Account, Made, Prepared, Private
from dplinear.noise.entropy import Entropy


@dataclass(frozen=True, eq=False)
class GroupOutcomes(Generic[Made]):
    """What was released of each group, in their order; `parameters` are those that all share."""

    each: tuple[Made, ...]
    account: Account
    parameters: Mapping[str, Any]

    @staticmethod
    def of(each: Sequence[Made], account: Account) -> "GroupOutcomes[Made]":
        """Return the outcomes of groups, whose joint guarantee was known beforehand."""
        first, *others = (outcome.parameters for outcome in each)
        shared = {
            name: value
            for name, value in first.items()
            if all(name in other and other[name] == value for other in others)
        }
        return GroupOutcomes(tuple(each), account, shared)


_Held_co = TypeVar("_Held_co", covariant=True)


class Tables(Protocol[_Held_co]):
    """The private tables of all groups."""

    def each(self, job: Callable[[_Held_co], Made], /) -> Sequence[Made]:
        """Return what a job makes of each group's table, in their order."""


@dataclass(frozen=True, eq=False)
class Separate(Generic[Private]):
    """Statistics of groups that are there already: each is a table of its own."""

    tables: Sequence[Private]

    def each(self, job: Callable[[Private], Made], /) -> Sequence[Made]:
        """Return what a job makes of each."""
        return [job(table) for table in self.tables]


@dataclass(frozen=True, eq=False)
class PreparedGroups(Prepared[Tables[Private], GroupOutcomes[Made]], Generic[Private, Made]):
    """A mechanism that is calibrated for all groups at once, and runs on each of them.

    Requires: `group` calibrated so that its account is of all groups together: because neighbours
    differ in one group alone, or because it was prepared for those that they move.
    """

    group: Prepared[Private, Made]

    @property
    def account(self) -> Account:  # type: ignore[override]
        """What all groups together guarantee."""
        return self.group.account

    def run(self, tables: Tables[Private], entropy: Entropy, /) -> GroupOutcomes[Made]:
        """Release each group, with noise of its own."""
        return GroupOutcomes.of(
            tables.each(lambda table: self.group.run(table, entropy)), self.account
        )
