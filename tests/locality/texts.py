"""Files of text, written by Python's own csv module: what people and other programs leave."""

import csv
import datetime as dt
import io
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from fuzz.dice import Dice
from fuzz.tables import Line
from fuzz.values import Faceless

from .pairs import Table


def text_of(cell: Any) -> str:
    """Return an ordinary cell, or an odd one of text or a number, as it is written in a file."""
    if cell is None:
        return ""
    if isinstance(cell, bytes):
        return bytes.decode(cell, "utf-8", "surrogateescape")
    return cell.isoformat() if isinstance(cell, dt.date) else str(cell)


def uniform(cells: list[Any]) -> list[Any]:
    """Return a column as it is where Arrow finds one type for it; otherwise as text.

    That is what a user does to whom a library says that a column has cells of several types.
    """
    if any(issubclass(type(cell), Faceless) for cell in cells):
        raise TypeError("Arrow would end the interpreter over it")
    try:
        pa.array(cells)
    except Exception:
        return [None if cell is None else text_of(cell) for cell in cells]
    return cells


def written(
    table: Table, dice: Dice, folder: Path, *, suffix: str = ".csv", end: str | None = None
) -> Path:
    """Write a file and return its path.

    Cells are quoted everywhere, where Python's csv module does it, or, as many programs do, where
    they hold the delimiter, a quotation mark or a line feed, and not over a carriage return.
    """
    style = dice.pick((_minimal, _everywhere, _careless))
    mark = "\t" if suffix == ".tsv" else ","
    end = end or dice.pick(("\n", "\r\n"))
    lines = [style(table.names, mark, end)]
    for row in table.rows:
        whole = bool(row) and isinstance(row[0], Line)
        lines.append(row[0] if whole else style([text_of(cell) for cell in row], mark, end))
    file = folder / f"table{suffix}"
    content = "".join(line + end for line in lines)
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    return file


def _minimal(cells: list[str], mark: str, end: str) -> str:
    return _line(cells, mark, end, csv.QUOTE_MINIMAL)


def _everywhere(cells: list[str], mark: str, end: str) -> str:
    return _line(cells, mark, end, csv.QUOTE_ALL)


def _line(cells: list[str], mark: str, end: str, quoting: Literal[0, 1]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=quoting, delimiter=mark, lineterminator=end).writerow(cells)
    return out.getvalue().removesuffix(end)


def _careless(cells: list[str], mark: str, end: str) -> str:
    _ = end
    special = (mark, '"', "\n")
    quoted = ('"' + cell.replace('"', '""') + '"' for cell in cells)
    pairs = zip(cells, quoted, strict=True)
    return mark.join(q if any(c in cell for c in special) else cell for cell, q in pairs)
