"""A public list of groups: chosen levels or combinations of them; all other rows are in none."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import dplinear as dpl
from curator.test_groups import COLUMNS, SCHEMA, Unread, exact, same, table
from dplinear.arguments import ArgumentError
from dplinear.curator.sources import open_reader, second_moments
from dplinear.exact.gram import Moments
from dplinear.exact.groups import GroupReduction
from dplinear.exact.weights import WHOLE
from dplinear.ledger import open_ledger
from dplinear.noise import simulation
from dplinear.report.groups import groups_panel
from dplinear.schema import Schema
from dplinear.schema.groups import By, combinations, group_codes, group_levels, read_by

PRECISE: Any = {"guarantee": dpl.ZCDP(1e14)}
WARDS: By = {"ward": ["other", "a"]}
CHOSEN: By = [{"old": True, "ward": "b"}, {"ward": "a", "old": False}, {"ward": "c", "old": True}]
LEVELS = ((False, "a"), (True, "b"), (True, "c"))  # in the order of the columns and the schema


def rows_in(data: pa.Table, ward: str, old: bool) -> pa.Table:
    """Return the rows of one group, cell by cell: what shares no code with the library."""
    kept = []
    for index, row in enumerate(data.to_pylist()):
        own = row["ward"] if row["ward"] in {"a", "b", "c"} else "other"
        if own == ward and row["old"] is old:
            kept.append(index)
    return data.take(pa.array(kept, pa.int64()))


def test_listed_groups_are_their_rows_as_tables_of_their_own() -> None:
    data, plain = table(), Schema({"x": (-1, 1), "y": (0, 3)})
    split = read_by(SCHEMA, CHOSEN, "test")
    assert split.by == ("old", "ward")
    assert group_levels(split) == LEVELS
    assert combinations(split) == 8
    for (old, ward), matrix in zip(LEVELS, exact(data, CHOSEN), strict=True):
        assert (matrix == second_moments(rows_in(data, str(ward), bool(old)), plain).integers).all()
    every = dict(zip(group_levels(read_by(SCHEMA, "ward", "t")), exact(data), strict=True))
    assert same(exact(data, WARDS), [every["a"], every["other"]])


def test_where_a_row_is_depends_on_it_alone() -> None:
    split = read_by(SCHEMA, CHOSEN, "test")
    cells = list(itertools.product((0.0, 1.0, np.nan), (0.0, 1.0, 2.0, -1.0)))
    old, ward = (np.array(each) for each in zip(*cells, strict=True))
    found = group_codes(split, {"old": old, "ward": ward}).tolist()
    expected = {(0.0, 0.0): 0, (1.0, 1.0): 1, (1.0, 2.0): 2}
    assert found == [expected.get(cell, -1) for cell in cells]


def test_codes_of_many_combinations_are_told_apart() -> None:
    names = [f"c{index}" for index in range(9)]
    levels = [f"l{index}" for index in range(49)]  # 50^9 < 2^53
    schema = Schema({"x": (0, 1), **dict.fromkeys(names, levels)})
    first, last = dict.fromkeys(names, "l0"), dict.fromkeys(names, "other")
    near = last | {"c8": "l48"}
    split = read_by(schema, [last, first, near], "test")
    assert group_levels(split) == tuple(tuple(own.values()) for own in (first, near, last))
    cells = {name: np.array([-1.0, 0.0, -1.0, 1.0]) for name in names}
    cells["c8"] = np.array([48.0, 0.0, -1.0, 1.0])
    assert group_codes(split, cells).tolist() == [1, 0, 2, -1]
    with pytest.raises(ArgumentError):
        read_by(Schema({**schema.to_dict()["columns"], "d": levels}), [last | {"d": "l0"}], "test")


@pytest.mark.parametrize("unit", [None, "id"])
def test_the_same_bits_from_every_source(unit: str | None, tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    order = simulation.generator(5).permutation(data.num_rows)
    array = np.empty((data.num_rows, 4 + bool(unit)), object)
    for index, name in enumerate(("x", "ward", "y", "old", "id")[: array.shape[1]]):
        array[:, index] = data[name].to_pylist()
    expected = exact(data, CHOSEN, unit=unit, k=2)
    for other in (data.take(order), tmp_path / "t.parquet", array, data.to_reader(50)):
        assert same(exact(other, CHOSEN, unit=unit, k=2), expected)


@pytest.mark.engine
def test_the_same_bits_from_dask(tmp_path: Path) -> None:
    import dask.dataframe as dd

    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    for unit in (None, "id"):
        expected = exact(data, CHOSEN, unit=unit)
        frame = dd.from_pandas(data.to_pandas(), npartitions=3)
        assert same(exact(frame, CHOSEN, unit=unit), expected)
        assert same(exact(tmp_path / "t.parquet", CHOSEN, unit=unit, engine="dask"), expected)


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_the_same_bits_from_spark(tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    for unit in (None, "id"):
        expected = exact(data, CHOSEN, unit=unit)
        assert same(exact(tmp_path / "t.parquet", CHOSEN, unit=unit, engine="spark"), expected)


def test_rows_in_no_group_take_nothing_of_their_units_weight() -> None:
    data = pa.table({"x": [0.5] * 4, "ward": ["a", "b", "c", "c"], "id": ["p"] * 4})
    schema = Schema({"x": (-1, 1), "ward": ["a", "b", "c"]}, unit="id")
    split = read_by(schema, {"ward": ["a", "b"]}, "test")
    passes = GroupReduction(split, [Moments(split.of_group())] * 2)
    parts = open_reader(data, split).run(passes).parts
    assert [part.count for part in parts] == [WHOLE // 2] * 2


# The gate


def release(by: By, data: pa.Table | None = None, **given: Any) -> Any:
    asked = PRECISE | given
    return dpl.release_moments(table() if data is None else data, SCHEMA, by=by, **asked)


def test_a_listed_group_has_the_release_that_it_has_among_all() -> None:
    chosen, every = release(WARDS), release("ward")
    assert list(chosen) == ["a", "other"]
    for level in chosen:
        assert np.allclose(chosen[level].values, every[level].values, atol=1e-4)
    assert chosen.listed
    assert not every.listed
    with pytest.raises(KeyError):
        chosen["b"]
    assert set(chosen.differences("y", ["x"])) == {"other"}


def test_releases_say_that_groups_were_listed(tmp_path: Path) -> None:
    groups = release(CHOSEN)
    parameters = groups.certificate.parameters
    assert (parameters["groups"], parameters["combinations"]) == (3, 8)
    assert groups.summary().startswith("3 of 8 groups by old, ward")
    assert any("listed" in note for note in groups[True, "b"].certificate.notes)
    groups.save(tmp_path / "g.json")
    loaded = dpl.load(tmp_path / "g.json", kind="groups")
    assert loaded.listed
    assert loaded.levels == LEVELS
    assert loaded.describe() == groups.describe()
    assert "in none of them" in groups_panel(groups).text


def test_pooled_groups_are_the_listed_ones_and_say_so() -> None:
    groups = release(CHOSEN)
    pooled = groups.pooled()
    assert np.allclose(pooled.values, sum(each.values for each in groups.values()))
    assert any("listed groups only" in note for note in pooled.certificate.notes)
    assert not any("listed" in note for note in release("ward").pooled().certificate.notes)
    effects = groups.pooled(fixed_effects=True)
    assert effects.schema.names == ("intercept", "x", "y", "old=true", "ward=b", "ward=c")
    assert effects.certificate == pooled.certificate


def test_a_column_of_one_level_has_no_effect_of_its_own() -> None:
    groups = release({"ward": ["a", "b"], "old": [True]})
    whole = groups.pooled(fixed_effects=True)
    assert whole.schema.names == ("intercept", "x", "y", "ward=b")
    data = table()
    own = pa.concat_tables([rows_in(data, "a", True), rows_in(data, "b", True)])
    ward = {"type": "category", "levels": ["a", "b"], "other": "a"}
    plain = Schema({"x": (-1, 1), "y": (0, 3), "ward": ward})
    expected = dpl.release_moments(own, plain, **PRECISE)
    assert np.allclose(whole.values, expected.values, atol=1e-3)
    with pytest.raises(ArgumentError):
        release({"ward": "a", "old": True}).pooled(fixed_effects=True)


def test_joined_groups_are_listed_alike() -> None:
    first, second, every = release(WARDS), release(WARDS, table(1)), release("ward", table(2))
    both = dpl.join([first, second], disjoint=True)
    assert both.listed
    assert both.levels == ("a", "other")
    with pytest.raises(ArgumentError):
        dpl.join([first, every], disjoint=True)
    odd = Schema(COLUMNS | {"ward": {"type": "category", "levels": ["a", "z"], "other": "z"}})
    other = dpl.release_moments(table(), odd, by={"ward": ["a"]}, **PRECISE)
    with pytest.raises(ArgumentError):
        dpl.join([release({"ward": "a"}), other], disjoint=True)


SPELLINGS: list[tuple[Any, Any]] = [
    ({"ward": ["a", "other"]}, [{"ward": "other"}, {"ward": "a"}]),
    ({"ward": ["a", "b", "c", "other"]}, "ward"),
    ({"old": True, "ward": ["a", "b"]}, [{"old": 1, "ward": "b"}, {"ward": "a", "old": "yes"}]),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_one_list_is_one_request_however_it_is_written(one: By, other: By, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "b.db", create=True)
    ledger.declare("t", dpl.ZCDP(1.0))
    given: Any = {"guarantee": dpl.ZCDP(0.25), "ledger": ledger, "dataset": "t", "request": "r"}
    made = release(one, **given)
    assert release(other, **given).describe() == made.describe()
    assert [status.releases for status in ledger.status()] == [1]


def test_another_list_is_another_request(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "b.db", create=True)
    ledger.declare("t", dpl.ZCDP(1.0))
    given: Any = {"guarantee": dpl.ZCDP(0.25), "ledger": ledger, "dataset": "t", "request": "r"}
    release({"ward": ["a", "b"]}, **given)
    for other in ({"ward": ["a", "c"]}, {"ward": "a"}, "ward"):
        with pytest.raises(Exception, match="request"):
            release(other, **given)


@pytest.mark.parametrize("gate", ["model", "mean", "covariance"])
def test_models_and_means_take_a_list(gate: str) -> None:
    data = table(rows=3_000)
    columns = {"x": (-2, 2), "ward": ["a", "b", "c"], "y": (0, 4)}
    given: Any = {"guarantee": dpl.ZCDP(1e9)}
    if gate == "model":
        every, chosen = (
            dpl.release_model(data, columns, "y", by=by, **given) for by in ("ward", WARDS)
        )
        pairs = [(every[level]["x"], chosen[level]["x"]) for level in chosen]
    else:
        release_: Any = dpl.release_mean if gate == "mean" else dpl.release_covariance
        every, chosen = (release_(data, columns, by=by, **given) for by in ("ward", WARDS))
        pairs = [(every[level].mean["x"], chosen[level].mean["x"]) for level in chosen]
    assert list(chosen) == ["a", "other"]
    assert all(one == pytest.approx(other, abs=0.02) for one, other in pairs)


@pytest.mark.parametrize(
    "by",
    [
        {},
        {"ward": []},
        {"ward": ["a", "a"]},
        {"ward": ["z"]},
        {"ward": [None]},
        {"ward": [["a"]]},
        {"old": [True, 1]},
        {"x": [0.5]},
        {"nobody": ["a"]},
        {3: ["a"]},
        [{"ward": "a"}, {"old": True}],
        [{"ward": "a"}, {"ward": "a", "old": True}],
        [{"ward": "a"}, "old"],
        [{"ward": ["a", "b"]}],
        [{}],
    ],
    ids=str,
)
def test_wrong_lists_are_refused_before_anything_is_spent(by: Any, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "b.db", create=True)
    ledger.declare("t", dpl.ZCDP(1.0))
    unread: Any = Unread()
    with pytest.raises(ArgumentError) as raised:
        release(by, unread, guarantee=dpl.ZCDP(0.1), ledger=ledger, dataset="t")
    assert raised.value.parameter == "by"
    assert [status.releases for status in ledger.status()] == [0]
