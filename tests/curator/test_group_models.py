"""Models, means and covariances of groups: in step over one table, for the price of one."""

import threading
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.adaptive.noisy_sums import VARIANCE, Budget, NoisySums, Query, _Noise, _scale
from dplinear.arguments import ArgumentError
from dplinear.curator.in_step import InStep
from dplinear.curator.passes import Table, open_table
from dplinear.curator.sources import open_reader
from dplinear.curator.windows import Windowed
from dplinear.exact.row_sums import ClippedGram, Count, LeftOut
from dplinear.exact.weights import WHOLE
from dplinear.ledger import open_ledger
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.groups import read_by
from exact.oracles import square

COLUMNS: dict[str, Any] = {"x": (-5, 5), "ward": ["a", "b", "c"], "y": (-5, 5)}
SCHEMA = Schema(COLUMNS)
INNER = Schema({"x": (-5, 5), "y": (-5, 5)})
BUDGET: Any = {"epsilon": 1.0, "delta": 1e-6}
PRECISE: Any = {"guarantee": dpl.ZCDP(1e9)}
LEVELS = ("a", "b", "c", "other")
GATES: dict[str, Any] = {
    "whitened_descent": lambda data, **given: dpl.release_model(data, SCHEMA, "y", **given),
    "huber": lambda data, **given: dpl.release_model(data, SCHEMA, "y", loss="huber", **given),
    "logistic": lambda data, **given: dpl.release_model(
        data, SCHEMA, "y", loss="logistic", **given
    ),
    "coinpress": lambda data, **given: dpl.release_model(
        data, SCHEMA, "y", mechanism="coinpress", **given
    ),
    "mean": lambda data, **given: dpl.release_mean(data, SCHEMA, **given),
    "covariance": lambda data, **given: dpl.release_covariance(data, SCHEMA, **given),
}


def table(seed: int = 0, rows: int = 300) -> pa.Table:
    random = simulation.generator(seed)
    wards = [("a", "b", "", "elsewhere")[code] for code in random.integers(0, 4, rows)]
    x = random.normal(0, 1, rows)
    slopes = np.where(np.array(wards) == "a", 2.0, -1.0)
    people = [f"p{number}" for number in random.integers(0, 30, rows)]
    y = slopes * x + random.normal(0, 0.5, rows)
    return pa.table({"x": x, "y": y, "ward": wards, "id": people})


def rows_of(data: pa.Table, ward: str) -> pa.Table:
    held = [name if name in {"a", "b", "c"} else "other" for name in data["ward"].to_pylist()]
    return data.filter(pa.array([name == ward for name in held], pa.bool_()))


def statistics(group: int, step: int, shape: Any) -> list[Any]:
    return [Count(), ClippedGram(shape, [0, 1], 0.3 * (group + 1) + step), LeftOut()]


def test_sums_in_step_are_those_of_each_groups_own_table() -> None:
    data, split = table(), read_by(SCHEMA, "ward", "test")
    numbers = iter(range(4))

    def ask(held: Table) -> list[Any]:
        group = next(numbers)
        # Groups ask as often as they like: the third not at all.
        steps = (3, 1, 0, 2)[group]
        return [held.sums(statistics(group, step, held.shape)) for step in range(steps)]

    def opened(schema: Schema) -> Any:
        return open_reader(data, schema, again=True)

    found = InStep(opened, split, 4, lambda reader: Table(reader, INNER)).each(ask)
    assert [len(each) for each in found] == [3, 1, 0, 2]
    for group, level in enumerate(LEVELS):
        own = open_table(rows_of(data, level), INNER)
        for step, sums in enumerate(found[group]):
            expected = own.sums(statistics(group, step, own.shape))
            assert all((one == other).all() for one, other in zip(sums, expected, strict=True))


