"""Tables of rows with survey weights, groups and ids, as every library that is read holds them.

Weights are texts, as bad as texts may be: huge, below 0, without bounds, no number at all. What
holds numbers alone, such as a sparse matrix, holds the number that a text is, or NaN.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from scipy.sparse import csr_array

from services import library

NAMES = ("a", "b", "c")
BAD = ("1e300", "inf", "-inf", "-7", "nan", "", "heavy", "20", "20.0001", "1e999", "0", None)


@dataclass(frozen=True)
class Row:
    """One row: its cells, its weight, the two columns that say its group, and whose it is."""

    cells: tuple[float, ...]
    weight: str | None = "1"
    ward: str | None = "1"
    old: str | None = "true"
    owner: str = "new"

    def cell(self, name: str) -> Any:
        """Return the cell of a column."""
        if name in NAMES:
            return self.cells[NAMES.index(name)]
        return {"w": self.weight, "ward": self.ward, "old": self.old, "id": self.owner}[name]


# Rows, the columns that are read, a folder, and a name for what is put there.
Hold = Callable[[Sequence[Row], Sequence[str], Path, str], Any]


def arrow(rows: Sequence[Row], names: Sequence[str], *_: Any) -> pa.Table:
    """An Arrow table: weights, groups and ids are texts."""
    return pa.table({name: _column(rows, name) for name in names})


def _column(rows: Sequence[Row], name: str) -> pa.Array:
    kind = pa.float64() if name in NAMES else pa.string()
    return pa.array([row.cell(name) for row in rows], kind)


def _pandas(rows: Sequence[Row], names: Sequence[str], *_: Any) -> Any:
    return arrow(rows, names).to_pandas()


def _polars(rows: Sequence[Row], names: Sequence[str], *_: Any) -> Any:
    return library("polars").from_arrow(arrow(rows, names))


def _duckdb(rows: Sequence[Row], names: Sequence[str], *_: Any) -> Any:
    connection = library("duckdb").connect()
    connection.register("given", arrow(rows, names))
    connection.execute("create table held as select * from given")
    return connection.table("held")


def _csv(rows: Sequence[Row], names: Sequence[str], folder: Path, called: str) -> Any:
    path = folder / f"{called}.csv"
    arrow_csv.write_csv(arrow(rows, names), path)
    return path


def _sparse(rows: Sequence[Row], names: Sequence[str], *_: Any) -> Any:
    cells = [[_number(row.cell(name)) for name in names] for row in rows]
    return csr_array(np.array(cells, float).reshape(len(rows), len(names)))


def _number(cell: Any) -> float:
    if isinstance(cell, str) and cell.startswith("p"):
        return float(cell[1:])
    words = {"true": 1.0, "false": 0.0, "new": 1e6}
    try:
        return words[cell] if cell in words else float(cell)
    except (TypeError, ValueError):
        return math.nan


HOLDS: dict[str, Hold] = {
    "arrow": arrow,
    "pandas": _pandas,
    "polars": _polars,
    "duckdb": _duckdb,
    "csv": _csv,
    "sparse": _sparse,
}
