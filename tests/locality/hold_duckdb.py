"""DuckDB: relations over frames, and over files that it sniffs; its COPY, read by us."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuzz.dice import Dice
from services import library

from .hold_pandas import frame
from .holders import source
from .pairs import Table
from .texts import text_of, uniform, written

_DUCKDB = {"needs": "duckdb", "infers": True}


def _texts(table: Table) -> pa.Table:
    columns = {
        name: pa.array([text_of(cell) for cell in table.cells(i)], pa.string())
        for i, name in enumerate(table.names)
    }
    return pa.table(columns)


@source("duckdb_pandas", refused=0.1, **_DUCKDB)
def _pandas(table: Table, dice: Dice, folder: Path) -> Any:
    """A relation over a pandas frame, whose objects DuckDB gives a type of its own finding."""
    _ = dice, folder
    duckdb = library("duckdb")
    made = frame(table)
    return duckdb.from_df(made)


@source("duckdb_values", kinds=("text", "number"), refused=0.1, **_DUCKDB)
def _values(table: Table, dice: Dice, folder: Path) -> Any:
    """Rows given as values of a statement; columns of several types as text, as DuckDB asks for."""
    _ = dice, folder
    duckdb = library("duckdb")
    marks = ", ".join("(" + ", ".join("?" * len(table.columns)) + ")" for _ in table.rows)
    names = ", ".join(_quoted(name) for name in table.names)
    if not table.rows:
        nothing = ", ".join(f"NULL AS {_quoted(name)}" for name in table.names)
        return duckdb.sql(f"SELECT {nothing} LIMIT 0")
    columns = [uniform(table.cells(place)) for place in range(len(table.columns))]
    cells = [cell for row in zip(*columns, strict=True) for cell in row]
    return duckdb.sql(f"SELECT * FROM (VALUES {marks}) AS t({names})", params=cells)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_READ: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"sample_size": -1},
    {"all_varchar": True},
    {"header": True, "delimiter": ","},
    {"header": True, "delimiter": ",", "quotechar": '"', "escapechar": '"'},
    {"header": True, "delimiter": ",", "quotechar": '"', "escapechar": '"', "ignore_errors": True},
    {"header": True, "delimiter": ",", "null_padding": True},
)


@source("duckdb_csv", kinds=("text",), refused=0.05, **_DUCKDB)
def _csv(table: Table, dice: Dice, folder: Path) -> Any:
    """COPY, then read_csv: DuckDB sniffs delimiter, quotes, header and types from the cells."""
    duckdb, file = library("duckdb"), folder / "table.csv"
    duckdb.from_arrow(_texts(table)).write_csv(str(file))
    return duckdb.read_csv(str(file), **dice.pick(_READ))


@source("duckdb_reads", kinds=("text", "broken"), refused=0.15, **_DUCKDB)
def _reads(table: Table, dice: Dice, folder: Path) -> Any:
    file = written(table, dice, folder)
    return library("duckdb").read_csv(str(file), **dice.pick(_READ))


@source("duckdb_json", kinds=("text", "number"), refused=0.05, share=0.6, **_DUCKDB)
def _json(table: Table, dice: Dice, folder: Path) -> Any:
    _ = dice
    duckdb, file = library("duckdb"), folder / "table.json"
    made = _texts(table)
    copy = f"COPY (SELECT * FROM made) TO '{file}'"
    duckdb.from_arrow(made).query("made", copy)
    return duckdb.read_json(str(file))


@source("duckdb_typed_json", kinds=("text", "number", "object"), refused=0.3, **_DUCKDB)
def _typed_json(table: Table, dice: Dice, folder: Path) -> Any:
    """Lines of JSON in which cells have types of their own; read, or kept as Parquet for us."""
    file = folder / "table.json"
    rows = (dict(zip(table.names, row, strict=True)) for row in table.rows)
    lines = [json.dumps(row, default=text_of) for row in rows]
    file.write_text("\n".join(lines), encoding="utf-8")
    made = library("duckdb").read_json(str(file), format="newline_delimited")
    if dice.chance(0.7):
        return made
    made.write_parquet(str(folder / "kept.parquet"))
    return folder / "kept.parquet"


@source("duckdb_copy", kinds=("text", "broken"), refused=0.15, share=0.6, **_DUCKDB)
def _copy(table: Table, dice: Dice, folder: Path) -> Any:
    """A text file that DuckDB read and kept, for us to read."""
    given = folder / "given"
    given.mkdir(exist_ok=True)
    made = library("duckdb").read_csv(str(written(table, dice, given)), **dice.pick(_READ))
    kind = dice.pick(("parquet", "csv"))
    file = folder / f"kept.{kind}"
    getattr(made, f"write_{kind}")(str(file))
    return file
