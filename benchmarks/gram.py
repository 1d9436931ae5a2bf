"""The exact pass against the plain one, on every engine: all figures of one run in one table.

    python benchmarks/gram.py            the whole table (about ten minutes on two cores)
    python benchmarks/gram.py numpy      one part: numpy, parquet, memory, dask, spark, growth

Ratios are of interleaved runs, the best of each, so that a noisy machine disturbs both alike.
Exits with 1 if a threshold is missed. Data is made in a temporary folder and deleted.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from dplinear.curator import Schema, SecondMoments, second_moments
from dplinear.curator.sources.files import Piece, parquet_pieces
from dplinear.noise import simulation

DIMENSION = 40
LARGE, SMALL = 5_000_000, 1_000_000
ROW_GROUP = 131_072
PARTS = ("numpy", "parquet", "memory", "dask", "spark", "growth")


@dataclass(frozen=True)
class Line:
    """A figure, and the threshold it must keep to."""

    what: str
    value: float
    unit: str = "x"
    most: float | None = None
    least: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the threshold is missed."""
        over = self.most is not None and self.value > self.most
        return over or (self.least is not None and self.value < self.least)

    def __str__(self) -> str:
        rule = f"≤ {self.most:g}" if self.most is not None else ""
        rule = f"≥ {self.least:g}" if self.least is not None else rule
        verdict = "MISSED" if self.missed else ("met" if rule else "")
        return f"{self.what:<58} {self.value:9.3f} {self.unit:<3} {rule:<9} {verdict}"


def schema_of(dimension: int) -> Schema:
    """Return plain columns, the intercept in their place so that both passes multiply alike."""
    return Schema({f"x{j}": (-4, 4) for j in range(dimension)}, intercept=False)


def rows_of(count: int, dimension: int) -> Any:
    """Return fixed normal rows."""
    generator = simulation.generator(7)
    return generator.standard_normal((count, dimension))


