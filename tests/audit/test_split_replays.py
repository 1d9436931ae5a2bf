"""Record and replay for groups: no row or unit moves all groups together beyond what is declared.

Every gate that takes groups runs once, and all that each group asks is recorded. The same sums of
tables that differ by a row, or by all rows of a unit (of 0 to 1,000 rows: at the bounds, far beyond
them, without numbers; in one group, in all of them, in none), must be no farther apart than the
noise is made for, on integers: each sum, the largest of each group together, and μ² as it is spent.
The worst of them must come within 1% of that. A further mechanism is a line in `GATES`, and a
further relation one in `CASES`. Models, means and covariances under replace, clustered errors,
AdaSSP and public lists of groups are replayed in `test_group_replays.py`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from audit.split_recording import GroupRecord, ask_groups, moved, recorded
from audit.test_unit_replays import BOUND, NAMES, adversarial, opposite, units
from dplinear.arrays import Floats
from dplinear.curator.sources import open_reader, unit_rows
from dplinear.exact import groups as exact_groups
from dplinear.exact.gram import Moments
from dplinear.exact.grid import moments_shape
from dplinear.exact.groups import GroupReduction
from dplinear.exact.row_sums import RowSum
from dplinear.exact.weights import capped_weights
from dplinear.mechanisms.moments.analyze_gauss import Difference
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.groups import group_levels, read_by
from exact.oracles import square
from rotation import TODAY

pytestmark = pytest.mark.heavy

BY = ["ward", "old"]
COLUMNS: dict[str, Any] = {
    **dict.fromkeys(NAMES, (-BOUND, BOUND)),
    "ward": {"type": "category", "levels": ["n", "s"], "other": "s"},
    "old": "boolean",
}
SCHEMAS = {"rows": Schema(COLUMNS), "units": Schema(COLUMNS, unit="id")}
GROUPS = [(ward, old) for ward in ("n", "s") for old in (True, False)]
ODD = [*GROUPS, ("elsewhere", True), (None, False), ("n", None), ("", None)]  # rows of no group
BUDGET = dpl.ZCDP(2.0)
PAIRS = 1_000
ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
Place = tuple[str | None, bool | None]


@dataclass(frozen=True)
class Case:
    """A gate, whether neighbours differ by a row or by a unit, and how."""

    gate: str
    kind: str
    relation: Neighbours = ADD

    def __str__(self) -> str:
        return f"{self.gate}-{self.kind}-{self.relation}"


GATES: dict[str, dict[str, Any]] = {
    "whitened_descent": {"mechanism": "whitened_descent"},
    "huber": {"loss": "huber"},
    "logistic": {"loss": "logistic"},
    "coinpress": {"mechanism": "coinpress"},
    "mean": {},
    "covariance": {},
}
CASES = [
    *(Case("moments", kind, relation) for kind in SCHEMAS for relation in (ADD, REPLACE)),
    *(Case(name, kind) for name in GATES for kind in SCHEMAS),
]


def gate(case: Case, data: Any, k: int) -> Any:
    given: dict[str, Any] = {"by": BY, "guarantee": BUDGET, "neighbours": str(case.relation)}
    given |= {"progress": False} | ({"rows_per_unit": k} if case.kind == "units" else {})
    schema, own = SCHEMAS[case.kind], GATES[case.gate]
    if case.gate in {"mean", "covariance"}:
        release = dpl.release_mean if case.gate == "mean" else dpl.release_covariance
        return release(data, schema, **given)
    return dpl.release_model(data, schema, "c", **own, **given)


def held(cells: Floats, places: list[Place], ids: list[str]) -> pa.Table:
    columns = dict(zip(NAMES, np.asarray(cells, float).reshape(-1, len(NAMES)).T, strict=True))
    wards = pa.array([ward for ward, _ in places], pa.string())
    old = pa.array([old for _, old in places], pa.bool_())
    return pa.table({**columns, "ward": wards, "old": old, "id": pa.array(ids, pa.string())})


def table(seed: int) -> pa.Table:
    """People with few rows and with many, who are in several groups or in none; rows of nobody."""
    random = simulation.generator(seed)
    sizes = [*random.integers(1, 9, 30).tolist(), 60]
    ids = [f"p{unit}" for unit, size in enumerate(sizes) for _ in range(size)] + [""] * 10
    places = [ODD[place] for place in random.integers(0, len(ODD), len(ids))]
    return held(random.normal(0, 1, (len(ids), len(NAMES))), places, ids)


def spread(rows: int, random: Any, *, alone: bool) -> list[Place]:
    """Return in which groups the rows of a unit are: as bad as may be."""
    one = GROUPS[random.integers(len(GROUPS))]
    if alone:
        return [one] * rows
    match random.integers(5):
        case 0:  # nearly all of them in one group
            return [one if row >= len(GROUPS) else GROUPS[row] for row in range(rows)]
        case 1:  # as many in each
            return [GROUPS[row % len(GROUPS)] for row in range(rows)]
        case 2:  # in two groups, by turns
            return [(one, GROUPS[0])[row % 2] for row in range(rows)]
        case 3:  # one of them in a group, the others in none
            return [one if row == 0 else ("n", None) for row in range(rows)]
        case _:
            return [ODD[place] for place in random.integers(0, len(ODD), rows)]


def newcomers(case: Case, count: int, seed: int, k: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Return what one table has and the other has instead: corners in one group come first."""
    random = simulation.generator(seed)
    for number, rows in enumerate(units(seed + 1, count, k)):
        alone = number < count // 2
        cells = rows if case.kind == "units" else (rows if len(rows) else np.zeros((1, 3)))[:1]
        one = held(cells, spread(len(cells), random, alone=alone), ["new"] * len(cells))
        other = one.slice(0, 0)
        if case.relation is REPLACE:
            turned = opposite(cells, k, random) if len(cells) else adversarial(random, k)
            turned = turned if case.kind == "units" else turned[:1]
            other = held(turned, spread(len(turned), random, alone=alone), ["new"] * len(turned))
        yield one, other


