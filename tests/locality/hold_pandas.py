"""pandas: frames that infer, of objects, nullable, Arrow-backed, categorical; its own files."""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuzz.dice import Dice
from fuzz.tables import objects
from services import library

from .hold_arrow import in_codes
from .holders import source
from .pairs import Table
from .texts import text_of, uniform, written

_PANDAS = {"needs": "pandas", "infers": True}


def frame(table: Table) -> Any:
    """Return the frame that pandas' constructor makes of lists: types by looking at cells."""
    pandas = library("pandas")
    return pandas.DataFrame({name: table.cells(i) for i, name in enumerate(table.names)})


def _texts(table: Table) -> Any:
    cells = {name: [text_of(cell) for cell in table.cells(i)] for i, name in enumerate(table.names)}
    return library("pandas").DataFrame(cells, dtype=object)


@source("pandas_frame", refused=0.1, **_PANDAS)
def _frame(table: Table, dice: Dice, folder: Path) -> Any:
    _ = dice, folder
    return frame(table)


@source("pandas_derived", needs="pandas", refused=0.02, share=0.6)
def _derived_frame(table: Table, dice: Dice, folder: Path) -> Any:
    """A frame of a class that descends from pandas', as GeoPandas' does."""
    frames = library("pandas").DataFrame
    return _derived(frames)(_objects(table, dice, folder))


@cache
def _derived(kind: type) -> Any:
    return type("DerivedFrame", (kind,), {"__module__": "elsewhere"})


@source("narwhals_pandas", needs="narwhals", refused=0.02, share=0.6)
def _wrapped(table: Table, dice: Dice, folder: Path) -> Any:
    make = dice.pick((_objects, _derived_frame))
    return library("narwhals").from_native(make(table, dice, folder))


@source("pandas_objects", needs="pandas", refused=0.02)
def _objects(table: Table, dice: Dice, _: Path) -> Any:
    pandas = library("pandas")
    columns = {
        name: pandas.Series(objects(table.cells(i), (-1,)), dtype=object)
        for i, name in enumerate(table.names)
    }
    made = pandas.DataFrame(columns)
    return made.infer_objects() if dice.chance(0.3) else made


@source("pandas_nullable", refused=0.15, **_PANDAS)
def _nullable(table: Table, dice: Dice, _: Path) -> Any:
    backend = dice.pick(("numpy_nullable", "pyarrow"))
    return frame(table).convert_dtypes(dtype_backend=backend)


@source("pandas_arrow", refused=0.1, **_PANDAS)
def _arrow(table: Table, dice: Dice, folder: Path) -> Any:
    _ = dice, folder
    pandas = library("pandas")
    columns = [pa.array(uniform(table.cells(place))) for place in range(len(table.columns))]
    made = pa.Table.from_arrays(columns, names=table.names)
    return made.to_pandas(types_mapper=pandas.ArrowDtype)


@source("pandas_codes", refused=0.1, **_PANDAS)
def _codes(table: Table, dice: Dice, folder: Path) -> Any:
    """Codes of Arrow's, with a dictionary for each chunk."""
    _ = folder
    pandas = library("pandas")
    columns = {}
    for place, name in enumerate(table.names):
        column = in_codes(pa.array(uniform(table.cells(place))), dice)
        columns[name] = pandas.Series(pandas.arrays.ArrowExtensionArray(column))
    return pandas.DataFrame(columns)


@source("pandas_categorical", refused=0.25, **_PANDAS)
def _categorical(table: Table, dice: Dice, folder: Path) -> Any:
    _ = dice, folder
    return frame(table).astype("category")


@source("pandas_dates", refused=0.15, **_PANDAS)
def _dates(table: Table, dice: Dice, _: Path) -> Any:
    """What to_datetime and to_numeric make of a column; what they cannot read is missing."""
    pandas, made = library("pandas"), frame(table)
    for column in table.columns:
        if column.name in {"day", "visit", "moment"}:
            made[column.name] = pandas.to_datetime(
                made[column.name], errors="coerce", utc=dice.chance(0.5), format="mixed"
            )
        elif column.name in {"number", "integer", "code", "grade"}:
            made[column.name] = pandas.to_numeric(made[column.name], errors="coerce")
    return made


_READ: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"engine": "python"},
    {"engine": "pyarrow"},
    {"dtype_backend": "numpy_nullable"},
    {"dtype_backend": "pyarrow"},
    {"keep_default_na": False},
    {"low_memory": False, "skipinitialspace": True},
    {"thousands": ","},
    {"dtype": str},
    {"dtype": "category"},
    {"parse_dates": True},
)


def _read(file: Path, dice: Dice) -> Any:
    return library("pandas").read_csv(file, **dice.pick(_READ))


@source("pandas_csv", kinds=("text", "number"), refused=0.05, **_PANDAS)
def _csv(table: Table, dice: Dice, folder: Path) -> Any:
    file = folder / "table.csv"
    _texts(table).to_csv(file, index=False)
    return _read(file, dice)


@source("pandas_reads", kinds=("text", "broken"), refused=0.1, **_PANDAS)
def _reads(table: Table, dice: Dice, folder: Path) -> Any:
    return _read(written(table, dice, folder), dice)


@source("pandas_json", kinds=("text", "number", "object"), refused=0.25, share=0.6, **_PANDAS)
def _json(table: Table, dice: Dice, folder: Path) -> Any:
    pandas, file = library("pandas"), folder / "table.json"
    lines = dice.chance(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame(table).to_json(file, orient="records", lines=lines)
        return pandas.read_json(file, orient="records", lines=lines)


@source("pandas_csv_parquet", kinds=("text",), refused=0.05, share=0.6, **_PANDAS)
def _csv_parquet(table: Table, dice: Dice, folder: Path) -> Any:
    """A text file that pandas read and kept as Parquet, Feather or CSV, for us to read."""
    source_folder = folder / "given"
    source_folder.mkdir(exist_ok=True)
    made = _read(written(table, dice, source_folder), dice)
    kind = dice.pick(("parquet", "feather", "csv"))
    file = folder / f"kept.{kind}"
    if kind == "csv":
        made.to_csv(file, index=False)
    else:
        getattr(made, f"to_{kind}")(file)
    return file


@source("pandas_parquet", refused=0.15, share=0.6, **_PANDAS)
def _parquet(table: Table, dice: Dice, folder: Path) -> Any:
    file = folder / "table.parquet"
    pandas = library("pandas")
    cells = {name: uniform(table.cells(i)) for i, name in enumerate(table.names)}
    pandas.DataFrame(cells).to_parquet(file)
    backend = dice.pick((None, "numpy_nullable", "pyarrow"))
    options = {} if backend is None else {"dtype_backend": backend}
    return pandas.read_parquet(file, **options) if dice.chance(0.5) else file
