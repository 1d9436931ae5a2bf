"""One contract for every source: the same rows give the same bits, errors come before rows.

`SOURCES` says how each kind of source holds a table; every test runs on all of them.
"""

import contextlib
import functools
import gzip
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dplinear.curator import (
    Accumulator,
    Schema,
    SecondMoments,
    exact_sums,
    open_table,
    second_moments,
)
from dplinear.curator.sources import open_reader
from dplinear.exact.grid import shape_of
from dplinear.exact.mapped_sums import MappedGram, MappedNorms, MappedSum
from dplinear.exact.residual_sums import Gradient, ResidualHistogram, Residuals, SumOfSquares
from dplinear.exact.row_sums import ClippedGram, Count, RowSum, SquaredNorms
from dplinear.exact.sums import SumAccumulator
from dplinear.papers.showkatbakhsh.peaks import MomentsAndPeaks
from refusals import refused
from services import library

Seeded = Callable[[int], Any]
Held = tuple[Any, dict[str, Any]]

NAMES = ("a", "b", "c")
SCHEMA = Schema(
    {"a": (-1, 2), "b": (0, 3), "c": (-5, 5)},
    derived=["a*b", "c^2", "log1p(b)", "sqrt(b)*a", "bins(c, -1.5, 2)", "spline(a, 4)"],
)
MIXED = Schema(
    {
        "age": {"type": "integer", "low": 0, "high": 99, "missing_indicator": True},
        "smoker": ["no", "yes"],
        "ward": {"type": "category", "levels": [1, 2, 3], "drop_first": False},
        "day": {"type": "date", "low": "2020-01-01", "high": "2026-01-01"},
        "well": "boolean",
    },
    derived=[
        *("age*smoker", "age>=65", "sqrt(age)", "log1p(age)*ward"),
        *("bins(age, 18, 65)*smoker", "bins(day, 2022-01-01)", "spline(day, [2023-06-01])"),
    ],
    row_norm=1.9,
)


def array_of(table: pa.Table) -> Any:
    columns = [table[name].to_numpy(zero_copy_only=False) for name in NAMES]
    return np.column_stack(columns).astype(np.float64).reshape(-1, 3)


def written(write: Callable[[pa.Table, Path], None], name: str) -> Callable[[pa.Table, Path], Held]:
    def hold(table: pa.Table, folder: Path) -> Held:
        write(table, folder / name)
        return str(folder / name), {}

    return hold


def csv(table: pa.Table, path: Path) -> None:
    # In one chunk: PyArrow 17 writes the header again behind an empty first chunk.
    pyarrow.csv.write_csv(table.combine_chunks(), path)


def csv_gz(table: pa.Table, path: Path) -> None:
    plain = path.with_suffix("")
    csv(table, plain)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()


def arrow_stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


def globbed(table: pa.Table, folder: Path) -> Held:
    half = table.num_rows // 2
    for index, part in enumerate([table.slice(0, half), table.slice(half)]):
        pq.write_table(part, folder / f"part-{index}.parquet", row_group_size=7)
    return folder / "part-*.parquet", {}


def memory_map(table: pa.Table, folder: Path) -> Held:
    array = array_of(table)
    np.save(folder / "table.npy", array)
    return np.load(folder / "table.npy", mmap_mode="r" if array.size else None), {}


def strided(table: pa.Table, _: Path) -> Held:
    wide = np.full((2 * table.num_rows, 7), np.nan)
    wide[::2, 1:7:2] = array_of(table)
    return wide[::2, 1:7:2], {}


def on_dask(table: pa.Table, folder: Path) -> Held:
    library("dask")
    pq.write_table(table, folder / "table.parquet", row_group_size=7)
    return str(folder / "table.parquet"), {"engine": "dask"}


def on_spark(table: pa.Table, folder: Path) -> Held:
    pq.write_table(table, folder / "table.parquet", row_group_size=7)
    return str(folder / "table.parquet"), {"engine": "spark"}


def dask_frame(table: pa.Table, _: Path) -> Held:
    frame = table.to_pandas()
    return library("dask.dataframe").from_pandas(frame, npartitions=3), {}


def spark_frame(table: pa.Table, _: Path) -> Held:
    session = library("pyspark.sql").SparkSession.builder.getOrCreate()
    schema = library("pyspark.sql.pandas.types").from_arrow_schema(table.schema)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return session.createDataFrame(rows, schema).repartition(3), {}


OPEN_CURSORS: list[Any] = []  # a reader lives as long as its cursor


def close_cursors() -> None:
    while OPEN_CURSORS:
        OPEN_CURSORS.pop().close()


