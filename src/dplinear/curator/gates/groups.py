"""What gates share where a release is made for each group of a table, all for one price."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.groups import LISTED, Groups, Level, level_label
from dplinear.analyst.releases.release import Release
from dplinear.arguments import rejection
from dplinear.curator.passage import Passage
from dplinear.mechanisms.contract import Made, Mechanism
from dplinear.mechanisms.groups import GroupOutcomes
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.groups import combinations, group_levels, read_by

_Release = TypeVar("_Release", bound=Release)
_LONGEST = 500


@dataclass(frozen=True)
class Grouping:
    """The groups that a gate was asked for: public, and known before a row is read.

    `split` is the schema of the rows in groups, `schema` that of one group's rows.
    """

    split: Schema
    schema: Schema
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, passage: Passage, schema: Schema, by: object) -> "Grouping":
        """Read the argument `by` of a gate; raise where it names no public groups."""
        split = read_by(schema, by, passage.where)
        levels = group_levels(split)
        passage.given["by"] = list(split.by)
        if split.listed is not None:  # however it was written
            passage.given["by"] = {"columns": list(split.by), "listed": list(levels)}
        texts = [", ".join(split.by), *map(level_label, levels)]
        if max(map(len, texts)) > _LONGEST:
            rule = f"columns and levels of at most {_LONGEST} letters, which a certificate names"
            raise rejection("by", passage.where, rule, f"{max(map(len, texts))} letters")
        return cls(split, split.of_group(), levels)

    @property
    def public(self) -> dict[str, Any]:
        """What a ledger is told of the groups, and a certificate says."""
        told: dict[str, Any] = {"by": ", ".join(self.split.by), "groups": len(self.levels)}
        return told if self.split.listed is None else told | {LISTED: combinations(self.split)}

    def share(self, rows: int | None) -> int | None:
        """Return how many of so many rows a group may have: an equal part, for want of better."""
        return None if rows is None else max(1, rows // combinations(self.split))

    def moved(self, passage: Passage, neighbours: Neighbours) -> int:
        """Return how many groups neighbouring tables may differ in."""
        if passage.unit is not None:
            return len(self.levels)
        return min(len(self.levels), 2 if neighbours is Neighbours.REPLACE else 1)

    @staticmethod
    def takes(passage: Passage, kind: type[Mechanism], neighbours: Neighbours) -> bool:
        """Return whether a kind of mechanism has a proof for groups, as `check` says."""
        if neighbours is Neighbours.ADD_REMOVE:
            return passage.unit is None or kind.for_groups
        return neighbours is Neighbours.REPLACE and kind.for_groups

    def usable(
        self,
        passage: Passage,
        known: Mapping[str, type[Mechanism]],
        names: Sequence[str],
        neighbours: Neighbours,
    ) -> tuple[str, ...]:
        """Return those of some mechanisms that take groups; all, where none does: one refuses."""
        found = tuple(name for name in names if self.takes(passage, known[name], neighbours))
        return found or tuple(names)

    def check(self, passage: Passage, method: Mechanism) -> None:
        """Raise where a mechanism has no proof for all groups at the price of one.

        Under add_remove a row is in one group, whatever the mechanism. Otherwise neighbours move
        several groups, and the proof is about noise that is added to sums. How many rows a group
        has is not public, under replace either.
        """
        if self.takes(passage, type(method), method.neighbours):
            return
        moves = "a unit may be in several groups" if passage.unit else "a row may change its group"
        rule = f"left out for {method.name} where {moves}"
        hint = 'neighbours="add_remove", and no unit of privacy, go with every mechanism.'
        raise rejection("by", passage.where, rule, ", ".join(self.split.by), hint)

    def note(self, passage: Passage) -> None:
        """Let the certificate say that the guarantee is of all groups together."""
        told = f"{len(self.levels)} groups by {', '.join(self.split.by)} were released together"
        passage.notes += (f"{told}: the guarantee is of all of them at once",)
        if self.split.listed is not None:
            of = f"{len(self.levels)} of {combinations(self.split)} groups were listed"
            passage.notes += (f"{of}: rows of the others are in none of them",)

    def release(
        self,
        found: GroupOutcomes[Made],
        certificate: Certificate,
        make: Callable[[Made, Certificate], _Release],
    ) -> Groups[_Release]:
        """Return the groups, each with a release of its own."""
        whole = replace(certificate, parameters={**certificate.parameters, **self.public})
        releases = []
        for level, outcome in zip(self.levels, found.each, strict=True):
            own = {**outcome.parameters, **self.public, "group": level_label(level)}
            releases.append(make(outcome, replace(whole, parameters=own)))
        return Groups(self.split.by, self.levels, whole, tuple(releases))
