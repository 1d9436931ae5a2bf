"""Record and replay of survey weights in groups: whatever one has, all groups move as one would.

Neighbours differ by a row, or by all rows of a unit, in any groups or in none, with weights and
cells as bad as may be; or a row, or a unit, becomes another, in other groups. Moments and the sums
beside them are held together to the distance that the noise is made for, on integers; so are all
sums that models and means ask of each group.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from audit.weighted_tables import BAD, HOLDS, Hold, Row, arrow
from dplinear.adaptive.noisy_sums import VARIANCE, Budget, NoisySums, Query, _Noise, _scale
from dplinear.curator.gates import measured
from dplinear.curator.in_step import InStep
from dplinear.curator.passes import Table
from dplinear.curator.sources import open_reader
from dplinear.exact.gram import Moments
from dplinear.exact.grid import moments_shape
from dplinear.exact.groups import GroupReduction
from dplinear.exact.row_sums import Count
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms.moments.analyze_gauss import Difference
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.groups import group_levels, read_by
from exact.oracles import square
from rotation import TODAY

pytestmark = pytest.mark.heavy

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
NEEDED = {"type": "number", "low": -5, "high": 5, "missing": "leave_out"}
COLUMNS: dict[str, Any] = {"a": (-5, 5), "b": (-5, 5), "c": NEEDED}
COLUMNS |= {"ward": {"type": "category", "levels": [1, 2]}, "old": "boolean"}
WARDS = ("1", "2", "7", None)
BY = ["ward", "old"]  # three levels of two values each; without the second a row is in no group
SCHEMAS = {
    "rows": Schema(COLUMNS, weight=("w", 0, 20)),
    "units": Schema(COLUMNS, weight=("w", 0, 20), unit="id"),
}
K = 2
PAIRS = 1_000
ARROW: list[Hold] = [arrow]
CORNER = (5.0, 5.0, 5.0)


def split(kind: str) -> Schema:
    return read_by(SCHEMAS[kind], BY, "test")


def some_rows(random: Any, count: int, owner: str | None = None) -> list[Row]:
    """Return rows as bad as may be, in any groups and in none."""
    cells = random.choice([-5.0, 5.0, 0.0, 1e300, np.nan], (count, 3)).tolist()
    found = []
    for own in cells:
        weight, ward = BAD[random.integers(len(BAD))], WARDS[random.integers(len(WARDS))]
        old = ("true", "false", None)[random.integers(3)]
        found.append(Row(tuple(own), weight, ward, old, owner or f"p{random.integers(20)}"))
    return found


def common(seed: int) -> list[Row]:
    random = simulation.generator(seed)
    usual = [
        Row(tuple(cells), f"{weight:.4g}", WARDS[ward], ("true", "false")[old], f"p{owner}")
        for cells, weight, ward, old, owner in zip(
            random.normal(0, 1, (60, 3)).tolist(),
            random.lognormal(0, 1.2, 60).tolist(),
            random.integers(0, 4, 60).tolist(),
            random.integers(0, 2, 60).tolist(),
            random.integers(0, 20, 60).tolist(),
            strict=True,
        )
    ]
    return usual + some_rows(random, 20)


def pairs(
    kind: str, relation: Neighbours, count: int, seed: int
) -> Iterator[tuple[list[Row], list[Row]]]:
    """Return what one table has, and what the other has in its place: the worst pairs first."""
    random = simulation.generator(seed)
    most = 1 if kind == "rows" else 60
    whole = [Row(CORNER, "20", "1", "true")] * most
    gaps = [Row((5.0, 5.0, math.nan), "inf", "2", "false")] * most
    elsewhere = [Row(CORNER, "1e300", "2", "true")] * most
    spread = [Row(CORNER, "20", WARDS[i % 3], ("true", "false")[i % 2]) for i in range(most)]
    nowhere = [Row(CORNER, "20", "1", None)] * most
    worst: list[tuple[list[Row], list[Row]]] = [(whole, []), (gaps, []), (spread, [])]
    if relation is REPLACE:
        left = [Row((5.0, 5.0, math.nan), "20", "1", "false")] * most
        worst = [(whole, elsewhere), (gaps, left), (whole, nowhere)]
    yield from worst
    for _ in range(count - len(worst)):
        sizes = random.choice([1] if kind == "rows" else [1, K, 9, 60, 300], 2).tolist()
        one, other = (some_rows(random, size, "new") for size in sizes)
        yield one, other if relation is REPLACE else []


def tables(
    kind: str,
    relation: Neighbours,
    count: int,
    seed: int,
    holds: Sequence[Hold],
    folder: Path,
) -> Iterator[tuple[Any, Any]]:
    """Return neighbours, each in an order of rows, and perhaps in a library, of its own."""
    # Of the rows that both tables have a few will do: they cancel.
    random, rows, names = simulation.generator(seed), common(seed)[::5], SCHEMAS[kind].read_columns
    for number, pair in enumerate(pairs(kind, relation, count, seed + 1)):
        held = []
        for side, own in enumerate(pair):
            every = [*rows, *own]
            mixed = [every[place] for place in random.permutation(len(every))]
            held.append(holds[(number + side) % len(holds)](mixed, names, folder, f"{side}"))
        yield held[0], held[1]


# Moments, and the sums beside them


def moments_of(data: Any, kind: str) -> list[tuple[Any, tuple[Fraction, ...]]]:
    """Return each group's matrix, and the sums that are released beside it."""
    schema = split(kind)
    reader = open_reader(data, schema, rows_per_unit=1 if kind == "rows" else K, threads=1)
    each = [Moments(schema.of_group()) for _ in group_levels(schema)]
    parts = reader.run(GroupReduction(schema, each)).parts
    return [(part.integers, measured._side_sums(part)) for part in parts]


