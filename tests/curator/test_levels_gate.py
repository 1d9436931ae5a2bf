"""Levels that nobody can list: what is released, of which counts, and what one person changes."""

import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dplinear as dpl
from dplinear.arguments import ArgumentError
from dplinear.curator.gates import levels as gate
from dplinear.curator.level_table import CountedLevels
from dplinear.curator.sources import level_records, open_reader, spool
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ZCDP, PureDP
from dplinear.schema import Schema
from refusals import refused

ROWS = 6000
CITIES = ["Aachen", "Berlin", "Köln", "other", "NA", "01/02/2020"]
PRIVATE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
EVERY: tuple[dict[str, Any], ...] = ({}, {"unit": "id", "rows_per_unit": 2})


def table(rows: int = ROWS, seed: int = 1) -> pa.Table:
    random = simulation.generator(seed)
    return pa.table(
        {
            "city": random.choice(CITIES, rows, p=[0.4, 0.2, 0.15, 0.15, 0.05, 0.05]),
            "ward": random.integers(0, 4, rows).astype(float),
            "name": [f"person {index}" for index in range(rows)],
            "id": random.integers(0, rows // 3, rows),
        }
    )


def suggested(data: Any, columns: Any = ("city", "ward", "name"), **more: Any) -> Any:
    with simulation.door(5):
        return dpl.suggest_levels(data, list(columns), **(PRIVATE | more))


@pytest.mark.parametrize("unit", [{}, {"unit": "id"}, {"unit": "id", "rows_per_unit": 3}])
def test_frequent_levels_are_found_and_rare_ones_are_not(unit: dict[str, Any]) -> None:
    found = suggested(table(), **unit)
    assert set(found.found["city"]) == {"Aachen", "Berlin", "Köln", "other"}
    assert found.found["city"][0] == "Aachen"
    assert sorted(found.found["ward"]) == ["0", "1", "2", "3"]
    assert found.found["name"] == ()
    assert found.certificate.holds == dpl.ApproxDP(1.0, 1e-6)
    assert found.certificate.unit == unit.get("unit")


def test_the_result_is_a_declaration() -> None:
    found = suggested(table())
    schema = Schema({"age": (0, 100), "city": found["city"]}, derived=["age*city"])
    assert "city=other" in schema.names
    assert (
        getattr(schema.declared["city"], "other", None) == "other"
    )  # a level of that name is joined
    assert found.schema.columns == ("city", "ward")
    moments = dpl.release_moments(table(), found.schema, **PRIVATE)
    assert moments.schema == found.schema
    with refused("column", "suggested levels", "one of which levels were found"):
        found["name"]
    with refused("column", "suggested levels", "one of city, ward, name"):
        found["nowhere"]


def test_files_hold_it(tmp_path: Path) -> None:
    for found in (suggested(table(), unit="id"), suggested(table(), ["name"])):
        found.save(tmp_path / "levels.json", overwrite=True)
        again = dpl.load(tmp_path / "levels.json", kind="levels")
        assert again == found
        assert again.describe() == found.describe()
    suggested(table()).save(tmp_path / "schema.json")
    assert Schema.from_file(tmp_path / "schema.json").columns == ("city", "ward")


# An oracle: plain Python, which shares no code with what is tested.


Counts = Counter[tuple[str, str]]


def oracle(rows: list[dict[str, Any]], columns: list[str], unit: str | None, most: int) -> Counts:
    """Return how many units hold each level, of texts that are nothing but texts."""
    counts: Counts = Counter()
    if unit is None:
        for row in rows:
            counts.update((c, row[c]) for c in columns if row[c] is not None)
        return counts
    own: dict[Any, dict[str, Counter[str]]] = {}
    for row in rows:
        if row[unit] is None:
            continue
        mine = own.setdefault(row[unit], {c: Counter() for c in columns})
        for c in columns:
            if row[c] is not None:
                mine[c][row[c]] += 1
    for mine in own.values():
        for c in columns:
            ranked = sorted(mine[c].items(), key=lambda each: (-each[1], each[0].encode()))
            counts.update((c, level) for level, _ in ranked[:most])
    return counts


def counted(data: Any, columns: list[str], unit: str | None, most: int = 1) -> Counts:
    names = columns if unit is None else [*columns, unit]
    schema = Schema(dict.fromkeys(names, gate._ANY))
    found = CountedLevels(open_reader(data, schema), schema, unit, most)
    counts: Counts = Counter()
    for bucket in found.buckets():
        for index, level, count in zip(bucket.columns, bucket.levels, bucket.counts, strict=True):
            assert (columns[index], level) not in counts
            counts[columns[index], level] = int(count)
    return counts


def panel(random: Any, people: int = 40) -> list[dict[str, Any]]:
    """Return rows of people who have from 0 to 200 rows, of levels that few or many share."""
    rows = []
    for person in range(people):
        size = int(random.choice([0, 1, 1, 2, 5, 40, 200]))
        wide = int(random.choice([1, 2, 3, 300]))
        for _ in range(size):
            city = f"c{random.integers(wide)}" if random.random() < 0.9 else None
            own = f"p{person} {random.integers(wide)}"
            rows.append({"a": city, "b": own, "id": f"id {person}"})
    rows += [{"a": "c0", "b": "lost", "id": None}] * 3
    return rows


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("most", [1, 3])
def test_counts_are_those_of_plain_python(unit: str | None, most: int) -> None:
    random = simulation.generator(9)
    for _ in range(5):
        rows = panel(random)
        data = pa.Table.from_pylist(rows)
        assert counted(data, ["a", "b"], unit, most) == oracle(rows, ["a", "b"], unit, most)


@pytest.mark.parametrize("most", [1, 4])
def test_one_unit_changes_as_many_counts_as_it_may_and_by_one(most: int) -> None:
    """Replayed with and without a person, adversarial ones too: reached, and never beyond."""
    random, reached = simulation.generator(3), 0
    for _ in range(40):
        rows = panel(random, people=12)
        person = f"id {random.integers(12)}"
        others = [row for row in rows if row["id"] != person]
        with_, without = (
            counted(pa.Table.from_pylist(some, schema=PANEL), ["a", "b"], "id", most)
            for some in (rows, others)
        )
        changes = [with_[key] - without[key] for key in with_ | without]
        assert set(changes) <= {0, 1}
        assert sum(changes) <= 2 * most
        reached += sum(changes) == 2 * most
    assert reached


PANEL = pa.schema([("a", pa.string()), ("b", pa.string()), ("id", pa.string())])


def test_a_row_changes_one_count_of_each_column() -> None:
    rows = panel(simulation.generator(4))
    whole = counted(pa.Table.from_pylist(rows, schema=PANEL), ["a", "b"], None)
    for index in range(0, len(rows), max(1, len(rows) // 12)):
        less = rows[:index] + rows[index + 1 :]
        changed = counted(pa.Table.from_pylist(less, schema=PANEL), ["a", "b"], None)
        difference = {key: whole[key] - changed[key] for key in whole}
        assert sorted(Counter(difference.values()) - Counter({0: len(whole)})) in ([], [1])
        assert sum(difference.values()) == sum(rows[index][c] is not None for c in "ab")


def noted(written: list[int], records: pa.Table) -> bytes:
    """Take note of what is written to a file, and return it."""
    written.append(records.num_rows)
    return TO_BYTES(records)


TO_BYTES = level_records.to_bytes


def test_the_same_bits_in_any_order_from_any_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table()
    shuffled = data.take(simulation.generator(8).permutation(ROWS))
    pq.write_table(shuffled, tmp_path / "table.parquet", row_group_size=700)
    for unit in EVERY:
        first = suggested(data, **unit)
        assert suggested(shuffled, threads=3, **unit) == first
        assert suggested(str(tmp_path / "table.parquet"), **unit) == first
        with monkeypatch.context() as patch:  # all records wait in files
            patch.setattr(level_records, "_FLUSH", 2**12)
            patch.setattr(level_records.RecordSpool.__init__, "__defaults__", (2**12,))
            written: list[int] = []
            patch.setattr(level_records, "to_bytes", partial(noted, written))
            assert suggested(data, **unit) == first
            assert len(written) >= 64


def test_hashes_that_are_equal_merge_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = panel(simulation.generator(2))
    monkeypatch.setattr(spool, "hashes", lambda keys: np.zeros(len(keys), np.uint64))
    data = pa.Table.from_pylist(rows)
    assert counted(data, ["a", "b"], "id", 2) == oracle(rows, ["a", "b"], "id", 2)


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.usefixtures("spark")
def test_spark_finds_the_same_bits(tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    data = table()
    pq.write_table(data, tmp_path / "table.parquet", row_group_size=900)
    session = SparkSession.builder.getOrCreate()
    assert session is not None
    frame = session.read.parquet(str(tmp_path / "table.parquet")).repartition(3)
    unit = EVERY[1]
    assert suggested(frame, **unit) == suggested(data, **unit)
    assert suggested(str(tmp_path / "table.parquet"), engine="spark") == suggested(data)


@pytest.mark.engine
def test_dask_finds_the_same_bits(tmp_path: Path) -> None:
    import dask.dataframe as dd

    data = table()
    pq.write_table(data, tmp_path / "table.parquet", row_group_size=900)
    frame = dd.from_pandas(data.to_pandas(), npartitions=3)
    for unit in EVERY:
        first = suggested(data, **unit)
        assert suggested(frame, **unit) == first
        assert suggested(str(tmp_path / "table.parquet"), engine="dask", **unit) == first


ODD: dict[str, Any] = {
    "empty": [],
    "nulls": [None] * 50,
    "long": ["x" * 201] * 900 + ["x" * 200] * 900,
    "unprintable": ["a\nb"] * 900 + ["\ufeff"] * 900,
    "not UTF-8": pa.array([b"\xff\xfe"] * 900, pa.binary()),
    "infinite": ["inf", "-inf", "nan"] * 400,
    "lists": [[1], [2]] * 400,
    "dates": ["2020-01-01"] * 900 + ["2021-01-01T12:00"] * 900,
    "long numbers": ["12345678901234567890"] * 900 + ["12345678901234567891"] * 900,
    "words": ["Yes", "true", "T", "1", "1.0", "no", "NULL", ""] * 300,
}


@pytest.mark.parametrize("case", ODD)
def test_no_cell_raises_and_every_level_can_be_declared(case: str) -> None:
    cells = ODD[case]
    column = cells if isinstance(cells, pa.Array) else pa.array(cells)
    found = suggested(pa.table({"x": column}), ["x"], epsilon=2.0)
    expected = {
        "long": {"x" * 200},
        "dates": {"2020-01-01", "2021-01-01T12:00:00+00:00"},
        "long numbers": {"1.2345678901234567e+19"},
        "words": {"1", "0"},
    }
    assert set(found.found["x"]) == expected.get(case, set())
    if found.found["x"]:
        schema = Schema({"x": found["x"]})
        gram = dpl.curator.second_moments(pa.table({"x": column}), schema).cells()
        assert gram.shape[0] == schema.dimension


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "privacy": ({"epsilon": None, "delta": None}, "'epsilon' parameter of suggest_levels"),
    "pure": ({"delta": None}, "'delta' parameter of suggest_levels"),
    "zcdp": ({"epsilon": None, "delta": None, "guarantee": ZCDP(0.1)}, "of suggest_levels"),
    "both": ({"guarantee": PureDP(1.0)}, "'guarantee' parameter of suggest_levels"),
    "text": ({"columns": "city"}, "'columns' parameter of suggest_levels"),
    "none": ({"columns": []}, "'columns' parameter of suggest_levels"),
    "twice": ({"columns": ["city", "city"]}, "given twice"),
    "like a level": ({"columns": ["city", "city=x"]}, "names like those of levels"),
    "own unit": ({"columns": ["city", "id"], "unit": "id"}, "free of the unit's own column"),
    "absent": ({"columns": ["nowhere"]}, "'data' parameter"),
    "rows": ({"rows_per_unit": 2}, "'rows_per_unit' parameter of suggest_levels"),
    "most": ({"most_levels": 0}, "'most_levels' parameter"),
    "too many": ({"most_levels": 9000}, "fewer than 8,192 levels"),
    "own option": ({"levels_per_unit": 3}, "'levels_per_unit' parameter of suggest_levels"),
    "option": ({"steps": 3}, "'steps' parameter of suggest_levels"),
    "cells": ({"neighbours": "element"}, "'neighbours' parameter of suggest_levels"),
    "hopeless": ({"epsilon": 1e-9, "delta": 1e-12}, "within reach"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_before_anything_is_spent(case: str) -> None:
    changed, message = WRONG[case]
    given = PRIVATE | {"columns": ["city"]} | changed
    with dpl.tally() as spent, pytest.raises(ArgumentError, match=message):
        dpl.suggest_levels(table(50), given.pop("columns"), **given)
    assert len(spent) == 0


def test_a_ledger_counts_it_and_returns_it_again(tmp_path: Path) -> None:
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("visits", dpl.ApproxDP(1.5, 1e-5), unit="id")
    given: dict[str, Any] = {
        "ledger": os.fspath(tmp_path / "budget.db"),
        "dataset": "visits",
        "request": "one",
    }
    first = dpl.suggest_levels(table(), ["city"], unit="id", **PRIVATE, **given)
    assert dpl.suggest_levels(table(20), ["city"], unit="id", **PRIVATE, **given) == first
    assert [status.releases for status in ledger.status()] == [1]
    with pytest.raises(dpl.BudgetExceededError):
        dpl.suggest_levels(table(), ["city"], unit="id", **PRIVATE, **(given | {"request": "two"}))


def test_most_levels_keeps_the_most_frequent() -> None:
    few, all_ = suggested(table(), most_levels=2), suggested(table())
    assert few.found["city"] == all_.found["city"][:2]
    assert few.counts["city"] == all_.counts["city"][:2]
