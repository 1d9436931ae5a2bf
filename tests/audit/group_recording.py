"""What the groups of one release asked of their table, recorded, to be asked of its neighbours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from dplinear.adaptive.noisy_sums import VARIANCE, Budget, NoisySums, Query, _Noise, _scale
from dplinear.arrays import BigIntegers
from dplinear.curator.in_step import InStep
from dplinear.curator.passes import Table
from dplinear.curator.sources import open_reader
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms.adassp import PreparedAdaSSP
from dplinear.noise import simulation
from dplinear.schema import Schema
from exact.oracles import square

Sums = list[list[list[BigIntegers]]]  # of each group, of each of its passes, of each query


@dataclass
class GroupRecord:
    """What each group asked, pass by pass, and the noise that all of them paid for."""

    split: Schema
    rows_per_unit: int
    asked: list[list[tuple[Schema, Sequence[Query]]]] = field(default_factory=list)
    budget: Budget | None = None
    adassp: PreparedAdaSSP | None = None

    @property
    def weights(self) -> int:
        """How many units of weight a row has."""
        return WHOLE if self.split.is_weighted else 1

    @property
    def allowed(self) -> Fraction:
        """What Σ Δ²/σ² may come to over all groups: that of the profile which is promised."""
        assert self.budget is not None
        return self.budget.square + 4 * (self.budget.groups - 1) * self.budget.inverse


def recorded(gate: Callable[[], Any], split: Schema, k: int, seed: int) -> GroupRecord:
    """Run a gate, and return all that its groups asked."""
    record, ask, measure = GroupRecord(split, k), NoisySums.ask, PreparedAdaSSP.measure
    chains: list[NoisySums] = []

    def listen(self: Any, queries: Sequence[Query], rows: Any = None) -> Any:
        if not any(self is chain for chain in chains):
            chains.append(self)
            record.asked.append([])
        group = next(i for i, chain in enumerate(chains) if chain is self)
        record.asked[group].append(((self._rows if rows is None else rows).schema, queries))
        record.budget = self.budget
        return ask(self, queries, rows)

    def keep(self: Any, statistic: Any, entropy: Any) -> Any:
        record.adassp = self
        return measure(self, statistic, entropy)

    with pytest.MonkeyPatch.context() as patch, simulation.door(seed):
        patch.setattr(NoisySums, "ask", listen)
        patch.setattr(PreparedAdaSSP, "measure", keep)
        gate()
    return record


def of_each_group(
    record: GroupRecord, data: Any, count: int, job: Callable[[Any, int], Any]
) -> Any:
    """Return what a job makes of a reader of each group's rows, and of its number."""
    numbers = iter(range(count))

    def opened(schema: Schema) -> Any:
        k = record.rows_per_unit
        return open_reader(data, schema, again=True, rows_per_unit=k, threads=1, progress=False)

    groups = InStep(opened, record.split, count, lambda reader: reader)
    return groups.each(lambda reader: job(reader, next(numbers)))


def ask_again(record: GroupRecord, data: Any) -> Sums:
    """Return the sums that each group asked for, of another table."""

    def ask(reader: Any, group: int) -> list[list[BigIntegers]]:
        return [
            Table(reader, schema).sums([query.statistic for query in queries])
            for schema, queries in record.asked[group]
        ]

    found: Sums = of_each_group(record, data, len(record.asked), ask)
    return found


@dataclass
class Moved:
    """How far neighbours are apart, squared, as parts of what is paid for.

    `first` is that of the sums that all groups ask for at first, each over all groups together;
    `single`, that of one group's sum; `spent`, that of everything, with what rounding does.
    """

    first: Fraction = Fraction(0)
    single: Fraction = Fraction(0)
    spent: Fraction = Fraction(0)

    def farther(self, other: "Moved") -> "Moved":
        """Return the farther of two."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Moved(*(max(pair) for pair in pairs))


def moved(record: GroupRecord, one: Sums, other: Sums) -> Moved:
    """Return how far two tables are apart in what the groups asked for."""
    assert record.budget is not None
    found, total = Moved(), Fraction(0)
    firsts: dict[int, Fraction] = {}
    for group, asked in enumerate(record.asked):
        for step, (_, queries) in enumerate(asked):
            sums = zip(queries, one[group][step], other[group][step], strict=True)
            for place, (query, a, b) in enumerate(sums):
                limit = record.budget.sensitivity_squared(query.statistic) * record.weights**2
                part = Fraction(square(a - b), limit)
                found.single = max(found.single, part)
                if step == 0:
                    firsts[place] = firsts.get(place, Fraction(0)) + part
                scale = _Noise.of(query, record.budget, record.weights).scale
                assert scale is not None, type(query.statistic).__name__
                total += square(_scale(a, scale) - _scale(b, scale))
    found.first, found.spent = max(firsts.values()), total / VARIANCE / record.allowed
    return found
