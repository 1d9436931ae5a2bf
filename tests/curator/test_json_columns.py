"""DuckDB's JSON: a column of several JSON types has a type of its own, and cells mean the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dplinear.curator import Schema
from dplinear.curator.sources.ordered import open_rows
from services import library

pytestmark = pytest.mark.engine

DAY = {"type": "date", "low": "2000-01-01", "high": "2030-01-01"}
SCHEMA = Schema(
    {"d": DAY, "g": ["a", "b"], "x": (0, 9), "u": ["3AFA2856-A3DA-4C33-BB7F-3EAD6B5BCE79"]}
)
USUAL = {"d": "2029-06-01", "g": "a", "x": 7, "u": "3AFA2856-A3DA-4C33-BB7F-3EAD6B5BCE79"}
ODD: tuple[Any, ...] = (0, 7.5, "b", "?", None, True, [1], {"a": 1}, "null", '"', 10**30, "[1]")


def relation(folder: Path, last: dict[str, Any]) -> Any:
    """What DuckDB finds in lines of JSON."""
    file = folder / "rows.json"
    file.write_text("\n".join(map(json.dumps, [*[USUAL] * 9, last])), encoding="utf-8")
    return library("duckdb").read_json(str(file))


def lossless(folder: Path, last: dict[str, Any]) -> Any:
    """A connection that keeps the names of all types."""
    connection = library("duckdb").connect()
    connection.execute("SET arrow_lossless_conversion = true")
    relation(folder, last)
    return connection.read_json(str(folder / "rows.json"))


def parquet(folder: Path, last: dict[str, Any]) -> Any:
    relation(folder, last).write_parquet(str(folder / "rows.parquet"))
    return folder / "rows.parquet"


def wrapped(folder: Path, last: dict[str, Any]) -> Any:
    return library("narwhals").from_native(relation(folder, last))


def rows(data: Any) -> Any:
    with open_rows(data, SCHEMA, "test").through(np.copy) as blocks:
        return np.concatenate(list(blocks), axis=1)


@pytest.mark.parametrize("hold", [relation, lossless, parquet, wrapped])
@pytest.mark.parametrize("name", list(USUAL))
def test_a_cell_of_another_type_changes_no_other_row(
    hold: Callable[..., Any], name: str, tmp_path: Path
) -> None:
    usual = rows(hold(tmp_path, USUAL))
    assert (usual == usual[:, :1]).all()
    assert len(set(usual[:, 0])) > 2
    for odd in ODD:
        found = rows(hold(tmp_path, USUAL | {name: odd}))
        np.testing.assert_array_equal(found[:, :9], usual[:, :9], err_msg=repr(odd))
