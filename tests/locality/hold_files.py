"""Our own reader of text files: CSV and TSV, compressed or not, in one file or several."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzz.dice import Dice

from .holders import source
from .pairs import Table
from .texts import written


@source("our_csv", kinds=("text", "broken", "line"), share=2.0)
def _csv(table: Table, dice: Dice, folder: Path) -> Any:
    suffix = dice.pick((".csv", ".csv", ".tsv"))
    file = written(table, dice, folder, suffix=suffix)
    if dice.chance(0.2):
        packed = file.with_name(file.name + ".gz")
        packed.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        file.unlink()
        return packed
    return file


@source("our_csv_folder", kinds=("text", "broken", "line"), share=0.3)
def _folder(table: Table, dice: Dice, folder: Path) -> Any:
    """One file a row: a path, a glob or a list."""
    files = []
    for place, row in enumerate(table.rows or ((),)):
        under = folder / f"{place:04d}"
        under.mkdir(exist_ok=True)
        rows = (row,) if table.rows else ()
        files.append(written(replace(table, rows=rows), Dice(dice.seed), under))
    return dice.pick((files, str(folder), str(folder / "*" / "*.csv")))
