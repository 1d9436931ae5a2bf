"""Record and replay for groups: neighbours move the sums of all groups by no more than is paid for.

Every gate with groups runs once, and what each group asks, from what it alone was told, is
recorded. The same sums of neighbouring tables must be no farther apart over all groups than the
noise is made for, on integers: where a row, or a unit of 1 to 60 rows in any groups, comes or goes,
and where it becomes another, in the same group, in others, or in none.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from audit.group_recording import GroupRecord, Moved, ask_again, moved, of_each_group, recorded
from dplinear.adaptive.noisy_sums import Budget
from dplinear.curator.passes import Table
from dplinear.mechanisms.moments.eigenvalues import least_units
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.groups import By, group_levels, read_by
from exact.oracles import square
from rotation import TODAY

pytestmark = pytest.mark.heavy

NAMES = ("x", "z", "y")
BOUND = 5.0
WARDS = ["a", "b", "c", "elsewhere", None]
COLUMNS: dict[str, Any] = {**dict.fromkeys(NAMES, (-BOUND, BOUND)), "ward": ["a", "b", "c"]}
LISTED: By = {"ward": ["other", "a", "b"]}
BYS: tuple[By, ...] = ("ward", LISTED)
BUDGET = dpl.ZCDP(2.0)
PAIRS = 1_000
LOCATIONS = {"mean", "covariance", "centred"}
REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE


def table(seed: int, rows: int = 60) -> pa.Table:
    random = simulation.generator(seed)
    people = [f"p{number}" for number in random.integers(0, 12, rows)]
    wards = [WARDS[code] for code in random.integers(0, len(WARDS), rows)]
    return held(random.normal(0, 1, (rows, len(NAMES))), wards, people)


def held(cells: Any, wards: list[Any], people: list[str]) -> pa.Table:
    columns = dict(zip(NAMES, np.asarray(cells, float).reshape(-1, len(NAMES)).T, strict=True))
    text = pa.string()
    return pa.table({**columns, "ward": pa.array(wards, text), "id": pa.array(people, text)})


def cells_of(random: Any, rows: int) -> Any:
    """Return cells as bad as may be: at corners, of opposite signs, beyond the bounds, missing."""
    corner = np.tile(random.choice([-BOUND, BOUND], len(NAMES)), (rows, 1))
    odd = random.choice([-BOUND, BOUND, 0.0, np.nan, 1e300, -np.inf], corner.shape)
    signs = np.where(np.arange(rows) % 2, -1.0, 1.0)[:, None] * corner
    return [corner, corner, corner, odd, signs, random.normal(0, 2, corner.shape)][
        random.integers(6)
    ]


def neighbours(
    common: pa.Table, seed: int, count: int, *, unit: bool, relation: Neighbours
) -> Iterator[pa.Table]:
    """Return tables of which each is a neighbour of `common`, or of the one before it.

    Single rows, or all rows of one person, in any groups, come to the common table; under replace
    they become others, every second time the same with other signs, often in another group.
    """
    random = simulation.generator(seed)
    cells, wards = cells_of(random, 1), WARDS[:1]
    for turn in range(count):
        if turn % 2 and relation is REPLACE:
            cells = cells * [-1.0, 1.0, random.choice([-1.0, 1.0], len(NAMES))][turn % 3]
            if turn % 4 == 1:  # into another group, or none
                wards = [WARDS[int(random.integers(len(WARDS)))]] * len(wards)
        else:
            rows = int(random.choice([1, 2, 3, 7, 60])) if unit else 1
            few = random.choice(4, random.integers(1, 4), replace=False)
            cells, wards = cells_of(random, rows), [WARDS[random.choice(few)] for _ in range(rows)]
        more = pa.concat_tables([common, held(cells, wards, ["new"] * len(wards))])
        yield more.take(random.permutation(more.num_rows))


def pairs(
    common: pa.Table, seed: int, count: int, *, unit: bool, relation: Neighbours
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Return neighbours, the second of them the common table, or the first of the pair before."""
    before = common
    for more in neighbours(common, seed, count, unit=unit, relation=relation):
        if before is common or relation is ADD_REMOVE:
            yield more, common
        else:
            yield more, before
        before = more


def schema(*, unit: bool, filled: bool = False) -> Schema:
    number = {"type": "number", "low": -BOUND, "high": BOUND, "missing": 1.0}
    columns = {**COLUMNS, **dict.fromkeys(NAMES, number)} if filled else COLUMNS
    return Schema(columns, unit="id" if unit else None)