@pytest.mark.parametrize("unit", [None, "id"])
def test_groups_have_windows_of_their_own(unit: str | None) -> None:
    """With units, rows are weighed over all groups: all of them together are the whole table."""
    data, inner = table(), INNER.with_unit(unit)
    split = read_by(SCHEMA.with_unit(unit), "ward", "test")
    windows = [(-1.0 - group, 2.0 + group) if unit is None else (-1.0, 2.0) for group in range(4)]
    numbers = iter(range(4))

    def ask(held: Windowed) -> list[Any]:
        found, (low, high) = [], windows[next(numbers)]
        for far in (0.0, 1.0, 1.0, 0.0):
            view = held.through(np.full(2, low - far), np.full(2, high + far))
            found.append((view.sums([ClippedGram(view.shape, [0, 1, 2], 1.5)])[0], view.schema))
        return found

    def opened(schema: Schema) -> Any:
        return open_reader(data, schema, again=True)

    found = InStep(opened, split, 4, lambda reader: Windowed(lambda _: reader, inner)).each(ask)
    for step in range(4):
        if unit is not None:
            schema = found[0][step][1]
            whole = open_table(data, schema)
            expected = whole.sums([ClippedGram(whole.shape, [0, 1, 2], 1.5)])[0]
            assert (sum(each[step][0] for each in found) == expected).all()
            continue
        for level, each in zip(LEVELS, found, strict=True):
            sums, schema = each[step]
            own = open_table(rows_of(data, level), schema)
            assert (sums == own.sums([ClippedGram(own.shape, [0, 1, 2], 1.5)])[0]).all()


def test_a_missing_cell_in_a_groups_window_is_its_columns_constant() -> None:
    data = pa.table({"x": [None, 1.0, None], "y": [0.0, 1.0, 2.0], "ward": ["a", "a", "b"]})
    split = read_by(SCHEMA, "ward", "test")
    schemas = [
        Schema({"x": {"low": low, "high": 5, "missing": 4.5}, "y": (-5, 5)}) for low in (1, 2, 3, 4)
    ]
    parts = InStep(lambda schema: open_reader(data, schema), split, 4, lambda reader: reader)
    waiting = iter(schemas)

    def ask(reader: Any) -> Any:
        schema = next(waiting)
        return Table(reader, schema).sums([ClippedGram(Table(reader, schema).shape, [1], 1.0)])

    for schema, level, (found,) in zip(schemas, LEVELS, parts.each(ask), strict=True):
        own = open_table(rows_of(data, level), schema)
        assert (found == own.sums([ClippedGram(own.shape, [1], 1.0)])[0]).all()


def test_what_one_group_raises_ends_all_of_them() -> None:
    split, before = read_by(SCHEMA, "ward", "test"), threading.active_count()
    numbers = iter(range(4))

    def ask(held: Table) -> Any:
        held.sums([Count()])
        if next(numbers) == 2:
            raise ZeroDivisionError
        return held.sums([Count()])

    groups = InStep(
        lambda schema: open_reader(table(), schema), split, 4, lambda r: Table(r, INNER)
    )
    with pytest.raises(ZeroDivisionError):
        groups.each(ask)
    assert threading.active_count() == before


@pytest.mark.parametrize("name", GATES)
def test_a_group_with_little_noise_is_its_table_with_little_noise(name: str) -> None:
    data = table(rows=3_000)
    groups = GATES[name](data, by="ward", **PRECISE)
    assert groups.levels == LEVELS
    own = dpl.Schema({"x": (-5, 5), "y": (-5, 5)})
    for level in ("a", "b", "other"):
        part = rows_of(data, level)
        given: Any = {"loss": name} if name in {"huber", "logistic"} else {}
        if name in {"mean", "covariance"}:
            gate: Any = dpl.release_mean if name == "mean" else dpl.release_covariance
            one, other = groups[level], gate(part, own, **PRECISE)
            assert np.allclose(one.mean.values, other.mean.values, atol=0.02)
        else:
            given |= {"mechanism": name} if name == "coinpress" else {}
            one, other = groups[level], dpl.release_model(part, own, "y", **given, **PRECISE)
            assert one.coefficients["x"] == pytest.approx(other.coefficients["x"], abs=0.02)
        assert one.schema.columns == ("x", "y")
        assert one.rows is None


def test_the_same_bits_in_any_order_of_rows_and_of_runs() -> None:
    data, order = table(), simulation.generator(1).permutation(300)
    for name in ("whitened_descent", "mean"):
        made = []
        for held in (data, data, data.take(order)):
            with simulation.door(5):
                made.append(GATES[name](held, by="ward", **BUDGET))
        texts = [[each.describe() for each in groups.values()] for groups in made]
        assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("name", [*GATES, "adassp"])