def interleaved(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Return the best time of each call, taking turns."""
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for index, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[index] = min(best[index], time.perf_counter() - start)
    return best


def numpy_part() -> list[Line]:
    """Time NumPy in memory: against X.T @ X and against scikit-learn."""
    from sklearn.linear_model import LinearRegression

    array = rows_of(SMALL, DIMENSION)
    schema = schema_of(DIMENSION)
    many, exact, one = interleaved(
        9,
        lambda: array.T @ array,
        lambda: second_moments(array, schema),
        lambda: _on_one_thread(array),
    )
    target = array[:, 0] + array[:, 1]
    fit, again = interleaved(
        3,
        lambda: LinearRegression().fit(array, target),
        lambda: second_moments(array, schema),
    )
    return [
        Line("NumPy 1e6 x 40: plain X.T @ X, default threads", many, "s"),
        Line("NumPy 1e6 x 40: plain X.T @ X, one thread", one, "s"),
        Line("NumPy 1e6 x 40: exact pass", exact, "s"),
        Line("NumPy 1e6 x 40: exact / plain, default threads", exact / many, most=2.2),
        # Beside other work BLAS's threads hinder one another, and one thread alone is faster.
        Line("NumPy 1e6 x 40: exact / plain, one thread", exact / one),
        Line("NumPy 1e6 x 40: LinearRegression.fit / exact", fit / again, least=5.0),
    ]


def _on_one_thread(array: Any) -> Any:
    with threadpool_limits(1, user_api="blas"):
        return array.T @ array


def write_parquet(path: Path, array: Any) -> None:
    """Write rows as plain float64 columns."""
    names = [f"x{j}" for j in range(array.shape[1])]
    types = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, types, compression="none", use_dictionary=False) as writer:
        for start in range(0, len(array), ROW_GROUP):
            block = array[start : start + ROW_GROUP]
            columns = [pa.array(np.ascontiguousarray(block[:, j])) for j in range(len(names))]
            writer.write_table(pa.table(columns, schema=types), row_group_size=ROW_GROUP)


def plain_pass(path: Path, schema: Schema) -> Any:
    """Run the ordinary float pass over the same reader: two threads, BLAS on one each."""
    pieces = iter(parquet_pieces(path, schema))
    lock = threading.Lock()

    def work() -> Any:
        total = np.zeros((schema.dimension, schema.dimension))
        while True:
            with lock:
                piece = next(pieces, None)
            if piece is None:
                return total
            total += _plain_piece(piece, schema)

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(2) as pool:
        return sum(future.result() for future in [pool.submit(work) for _ in range(2)])


def _plain_piece(piece: Piece, schema: Schema) -> Any:
    total = np.zeros((schema.dimension, schema.dimension))
    block = np.empty((schema.dimension, 4096))
    for batch in piece.batches(schema.columns):
        columns = [column.to_numpy() for column in batch.columns]
        for start in range(0, batch.num_rows, 4096):
            stop = min(start + 4096, batch.num_rows)
            part = block[:, : stop - start]
            for row, column in zip(part, columns, strict=True):
                row[:] = column[start:stop]
            total += part @ part.T
    return total


def parquet_part(large: Path) -> list[Line]:
    """Time Parquet on one machine."""
    schema = schema_of(DIMENSION)
    plain, exact = interleaved(
        5, lambda: plain_pass(large, schema), lambda: second_moments(large, schema)
    )
    return [
        Line("Parquet 5e6 x 40: plain float pass", plain, "s"),
        Line("Parquet 5e6 x 40: exact pass", exact, "s"),
        Line("Parquet 5e6 x 40: exact / plain", exact / plain, most=1.5),
    ]


def peak_megabytes(path: Path) -> float:
    """Return the highest peak resident memory of three fresh processes that only do the pass."""
    command = [sys.executable, __file__, "--peak", str(path)]
    peaks = []
    for _ in range(3):
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ourselves
        peaks.append(float(done.stdout))
    return max(peaks)


def memory_part(large: Path, small: Path) -> list[Line]:
    """Measure peak memory, of whole processes."""
    most, less = peak_megabytes(large), peak_megabytes(small)
    return [
        Line("Parquet 5e6 x 40: peak resident memory", most, "MB", most=500),
        Line("Parquet 1e6 x 40: peak resident memory", less, "MB", most=500),
        Line("peak memory, larger / smaller", max(most, less) / min(most, less), most=1.1),
    ]


def dask_part(large: Path, want: SecondMoments) -> list[Line]:
    """Time Dask with two workers that read the Parquet path."""
    from distributed import Client, LocalCluster

    schema = schema_of(DIMENSION)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster):
        equal = second_moments(large, schema, engine="dask") == want
        alone, engine = interleaved(
            3,
            lambda: second_moments(large, schema),
            lambda: second_moments(large, schema, engine="dask"),
        )
    return [
        Line("Dask, 2 workers, Parquet path: time", engine, "s"),
        Line("Dask, 2 workers, Parquet path / one process", engine / alone, most=2.0),
        Line("Dask: bit-equal to NumPy", float(equal), "", least=1.0),
    ]


def spark_part(large: Path, want: SecondMoments) -> list[Line]:
    """Time Spark local[2]: reading the Parquet path itself, and any data frame by mapInArrow."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "3g")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    # Spark's default of 10,000 rows a batch costs it (not us) a fifth more time.
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "32768")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    schema = schema_of(DIMENSION)
    frame = session.read.parquet(str(large))
    equal = second_moments(large, schema, engine="spark") == want
    equal_frame = second_moments(frame, schema) == want
    alone, paths, frames = interleaved(
        3,
        lambda: second_moments(large, schema),
        lambda: second_moments(large, schema, engine="spark"),
        lambda: second_moments(frame, schema),
    )
    session.stop()
    return [
        Line("Spark local[2], Parquet path, warm: time", paths, "s"),
        Line("Spark local[2], Parquet path / one process", paths / alone, most=2.0),
        Line("Spark local[2], data frame by mapInArrow / one process", frames / alone, most=10.0),
        Line("Spark, path: bit-equal to NumPy", float(equal), "", least=1.0),
        Line("Spark, data frame: bit-equal to NumPy", float(equal_frame), "", least=1.0),
    ]


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return the slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def growth_part() -> list[Line]:
    """Fit how cost grows: linear in rows, and quadratic in columns once products dominate."""
    array = rows_of(4_000_000, DIMENSION)
    counts = [500_000, 1_000_000, 2_000_000, 4_000_000]
    schema = schema_of(DIMENSION)
    by_rows = interleaved(5, *(_pass(array[:count], schema) for count in counts))
    del array
    wide = rows_of(40_000, 2000)
    widths = [250, 500, 1000, 2000]
    calls = (_pass(np.ascontiguousarray(wide[:, :width]), schema_of(width)) for width in widths)
    by_columns = interleaved(3, *calls)
    return [
        Line("exponent in n (5e5 to 4e6 rows, d = 40)", exponent(counts, by_rows), "", most=1.15),
        Line("exponent in d (250 to 2000, n = 4e4)", exponent(widths, by_columns), "", most=2.2),
    ]


def _pass(array: Any, schema: Schema) -> Callable[[], SecondMoments]:
    return lambda: second_moments(array, schema)


def measure(part: str, folder: Path) -> list[Line]:
    """Run one part, making the files it needs."""
    if part == "numpy":
        return numpy_part()
    if part == "growth":
        return growth_part()
    large, small, moments = folder / "large.parquet", folder / "small.parquet", folder / "moments"
    if not large.exists():
        array = rows_of(LARGE, DIMENSION)
        write_parquet(large, array)
        write_parquet(small, array[:SMALL])
        moments.write_bytes(second_moments(array, schema_of(DIMENSION)).to_bytes())
    if part == "parquet":
        return parquet_part(large)
    if part == "memory":
        return memory_part(large, small)
    want = SecondMoments.from_bytes(moments.read_bytes())
    return dask_part(large, want) if part == "dask" else spark_part(large, want)


def main(parts: list[str]) -> int:
    """Print the table; return 1 if a threshold is missed."""
    missed = False
    with tempfile.TemporaryDirectory(prefix="dplinear-bench-") as folder:
        for part in parts or list(PARTS):
            for line in measure(part, Path(folder)):
                print(line, flush=True)
                missed = missed or line.missed
    return int(missed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        second_moments(Path(sys.argv[2]), schema_of(DIMENSION))
        # Not getrusage: its peak counts the parent's pages from before the exec.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        print(int(status.partition("VmHWM:")[2].split()[0]) / 1024)
        sys.exit(0)
    sys.exit(main(sys.argv[1:]))