def release(name: str, data: pa.Table, described: Schema, k: int | None, **given: Any) -> Any:
    asked: Any = {"guarantee": BUDGET, "rows_per_unit": k, "progress": False, **given}
    if name in LOCATIONS:
        gate: Any = dpl.release_mean if name == "mean" else dpl.release_covariance
        asked |= {"mechanism": "centred_covariance"} if name == "centred" else {}
        return gate(data, described, **asked)
    asked |= {"errors": "clustered"} if name == "clustered" else {}
    asked |= {"loss": name} if name in {"huber", "logistic"} else {}
    asked |= {"mechanism": name} if name in {"coinpress", "adassp"} else {}
    return dpl.release_model(data, described, "y", **asked)


def record_of(
    name: str, common: pa.Table, seed: int, *, unit: bool, relation: Neighbours, by: By
) -> GroupRecord:
    described, k = schema(unit=unit), 2 if unit else None
    part = described if name in LOCATIONS else described.leaving_out()
    split = read_by(part, by, "test")
    given: Any = {"by": by, "neighbours": relation}
    return recorded(lambda: release(name, common, described, k, **given), split, k or 1, seed)


def check(
    name: str,
    seed: int,
    count: int,
    *,
    unit: bool,
    relation: Neighbours = REPLACE,
    by: By = "ward",
) -> Moved:
    """Return the farthest that neighbours were apart; raise where that is too far."""
    common = table(seed)
    record = record_of(name, common, seed, unit=unit, relation=relation, by=by)
    assert record.budget is not None
    assert len(record.asked) == len(group_levels(record.split))
    found, answers = Moved(), {id(common): ask_again(record, common)}
    for one, other in pairs(common, seed + 1, count, unit=unit, relation=relation):
        before = answers[id(other)]
        answers = {id(common): answers[id(common)], id(one): ask_again(record, one)}
        found = found.farther(moved(record, answers[id(one)], before))
        assert max(found.first, found.single, found.spent) <= 1, vars(found)
    return found


# Rows that come or go, and units that do in groups by all levels, are in test_split_replays.py, but
# for those of AdaSSP and of clustered errors.
CHAINS = ("whitened_descent", "huber", "logistic", "coinpress", *sorted(LOCATIONS))
WAYS = [
    *((name, unit, REPLACE) for name in CHAINS for unit in (False, True)),
    *((name, True, ADD_REMOVE) for name in CHAINS),
    *(("clustered", True, relation) for relation in (ADD_REMOVE, REPLACE)),
]
SPLIT = [(name, True, ADD_REMOVE) for name in CHAINS]