def adbc_reader(table: pa.Table, _: Path) -> Held:
    """A live reader over SQLite, which has neither booleans nor dates."""
    close_cursors()
    types = {pa.bool_(): pa.int64(), pa.date32(): pa.string()}
    plain = [column.cast(types.get(column.type, column.type)) for column in table.columns]
    connection = library("adbc_driver_sqlite.dbapi").connect(":memory:")
    cursor = connection.cursor()
    OPEN_CURSORS.extend([connection, cursor])
    cursor.adbc_ingest("people", pa.table(plain, names=table.column_names))
    cursor.execute("SELECT * FROM people")
    return cursor.fetch_record_batch(), {}


@functools.cache
def database() -> Any:
    return library("duckdb").connect()


def duckdb_relation(table: pa.Table, _: Path) -> Held:
    return database().from_arrow(table), {}


def sql(table: pa.Table, _: Path) -> Held:
    database().register("people", table)
    return database().sql("SELECT *, 1 AS unused FROM people"), {}


pytestmark = pytest.mark.filterwarnings(
    # PySpark's own remark on the newest pandas, which it needs but for which we do not use it
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)
ENGINE = pytest.mark.engine

# Sources without column names: they hold the numeric table only.
BY_POSITION: dict[str, tuple[Callable[[pa.Table, Path], Held], Any]] = {
    "numpy C": (lambda t, _: (array_of(t), {}), ()),
    "numpy Fortran": (lambda t, _: (np.asfortranarray(array_of(t)), {}), ()),
    "numpy strided": (strided, ()),
    "numpy big-endian": (lambda t, _: (array_of(t).astype(">f8"), {}), ()),
    "numpy object": (lambda t, _: (array_of(t).astype(object), {}), ()),
    "numpy memory map": (memory_map, ()),
    "scipy CSR": (lambda t, _: (scipy.sparse.csr_array(array_of(t)), {}), ()),
    "scipy COO": (lambda t, _: (scipy.sparse.coo_matrix(array_of(t)), {}), ()),
    "dask array": (
        lambda t, _: (library("dask.array").from_array(array_of(t), chunks=(7, 2)), {}),
        ENGINE,
    ),
}
BY_NAME: dict[str, tuple[Callable[[pa.Table, Path], Held], Any]] = {
    "arrow table": (lambda t, _: (t, {}), ()),
    "arrow reader": (lambda t, _: (t.to_reader(max_chunksize=5), {}), ()),
    "parquet": (written(lambda t, p: pq.write_table(t, p, row_group_size=7), "t.parquet"), ()),
    "parquet glob": (globbed, ()),
    "csv": (written(csv, "table.csv"), ()),
    "csv gzip": (written(csv_gz, "table.csv.gz"), ()),
    "feather": (written(pyarrow.feather.write_feather, "t.feather"), ()),
    "arrow stream file": (written(arrow_stream, "table.arrows"), ()),
    "pandas": (lambda t, _: (library("pandas") and t.to_pandas(), {}), ENGINE),
    "pandas arrow": (
        lambda t, _: (t.to_pandas(types_mapper=library("pandas").ArrowDtype), {}),
        ENGINE,
    ),
    "polars": (lambda t, _: (library("polars").from_arrow(t), {}), ENGINE),
    "polars lazy": (lambda t, _: (library("polars").from_arrow(t).lazy(), {}), ENGINE),
    "duckdb relation": (duckdb_relation, ENGINE),
    "sql": (sql, ENGINE),
    "adbc": (adbc_reader, ENGINE),
    "dask frame": (dask_frame, ENGINE),
    "parquet on dask": (on_dask, ENGINE),
    "spark frame": (spark_frame, ENGINE),
    "parquet on spark": (on_spark, ENGINE),
}


@pytest.fixture(autouse=True)
def _cursors_are_closed() -> Iterator[None]:
    yield
    close_cursors()


@pytest.fixture(autouse=True)
def _spark_where_needed(request: pytest.FixtureRequest) -> None:
    if "spark" in request.node.name:
        request.getfixturevalue("spark")


def params(sources: dict[str, tuple[Any, Any]]) -> list[Any]:
    return [pytest.param(hold, marks=marks, id=name) for name, (hold, marks) in sources.items()]


every_source = pytest.mark.parametrize("hold", params(BY_POSITION | BY_NAME))
named_source = pytest.mark.parametrize("hold", params(BY_NAME))


def numeric_table(random: Any, rows: int) -> pa.Table:
    block = random.normal(0.5, 2, (rows, 3))
    return pa.table({name: pa.array(block[:, j]) for j, name in enumerate(NAMES)})


