"""Groups, survey weights and units at once on Dask and Spark: the bits of NumPy and Parquet."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dplinear as dpl
from curator.test_group_weights import SCHEMAS, array_of, facts, parts_of, table
from curator.test_unit_engines import dask_array, dask_frame, paths, spark_frame
from dplinear.noise import simulation
from dplinear.schema.groups import By

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

PARTS = 5
DASK = {"frame": dask_frame, "array": dask_array, "paths": paths("dask")}
SPARK = {"frame": spark_frame, "paths": paths("spark")}
BOTH = ["ward", "old"]
LISTED: By = {"ward": ["b", "other"]}
WAYS: list[tuple[str, int, By]] = [
    ("rows", 1, "ward"),
    ("units", 1, BOTH),
    ("units", 3, LISTED),
]


def columns_of(kind: str) -> pa.Table:
    return table().select(SCHEMAS[kind].read_columns)


def passes(data: Any, kind: str, k: int, by: By, **reading: Any) -> Any:
    """Return what two passes over the same table come to, with side sums."""
    return [facts(parts_of(data, kind, k, by, **reading)) for _ in range(2)]


def known_passes(kind: str, k: int, by: By, folder: Path) -> Any:
    data = columns_of(kind)
    known = passes(data, kind, k, by)
    assert known[0] == known[1]
    pq.write_table(data, folder / "known.parquet", row_group_size=97)
    for other in (array_of(data), folder / "known.parquet"):
        assert passes(other, kind, k, by) == known
    return known


@pytest.mark.parametrize(("kind", "k", "by"), WAYS)
@pytest.mark.parametrize("hold", DASK.values(), ids=DASK)
def test_the_same_integers_from_dask(hold: Any, kind: str, k: int, by: By, tmp_path: Path) -> None:
    held, reading = hold(columns_of(kind), tmp_path, PARTS)
    assert passes(held, kind, k, by, **reading) == known_passes(kind, k, by, tmp_path)


@pytest.mark.parametrize(("kind", "k", "by"), WAYS)
@pytest.mark.parametrize("hold", SPARK.values(), ids=SPARK)
@pytest.mark.usefixtures("spark")
def test_the_same_integers_from_spark(hold: Any, kind: str, k: int, by: By, tmp_path: Path) -> None:
    held, reading = hold(columns_of(kind), tmp_path, PARTS)
    assert passes(held, kind, k, by, **reading) == known_passes(kind, k, by, tmp_path)


# Releases under a seed: everything that a file of them says

Gate = Callable[..., Any]
SCHEMA = SCHEMAS["rows"]  # with survey weights; the gates are told the unit
ASKED: dict[str, Any] = {"guarantee": dpl.ZCDP(1e4), "progress": False}
UNIT: dict[str, Any] = {**ASKED, "unit": "id", "rows_per_unit": 3}
RELEASES: dict[str, Gate] = {
    "moments": lambda data, **given: dpl.release_moments(data, SCHEMA, by=BOTH, **UNIT, **given),
    "means": lambda data, **given: dpl.release_mean(data, SCHEMA, by=LISTED, **UNIT, **given),
    "model": lambda data, **given: dpl.release_model(
        data, SCHEMA, "y", by="ward", **ASKED, **given
    ),
    "clustered": lambda data, **given: dpl.release_model(
        data, SCHEMA, "y", by="ward", errors="clustered", **UNIT, **given
    ),
    "adassp": lambda data, **given: dpl.release_model(
        data, SCHEMA, "y", by="ward", mechanism="adassp", **UNIT, **given
    ),
}


def file_of(name: str, folder: Path, data: Any, **reading: Any) -> bytes:
    with simulation.door(11):
        made = RELEASES[name](data, **reading)
    made.save(folder / "release.json", overwrite=True)
    return (folder / "release.json").read_bytes()


def check_releases(name: str, holds: dict[str, Any], folder: Path) -> None:
    data = columns_of("rows" if name == "model" else "units")
    known = file_of(name, folder, array_of(data))
    assert file_of(name, folder, array_of(data.slice(0, data.num_rows - 1))) != known  # a row tells
    pq.write_table(data, folder / "known.parquet", row_group_size=97)
    assert file_of(name, folder, folder / "known.parquet") == known
    for hold in holds.values():
        held, reading = hold(data, folder, PARTS)
        assert file_of(name, folder, held, **reading) == known


@pytest.mark.parametrize("name", RELEASES)
def test_the_same_releases_from_dask(name: str, tmp_path: Path) -> None:
    check_releases(name, DASK, tmp_path)


MANY_PASSES = {"model", "clustered"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in MANY_PASSES)) for name in RELEASES],
)
@pytest.mark.usefixtures("spark")
def test_the_same_releases_from_spark(name: str, tmp_path: Path) -> None:
    check_releases(name, SPARK, tmp_path)
