"""Polars: eager and lazy frames, and its own readers and writers."""

from pathlib import Path
from typing import Any

from fuzz.dice import Dice
from services import library

from .holders import source
from .pairs import Table
from .texts import text_of, written

_POLARS = {"needs": "polars", "infers": True}


def _columns(table: Table) -> dict[str, list[Any]]:
    return {name: table.cells(i) for i, name in enumerate(table.names)}


def _frame(table: Table) -> Any:
    return library("polars").DataFrame(_columns(table), strict=False)


def _texts(table: Table) -> Any:
    polars = library("polars")
    cells = {name: list(map(text_of, column)) for name, column in _columns(table).items()}
    return polars.DataFrame(cells, schema=dict.fromkeys(cells, polars.String))


@source("polars_frame", refused=0.2, **_POLARS)
def _eager(table: Table, dice: Dice, _: Path) -> Any:
    made = _frame(table)
    return made.rechunk() if dice.chance(0.5) else made


@source("polars_lazy", refused=0.2, **_POLARS)
def _lazy(table: Table, dice: Dice, folder: Path) -> Any:
    _ = dice, folder
    return _frame(table).lazy()


@source("narwhals_polars", needs="narwhals", infers=True, refused=0.2, share=0.6)
def _wrapped(table: Table, dice: Dice, _: Path) -> Any:
    """Frames and plans, of Polars' own classes or of ones that descend from them, in Narwhals."""
    polars, made = library("polars"), _frame(table)
    if dice.chance(0.5):
        made = type("DerivedFrame", (polars.DataFrame,), {"__module__": "elsewhere"})(made)
    return library("narwhals").from_native(made.lazy() if dice.chance(0.5) else made)


@source("polars_categorical", kinds=("text",), **_POLARS)
def _categorical(table: Table, dice: Dice, _: Path) -> Any:
    polars, made = library("polars"), _texts(table)
    made = made.with_columns(polars.all().cast(polars.Categorical))
    return made.lazy() if dice.chance(0.5) else made


@source("polars_codes", kinds=("text",), **_POLARS)
def _codes(table: Table, dice: Dice, _: Path) -> Any:
    """Categories that Polars finds, or that are all the cells there are."""
    polars, made = library("polars"), _texts(table)
    if dice.chance(0.5):
        return made.with_columns(polars.all().cast(polars.Categorical))
    kinds = {name: polars.Enum(made[name].unique(maintain_order=True)) for name in made.columns}
    return made.cast(kinds)


_READ: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"try_parse_dates": True},
    {"infer_schema_length": None},
    {"infer_schema_length": 2, "ignore_errors": True},
    {"infer_schema": False},
    {"null_values": ["NA", "null"]},
    {"encoding": "utf8-lossy"},
)


@source("polars_csv", kinds=("text", "number"), refused=0.1, **_POLARS)
def _csv(table: Table, dice: Dice, folder: Path) -> Any:
    file = folder / "table.csv"
    _texts(table).write_csv(file)
    return library("polars").read_csv(file, **dice.pick(_READ))


@source("polars_reads", kinds=("text", "broken"), refused=0.15, **_POLARS)
def _reads(table: Table, dice: Dice, folder: Path) -> Any:
    return library("polars").read_csv(written(table, dice, folder), **dice.pick(_READ))


@source("polars_scan_csv", kinds=("text", "broken"), refused=0.1, **_POLARS)
def _scan(table: Table, dice: Dice, folder: Path) -> Any:
    """A plan to read a file: what its reader refuses, it refuses within our pass."""
    return library("polars").scan_csv(written(table, dice, folder), **dice.pick(_READ))


@source("polars_ndjson", kinds=("text", "number"), refused=0.1, share=0.6, **_POLARS)
def _ndjson(table: Table, dice: Dice, folder: Path) -> Any:
    polars, file = library("polars"), folder / "table.ndjson"
    _frame(table).write_ndjson(file)
    return polars.scan_ndjson(file) if dice.chance(0.5) else polars.read_ndjson(file)


@source("polars_parquet", kinds=("text", "number"), refused=0.1, share=0.6, **_POLARS)
def _parquet(table: Table, dice: Dice, folder: Path) -> Any:
    polars, file = library("polars"), folder / "table.parquet"
    _frame(table).write_parquet(file)
    return dice.make(
        (lambda: file, lambda: polars.scan_parquet(file), lambda: polars.read_parquet(file))
    )


@source("polars_files", kinds=("text", "broken"), refused=0.2, share=0.6, **_POLARS)
def _files(table: Table, dice: Dice, folder: Path) -> Any:
    """A text file that Polars read and kept, for us to read."""
    given = folder / "given"
    given.mkdir(exist_ok=True)
    made = library("polars").read_csv(written(table, dice, given), **dice.pick(_READ))
    kind = dice.pick(("parquet", "ipc", "csv"))
    file = folder / f"kept.{kind}"
    getattr(made, f"write_{kind}")(file)
    return file
