"""The gate for rows: any source, in order, whole or not at all, and never a second draw."""

import gzip
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from dplinear import ReleaseError, load, release_rows
from dplinear.analyst.releases.outputs import UnplacedError
from dplinear.analyst.rows.release import RowsRelease
from dplinear.curator import SourceError
from dplinear.ledger import Request, tally
from dplinear.noise import simulation
from dplinear.privacy import MIDP, ZCDP
from dplinear.schema import Schema
from refusals import refused
from services import library

NAMES = ("a", "b", "c")
SCHEMA = Schema({"a": (-1, 2), "b": (0, 3), "c": (-5, 5)})
ROWS = 61
SUFFIXES = ("parquet", "arrow", "csv")

pytestmark = pytest.mark.filterwarnings(
    # PySpark's own remark on the newest pandas, which it needs but for which we do not use it
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)


def people(rows: int = ROWS, seed: int = 3) -> pa.Table:
    values = simulation.generator(seed).uniform(-1, 1, (3, rows))
    return pa.table(dict(zip(NAMES, values, strict=True)))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def array_of(table: pa.Table) -> Any:
    return np.column_stack([table[name].to_numpy() for name in NAMES])


def arrow_stream(table: pa.Table, path: Path) -> str:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    return str(path)


def parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "t.parquet", row_group_size=7)
    return folder / "t.parquet"


def parquet_glob(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table.slice(0, 20), folder / "part-0.parquet", row_group_size=9)
    pq.write_table(table.slice(20), folder / "part-1.parquet", row_group_size=9)
    return folder / "part-*.parquet"


def csv(table: pa.Table, folder: Path) -> Path:
    pyarrow.csv.write_csv(table.combine_chunks(), folder / "t.csv")
    return folder / "t.csv"


def csv_gz(table: pa.Table, folder: Path) -> Path:
    (folder / "t.csv.gz").write_bytes(gzip.compress(csv(table, folder).read_bytes()))
    return folder / "t.csv.gz"


def feather(table: pa.Table, folder: Path) -> Path:
    pyarrow.feather.write_feather(table, folder / "t.feather", chunksize=8)
    return folder / "t.feather"


def spark_frame(table: pa.Table, _: Path) -> Any:
    session = library("pyspark.sql").SparkSession.builder.getOrCreate()
    schema = library("pyspark.sql.pandas.types").from_arrow_schema(table.schema)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return session.createDataFrame(session.sparkContext.parallelize(rows, 3), schema)


Hold = Callable[[pa.Table, Path], Any]
ENGINE = pytest.mark.engine
SOURCES: dict[str, tuple[Hold, Any]] = {
    "numpy C": (lambda t, _: array_of(t), ()),
    "numpy Fortran": (lambda t, _: np.asfortranarray(array_of(t)), ()),
    "numpy object": (lambda t, _: array_of(t).astype(object), ()),
    "scipy COO": (lambda t, _: scipy.sparse.coo_matrix(array_of(t)), ()),
    "arrow table": (lambda t, _: t, ()),
    "arrow reader": (lambda t, _: t.to_reader(max_chunksize=5), ()),
    "arrow stream file": (lambda t, f: arrow_stream(t, f / "t.arrows"), ()),
    "feather": (feather, ()),
    "parquet": (parquet, ()),
    "parquet glob": (parquet_glob, ()),
    "csv": (csv, ()),
    "csv gzip": (csv_gz, ()),
    "pandas": (lambda t, _: library("pandas") and t.to_pandas(), ENGINE),
    "polars": (lambda t, _: library("polars").from_arrow(t), ENGINE),
    "polars lazy": (lambda t, _: library("polars").from_arrow(t).lazy(), ENGINE),
    "duckdb": (lambda t, _: library("duckdb").connect().from_arrow(t), ENGINE),
    "dask frame": (
        lambda t, _: library("dask.dataframe").from_pandas(t.to_pandas(), npartitions=3),
        ENGINE,
    ),
    "dask array": (
        lambda t, _: library("dask.array").from_array(array_of(t), chunks=(7, 2)),
        ENGINE,
    ),
    "spark frame": (spark_frame, ENGINE),
}
every_source = pytest.mark.parametrize(
    "hold", [pytest.param(hold, marks=marks, id=name) for name, (hold, marks) in SOURCES.items()]
)


@pytest.fixture(autouse=True)
def _spark_where_needed(request: pytest.FixtureRequest) -> None:
    if "spark" in request.node.name:
        request.getfixturevalue("spark")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dplinear.curator.sources.ordered._VALUES", 40)  # ten rows


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dplinear.noise.discrete.gaussian", lambda _, size, **__: np.zeros(size, np.int64)
    )


