"""What an engine says of a table's cells reaches no error, log or warning; and no cell raises."""

import decimal
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.curator import Schema, SourceError, second_moments
from dplinear.curator.sources.ordered import open_rows
from services import library

pytestmark = pytest.mark.engine

WORD = "Ada-has-it"
SCHEMA = Schema({"a": (0, 1), "b": (0, 9)})
UNITS = Schema({"a": (0, 1)}, unit="b")
COUNT = 6
ODD: dict[str, Any] = {
    "text": WORD,
    "bytes": WORD.encode(),
    "no UTF-8": b"\xff" + WORD.encode(),
    "half a letter": WORD + "\ud800",
    "list": [WORD],
    "mapping": {WORD: 1},
    "long integer": 10**40,
    "nothing": None,
    "complex": 1j,
    "decimal": decimal.Decimal("sNaN"),
    "array": np.zeros(3),
}


def frame(column: str, cell: Any) -> Any:
    """A pandas frame of six rows with an odd cell, in a column that is declared or not."""
    cells = np.empty(COUNT, object)
    cells[:] = [0.5, 1, 0.25, "x", 0.125, 1]
    cells[4] = cell
    pandas = library("pandas")
    made = pandas.DataFrame({"a": np.linspace(0, 1, COUNT), "b": np.arange(COUNT) * 1.0})
    made[column] = pandas.Series(cells, dtype=object)
    return made


def rows(data: Any) -> Any:
    with open_rows(data, SCHEMA, "release_rows", threads=1).through(np.copy) as blocks:
        return np.hstack(list(blocks))


READS = [lambda data: second_moments(data, SCHEMA), lambda data: second_moments(data, UNITS), rows]


@pytest.mark.parametrize("column", ["a", "note"])
@pytest.mark.parametrize("name", ODD)
def test_dask_reads_every_cell_of_a_pandas_frame(
    name: str, column: str, recwarn: pytest.WarningsRecorder, capfd: pytest.CaptureFixture[str]
) -> None:
    """Dask made text of all objects, in columns that nobody asked for too, and raised over some."""
    made = frame(column, ODD[name])
    table = library("dask.dataframe").from_pandas(made, npartitions=2)
    recwarn.clear()
    want = second_moments(made, SCHEMA)
    for data in (table, table[["b", "a"]], table[["b", "a"]][["a", "b"]]):
        assert second_moments(data, SCHEMA) == want
    assert (rows(table) == rows(made)).all()
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


def raising(part: Any) -> Any:
    if (part.b == 3).any():
        warnings.warn(WORD, stacklevel=1)
        logging.getLogger("distributed.worker").error(WORD)
        float(WORD)
    return part


