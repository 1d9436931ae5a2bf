"""Tables with gaps, in every way in which libraries say that a cell holds no number.

How a column says it is chosen anew for each table, so that neighbours may have other types, too.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

NAMES = ("a", "b", "c")
UNIT = "id"
Row = tuple[float | None, ...]  # the cells of NAMES
Rows = Sequence[Row]
Hold = Callable[[Rows, Sequence[str], Any], Any]  # rows, their ids, and what chooses the ways

_WORDS = ("", "n/a", "nan", "1_000")


def _columns(rows: Rows) -> dict[str, list[float | None]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(NAMES)}


def _nan(cells: Sequence[float | None]) -> Any:
    return np.array([math.nan if cell is None else cell for cell in cells], float)


def _texts(cells: Sequence[float | None], random: Any, *gaps: Any) -> list[Any]:
    return [_one(random, gaps) if cell is None else repr(float(cell)) for cell in cells]


def _one(random: Any, gaps: Sequence[Any]) -> Any:
    return gaps[random.integers(len(gaps))]


def _arrow_column(cells: Sequence[float | None], random: Any) -> pa.Array:
    match random.integers(3):
        case 0:
            return pa.array(cells, pa.float64())
        case 1:
            return pa.array(_nan(cells))
        case _:
            return pa.array(_texts(cells, random, None, *_WORDS), pa.string())


def arrow(rows: Rows, ids: Sequence[str], random: Any) -> pa.Table:
    """An Arrow table: nulls, NaN, and texts."""
    columns = {name: _arrow_column(cells, random) for name, cells in _columns(rows).items()}
    return pa.table({**columns, UNIT: pa.array(ids, pa.string())})


def pandas(rows: Rows, ids: Sequence[str], random: Any) -> Any:
    """A frame of pandas: NaN, NA of nullable and of Arrow columns, texts, and objects."""
    import pandas as pd

    def column(cells: Sequence[float | None]) -> Any:
        match random.integers(5):
            case 0:
                return pd.Series(_nan(cells))
            case 1:
                return pd.Series(pd.array(cells, "Float64"))
            case 2:
                return pd.Series(cells, dtype="double[pyarrow]")
            case 3:
                return pd.Series(_texts(cells, random, pd.NA, *_WORDS), dtype="string")
            case _:
                gaps = (None, math.nan, pd.NA, pd.NaT, [1.0], *_WORDS)
                held = [_one(random, gaps) if cell is None else cell for cell in cells]
                return pd.Series(held, dtype=object)

    columns = {name: column(cells) for name, cells in _columns(rows).items()}
    return pd.DataFrame({**columns, UNIT: pd.Series(list(ids), dtype=object)})


def polars(rows: Rows, ids: Sequence[str], random: Any) -> Any:
    """A frame of Polars: nulls, NaN, and texts, some of them categories."""
    import polars as pl

    def column(cells: Sequence[float | None]) -> Any:
        match random.integers(4):
            case 0:
                return pl.Series(cells, dtype=pl.Float64)
            case 1:
                return pl.Series(_nan(cells))
            case 2:
                return pl.Series(_texts(cells, random, None, *_WORDS), dtype=pl.String)
            case _:
                return pl.Series(_texts(cells, random, None, *_WORDS), dtype=pl.Categorical)

    columns = {name: column(cells) for name, cells in _columns(rows).items()}
    return pl.DataFrame({**columns, UNIT: pl.Series(list(ids), dtype=pl.String)})


def duckdb(rows: Rows, ids: Sequence[str], random: Any) -> Any:
    """A table of DuckDB: NULL, NaN, and texts."""
    import duckdb as db

    connection = db.connect()
    connection.register("given", arrow(rows, ids, random))
    connection.execute("create table held as select * from given")
    return connection.table("held")


FRAMES: dict[str, Hold] = {"pandas": pandas, "polars": polars, "duckdb": duckdb}