class Books:
    """A ledger that keeps what it is told, and may refuse."""

    def __init__(self, *, refuse: bool = False) -> None:
        self.spent: list[Request] = []
        self._refuse = refuse

    def spend(self, request: Request) -> None:
        if self._refuse:
            raise PermissionError("the budget is spent")
        self.spent.append(request)


class Broken:
    """A stream that breaks off after some rows, with words that quote a row."""

    def __init__(self, table: pa.Table, batches: int) -> None:
        self._table, self._batches = table, batches
        self.read = 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self._table.to_batches(max_chunksize=5)[: self._batches]:
                self.read += 1
                yield batch
            raise OSError("row 17 is Alice's")

        reader = pa.RecordBatchReader.from_batches(self._table.schema, batches())
        return reader.__arrow_c_stream__(requested_schema)


# Sources


@every_source
@pytest.mark.usefixtures("no_noise")
def test_rows_keep_their_order_whatever_holds_them(hold: Hold, tmp_path: Path) -> None:
    table = people()
    released = release_rows(hold(table, tmp_path), SCHEMA, bits=0.5, threads=3)
    expected = np.clip(array_of(table), [-1, 0, -5], [2, 3, 5])
    assert released.names == NAMES
    assert len(released) == ROWS
    assert np.abs(released.values - expected).max() <= 1e-5


@every_source
def test_a_seed_gives_the_same_rows_from_every_source(hold: Hold, tmp_path: Path) -> None:
    table = people()
    with simulation.door(7):
        expected = release_rows(table, SCHEMA, bits=0.5).to_arrow()
        assert release_rows(hold(table, tmp_path), SCHEMA, bits=0.5).to_arrow().equals(expected)
    assert not release_rows(table, SCHEMA, bits=0.5).to_arrow().equals(expected)


@pytest.mark.usefixtures("no_noise")
def test_broken_lines_of_a_file_keep_their_place(tmp_path: Path) -> None:
    lines = ["a,b,c", *(f"{i / 100},1,1" for i in range(60))]
    for place in (1, 20, 21, 22, 60):
        lines[place] = "1,2"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    expected = np.arange(60) / 100
    expected[[0, 19, 20, 21, 59]] = 0.5  # missing: the middle of the column
    values = release_rows(tmp_path / "t.csv", SCHEMA, bits=0.5).values[:, 0]
    assert np.abs(values - expected).max() <= 1e-5