def mixed_table(random: Any, rows: int) -> pa.Table:
    def sprinkled(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=random.random(rows) < 0.1)

    return pa.table(
        {
            "unused": pa.array(["x"] * rows),
            "age": sprinkled(random.integers(-20, 130, rows), pa.int64()),
            "smoker": sprinkled(random.choice(["no", "yes", "pipe", ""], rows), pa.string()),
            "ward": sprinkled(random.integers(0, 5, rows), pa.int32()),
            "day": sprinkled(random.integers(18000, 20800, rows).astype("int32"), pa.date32()),
            "well": sprinkled(random.random(rows) < 0.5, pa.bool_()),
        }
    )


def reference(table: pa.Table, schema: Schema) -> SecondMoments:
    """The same rows, one at a time, by the shortest road."""
    accumulator = Accumulator(schema)
    for start in range(table.num_rows):
        for batch in table.slice(start, 1).to_batches():
            accumulator.update(batch)
    return accumulator.result()


def moments(hold: Any, table: pa.Table, schema: Schema, folder: Path) -> SecondMoments:
    data, options = hold(table, folder)
    return second_moments(data, schema, **options)


def moments_alone(hold: Any, table: pa.Table, schema: Schema, folder: Path) -> SecondMoments:
    """On one thread: quicker for tables of a few rows."""
    data, options = hold(table, folder)
    return second_moments(data, schema, threads=1, **options)


@every_source
def test_numbers_have_the_same_bits(hold: Any, tmp_path: Path, generator: Seeded) -> None:
    table = numeric_table(generator(1), 23)
    got = moments(hold, table, SCHEMA, tmp_path)
    assert got == reference(table, SCHEMA)
    assert got.count == 23


def row_sums(schema: Schema) -> list[RowSum]:
    """One sum of each kind, whose clips some rows meet."""
    shape = shape_of(schema)
    weights = np.linspace(-0.5, 1, shape.dimension)
    whitening = np.eye(shape.dimension)[1:] + 0.1
    return [
        Count(),
        SquaredNorms(shape, [1, 2], limit=0.5),
        ClippedGram(shape, [0, 2, 3], norm=1.1),
        SumOfSquares(shape, weights, residual=0.6),
        Gradient(shape, whitening, weights, leverage=1.0, residual=0.6),
        Gradient(shape, whitening, weights, leverage=1.0, residual=0.6, taper=1.2),
        Residuals(shape, weights, residual=0.6),
        ResidualHistogram(shape, weights, residual=0.3, edges=(0.4, 0.6)),
        MappedSum(shape, whitening, norm=1.0),
        MappedNorms(shape, whitening, limit=1.0),
        MappedGram(shape, whitening, norm=1.0),
    ]


def reference_sums(table: pa.Table, schema: Schema) -> list[list[int]]:
    """The sums of the same rows, one row at a time."""
    accumulator = SumAccumulator(schema, row_sums(schema))
    for start in range(table.num_rows):
        for batch in table.slice(start, 1).to_batches():
            accumulator.update(batch)
    return [entry.tolist() for entry in accumulator.result().integers()]


@every_source
def test_row_sums_have_the_same_bits_in_every_pass(
    hold: Any, tmp_path: Path, generator: Seeded, request: pytest.FixtureRequest
) -> None:
    named = request.node.callspec.id in BY_NAME
    schema, draw = (MIXED, mixed_table) if named else (SCHEMA, numeric_table)
    table = draw(generator(6), 61)
    want = reference_sums(table, schema)
    data, options = hold(table, tmp_path)
    opened = open_table(data, schema, **options)
    passes = [opened.sums(row_sums(schema)) for _ in range(2)]
    later, whole = opened.moments(), reference(table, schema)
    assert (later.integers == whole.integers).all()
    assert later.count == whole.count
    assert [[entry.tolist() for entry in got] for got in passes] == [want, want]


@every_source
def test_the_largest_squares_are_the_same(hold: Any, tmp_path: Path, generator: Seeded) -> None:
    table = numeric_table(generator(7), 61)
    data, options = hold(table, tmp_path)
    found = open_reader(data, SCHEMA, **options).run(MomentsAndPeaks(SCHEMA))
    assert found.moments == reference(table, SCHEMA)
    cells = SCHEMA.encode(
        table.combine_chunks().to_batches()[0], scale=found.moments.grid.steps_per_unit
    )
    assert found.squares.tolist() == (np.rint(cells) ** 2).max(1).tolist()


@named_source
def test_columns_of_every_type_have_the_same_bits(
    hold: Any, tmp_path: Path, generator: Seeded
) -> None:
    table = mixed_table(generator(2), 61)
    assert moments(hold, table, MIXED, tmp_path) == reference(table, MIXED)