def test_groups_under_replace_say_no_number_of_rows(name: str, unit: str | None) -> None:
    given: Any = {"neighbours": "replace", "unit": unit, **BUDGET}
    if name == "adassp":
        name, given["mechanism"] = "whitened_descent", "adassp"
    groups = GATES[name](table(), by="ward", **given)
    assert groups.certificate.neighbours is Neighbours.REPLACE
    for release in groups.values():
        assert release.rows is None
        assert not release.count or not float(release.count).is_integer()


def test_groups_under_replace_are_those_of_add_remove_with_more_noise() -> None:
    data = table(rows=3_000)
    for name, gate in GATES.items():
        groups = gate(data, by="ward", neighbours="replace", **PRECISE)
        other = gate(data, by="ward", **PRECISE)
        for level in ("a", "b", "other"):
            one, two = groups[level], other[level]
            if name in {"mean", "covariance"}:
                assert np.allclose(one.mean.values, two.mean.values, atol=0.02)
            else:
                assert one["x"] == pytest.approx(two["x"], abs=0.02)


@pytest.mark.engine
@pytest.mark.parametrize("unit", [None, "id"])
def test_the_same_bits_from_dask(unit: str | None) -> None:
    import dask.dataframe as dd

    data = table()
    frame = dd.from_pandas(data.to_pandas(), npartitions=3)
    texts = []
    for held in (data, frame):
        with simulation.door(5):
            made = GATES["mean"](held, by="ward", unit=unit, **BUDGET)
        texts.append([each.describe() for each in made.values()])
    assert texts[0] == texts[1]


def test_models_of_groups_are_one_line_of_the_ledger_and_one_file(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "b.db", create=True)
    ledger.declare("t", dpl.ZCDP(1.0))
    given: Any = {"guarantee": dpl.ZCDP(0.25), "ledger": ledger, "dataset": "t", "request": "r"}
    groups = GATES["whitened_descent"](table(), by="ward", **given)
    (status,) = ledger.status()
    assert (status.releases, status.budget.text(status.spent)) == (1, "ρ = 0.25")
    again = GATES["whitened_descent"](table(1), by=["ward"], **given)
    groups.save(tmp_path / "g.json")
    for other in (again, dpl.load(tmp_path / "g.json", kind="groups")):
        assert other.describe() == groups.describe()
        for level in groups:
            assert other[level].describe() == groups[level].describe()
            assert other[level].certificate == groups[level].certificate
    assert "rows_left_out" in groups["a"].certificate.parameters