@pytest.mark.parametrize(("name", "unit", "relation"), WAYS)
def test_neighbours_move_all_groups_together_by_no_more_than_is_paid_for(
    name: str, unit: bool, relation: Neighbours
) -> None:
    """A few pairs, other ones every day."""
    seed = TODAY
    by: By = LISTED if seed % 2 or (name, unit, relation) in SPLIT else "ward"
    found = check(name, seed, 4, unit=unit, relation=relation, by=by)
    assert found.first > 0.1, (seed, vars(found))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "unit", "relation", "by"),
    [(*way, by) for way in WAYS for by in BYS if by is LISTED or way not in SPLIT],
)
def test_none_of_a_thousand_neighbours_does(
    name: str, unit: bool, relation: Neighbours, by: By
) -> None:
    """And the worst of them move what all groups are asked first by nearly all of it."""
    found = check(name, 17, PAIRS // 2, unit=unit, relation=relation, by=by)
    assert found.first > 0.99, vars(found)


# AdaSSP, whose sums are released together


def of_adassp(record: GroupRecord, data: pa.Table) -> list[list[Any]]:
    """Return the integers of each group that AdaSSP adds noise to: least, gram, cross."""
    ready = record.adassp
    assert ready is not None
    used, part = list(ready.design.features), ready.design.of_rows()

    def parts(reader: Any, _: int) -> list[Any]:
        matrix = Table(reader, record.split.of_group()).bounded_moments(part)
        gram = matrix[np.ix_(used, used)]
        least = np.array([least_units(gram, ready.design.feature_square)], object)
        return [least, gram.ravel(), matrix[used, ready.design.target]]

    found: list[list[Any]] = of_each_group(record, data, len(group_levels(record.split)), parts)
    return found


def check_adassp(
    seed: int, count: int, *, unit: bool, relation: Neighbours, by: By
) -> list[Fraction]:
    """Return how far neighbours move AdaSSP's parts over all groups; raise where it is too far."""
    common = table(seed)
    record = record_of("adassp", common, seed, unit=unit, relation=relation, by=by)
    ready = record.adassp
    assert ready is not None
    coarse = 1 << 2 * ready.distance.step
    scales, most = (1, coarse, coarse), [Fraction(0)] * 3
    limit = ready.distance.squared_distance(ready.variances)
    for one, other in pairs(common, seed + 1, count, unit=unit, relation=relation):
        first, second = of_adassp(record, one), of_adassp(record, other)
        apart = [
            Fraction(sum(square(a[i] - b[i]) for a, b in zip(first, second, strict=True)), scale)
            for i, scale in enumerate(scales)
        ]
        seen = [part / own for part, own in zip(apart, ready.distance.squares, strict=True)]
        assert max(seen) <= 1, list(map(float, seen))
        weighed = zip(apart, ready.variances, strict=True)
        assert sum(part / variance for part, variance in weighed) <= limit
        most = [max(pair) for pair in zip(most, seen, strict=True)]
    return most


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_adassp_of_groups_is_paid_for(unit: bool, relation: Neighbours) -> None:
    seed = TODAY
    by: By = LISTED if seed % 2 else "ward"
    assert max(check_adassp(seed, 6, unit=unit, relation=relation, by=by)) > 0.05


@pytest.mark.long
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_none_of_a_thousand_neighbours_moves_adassp_farther(
    unit: bool, relation: Neighbours
) -> None:
    each = [check_adassp(23, PAIRS // 2, unit=unit, relation=relation, by=by) for by in BYS]
    _, gram, cross = map(max, zip(*each, strict=True))
    assert min(gram, cross) > 0.99


def test_adassp_counts_each_group_that_moves() -> None:
    """Least eigenvalues of a unit's parts, each with what its rounding may add."""
    units = 1 << 20
    for relation, twice in ((ADD_REMOVE, 1), (REPLACE, 2)):
        ready = record_of("adassp", table(3), 3, unit=True, relation=relation, by="ward").adassp
        assert ready is not None
        assert ready.distance.design.groups == 4
        for parts in ([1.0], [0.5, 0.5], [0.7, 0.3]):
            moves = [part * units + 2 for part in parts] * twice  # out of some, into as many others
            assert sum(each**2 for each in moves) <= ready.distance.squares.least
        assert ready.distance.inverse(ready.variances) > 4 / ready.variances.least


# What is counted, and bugs that the replay is for


@pytest.mark.parametrize("name", [*CHAINS, "clustered"])
def test_how_many_rows_a_group_has_is_not_free(name: str) -> None:
    """Of columns without missing cells, whose number of rows is public without groups."""
    unit = name == "clustered"
    described, k = schema(unit=unit, filled=True), 1 if unit else None
    split = read_by(described, "ward", "test")
    given: Any = {"by": "ward", "neighbours": REPLACE}
    common = table(4)
    record = recorded(lambda: release(name, common, described, k, **given), split, 1, 4)
    assert record.budget is not None
    counts = [
        query.statistic
        for asked in record.asked
        for _, queries in asked
        for query in queries
        if type(query.statistic).__name__ == "Count"
    ]
    assert len(counts) >= len(record.asked)
    assert all(record.budget.sensitivity_squared(count) == 2 for count in counts)


def test_one_listed_group_may_be_left_under_replace() -> None:
    """Then one chain alone moves, and its number of rows is private all the same."""
    found = check("whitened_descent", 6, 8, unit=False, by={"ward": ["a"]})
    assert 0.1 < found.first <= 1
    record = record_of("mean", table(6), 6, unit=False, relation=REPLACE, by={"ward": ["a"]})
    assert record.budget is not None
    assert record.budget.groups == 1
    ((_, queries), *_), *_ = record.asked
    assert record.budget.sensitivity_squared(queries[0].statistic) == 1


def test_rounding_is_paid_for_in_both_groups_that_move() -> None:
    budget = Budget.of(dpl.ZCDP(0.5), 1_000, REPLACE, "test", 2)
    alone = Budget.of(dpl.ZCDP(0.5), 1_000, REPLACE, "test")
    for size in (1, 2, 3, 9, 100, 1_024):
        assert budget.rounding(size) ** 2 >= 2 * size
        assert alone.rounding(size) == math.isqrt(size - 1) + 1


def sees_a_bug(name: str, *, unit: bool, relation: Neighbours = REPLACE) -> bool:
    try:
        check(name, 9, 12, unit=unit, relation=relation)
    except AssertionError:
        return True
    return False


def test_sums_that_are_paid_for_as_within_one_group_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not sees_a_bug("mean", unit=False)
    monkeypatch.setattr(Budget, "across", property(lambda _: False))
    assert sees_a_bug("mean", unit=False)
    assert sees_a_bug("whitened_descent", unit=False)


def test_units_that_are_weighed_within_each_group_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dplinear.exact.groups import GroupBlocks

    plain = GroupBlocks.add_weighted

    def heavier(self: Any, rows: Any, weights: Any, totals: Any = None) -> None:
        plain(self, rows, np.minimum(2 * weights, 2**24), totals)

    assert not sees_a_bug("mean", unit=True, relation=ADD_REMOVE)
    monkeypatch.setattr(GroupBlocks, "add_weighted", heavier)
    assert sees_a_bug("mean", unit=True, relation=ADD_REMOVE)
