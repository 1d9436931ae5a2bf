"""Dask and Spark: their collections, and what they read of files themselves."""

import json
import os
import shutil
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.dice import Dice
from services import library

from .hold_pandas import frame
from .holders import source
from .pairs import Table
from .texts import text_of, uniform, written

_DASK = {"needs": "dask", "share": 0.1, "infers": True}
_READ: tuple[dict[str, Any], ...] = (
    {},
    {"blocksize": 64, "sample": 60},
    {"blocksize": 64, "sample": 60, "dtype": str},
)
_SPARK = {"needs": "pyspark", "share": 0.02, "ordered": False, "infers": True}


@source("dask_frame", refused=0.2, **_DASK)
def _dask_frame(table: Table, dice: Dice, _: Path) -> Any:
    dataframe = library("dask.dataframe")
    return dataframe.from_pandas(frame(table), npartitions=dice.pick((1, 2)), sort=False)


@source("dask_csv", kinds=("text",), refused=0.2, **_DASK)
def _dask_csv(table: Table, dice: Dice, folder: Path) -> Any:
    """Types by a sample of the first rows; each part of the file must then be of them."""
    file = written(table, dice, folder, end="\n")
    options = dice.pick(_READ)
    return library("dask.dataframe").read_csv(str(file), **options)


@source("dask_sorted", kinds=("text",), refused=0.2, ordered=False, **_DASK)
def _dask_sorted(table: Table, dice: Dice, folder: Path) -> Any:
    """A plan that looks at cells when it is made ready: to sort, Dask asks for quantiles."""
    file = written(table, dice, folder, end="\n")
    made = library("dask.dataframe").read_csv(str(file), blocksize=64, sample=60)
    return made.sort_values(table.names[0], npartitions=2)


@source("dask_array", kinds=("number",), plain=True, named=False, **_DASK)
def _dask_array(table: Table, dice: Dice, _: Path) -> Any:
    numpy, arrays = library("numpy"), library("dask.array")
    made = numpy.array(table.rows, "f8").reshape(len(table.rows), len(table.columns))
    return arrays.from_array(made, chunks=(dice.pick((2, 100)), dice.pick((1, 100))))


@source("dask_parquet", kinds=("text",), refused=0.2, **_DASK)
def _dask_parquet(table: Table, dice: Dice, folder: Path) -> Any:
    pandas, dataframe = library("pandas"), library("dask.dataframe")
    given = folder / "given"
    given.mkdir()
    made = dataframe.from_pandas(
        pandas.read_csv(written(table, dice, given)), npartitions=2, sort=False
    )
    made.to_parquet(str(folder / "kept"))
    return dataframe.read_parquet(str(folder / "kept"))


@cache
def _session() -> Any:
    """Return this process's session with two cores, which asks for no network."""
    sql, java = library("pyspark.sql"), shutil.which("java")
    if java is None:
        raise RuntimeError("Spark runs on Java")
    os.environ.setdefault("JAVA_HOME", str(Path(java).resolve().parents[1]))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = sql.SparkSession.builder.master("local[2]").appName("dplinear-locality")
    for key, value in (
        ("spark.ui.enabled", "false"),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.driver.memory", "1g"),
        ("spark.sql.shuffle.partitions", "2"),
    ):
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@source("spark_frame", kinds=("text", "number"), refused=0.4, **_SPARK)
def _spark_frame(table: Table, dice: Dice, folder: Path) -> Any:
    """Types by looking at all rows; mixtures, which Spark refuses, as text."""
    _ = dice, folder
    columns = [uniform(table.cells(place)) for place in range(len(table.columns))]
    rows = list(zip(*columns, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _session().createDataFrame(rows, table.names)


@source("spark_csv", kinds=("text", "broken"), refused=0.2, **_SPARK)
def _spark_csv(table: Table, dice: Dice, folder: Path) -> Any:
    file = written(table, dice, folder, end="\n")
    reader = _session().read.option("header", True).option("escape", '"')
    reader = reader.option("inferSchema", dice.chance(0.8))
    return reader.option("multiLine", True).csv(str(file))


@source("spark_json", kinds=("text",), refused=0.2, **_SPARK)
def _spark_json(table: Table, dice: Dice, folder: Path) -> Any:
    _ = dice
    file = folder / "table.json"
    lines = [
        json.dumps(dict(zip(table.names, map(text_of, row), strict=True))) for row in table.rows
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return _session().read.json(str(file))