@pytest.mark.parametrize(
    ("gate", "given"),
    [
        ("mean", {"by": "x"}),
        ("covariance", {"by": "id", "unit": "id"}),
        ("one_group", {"unit": "id"}),
        ("one_group", {"neighbours": "replace"}),
        ("clustered", {"errors": "clustered"}),
    ],
)
def test_what_has_no_proof_is_refused_before_anything_is_spent(
    gate: str, given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(tmp_path / "b.db", create=True)
    ledger.declare("t", dpl.ZCDP(1.0), given.get("neighbours", "add_remove"))

    class Unread:
        def __arrow_c_stream__(self, requested: Any = None) -> Any:
            raise AssertionError("a table was opened")

    asked: Any = {"by": "ward", "ledger": ledger, "dataset": "t", **BUDGET, **given}
    if gate == "one_group":  # a mechanism that claims no proof for several groups
        monkeypatch.setattr(AdaSSP, "for_groups", False)
        asked["mechanism"] = "adassp"
    call = GATES.get(gate, GATES["whitened_descent"])
    with pytest.raises(ArgumentError) as raised:
        call(Unread(), **asked)
    assert raised.value.parameter == ("errors" if gate == "clustered" else "by")
    assert [status.releases for status in ledger.status()] == [0]


def test_models_in_a_set_have_no_groups() -> None:
    given: Any = {"row_norm": 1.0, "constraint": 1.0, "by": "x", **BUDGET}
    with pytest.raises(ArgumentError) as raised:
        dpl.release_model(np.zeros((3, 2)), target=np.zeros(3), **given)
    assert raised.value.parameter == "by"


# How far a unit moves all groups together


class Record:
    """What each group asked, pass by pass, and with which budget."""

    def __init__(self) -> None:
        self.groups: dict[int, list[tuple[Schema, Sequence[Query]]]] = {}
        self.budget: Budget | None = None


def recorded(name: str, data: pa.Table, k: int) -> Record:
    record, ask = Record(), NoisySums.ask
    chains: list[Any] = []

    def listen(self: Any, queries: Sequence[Query], rows: Any = None) -> Any:
        if not any(self is chain for chain in chains):
            chains.append(self)
        group = next(i for i, chain in enumerate(chains) if chain is self)
        schema = (self._rows if rows is None else rows).schema
        record.groups.setdefault(group, []).append((schema, queries))
        record.budget = self.budget
        return ask(self, queries, rows)

    with pytest.MonkeyPatch.context() as patch, simulation.door(3):
        patch.setattr(NoisySums, "ask", listen)
        given: Any = {"guarantee": dpl.ZCDP(2.0), "unit": "id", "rows_per_unit": k}
        GATES[name](data, by="ward", **given)
    return record


def replayed(record: Record, data: pa.Table, k: int) -> list[list[list[Any]]]:
    """Return the sums of each group that it asked for."""
    split = read_by(SCHEMA.with_unit("id"), "ward", "test")
    numbers = iter(range(4))

    def ask(reader: Any) -> list[Any]:
        return [
            Table(reader, schema).sums([query.statistic for query in queries])
            for schema, queries in record.groups[next(numbers)]
        ]

    def opened(schema: Schema) -> Any:
        return open_reader(data, schema, again=True, rows_per_unit=k, threads=1)

    return InStep(opened, split, 4, lambda reader: reader).each(ask)


def spent(record: Record, one: Any, other: Any) -> Fraction:
    """Return μ² as it was spent between two tables, over all groups, on integers."""
    assert record.budget is not None
    total = Fraction(0)
    for group, asked in record.groups.items():
        for (_, queries), first, second in zip(asked, one[group], other[group], strict=True):
            for query, a, b in zip(queries, first, second, strict=True):
                scale = _Noise.of(query, record.budget, WHOLE).scale
                if scale is not None:
                    total += square(_scale(a, scale) - _scale(b, scale))
    return total / VARIANCE


def unit_rows(random: Any, rows: int, wards: list[str]) -> pa.Table:
    signs = random.choice([-5.0, 5.0, 1e300, np.nan], (2, rows))
    held = [wards[code] for code in random.integers(0, len(wards), rows)]
    cells = {"x": signs[0], "y": np.nan_to_num(signs[1], nan=1.0)}
    return pa.table({**cells, "ward": held, "id": ["new"] * rows})


@pytest.mark.parametrize("name", ["whitened_descent", "mean"])
def test_a_unit_in_several_groups_spends_no_more_than_the_budget(name: str) -> None:
    data, k, random = table(rows=150), 2, simulation.generator(9)
    record = recorded(name, data, k)
    assert record.budget is not None
    assert sorted(record.groups) == [0, 1, 2, 3]
    assert record.budget.groups == 4
    # In the limit of declared noise: what the profile is of.
    allowed = record.budget.square + 12 * record.budget.inverse
    before, most = replayed(record, data, k), Fraction(0)
    for rows, wards in ((1, ["a"]), (2, ["b"]), (7, ["a", "b", "c", "none"]), (60, ["a", "c"])) * 2:
        more = pa.concat_tables([data, unit_rows(random, rows, wards).select(data.column_names)])
        found = spent(record, before, replayed(record, more, k))
        assert found <= allowed
        most = max(most, found)
    assert most > allowed / 50  # random rows are far from the worst; units of one group are above


def test_a_chain_of_groups_counts_the_rounding_of_each() -> None:
    one = Budget.of(dpl.ZCDP(0.5), 1_000, Neighbours.ADD_REMOVE, "test")
    many = Budget.of(dpl.ZCDP(0.5), 1_000, Neighbours.ADD_REMOVE, "test", 5)
    assert one.square == 1
    assert many.square == 1 - 16 * many.inverse
    assert many.profile.mu == one.profile.mu
    assert many.profile.inverse_variance >= 5 * one.profile.inverse_variance * (1 - 1e-9)