def pairs(case: Case, count: int, seed: int, k: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Return neighbours, their rows in any order."""
    common, random = table(seed), simulation.generator(seed + 2)
    for both in newcomers(case, count, seed, k):
        one, other = (pa.concat_tables([common, new]) for new in both)
        if case.relation is ADD:
            other = common
        yield one.take(random.permutation(one.num_rows)), other


def check_sums(case: Case, count: int, seed: int, k: int) -> float:
    record = recorded(lambda: gate(case, table(seed), k), seed)
    assert len(record.groups) == len(GROUPS)
    assert record.budget is not None
    assert record.budget.groups == (len(GROUPS) if case.kind == "units" else 1)
    known: dict[int, Any] = {}  # the sums of the table that is in all pairs
    joint, spent = Fraction(0), Fraction(0)
    for one, other in pairs(case, count, seed, k):
        if id(other) not in known:
            known = {id(other): ask_groups(record, other, k)}
        found = moved(record, ask_groups(record, one, k), known[id(other)])
        joint, spent = max(joint, found.joint), max(spent, found.spent)
    assert spent > Fraction(1, 100)
    return math.sqrt(joint)


def moments_of(case: Case, data: pa.Table, k: int) -> list[Any]:
    split = read_by(SCHEMAS[case.kind], BY, "test")
    passes = [Moments(split.of_group()) for _ in group_levels(split)]
    reader = open_reader(data, split, rows_per_unit=k, threads=1, progress=False)
    return [part.integers for part in reader.run(GroupReduction(split, passes)).parts]


def check_moments(case: Case, count: int, seed: int, k: int) -> float:
    shape, most = moments_shape(read_by(SCHEMAS[case.kind], BY, "test").of_group()), 0
    limit = Fraction(Difference.of(shape, 0, case.relation, 2, len(GROUPS)).norm) ** 2
    for one, other in pairs(case, count, seed, k):
        both = zip(moments_of(case, one, k), moments_of(case, other, k), strict=True)
        most = max(most, sum(square((a - b).ravel()) for a, b in both))
        assert most <= limit, one.num_rows
    return math.sqrt(most / limit)


def check(case: Case, count: int, seed: int, k: int) -> float:
    """Return the part of what is declared that the worst neighbours reached."""
    if case.gate == "moments":
        return check_moments(case, count, seed, k)
    return check_sums(case, count, seed, k)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nobody_moves_all_groups_farther_than_is_declared(case: Case) -> None:
    """A few pairs, other ones every day."""
    k = 1 + TODAY % 5
    assert check(case, 6, TODAY, k) > 0.99, (TODAY, k)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=str)
def test_none_of_a_thousand_moves_all_groups_farther(case: Case) -> None:
    """A thousand for each gate and relation; a unit counts as one row at most, or as seven."""
    assert min(check(case, PAIRS // 2, 21 + k, k) for k in (1, 7)) > 0.99


@pytest.mark.parametrize("name", ["whitened_descent", "mean"])
def test_a_unit_in_all_groups_counts_once(name: str) -> None:
    """Rows at the bounds, as many in each group: the parts by which all move add up to 1."""
    case, common = Case(name, "units"), table(6)
    record = recorded(lambda: gate(case, common, 2), 6)
    corners = np.full((64, len(NAMES)), BOUND)
    places: list[Place] = [GROUPS[row % len(GROUPS)] for row in range(64)]
    more = pa.concat_tables([common, held(corners, places, ["new"] * 64)])
    found = moved(record, ask_groups(record, more, 2), ask_groups(record, common, 2))
    assert Fraction(99, 100) / len(GROUPS) < found.counts <= Fraction(1, len(GROUPS))


@pytest.mark.parametrize("name", ["whitened_descent", "mean"])
def test_rows_of_nobody_and_of_no_group_move_nothing(name: str) -> None:
    case, common = Case(name, "units"), table(4)
    record = recorded(lambda: gate(case, common, 2), 4)
    before = ask_groups(record, common, 2)
    corners = np.full((50, len(NAMES)), BOUND)
    nobody = held(corners, spread(50, simulation.generator(5), alone=True), [""] * 50)
    nowhere = held(corners, [("n", None)] * 50, ["new"] * 50)
    for rows in (nobody, nowhere):
        after = ask_groups(record, pa.concat_tables([rows, common]), 2)
        assert moved(record, after, before).spent == 0


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("name", ["whitened_descent", "logistic", "coinpress", "covariance"])
def test_queries_of_groups_depend_on_earlier_answers_alone(name: str, kind: str) -> None:
    """A table of other people in other groups that gave the same answers."""
    case = Case(name, kind)
    first = recorded(lambda: gate(case, table(5), 2), 6)
    again = recorded(lambda: gate(case, table(11), 2), 8, script=first.answers)
    assert _spelled(again) == _spelled(first)


def _spelled(record: GroupRecord) -> list[Any]:
    return [
        (schema.to_dict(), query.share, *map(_fact, sorted(vars(query.statistic).items())))
        for asked in record.groups
        for schema, query in asked
    ]


def _fact(named: tuple[str, Any]) -> tuple[str, Any]:
    name, fact = named
    if isinstance(fact, RowSum):
        return name, [type(fact), *map(_fact, sorted(vars(fact).items()))]
    return name, fact.tobytes() if isinstance(fact, np.ndarray) else fact


# Planted bugs: what the replay is for


def found(case: Case, k: int = 3) -> bool:
    """Return whether a replay of a few pairs sees that something is wrong."""
    try:
        check(case, 8, 9, k)
    except (AssertionError, ArithmeticError):
        return True
    return False


def weights_of_each_group(weights: Any, codes: Any, units: int, rows_per_unit: int) -> Any:
    """Weights that add up to 1 in every part of a unit's rows, and not over all of them."""
    parts = codes * 2 + np.arange(len(codes)) % 2
    return capped_weights(weights, parts, 2 * units, rows_per_unit)


@pytest.mark.parametrize("name", ["moments", "whitened_descent", "mean"])
def test_units_that_weigh_in_every_group_are_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(name, "units")
    assert not found(case)
    monkeypatch.setattr(unit_rows, "capped_weights", weights_of_each_group)
    assert found(case)


@pytest.mark.parametrize(
    "case", [Case("moments", "units"), Case("whitened_descent", "rows")], ids=str
)
def test_rows_that_count_in_two_groups_are_caught(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = exact_groups.GroupBlocks._split

    def twice(self: Any, rows: Any) -> Iterator[Any]:
        for group, own, chosen in split(self, rows):
            yield group, own, chosen
            yield (group + 1) % len(self._groups), own, chosen

    monkeypatch.setattr(exact_groups.GroupBlocks, "_split", twice)
    assert found(case)
