"""A worker that dies costs time, never bits: workers are really killed, with SIGKILL."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dplinear.curator import Schema, SecondMoments, SourceError, open_table, second_moments
from dplinear.exact.grid import shape_of
from dplinear.exact.residual_sums import Gradient
from dplinear.exact.row_sums import Count, RowSum
from services import library

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # Dask's own sockets and loops, when a worker is killed under them
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

NAMES = [f"x{j}" for j in range(8)]
SCHEMA = Schema(dict.fromkeys(NAMES, (-2, 2)))
UNITS = SCHEMA.with_unit("id")


@pytest.fixture(scope="module")
def table(generator: Callable[[int], Any]) -> pa.Table:
    block = generator(11).standard_normal((200_000, len(NAMES)))
    columns = {name: block[:, j] for j, name in enumerate(NAMES)}
    return pa.table({**columns, "id": generator(12).integers(0, 50_000, len(block))})


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("killed") / "table.parquet"
    pq.write_table(table, file, row_group_size=2_000)
    return file


@pytest.fixture(scope="module")
def want(table: pa.Table) -> SecondMoments:
    return second_moments(table, SCHEMA)


def descent() -> list[RowSum]:
    weights = np.linspace(-1, 1, 9)
    return [Count(), Gradient(shape_of(SCHEMA), np.eye(9), weights, leverage=1.0, residual=0.5)]


def check_sums(deadly: Any, table: pa.Table, flag: Path) -> None:
    """Two passes, in the first of which a worker dies."""
    want = [entry.tolist() for entry in open_table(table, SCHEMA).sums(descent())]
    flag.unlink()
    opened = open_table(deadly, SCHEMA)
    for _ in range(2):
        assert [entry.tolist() for entry in opened.sums(descent())] == want
    assert flag.exists()


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    dask = library("dask")
    distributed = library("distributed")
    with dask.config.set({"distributed.scheduler.allowed-failures": 2}):
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
        cluster = distributed.LocalCluster(**options, silence_logs=50)
        with cluster, distributed.Client(cluster) as client:
            yield client


def die_once(frame: Any, flag: str) -> Any:
    """Kill the worker this runs in, the first time."""
    if not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


def die_always(_frame: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def frame_on_dask(path: Path) -> Any:
    return library("dask.dataframe").read_parquet(path, split_row_groups=20)


def test_dask_retries_a_killed_worker_to_the_same_bits(
    dask_client: Any, path: Path, table: pa.Table, want: SecondMoments, tmp_path: Path
) -> None:
    assert len(dask_client.scheduler_info()["workers"]) == 2
    flag = tmp_path / "died"
    frame = frame_on_dask(path)
    deadly = frame.map_partitions(die_once, str(flag), meta=frame._meta)
    assert second_moments(deadly, SCHEMA) == want
    assert flag.exists()
    check_sums(deadly, table, flag)


def check_units(deadly: Any, table: pa.Table, flag: Path) -> None:
    """A worker dies while rows are dealt by unit."""
    want = second_moments(table, UNITS)
    assert second_moments(deadly, UNITS) == want
    assert flag.exists()


def test_dask_retries_a_killed_worker_that_deals_units(
    dask_client: Any, path: Path, table: pa.Table, tmp_path: Path
) -> None:
    assert dask_client.status == "running"
    flag = tmp_path / "died"
    frame = frame_on_dask(path)
    check_units(frame.map_partitions(die_once, str(flag), meta=frame._meta), table, flag)


def test_dask_rereads_the_row_groups_of_a_killed_worker(
    dask_client: Any, path: Path, want: SecondMoments
) -> None:
    victim = next(iter(dask_client.run(os.getpid).values()))
    killer = threading.Timer(0.15, os.kill, (victim, signal.SIGKILL))
    killer.start()
    got = [second_moments(path, SCHEMA, engine="dask") for _ in range(3)]
    killer.join()
    assert victim not in dask_client.run(os.getpid).values()
    assert got == [want] * 3


@pytest.mark.long
def test_dask_gives_up_with_one_error(dask_client: Any, path: Path) -> None:
    frame = frame_on_dask(path)
    deadly = frame.map_partitions(die_always, meta=frame._meta)
    with pytest.raises(SourceError, match=r"the table on Dask failed.*nothing was computed"):
        second_moments(deadly, SCHEMA)
    assert dask_client.status == "running"


def killing(flag: str | None) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a map that kills the Python worker it runs in: once, or (no flag) always."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if flag is None:
                os.kill(os.getpid(), signal.SIGKILL)
            elif not os.path.exists(flag):  # noqa: PTH110 - runs in a worker without our imports
                with open(flag, "w", encoding="ascii"):  # noqa: PTH123
                    os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return pass_on


def frame_on_spark(spark: Any, path: Path) -> Any:
    return spark.read.parquet(str(path)).repartition(4)


@pytest.mark.long  # that of a worker which deals units is quicker, and always run
def test_spark_retries_a_killed_worker_to_the_same_bits(
    spark: Any, path: Path, table: pa.Table, want: SecondMoments, tmp_path: Path
) -> None:
    flag = tmp_path / "died"
    frame = frame_on_spark(spark, path)
    deadly = frame.mapInArrow(killing(str(flag)), frame.schema)
    assert second_moments(deadly, SCHEMA) == want
    assert flag.exists()
    check_sums(deadly, table, flag)


def test_spark_retries_a_killed_worker_that_deals_units(
    spark: Any, path: Path, table: pa.Table, tmp_path: Path
) -> None:
    flag = tmp_path / "died"
    frame = frame_on_spark(spark, path)
    check_units(frame.mapInArrow(killing(str(flag)), frame.schema), table, flag)


def python_workers() -> list[Any]:
    """The Python workers of our own Java process."""
    psutil = library("psutil")
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # gone in the meantime
            parent = process.parent()
            if parent and "pyspark.daemon" in " ".join(parent.cmdline()):
                found.append(process)
    return found


@pytest.mark.long
def test_spark_rereads_the_row_groups_of_a_killed_worker(
    spark: Any, path: Path, want: SecondMoments
) -> None:
    assert spark.sparkContext.defaultParallelism == 2
    killed: list[int] = []
    done = threading.Event()

    def kill_one() -> None:
        while not done.is_set() and not killed:
            for worker in python_workers():
                worker.kill()
                killed.append(worker.pid)
                return
            time.sleep(0.01)

    assert second_moments(path, SCHEMA, engine="spark") == want  # warm: workers are there
    killer = threading.Timer(0.1, kill_one)
    killer.start()
    got = [second_moments(path, SCHEMA, engine="spark") for _ in range(3)]
    done.set()
    killer.join()
    assert killed
    assert got == [want] * 3


@pytest.mark.long
def test_spark_gives_up_with_one_error(spark: Any, path: Path) -> None:
    frame = frame_on_spark(spark, path)
    deadly = frame.mapInArrow(killing(None), frame.schema)
    with pytest.raises(SourceError, match=r"the table on Spark failed.*nothing was computed"):
        second_moments(deadly, SCHEMA)
    assert int(np.asarray(spark.range(3).count())) == 3