@contextmanager
def cluster(kind: str) -> Iterator[None]:
    if kind == "threads":
        with library("dask").config.set(scheduler="threads"):
            yield
        return
    distributed = library("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, processes=kind == "processes") as made,
        distributed.Client(made),
    ):
        yield


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", ["threads", "workers", "processes"])
def test_a_plan_that_fails_on_dask_says_nothing(
    kind: str,
    read: Callable[[Any], Any],
    recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    made = frame("a", 1)
    table = library("dask.dataframe").from_pandas(made, npartitions=2)
    loggers = logging.getLogger("distributed.worker"), logging.getLogger("distributed")
    for logger in loggers:
        logger.addHandler(caplog.handler)
    with cluster(kind):
        capfd.readouterr()
        recwarn.clear()
        with pytest.raises(SourceError, match="the table on Dask") as caught:
            read(table.map_partitions(raising, meta=made.head(0)))
        said = "".join(capfd.readouterr())
    for logger in loggers:
        logger.removeHandler(caplog.handler)
        assert not logger.disabled
    said += "".join(traceback.format_exception(caught.value)) + caplog.text
    assert WORD not in said
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not [one for one in recwarn.list if WORD in str(one.message)]


def test_warnings_are_heard_again_after_a_pass() -> None:
    made = frame("a", 1)
    second_moments(library("dask.dataframe").from_pandas(made, npartitions=2), SCHEMA)
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", UserWarning, stacklevel=1)


@pytest.mark.parametrize("read", READS)
def test_a_plan_that_fails_on_spark_says_nothing(
    read: Callable[[Any], Any], spark: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    people = spark.createDataFrame([("1", 2.0), (WORD, 3.0)], "a string, b double")
    plan = people.selectExpr("CAST(a AS DOUBLE) AS a", "b")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with pytest.raises(SourceError, match="the table on Spark") as caught:
            read(plan)
        logs = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager
        assert str(logs.getRootLogger().getLevel()) == "ERROR"  # as it was
    finally:
        spark.sparkContext.setLogLevel("OFF")
    said = "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr())
    assert WORD not in said
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def polars_plan(made: Any) -> Any:
    table = library("polars").from_arrow(pa.Table.from_pandas(made[["a", "b"]]))
    return table.lazy().with_columns(a=library("polars").lit(WORD).cast(float))


def duckdb_plan(made: Any) -> Any:
    people = library("duckdb").connect().from_arrow(pa.Table.from_pandas(made[["a", "b"]]))
    return people.project(f"CAST(CASE WHEN b < 9 THEN '{WORD}' ELSE '1' END AS DOUBLE) AS a, b")


def arrow_stream(made: Any) -> Any:
    table = pa.Table.from_pandas(made[["a", "b"]])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        raise ValueError(WORD)

    return pa.RecordBatchReader.from_batches(table.schema, batches())


@pytest.mark.parametrize("plan", [polars_plan, duckdb_plan, arrow_stream])
@pytest.mark.parametrize("read", READS)
def test_other_plans_that_fail_say_nothing(
    plan: Callable[[Any], Any],
    read: Callable[[Any], Any],
    recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    made = frame("note", 1)
    data = plan(made)
    capfd.readouterr()
    with pytest.raises(SourceError) as caught:
        read(data)
    said = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert WORD not in said + "".join(capfd.readouterr())
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not recwarn.list


@pytest.mark.parametrize("read", ["sums", "rows"])
def test_a_plan_of_polars_that_panics_is_a_table_that_cannot_be_read(read: str) -> None:
    """A panic is no Exception; what Polars itself prints of it, nobody can hold back."""
    polars = library("polars")
    schema = Schema({"x": {"type": "date", "low": "2020-01-01", "high": "2026-01-01"}})
    days = polars.LazyFrame({"x": [18262, 2**31 - 1]}, schema={"x": polars.Int32})
    plan = days.with_columns(polars.col("x").cast(polars.Date).dt.strftime("%Y-%m-%d"))
    with pytest.raises(SourceError, match="Reading the stream failed") as caught:
        second_moments(plan, schema) if read == "sums" else list_rows(plan, schema)
    assert "out-of-range" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def list_rows(data: Any, schema: Schema) -> Any:
    with open_rows(data, schema, "test", threads=1).through(np.copy) as blocks:
        return list(blocks)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_while_a_table_is_read_does(error: type[BaseException]) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from ()
        raise error

    kinds = pa.schema({"a": pa.float64(), "b": pa.float64()})
    with pytest.raises(error):
        second_moments(pa.RecordBatchReader.from_batches(kinds, batches()), SCHEMA)


class _Stream:
    """A table of a library that nobody knows, which raises when it is asked for its rows."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise self._error


def test_which_error_a_library_raises_is_not_told() -> None:
    """It may depend on a cell, as pandas' does."""
    told = set()
    for error in (ValueError(WORD), OverflowError(WORD), pa.ArrowInvalid(WORD)):
        with pytest.raises(SourceError) as caught:
            second_moments(_Stream(error), Schema({"x": (0, 1)}))
        told.add(str(caught.value))
    assert len(told) == 1
