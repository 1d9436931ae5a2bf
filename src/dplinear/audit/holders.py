"""Ways to hold the same table, for replays: arrays, frames, files, sparse matrices, engines.

A holder whose library is not installed is left out.
"""

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from dplinear.arrays import Floats

Hold = Callable[[Floats, Path], Any]


@dataclass(frozen=True)
class Holder:
    """A kind of source; `needs` is the library it takes, `slow` says that a pass takes long."""

    name: str
    hold: Hold
    needs: str | None = None
    slow: bool = False

    @property
    def installed(self) -> bool:
        """Whether its library is."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


def names_of(columns: int) -> list[str]:
    """Return the columns' names."""
    return [f"c{index}" for index in range(columns)]


def _table(rows: Floats) -> pa.Table:
    names = names_of(rows.shape[1])
    return pa.table({name: pa.array(rows[:, index]) for index, name in enumerate(names)})


def _parquet(rows: Floats, folder: Path) -> str:
    path = folder / "table.parquet"
    pa.parquet.write_table(_table(rows), path, row_group_size=5)
    return str(path)


def _csv(rows: Floats, folder: Path) -> str:
    path = folder / "table.csv"
    pa.csv.write_csv(_table(rows), path)
    return str(path)


def _feather(rows: Floats, folder: Path) -> str:
    path = folder / "table.feather"
    pa.feather.write_feather(_table(rows), path)
    return str(path)


def _sparse(rows: Floats, folder: Path) -> Any:  # noqa: ARG001 - a SciPy matrix
    from scipy import sparse

    return sparse.csr_array(rows)


def _pandas(rows: Floats, folder: Path) -> Any:  # noqa: ARG001 - a frame
    return _table(rows).to_pandas()


def _polars(rows: Floats, folder: Path) -> Any:  # noqa: ARG001 - a frame
    import polars as pl

    return pl.from_arrow(_table(rows))


def _dask(rows: Floats, folder: Path) -> Any:  # noqa: ARG001 - a collection
    from dask import dataframe

    return dataframe.from_pandas(_table(rows).to_pandas(), npartitions=2)


def _spark(rows: Floats, folder: Path) -> Any:  # noqa: ARG001 - a collection
    from pyspark.sql import SparkSession

    # This Python, not whatever python3 there is, and no network but this machine.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = SparkSession.builder.master("local[2]").getOrCreate()
    lines = [tuple(map(float, row)) for row in rows]
    return session.createDataFrame(lines, ", ".join(f"{n} double" for n in names_of(rows.shape[1])))


HOLDERS = (
    Holder("array", lambda rows, _: np.ascontiguousarray(rows)),
    Holder("sparse", _sparse),
    Holder("arrow", lambda rows, _: _table(rows)),
    Holder("parquet", _parquet),
    Holder("csv", _csv),
    Holder("feather", _feather),
    Holder("pandas", _pandas, "pandas"),
    Holder("polars", _polars, "polars"),
    Holder("dask", _dask, "dask", slow=True),
    Holder("spark", _spark, "pyspark", slow=True),
)