@every_source
def test_nan_and_infinity_change_their_own_cell(hold: Any, tmp_path: Path) -> None:
    table = pa.table(
        {
            "a": [float("nan"), float("inf"), 1.0, 0.5],
            "b": [1e308, float("-inf"), 5e-324, float("nan")],
            "c": [1.0, -0.0, float("nan"), 2.0],
        }
    )
    clean = pa.table(
        {"a": [0.5, 2.0, 1.0, 0.5], "b": [3.0, 0.0, 0.0, 1.5], "c": [1.0, 0.0, 0.0, 2.0]}
    )
    found, want = moments(hold, table, SCHEMA, tmp_path), reference(clean, SCHEMA)
    assert (found.integers == want.integers).all()
    assert (found.count, found.filled) == (4, (1, 1, 1))


@every_source
def test_a_table_without_rows_is_zero(hold: Any, tmp_path: Path) -> None:
    table = pa.table({name: pa.array([], pa.float64()) for name in NAMES})
    assert moments(hold, table, SCHEMA, tmp_path) == SecondMoments.zero(SCHEMA)


@named_source
def test_a_missing_column_is_one_error(hold: Any, tmp_path: Path, generator: Seeded) -> None:
    table = numeric_table(generator(3), 3).drop_columns(["b"])
    with refused("data", "second_moments", "every column") as caught:
        moments(hold, table, SCHEMA, tmp_path)
    assert caught.value.got.endswith("which lacks 'b'")


def replay(
    hold: Any, folder: Path, random: Any, pairs: int, *, mixed: bool, per_table: int = 20
) -> None:
    """Remove random rows of random tables; the matrix must change by that row's share, exactly."""
    schema, draw = (MIXED, mixed_table) if mixed else (SCHEMA, numeric_table)
    limit = schema_sensitivity(schema)
    done = 0
    while done < pairs:
        table = draw(random, int(random.integers(1, 12)))
        whole = moments_alone(hold, table, schema, fresh(folder, "whole")).integers
        for _ in range(min(per_table, pairs - done)):
            row = int(random.integers(table.num_rows))
            rest = pa.concat_tables([table.slice(0, row), table.slice(row + 1)])
            change = whole - moments_alone(hold, rest, schema, fresh(folder, "rest")).integers
            assert int(np.square(change).sum()) <= limit**2
            share = reference(table.slice(row, 1), schema).integers
            assert (change == share).all()
            done += 1


def schema_sensitivity(schema: Schema) -> int:
    return SecondMoments.zero(schema).grid.sensitivity


def fresh(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir(exist_ok=True)
    for file in path.iterdir():
        with contextlib.suppress(IsADirectoryError):
            file.unlink()
    return path


def is_engine(hold: Any) -> bool:
    slow = ("dask array", "dask frame", "parquet on dask", "spark frame", "parquet on spark")
    return any(hold is (BY_POSITION | BY_NAME)[name][0] for name in slow)


@pytest.mark.heavy  # every source is read with the lowest versions by other tests
@every_source
def test_record_replay(
    hold: Any, tmp_path: Path, generator: Seeded, request: pytest.FixtureRequest
) -> None:
    named = request.node.callspec.id in BY_NAME
    pairs = 20 if is_engine(hold) else 200
    replay(hold, tmp_path, generator(4), pairs, mixed=named)


@pytest.mark.long
@every_source
def test_record_replay_of_a_thousand_pairs(
    hold: Any, tmp_path: Path, generator: Seeded, request: pytest.FixtureRequest
) -> None:
    named = request.node.callspec.id in BY_NAME
    replay(hold, tmp_path, generator(5), 1000, mixed=named)


@pytest.mark.heavy
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(0, 200),
    group=st.integers(1, 90),
    chunk=st.integers(1, 90),
    threads=st.integers(1, 4),
    mixed=st.booleans(),
)
def test_order_chunks_and_threads_change_nothing(
    generator: Seeded,
    tmp_path: Path,
    seed: int,
    rows: int,
    group: int,
    chunk: int,
    threads: int,
    mixed: bool,
) -> None:
    random = generator(seed)
    schema = MIXED if mixed else SCHEMA
    table = mixed_table(random, rows) if mixed else numeric_table(random, rows)
    want = reference(table, schema)
    shuffled = table.take(random.permutation(rows))
    path = tmp_path / "shuffled.parquet"
    pq.write_table(shuffled, path, row_group_size=group)
    assert second_moments(path, schema, threads=threads) == want
    sums = exact_sums(path, schema, row_sums(schema), threads=threads)
    assert [entry.tolist() for entry in sums] == reference_sums(table, schema)
    reader = shuffled.to_reader(max_chunksize=chunk)
    assert second_moments(reader, schema, threads=threads) == want
    if not mixed:
        assert second_moments(array_of(shuffled), schema, threads=threads) == want


def test_importing_dplinear_imports_no_engine() -> None:
    heavy = "{'pandas', 'polars', 'dask', 'distributed', 'pyspark', 'duckdb', 'sklearn', 'rich'}"
    code = f"import sys, dplinear, dplinear.curator; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
