"""Files of text, written by Python's own csv module: what people and other programs leave."""

import csv
import datetime as dt
import io
from pathlib import Path
from typing import Any

from fuzz.dice import Dice

from .pairs import Table


def text_of(cell: Any) -> str:
    """Return an ordinary cell, or an odd one of text or a number, as it is written in a file."""
    if cell is None:
        return ""
    return cell.isoformat() if isinstance(cell, dt.date) else str(cell)


def written(
    table: Table, dice: Dice, folder: Path, *, suffix: str = ".csv", end: str | None = None
) -> Path:
    """Write a file, quoted where it must be, or everywhere; return its path."""
    quoting = dice.pick((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    out = io.StringIO(newline="")
    mark = "\t" if suffix == ".tsv" else ","
    end = end or dice.pick(("\n", "\r\n"))
    writer = csv.writer(out, quoting=quoting, delimiter=mark, lineterminator=end)
    writer.writerow(table.names)
    writer.writerows([text_of(cell) for cell in row] for row in table.rows)
    file = folder / f"table{suffix}"
    file.write_bytes(out.getvalue().encode("utf-8", "surrogateescape"))
    return file
