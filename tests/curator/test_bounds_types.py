"""Columns that hold no numbers have no bounds to be found: what is refused, when, and by what."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dplinear as dpl
from dplinear.noise import simulation

ROWS = 60
TABLE = pa.table(
    {
        "age": pa.array(np.arange(ROWS), pa.int64()),
        "city": pa.array(["here", "there"] * (ROWS // 2)),
        "ward": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
        "day": pa.array([dt.date(2020, 1, 1)] * ROWS),
        "when": pa.array([dt.datetime(2020, 1, 1)] * ROWS),
        "all": pa.array([[1.0]] * ROWS),
        "paid": pa.array([1.5] * ROWS),
        "none": pa.nulls(ROWS),
    }
)


def refused(data: Any, columns: list[str], **more: Any) -> str:
    with dpl.tally() as spent, pytest.raises(ValueError, match="suggest_bounds") as told:
        dpl.suggest_bounds(data, columns, rho=0.1, **more)
    assert len(spent) == 0
    return str(told.value)


@pytest.mark.parametrize("declared", [["no", "yes"], ("2020-01-01", "2024-12-31")])
def test_a_declared_category_or_date_is_refused_by_name(declared: Any) -> None:
    told = refused(TABLE, ["age", "city"], within={"city": declared})
    assert "'within' parameter of suggest_bounds must be bounds of numbers" in told
    assert "'city'" in told
    assert "Nothing was spent" in told


@pytest.mark.parametrize("name", ["city", "ward", "day", "when", "all"])
def test_public_types_refuse_what_is_no_number(name: str, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "table.parquet")
    with pa.ipc.new_file(str(tmp_path / "table.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE)
    for data in (TABLE, str(tmp_path / "table.parquet"), str(tmp_path / "table.arrow")):
        told = refused(data, ["age", name], public_types=True)
        assert f"{name} (" in told
        assert "age (" not in told


def test_numbers_pass_and_the_answer_is_the_same() -> None:
    answers = []
    for public in (False, True):
        with simulation.door(5):
            found = dpl.suggest_bounds(TABLE, ["age", "paid", "none"], rho=0.1, public_types=public)
            answers.append(found.schema)
    assert answers[0] == answers[1]


def test_types_are_not_public_unless_someone_says_so() -> None:
    """A library may have made text of a column of numbers because of one cell."""
    spoilt = pa.table({"age": pa.array([*map(str, range(ROWS)), "?"])})
    found = dpl.suggest_bounds(spoilt, ["age"], rho=0.1)
    assert found.schema.columns == ("age",)


def test_a_table_without_types_has_none_that_are_public(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("age\n1\n2\n")
    for data in (str(tmp_path / "table.csv"), np.ones((4, 1))):
        assert "'public_types' parameter" in refused(data, ["age"], public_types=True)


@pytest.mark.engine
@pytest.mark.parametrize("library", ["pandas", "polars", "lazy", "duckdb", "dask"])
def test_every_library_says_its_types(library: str) -> None:
    table = TABLE.select(["age", "city", "when"])
    data: Any
    if library in {"pandas", "dask"}:
        data = table.to_pandas().astype({"city": "string"})
        if library == "dask":
            import dask.dataframe as dd

            data = dd.from_pandas(data, npartitions=2)
    elif library == "duckdb":
        import duckdb

        data = duckdb.from_arrow(table)
    else:
        import polars as pl

        data = pl.from_arrow(table)
        data = data.lazy() if library == "lazy" else data
    told = refused(data, ["age", "city", "when"], public_types=True)
    assert "city (text), when (dates)" in told
