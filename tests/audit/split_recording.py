"""What gates ask of the groups of a table, recorded, to be asked of its neighbours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from dplinear.adaptive.noisy_sums import VARIANCE, Answer, Budget, NoisySums, Query, _Noise, _scale
from dplinear.arrays import BigIntegers
from dplinear.curator.in_step import InStep
from dplinear.curator.sources import open_reader
from dplinear.exact.groups import GroupReduction
from dplinear.exact.row_sums import Count, LeftOut
from dplinear.exact.sums import Sums
from dplinear.exact.weights import WHOLE
from dplinear.noise import simulation
from dplinear.schema import Schema
from exact.oracles import square

Asked = list[tuple[Schema, Query]]  # the sums that one group asked for, under which view of it


@dataclass
class GroupRecord:
    """What each group asked, the schema that splits the table, and the noise that was paid for."""

    groups: list[Asked] = field(default_factory=list)
    answers: list[list[list[Answer]]] = field(default_factory=list)
    split: Schema | None = None
    budget: Budget | None = None

    @property
    def allowed(self) -> Fraction:
        """The most that all groups together may spend of μ², with the rounding of each."""
        assert self.budget is not None
        return self.budget.square + 4 * (self.budget.groups - 1) * self.budget.inverse


def recorded(
    gate: Callable[[], Any], seed: int, script: Sequence[Sequence[list[Answer]]] | None = None
) -> GroupRecord:
    """Run a gate, and return all that it asked of each group; with a script, it is told that."""
    record, ask, each = GroupRecord(), NoisySums.ask, InStep.each
    chains: list[Any] = []  # in the order in which groups ask first, which is their own

    def listen(self: Any, queries: Sequence[Query], rows: Any = None) -> Any:
        if not any(self is chain for chain in chains):
            chains.append(self)
            record.groups.append([])
            record.answers.append([])
        group = next(i for i, chain in enumerate(chains) if chain is self)
        schema = (self._rows if rows is None else rows).schema
        record.groups[group] += [(schema, query) for query in queries]
        record.budget = self.budget
        told, own = ask(self, queries, rows), record.answers[group]
        own.append(told if script is None else script[group][len(own)])
        return own[-1]

    def split(self: Any, job: Any) -> Any:
        record.split = self._split
        return each(self, job)

    with pytest.MonkeyPatch.context() as patch, simulation.door(seed):
        patch.setattr(NoisySums, "ask", listen)
        patch.setattr(InStep, "each", split)
        gate()
    return record


def ask_groups(record: GroupRecord, data: Any, k: int) -> list[list[BigIntegers]]:
    """Return the sums that each group asked for, in one pass where all have one view."""
    assert record.split is not None
    views = [_distinct([schema for schema, _ in asked]) for asked in record.groups]
    found: list[list[Any]] = [[None] * len(asked) for asked in record.groups]
    for layer in range(max(map(len, views))):
        own = [some[min(layer, len(some) - 1)] for some in views]
        places = [
            [place for place, (schema, _) in enumerate(asked) if schema == view]
            for asked, view in zip(record.groups, own, strict=True)
        ]
        passes = [
            Sums(view, [asked[place][1].statistic for place in chosen])
            for asked, view, chosen in zip(record.groups, own, places, strict=True)
        ]
        alike = all(view == record.split.of_group() for view in own)
        split = record.split if alike else record.split.seen_through(own)
        reader = open_reader(data, split, rows_per_unit=k, threads=1, progress=False)
        parts = reader.run(GroupReduction(split, passes)).parts
        for sums, chosen, part in zip(found, places, parts, strict=True):
            for place, integers in zip(chosen, part.integers(), strict=True):
                sums[place] = integers
    return found


def _distinct(schemas: Sequence[Schema]) -> list[Schema]:
    found: list[Schema] = []
    for schema in schemas:
        if schema not in found:
            found.append(schema)
    return found


@dataclass(frozen=True)
class Moved:
    """How far neighbours are apart: squared parts of what is declared, and μ² as it was spent.

    `joint` adds up over groups the part of the sum that moved most in each: with it, a unit that is
    in several groups is held to the sensitivity of one.
    """

    joint: Fraction
    counts: Fraction
    spent: Fraction


def moved(record: GroupRecord, one: Any, other: Any) -> Moved:
    """Compare the sums of two tables on integers; raise where one of them moved too far."""
    assert record.budget is not None
    whole = WHOLE if record.split is not None and record.split.is_weighted else 1
    parts: dict[type, list[Fraction]] = {Count: [], LeftOut: [], object: []}
    spent = Fraction(0)
    for asked, first, second in zip(record.groups, one, other, strict=True):
        own = dict.fromkeys(parts, Fraction(0))
        for (_, query), a, b in zip(asked, first, second, strict=True):
            limit = query.statistic.sensitivity_squared(record.budget.neighbours) * whole**2
            part = Fraction(square(a - b), limit)
            assert part <= 1, (type(query.statistic).__name__, float(part))
            kind = next(kind for kind in parts if isinstance(query.statistic, kind))
            own[kind] = max(own[kind], part)
            scale = _Noise.of(query, record.budget, whole).scale
            assert scale is not None
            spent += square(_scale(a, scale) - _scale(b, scale))
        for kind, part in own.items():
            parts[kind].append(part)
    for kind, each in parts.items():
        assert sum(each) <= 1, (kind.__name__, [float(part) for part in each])
        # The weights of a unit add up to at most 1, and not only their squares.
        assert sum(float(part) ** 0.5 for part in each) <= 1 + 1e-9, kind.__name__
    assert spent / VARIANCE <= record.allowed, float(spent / VARIANCE / record.allowed)
    counts = max(sum(parts[Count], Fraction(0)), sum(parts[LeftOut], Fraction(0)))
    return Moved(sum(parts[object], Fraction(0)), counts, spent / VARIANCE / record.allowed)
