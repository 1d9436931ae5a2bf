"""Numbers in tables of every library, each column in one of the types that it may have there.

Which type is chosen anew for each table, so that neighbours may have other types, too.
"""

import csv as csv_files
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet as parquet_files

Cells = Sequence[float | None]
Columns = dict[str, Cells]  # in the order of the schema
Hold = Callable[[Columns, Any, Path], Any]  # columns, what chooses types, and a folder


def _nan(cells: Cells) -> Any:
    return np.array([math.nan if cell is None else cell for cell in cells], float)


def _text(cell: float | None) -> str | None:
    if cell is None:
        return None
    return str(int(cell)) if math.isfinite(cell) and cell == int(cell) else repr(float(cell))


def _texts(cells: Cells) -> list[str | None]:
    return [_text(cell) for cell in cells]


def _arrow_column(cells: Cells, random: Any) -> pa.Array:
    match random.integers(4):
        case 0:
            return pa.array(cells, pa.float64())
        case 1:
            return pa.array(_nan(cells))
        case 2:
            return pa.array(_texts(cells), pa.string())
        case _:
            return pa.array(_texts(cells), pa.string()).dictionary_encode()


def arrow(columns: Columns, random: Any, folder: Path) -> pa.Table:
    """An Arrow table: nulls, NaN, texts and dictionaries of them."""
    del folder
    return pa.table({name: _arrow_column(cells, random) for name, cells in columns.items()})


def pandas(columns: Columns, random: Any, folder: Path) -> Any:
    """A frame of pandas: NumPy's, nullable and Arrow columns, texts, categories, and objects."""
    import pandas as pd

    del folder

    def column(cells: Cells) -> Any:
        match random.integers(6):
            case 0:
                return pd.Series(_nan(cells))
            case 1:
                return pd.Series(pd.array(list(cells), "Float64"))
            case 2:
                return pd.Series(list(cells), dtype="double[pyarrow]")
            case 3:
                return pd.Series(_texts(cells), dtype="string")
            case 4:
                return pd.Series(_texts(cells), dtype="category")
            case _:
                return pd.Series(list(cells), dtype=object)

    return pd.DataFrame({name: column(cells) for name, cells in columns.items()})


def polars(columns: Columns, random: Any, folder: Path) -> Any:
    """A frame of Polars: nulls, NaN, texts and categories."""
    import polars as pl

    del folder

    def column(cells: Cells) -> Any:
        match random.integers(4):
            case 0:
                return pl.Series(cells, dtype=pl.Float64)
            case 1:
                return pl.Series(_nan(cells))
            case 2:
                return pl.Series(_texts(cells), dtype=pl.String)
            case _:
                return pl.Series(_texts(cells), dtype=pl.Categorical)

    return pl.DataFrame({name: column(cells) for name, cells in columns.items()})


def duckdb(columns: Columns, random: Any, folder: Path) -> Any:
    """A table of DuckDB."""
    import duckdb as db

    connection = db.connect()
    connection.register("given", arrow(columns, random, folder))
    connection.execute("create table held as select * from given")
    return connection.table("held")


def csv(columns: Columns, random: Any, folder: Path) -> Any:
    """A file of text, which this library reads itself."""
    file = folder / f"{random.integers(2**60)}.csv"
    rows = zip(*map(_texts, columns.values()), strict=True)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv_files.writer(out)
        writer.writerow(columns)
        writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return file


def parquet(columns: Columns, random: Any, folder: Path) -> Any:
    """A file of several row groups."""
    file = folder / f"{random.integers(2**60)}.parquet"
    parquet_files.write_table(arrow(columns, random, folder), file, row_group_size=17)
    return file


def sparse(columns: Columns, random: Any, folder: Path) -> Any:
    """A sparse matrix of SciPy: columns by position."""
    from scipy import sparse as made

    del folder
    kinds = (made.csr_array, made.csc_array, made.coo_array, made.csr_matrix)
    dense = np.column_stack([_nan(cells) for cells in columns.values()])
    return kinds[random.integers(len(kinds))](dense)


def dask(columns: Columns, random: Any, folder: Path) -> Any:
    """A frame of Dask in several parts."""
    import dask.dataframe as dd

    frame = pandas(columns, random, folder)
    return dd.from_pandas(frame, npartitions=1 + int(random.integers(4)))


HOLDS: dict[str, Hold] = {
    "pandas": pandas,
    "polars": polars,
    "duckdb": duckdb,
    "csv": csv,
    "parquet": parquet,
    "sparse": sparse,
    "dask": dask,
}
