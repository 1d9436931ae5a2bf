"""SQLite: a cell has a type of its own there; its readers find one for each column."""

import atexit
import datetime as dt
import decimal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from fuzz.dice import Dice
from services import library

from .holders import source
from .pairs import Table
from .texts import text_of

_READABLE = int | float | str | bytes | None


def _filled(table: Table, dice: Dice, folder: Path) -> Path:
    """Write a table whose columns have no type, or one that SQLite likes cells to have."""
    file = folder / "table.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        columns = ", ".join(
            f"{_quoted(name)} {dice.pick(('', '', 'TEXT', 'NUMERIC', 'REAL', 'INTEGER'))}"
            for name in table.names
        )
        connection.execute(f"CREATE TABLE t ({columns})")
        marks = ", ".join("?" * len(table.names))
        rows = [tuple(map(_cell, row)) for row in table.rows]
        connection.executemany(f"INSERT INTO t VALUES ({marks})", rows)
    return file


def _cell(cell: Any) -> Any:
    if isinstance(cell, dt.date | decimal.Decimal):
        return text_of(cell)
    return cell if isinstance(cell, _READABLE) else text_of(cell)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_KINDS = ("text", "number")


@source("sqlite_pandas", kinds=_KINDS, needs="pandas", infers=True, refused=0.1, share=0.6)
def _pandas(table: Table, dice: Dice, folder: Path) -> Any:
    options = dice.pick(({}, {"dtype_backend": "numpy_nullable"}, {"dtype_backend": "pyarrow"}))
    with closing(sqlite3.connect(_filled(table, dice, folder))) as connection:
        return library("pandas").read_sql("SELECT * FROM t", connection, **options)


@source(
    "sqlite_adbc", kinds=_KINDS, needs="adbc_driver_sqlite", infers=True, refused=0.1, share=0.6
)
def _adbc(table: Table, dice: Dice, folder: Path) -> Any:
    """A stream of Arrow batches, whose types the driver finds in its first rows."""
    driver = library("adbc_driver_sqlite.dbapi")
    connection = driver.connect(str(_filled(table, dice, folder)))
    cursor = connection.cursor()
    if dice.chance(0.3):
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "2"})
    cursor.execute("SELECT * FROM t")
    reader = cursor.fetch_record_batch()
    _OPEN.append((cursor, connection))  # a stream outlives this call, and few calls more
    _close(but=3)
    return reader


_OPEN: list[Any] = []


@atexit.register
def _close(but: int = 0) -> None:
    while len(_OPEN) > but:
        for opened in _OPEN.pop(0):
            opened.close()