def check_moments(
    kind: str,
    relation: Neighbours,
    count: int,
    seed: int,
    folder: Path,
    holds: Sequence[Hold] = ARROW,
) -> tuple[float, float]:
    """Return the parts of what is declared that matrices, and sums beside them, moved by."""
    schema = split(kind).of_group()
    names, groups = measured.side_names(schema), len(group_levels(split(kind)))
    moved = groups if kind == "units" else 2 if relation is REPLACE else 1
    alone = Difference.of(moments_shape(schema), 0, relation, 2, moved)
    joint = alone.with_side(len(names))
    scale, most, side = joint.side_scale, Fraction(0), Fraction(0)
    # Of each of the sums beside the matrices, over all groups, after rounding.
    allowed = (Fraction(joint.norm) ** 2 - Fraction(alone.norm) ** 2) / len(names)
    for pair in tables(kind, relation, count, seed, holds, folder):
        one, other = (moments_of(data, kind) for data in pair)
        matrices = sum(square((a - b).ravel()) for (a, _), (b, _) in zip(one, other, strict=True))
        sums = [0] * len(names)
        for (_, first), (_, second) in zip(one, other, strict=True):
            for place, both in enumerate(zip(first, second, strict=True)):
                rounded = [math.floor(each * scale + Fraction(1, 2)) for each in both]
                sums[place] += (rounded[0] - rounded[1]) ** 2
        assert matrices <= Fraction(alone.norm) ** 2
        assert max(sums) <= allowed
        assert matrices + sum(sums) <= Fraction(joint.norm) ** 2
        most = max(most, matrices / Fraction(alone.norm) ** 2)
        side = max(side, max(sums) / allowed)
    return math.sqrt(most), math.sqrt(side)


CASES = [(kind, relation) for kind in SCHEMAS for relation in (ADD, REPLACE)]


@pytest.mark.parametrize(("kind", "relation"), CASES)
def test_nobody_moves_moments_of_groups_and_their_side_sums_farther(
    kind: str, relation: Neighbours, tmp_path: Path
) -> None:
    assert min(check_moments(kind, relation, 8, TODAY, tmp_path)) > 0.99, TODAY


@pytest.mark.engine
@pytest.mark.parametrize(("kind", "relation"), CASES)
def test_nor_does_anybody_in_any_library(kind: str, relation: Neighbours, tmp_path: Path) -> None:
    found = check_moments(kind, relation, 6, TODAY, tmp_path, list(HOLDS.values()))
    assert min(found) > 0.99, TODAY


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize(("kind", "relation"), CASES)
def test_none_of_a_thousand_moves_moments_farther(
    kind: str, relation: Neighbours, tmp_path: Path
) -> None:
    found = check_moments(kind, relation, PAIRS, 23, tmp_path, list(HOLDS.values()))
    assert min(found) > 0.99


# Chains of sums


Gate = Callable[[Any, Schema, dict[str, Any]], Any]


def _model(**choice: Any) -> Gate:
    return lambda data, schema, given: dpl.release_model(data, schema, "c", **choice, **given)


GATES: dict[str, Gate] = {
    "whitened_descent": _model(),
    "huber": _model(loss="huber"),
    "logistic": _model(loss="logistic"),
    "coinpress": _model(mechanism="coinpress"),
    "mean": lambda data, schema, given: dpl.release_mean(data, schema, **given),
    "covariance": lambda data, schema, given: dpl.release_covariance(data, schema, **given),
    "centred": lambda data, schema, given: dpl.release_covariance(
        data, schema, mechanism="centred_covariance", **given
    ),
}


class Record:
    """What each group asked, under each schema, and with which budget."""

    def __init__(self) -> None:
        self.groups: list[list[tuple[Schema, list[Query]]]] = []
        self.budget: Budget | None = None


