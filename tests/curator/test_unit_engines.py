"""Units of privacy on Dask and Spark: a unit's rows are weighed together, wherever they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dplinear.curator import Schema, SourceError
from dplinear.curator.sources import open_reader, spool, unit_shares
from dplinear.exact.gram import Moments
from dplinear.noise import simulation
from services import library

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

SCHEMA = Schema({"x": (-1, 1), "y": (0, 3)}, unit="id")
ROWS = 400
IDS: dict[str, Callable[[int], Any]] = {
    "text": lambda i: None if i % 7 == 0 else f"p{i}",
    "numbers": lambda i: None if i % 7 == 0 else float(i),
    "texts of numbers": lambda i: ["", "NA", None][i % 3] if i % 7 == 0 else f"{i:0{i % 4}d}",
}
Hold = Callable[[pa.Table, Path, int], tuple[Any, dict[str, Any]]]


def table(ids: str) -> pa.Table:
    """Rows of few units, in no order, so that those of a unit are in many partitions."""
    random = simulation.generator(3)
    columns = {"x": random.uniform(-2, 2, ROWS), "y": random.uniform(0, 4, ROWS)}
    owners = random.integers(0, 40, ROWS) // random.integers(1, 9, ROWS)
    return pa.table({**columns, "id": [IDS[ids](int(i)) for i in owners]})


def moments(data: Any, **reading: Any) -> Any:
    """Return what two passes over the same table come to."""
    reader = open_reader(data, SCHEMA, rows_per_unit=3, **reading)
    first, second = (reader.run(Moments(SCHEMA)).integers for _ in range(2))
    assert (first == second).all()
    return first


def dask_frame(data: pa.Table, _: Path, parts: int) -> tuple[Any, dict[str, Any]]:
    return library("dask.dataframe").from_pandas(data.to_pandas(), npartitions=parts), {}


def dask_array(data: pa.Table, _: Path, parts: int) -> tuple[Any, dict[str, Any]]:
    block = np.column_stack([column.to_numpy() for column in data.columns])
    return library("dask.array").from_array(block, chunks=(ROWS // parts, 2)), {}


def spark_frame(data: pa.Table, _: Path, parts: int) -> tuple[Any, dict[str, Any]]:
    session = library("pyspark.sql").SparkSession.builder.getOrCreate()
    schema = library("pyspark.sql.pandas.types").from_arrow_schema(data.schema)
    rows = [tuple(row.values()) for row in data.to_pylist()]
    return session.createDataFrame(rows, schema).repartition(parts), {}


def paths(engine: str) -> Hold:
    def hold(data: pa.Table, folder: Path, parts: int) -> tuple[Any, dict[str, Any]]:
        pq.write_table(data, folder / "t.parquet", row_group_size=ROWS // parts)
        return folder / "t.parquet", {"engine": engine}

    return hold


@pytest.mark.parametrize("parts", [1, 3, 40])
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("hold", [dask_frame, dask_array, paths("dask")])
def test_the_same_bits_from_dask(hold: Hold, ids: str, parts: int, tmp_path: Path) -> None:
    data = table(ids)
    held, reading = hold(data, tmp_path, parts)
    assert (moments(held, **reading) == moments(data)).all()


@pytest.mark.parametrize(
    ("ids", "parts"), [("text", 3), ("numbers", 1), ("numbers", 5), ("texts of numbers", 3)]
)
@pytest.mark.parametrize("hold", [spark_frame, paths("spark")])
@pytest.mark.usefixtures("spark")
def test_the_same_bits_from_spark(hold: Hold, ids: str, parts: int, tmp_path: Path) -> None:
    data = table(ids)
    held, reading = hold(data, tmp_path, parts)
    assert (moments(held, **reading) == moments(data)).all()


def test_units_in_processes_of_a_cluster(tmp_path: Path) -> None:
    distributed = library("distributed")
    data = table("text")
    pq.write_table(data, tmp_path / "t.parquet", row_group_size=30)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        assert (moments(tmp_path / "t.parquet", engine="dask") == moments(data)).all()


def test_a_table_of_no_units_comes_to_nothing(tmp_path: Path) -> None:
    data = table("text").slice(0, 50)
    nobody = data.set_column(2, "id", pa.nulls(50, "string"))
    for rows in (nobody, data.slice(0, 0)):
        pq.write_table(rows, tmp_path / "t.parquet")
        assert not moments(tmp_path / "t.parquet", engine="dask").any()


def test_shares_are_dealt_as_they_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pieces of one bucket come from several times that a worker was full, or are cut."""
    monkeypatch.setattr(unit_shares, "_HELD", 1_000)
    monkeypatch.setattr(unit_shares, "_PIECE", 200)
    data = table("text")
    pq.write_table(data, tmp_path / "t.parquet", row_group_size=20)
    assert (moments(tmp_path / "t.parquet", engine="dask") == moments(data)).all()


def by_position(cells: Any, keys: pa.Array, count: int) -> Any:
    """Deal rows into buckets without a look at their units."""
    return [(cells[start::count], keys[start::count]) for start in range(count)]


def test_a_unit_in_two_buckets_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail."""
    data = table("text")
    held, _ = dask_frame(data, Path(), 3)
    expected = moments(held)
    assert (expected == moments(data)).all()
    monkeypatch.setattr(unit_shares, "deal", by_position)
    assert (moments(held) != expected).any()


def test_buckets_that_collide_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "hashes", lambda keys: np.zeros(len(keys), np.uint64))
    data = table("text")
    held, _ = dask_frame(data, Path(), 3)
    assert (moments(held) == moments(data)).all()


def test_buckets_in_two_parts_are_an_error() -> None:
    assert unit_shares.check_whole([([0, 2], b"a"), ([], b"b"), ([1], b"c")]) == [b"a", b"b", b"c"]
    for results in ([([0, 1], b""), ([1], b"")], [([4, 4], b"")]):
        with pytest.raises(SourceError, match="rows of a unit together"):
            unit_shares.check_whole(results)


def test_spark_that_shuffles_by_nothing_is_an_error(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held, _ = spark_frame(table("text"), tmp_path, 3)
    kind = type(held)
    shuffle = kind.repartition
    monkeypatch.setattr(kind, "repartition", lambda self, _column: shuffle(self, 2))
    assert spark is not None
    with pytest.raises(SourceError, match="rows of a unit together"):
        moments(held)


def test_spark_keeps_buckets_whole_where_it_may_change_plans(spark: Any, tmp_path: Path) -> None:
    """Adaptive execution with limits at which it splits and joins whatever it can."""
    limits = {
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1b",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1b",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.0",
        "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1b",
        "spark.sql.shuffle.partitions": "11",
    }
    data = table("text")
    before = {name: spark.conf.get(name) for name in limits}
    try:
        for size in ("1b", "1g"):
            limits["spark.sql.adaptive.advisoryPartitionSizeInBytes"] = size
            for name, value in limits.items():
                spark.conf.set(name, value)
            held, _ = spark_frame(data, tmp_path, 3)
            assert (moments(held) == moments(data)).all()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