def test_cells_that_are_no_numbers_change_neither_shape_nor_course() -> None:
    table = people()
    cells = table["a"].to_numpy().copy()
    cells[:5] = [np.nan, np.inf, -np.inf, 1e300, -1e300]
    bad = table.set_column(0, "a", pa.array(cells))
    with simulation.door(7):
        one, other = (release_rows(t, SCHEMA, bits=0.5) for t in (table, bad))
    assert one.certificate == other.certificate
    assert repr(one) == repr(other)
    changed = one.values != other.values
    assert not changed[5:].any()
    assert not changed[:, 1:].any()
    assert np.isfinite(other.values).all()
    assert np.abs(one.values - other.values).max() <= 3


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_small_tables_go_through(rows: int, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    released = release_rows(people(rows), SCHEMA, bits=0.5, output=path)
    assert len(released) == len(load(path, kind="rows")) == rows
    assert released.values.shape == (rows, 3)


def test_an_engine_is_refused_for_paths(tmp_path: Path) -> None:
    path = parquet(people(), tmp_path)
    with refused("engine", "release_rows", "writes the file itself"):
        release_rows(path, SCHEMA, bits=0.5, engine="dask")


@pytest.mark.engine
def test_an_engine_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(block: Any) -> Any:
        if len(block):
            raise OSError("row 17 is Alice's")
        return block

    frame = library("dask.dataframe").from_pandas(people().to_pandas(), npartitions=3)
    broken = frame.map_partitions(fail, meta=frame)
    with pytest.raises(SourceError) as caught:
        release_rows(broken, SCHEMA, bits=0.5, output=tmp_path / "x.parquet")
    assert "Alice" not in str(caught.value)
    assert caught.value.__context__ is None
    assert names_in(tmp_path) == []


def test_progress_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    release_rows(people(), SCHEMA, bits=0.5, progress=True)
    assert "Reading rows" in capsys.readouterr().err
    release_rows(people(), SCHEMA, bits=0.5)
    assert not capsys.readouterr().err


# Whole or not at all


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_source_that_breaks_off_leaves_no_file(suffix: str, tmp_path: Path) -> None:
    books, source = Books(), Broken(people(), 9)
    with pytest.raises(SourceError) as caught:
        release_rows(source, SCHEMA, bits=0.5, output=tmp_path / f"x.{suffix}", ledger=books)
    assert "Alice" not in str(caught.value)
    assert caught.value.__context__ is None
    assert names_in(tmp_path) == []
    assert len(books.spent) == 1
    assert source.read == 9


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_writer_that_fails_leaves_no_file(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def fail(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise OSError("the disk is full")

    monkeypatch.setattr("dplinear.analyst.rows.row_files.RowsFile.write", fail)
    with pytest.raises(OSError, match="disk is full"):
        release_rows(people(), SCHEMA, bits=0.5, output=tmp_path / f"x.{suffix}", threads=3)
    assert names_in(tmp_path) == []
    assert not [thread for thread in threading.enumerate() if "dplinear" in thread.name]
    monkeypatch.undo()
    assert len(release_rows(people(), SCHEMA, bits=0.5, output=tmp_path / f"x.{suffix}")) == ROWS


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("stage", ["os.fsync", "os.link"])
def test_complete_rows_that_get_no_name_stay(
    suffix: str, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are paid for, and nothing else holds them; the error says where they are."""

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(stage, fail)
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(UnplacedError, match="Input/output error") as caught:
        release_rows(people(), SCHEMA, bits=0.5, output=tmp_path / f"x.{suffix}")
    monkeypatch.undo()
    assert caught.value.path.name in str(caught.value)
    assert f"x.{suffix}" not in names_in(tmp_path)
    assert len(load(caught.value.path, kind="rows").to_arrow()) == ROWS
    assert len(release_rows(people(), SCHEMA, bits=0.5, output=tmp_path / f"x.{suffix}")) == ROWS


def test_a_certificate_whose_rows_cannot_be_placed_gives_its_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dplinear.analyst.releases import outputs

    given, claim = [], outputs.claim

    def second_fails(beside: Path, target: Path) -> None:
        given.append(target.name)
        if len(given) > 1:
            raise OSError(28, "No space left on device")
        claim(beside, target)

    monkeypatch.setattr(outputs, "claim", second_fails)
    with pytest.raises(UnplacedError, match="No space left") as caught:
        release_rows(people(), SCHEMA, bits=0.5, output=tmp_path / "x.csv")
    assert given == ["x.csv.certificate.json", "x.csv"]
    left = caught.value.path.name
    assert names_in(tmp_path) == [left, f"{left}.certificate.json"]
    assert len(load(caught.value.path, kind="rows").to_arrow()) == ROWS


@pytest.mark.parametrize("name", ["x" * 215 + ".parquet", "x" * 250 + ".arrow", "x" * 200 + ".csv"])
def test_a_name_that_is_too_long_is_found_before_the_spend(name: str, tmp_path: Path) -> None:
    """The certificate of a CSV file has the longest name of all."""
    books = Books()
    with refused("output", "release_rows"):
        release_rows(people(), SCHEMA, bits=0.5, output=tmp_path / name, ledger=books)
    assert not books.spent
    assert names_in(tmp_path) == []


KILLED = """
import os, sys
import pyarrow as pa
from dplinear import Schema, release_rows

def batches():
    for _ in range(20):
        yield pa.record_batch({"a": [0.0] * 4096})
    os.kill(os.getpid(), 9)

reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.float64())]), batches())
release_rows(reader, Schema(a=(-1, 1)), bits=0.5, output=sys.argv[1])
"""


def test_a_process_that_is_killed_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -9
    (left,) = names_in(tmp_path)
    assert left.startswith(".x.parquet.")
    assert left.endswith(".tmp")
    assert len(release_rows(people(), SCHEMA, bits=0.5, output=path)) == ROWS


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"

    class Slow(Books):
        def spend(self, request: Request) -> None:
            super().spend(request)
            path.write_bytes(b"someone else's")

    with pytest.raises(UnplacedError, match="another file has it") as caught:
        release_rows(people(), SCHEMA, bits=0.5, output=path, ledger=Slow())
    assert path.read_bytes() == b"someone else's"
    assert names_in(tmp_path) == [caught.value.path.name, "x.parquet"]
    assert len(load(caught.value.path, kind="rows").to_arrow()) == ROWS


# The order of things


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "no default privacy"),
        ({"bits": 0.5, "epsilon": 1.0}, "bits"),
        ({"bits": -1}, "bits"),
        ({"bits": 0.5, "mechanism": "magic"}, "mechanism"),
        ({"bits": 0.5, "neighbours": "add_remove"}, "neighbours"),
        ({"bits": 0.5, "calibration": "paper"}, "calibration"),
        ({"bits": 0.5, "colour": "red"}, "colour"),
        ({"bits": 0.5, "threads": 0}, "threads"),
        ({"bits": 0.5, "progress": "yes"}, "progress"),
        ({"bits": 0.5, "target": "d"}, "target"),
        ({"bits": 0.5, "output": "x.txt"}, "output"),
        ({"bits": 0.5, "output": "nowhere/x.csv"}, "nowhere"),
        ({"bits": 0.5, "output": b"x.csv"}, "output"),
        ({"bits": 0.5, "request": ""}, "request"),
    ],
)
def test_arguments_are_checked_before_the_spend(options: dict[str, Any], word: str) -> None:
    books, source = Books(), Broken(people(), 3)
    with pytest.raises((ValueError, TypeError), match=word):
        release_rows(source, SCHEMA, ledger=books, **options)
    assert not books.spent
    assert not source.read


def test_columns_are_checked_before_the_spend(tmp_path: Path) -> None:
    books = Books()
    with refused("data", "release_rows", "every column"):
        release_rows(
            people().drop_columns(["b"]),
            SCHEMA,
            bits=0.5,
            ledger=books,
            output=tmp_path / "x.csv",
        )
    assert not books.spent
    assert names_in(tmp_path) == []


def test_nothing_is_read_before_the_spend(tmp_path: Path) -> None:
    source = Broken(people(), 9)
    with pytest.raises(PermissionError):
        release_rows(
            source, SCHEMA, bits=0.5, ledger=Books(refuse=True), output=tmp_path / "x.arrow"
        )
    assert not source.read
    assert names_in(tmp_path) == []


def test_the_spend_and_the_certificate_say_the_same() -> None:
    books = Books()
    with tally() as spent:
        released = release_rows(people(), SCHEMA, bits=0.5, ledger=books, dataset="people")
    assert [request.guarantee for request in books.spent] == [MIDP(0.5)]
    assert spent.requests == books.spent
    assert released.certificate.holds == MIDP(0.5)
    assert released.certificate.request == books.spent[0].request
    assert released.certificate.curve
    assert not released.certificate.simulated
    assert release_rows(people(), SCHEMA, guarantee=ZCDP(0.1)).certificate.holds == ZCDP(0.1)


# Asking again


def asked(path: Path, data: Any, **options: Any) -> RowsRelease:
    given = {"bits": 0.5, "request": "first", "dataset": "people", "target": "c", **options}
    released: RowsRelease = release_rows(data, SCHEMA, output=path, **given)
    return released


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_request_gives_the_same_file(suffix: str, tmp_path: Path) -> None:
    path, books = tmp_path / f"x.{suffix}", Books()
    first = asked(path, people(), ledger=books)
    content = path.read_bytes()
    source = Broken(people(), 3)
    second = asked(path, source, ledger=books)
    assert path.read_bytes() == content
    assert second.to_arrow().equals(first.to_arrow())
    assert len(books.spent) == 1
    assert not source.read


@pytest.mark.parametrize(
    "changed",
    [
        {"request": None},
        {"request": "second"},
        {"bits": 0.6},
        {"dataset": "others"},
        {"y_public": True},
        {"target": "a"},
    ],
)
def test_another_request_is_refused_before_the_spend(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    path, books = tmp_path / "x.parquet", Books()
    asked(path, people())
    content = path.read_bytes()
    with refused("output", "release_rows", "not there yet"):
        asked(path, people(), ledger=books, **changed)
    assert not books.spent
    assert path.read_bytes() == content
    with simulation.door(1), refused("output", "release_rows", "not there yet"):
        asked(path, people())


def test_a_certificate_that_a_crash_left_alone_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    (tmp_path / "x.csv.certificate.json").write_text("of another attempt")
    assert len(asked(path, people())) == len(load(path, kind="rows")) == ROWS


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = parquet(people(), tmp_path)
    with refused("output", "release_rows", "not there yet"):
        asked(path, people())
    with pytest.raises(ReleaseError, match="released rows"):
        load(path)


def test_memory_holds_a_few_blocks() -> None:
    """However many rows have been read, few have not been handed over."""
    from dplinear.curator.sources.ordered import open_rows

    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for batch in people(2_000).to_batches(max_chunksize=10):
            read += batch.num_rows
            yield batch

    reader = pa.RecordBatchReader.from_batches(people(1).schema, batches())
    table = open_rows(reader, SCHEMA, "release_rows", threads=2)
    handed = 0
    with table.through(lambda block: block.shape[1]) as counts:
        for count in counts:
            handed += count
            assert read - handed <= 70
    assert handed == 2_000
    with suppress(StopIteration):
        next(counts)


def test_a_number_of_columns_asks_for_a_projection() -> None:
    schema = Schema({"x": (-1, 1), "y": (-1, 1)})
    table = np.zeros((3, 2))
    assert release_rows(table, schema, epsilon=1.0, k=1).certificate.mechanism == "projection"
    assert release_rows(table, schema, bits=0.5).certificate.mechanism == "additive_noise"
