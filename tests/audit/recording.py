"""What a gate asks of a table, recorded, to be asked of its neighbours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from dplinear.adaptive.noisy_sums import Answer, Budget, NoisySums, Query
from dplinear.arrays import BigIntegers
from dplinear.curator.passes import exact_sums
from dplinear.exact.unit_scores import UnitScores
from dplinear.mechanisms.adassp import PreparedAdaSSP
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

Gate = Callable[[Any, int, Neighbours], Any]


@dataclass
class Record:
    """What a gate asked of a table, and the noise that it paid for."""

    rows_per_unit: int
    asked: list[tuple[Schema, Query]] = field(default_factory=list)
    answers: list[list[Answer]] = field(default_factory=list)
    budget: Budget | None = None
    adassp: PreparedAdaSSP | None = None


def recorded(
    gate: Gate,
    data: Any,
    k: int,
    seed: int,
    script: list[list[Answer]] | None = None,
    relation: Neighbours = Neighbours.ADD_REMOVE,
) -> Record:
    """Run a gate, and return all that it asked; with a script, it is answered from that."""
    record, ask, measure = Record(k), NoisySums.ask, PreparedAdaSSP.measure

    def listen(self: Any, queries: Sequence[Query], rows: Any = None) -> Any:
        schema = (self._rows if rows is None else rows).schema
        record.asked += [(schema, query) for query in queries]
        record.budget = self.budget
        told = ask(self, queries, rows)
        record.answers.append(told if script is None else script[len(record.answers)])
        return record.answers[-1]

    def keep(self: Any, statistic: Any, entropy: Any) -> Any:
        record.adassp = self
        return measure(self, statistic, entropy)

    with pytest.MonkeyPatch.context() as patch, simulation.door(seed):
        patch.setattr(NoisySums, "ask", listen)
        patch.setattr(PreparedAdaSSP, "measure", keep)
        gate(data, k, relation)
    return record


def is_of_units(query: Query) -> bool:
    """Return whether a sum is over units, and so of a pass of its own."""
    return isinstance(query.statistic, UnitScores)


def ask_again(record: Record, data: Any) -> list[BigIntegers]:
    """Return the sums that were asked for, those under one schema in one pass."""
    found: dict[int, BigIntegers] = {}
    schemas: list[Schema] = []
    for schema, _ in record.asked:
        if schema not in schemas:
            schemas.append(schema)
    for schema in schemas:
        places = [place for place, (other, _) in enumerate(record.asked) if other == schema]
        of_units = [place for place in places if is_of_units(record.asked[place][1])]
        of_rows = [place for place in places if place not in of_units]
        for own in filter(None, (of_rows, of_units)):
            asked = [record.asked[place][1].statistic for place in own]
            k = record.rows_per_unit
            sums = exact_sums(data, schema, asked, rows_per_unit=k, threads=1, progress=False)
            found |= dict(zip(own, sums, strict=True))
    return [found[place] for place in range(len(record.asked))]