def recorded(name: str, kind: str, relation: Neighbours, seed: int) -> Record:
    record, ask, chains = Record(), NoisySums.ask, list[Any]()

    def listen(self: Any, queries: Sequence[Query], rows: Any = None) -> Any:
        if not any(self is chain for chain in chains):
            chains.append(self)
            record.groups.append([])
        asked = record.groups[next(i for i, chain in enumerate(chains) if chain is self)]
        schema = (self._rows if rows is None else rows).schema
        own = next((queries_ for other, queries_ in asked if other == schema), None)
        if own is None:
            asked.append((schema, list(queries)))
        else:
            own.extend(queries)
        record.budget = self.budget
        return ask(self, queries, rows)

    given: dict[str, Any] = {"guarantee": dpl.ZCDP(2.0), "by": BY, "progress": False}
    given["neighbours"] = relation
    given |= {} if kind == "rows" else {"rows_per_unit": K}
    data = arrow(common(seed), SCHEMAS[kind].read_columns)
    with pytest.MonkeyPatch.context() as patch, simulation.door(seed):
        patch.setattr(NoisySums, "ask", listen)
        GATES[name](data, SCHEMAS[kind], given)
    return record


def replayed(record: Record, data: Any, kind: str) -> list[list[list[Any]]]:
    """Return the sums of each group that it asked for, those under one schema in one pass."""
    numbers = iter(range(len(record.groups)))

    def ask(reader: Any) -> list[Any]:
        return [
            Table(reader, schema).sums([query.statistic for query in queries])
            for schema, queries in record.groups[next(numbers)]
        ]

    def opened(schema: Schema) -> Any:
        k = 1 if kind == "rows" else K
        return open_reader(data, schema, again=True, rows_per_unit=k, threads=1)

    # Models leave rows out that lack any number; the schemas of what was asked say so.
    first = record.groups[0][0][0]
    columns = first.to_dict()["columns"] | {name: COLUMNS[name] for name in BY}
    whole = Schema(columns, weight=first.weight, unit=first.unit)
    return InStep(opened, read_by(whole, BY, "test"), len(record.groups), lambda r: r).each(ask)


def check_chains(
    name: str,
    kind: str,
    relation: Neighbours,
    count: int,
    seed: int,
    folder: Path,
    holds: Sequence[Hold] = ARROW,
) -> float:
    """Return the part of one sum's declared distance that the worst neighbour moved it by."""
    record = recorded(name, kind, relation, seed)
    budget = record.budget
    assert budget is not None
    groups = len(group_levels(split(kind)))
    assert len(record.groups) == groups
    ends = 2 if relation is REPLACE else 1
    assert budget.groups == (min(ends, groups) if kind == "rows" else groups)
    allowed = budget.square + 4 * (budget.groups - 1) * budget.inverse
    most = Fraction(0)
    for pair in tables(kind, relation, count, seed, holds, folder):
        one, other = (replayed(record, data, kind) for data in pair)
        spent = Fraction(0)
        for asked, first, second in zip(record.groups, one, other, strict=True):
            for (_, queries), a, b in zip(asked, first, second, strict=True):
                for query, x, y in zip(queries, a, b, strict=True):
                    scale = _Noise.of(query, budget, WHOLE).scale
                    assert scale is not None
                    spent += square(_scale(x, scale) - _scale(y, scale))
                    limit = budget.sensitivity_squared(query.statistic) * WHOLE**2
                    part = Fraction(square(x - y), limit)
                    assert part <= 1, (type(query.statistic).__name__, float(part))
                    if not isinstance(query.statistic, Count):
                        most = max(most, part)
        assert spent / VARIANCE <= allowed
    return math.sqrt(most)


# A replaced row that changes its group moves each of two by √½ of what they pay for.
REACHED = {ADD: 0.98, REPLACE: 0.65}


@pytest.mark.parametrize("relation", REACHED)
@pytest.mark.parametrize("name", ["whitened_descent", "mean"])
def test_nobody_spends_more_than_the_budget_in_all_groups(
    name: str, relation: Neighbours, tmp_path: Path
) -> None:
    kind = list(SCHEMAS)[(TODAY + (name == "mean")) % 2]
    found = check_chains(name, kind, relation, 4, TODAY, tmp_path)
    assert found > REACHED[relation], (TODAY, kind)


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize("relation", REACHED)
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("name", GATES)
def test_none_of_a_thousand_spends_more(
    name: str, kind: str, relation: Neighbours, tmp_path: Path
) -> None:
    """A thousand for each gate and relation: half of them of rows, half of units."""
    found = check_chains(name, kind, relation, PAIRS // 2, 29, tmp_path, list(HOLDS.values()))
    assert found > REACHED[relation]


# Planted bugs: what the replay is for


@pytest.mark.parametrize("kind", SCHEMAS)
def test_sums_beside_moments_with_the_noise_of_one_group_are_seen(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    of = Difference.of

    def alone(*given: Any) -> Difference:
        found = of(*given)
        object.__setattr__(found, "ends", 1)
        return found

    check_moments(kind, REPLACE, 3, 3, tmp_path)
    monkeypatch.setattr(Difference, "of", staticmethod(alone))
    with pytest.raises(AssertionError):
        check_moments(kind, REPLACE, 3, 3, tmp_path)
