"""Lines that are written to a ledger on a server by hand, as anybody may who may add lines."""

from typing import Any

from dplinear.ledger.hash_chain import Entry
from services import library


def insert(url: str, name: str, line: Entry, output: bytes | None = None, **other: Any) -> None:
    """Insert a line by plain SQL, with other values in some columns; raise what the server says."""
    cells = vars(line) | {"cost": line.cost.main, "cost_delta": line.cost.delta}
    cells |= {"spent": line.spent.main, "spent_delta": line.spent.delta, "output": output}
    cells |= other
    marks = ", ".join(["%s"] * len(cells))
    text = f'INSERT INTO "{name}".lines ({", ".join(cells)}) VALUES ({marks})'
    with library("psycopg").connect(url, autocommit=True) as connection:
        connection.execute(text, list(cells.values()))
