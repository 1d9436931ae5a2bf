"""What tests of projected rows share: schemas, tables, and their integer rows."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dplinear.exact.grid import Grid, round_to_grid
from dplinear.exact.shape import Shape
from dplinear.mechanisms.rows.projection import PreparedProjection, ProjectedRows
from dplinear.noise import simulation
from dplinear.schema import Schema
from dplinear.schema.encoding import Encoder

MIXED = Schema(
    {
        "age": (0, 100),
        "income": {"type": "number", "low": -5, "high": 1e6, "missing_indicator": True},
        "member": "boolean",
        "town": ["a", "b", "c", "d"],
        "job": {"type": "category", "levels": ["x", "y", "z"], "drop_first": False, "other": "z"},
    }
)


def numbers(count: int, **options: Any) -> Schema:
    return Schema({f"x{i}": (-1, 1) for i in range(count)}, **options)


def shape_of(schema: Schema) -> Shape:
    grid = Grid.of(schema)
    return Shape(schema.dimension, grid.steps_per_unit, grid.exponent)


def integer_rows(schema: Schema, table: dict[str, list[Any]]) -> np.ndarray:
    """Return a table's rows as the curator's pass makes them, shape (dimension, rows)."""
    grid = Grid.of(schema)
    encoder = Encoder(schema, float(grid.steps_per_unit))
    batch = pa.RecordBatch.from_pydict({name: pa.array(cells) for name, cells in table.items()})
    columns = {name: batch.column(name) for name in schema.columns}
    cells = encoder.finish(encoder.columns(columns, batch.num_rows))
    return round_to_grid(grid, cells, encoder.missing)


def prepared(
    schema: Schema, seed: int = 1, kind: type[ProjectedRows] = ProjectedRows, **options: Any
) -> PreparedProjection:
    """Return a mechanism ready to release, with a projection of its own."""
    shape = shape_of(schema)
    return kind(**options).prepare(schema, shape, simulation.entropy(seed))


def kept_places(schema: Schema, label: str | None = None) -> list[int]:
    return [p for p, f in enumerate(schema.features) if f.factors and f.term.label != label]


def images(made: PreparedProjection, rows: np.ndarray, places: list[int]) -> list[list[int]]:
    """Return XA on Python integers, a list for each row."""
    matrix = [[int(entry) for entry in line] for line in made.projection.integers]
    exact = [[int(entry) for entry in rows[place]] for place in places]
    return [
        [
            sum(cell[row] * line[column] for cell, line in zip(exact, matrix, strict=True))
            for column in range(made.projection.k)
        ]
        for row in range(rows.shape[1])
    ]


def l1(first: list[int], second: list[int]) -> int:
    return sum(abs(a - b) for a, b in zip(first, second, strict=True))


def l2_squared(first: list[int], second: list[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


def reach(made: PreparedProjection) -> Fraction:
    """Return the L1 distance, in units of XA, that the noise makes up for."""
    noise = made.noise
    loss: Any = noise.profile
    return Fraction(noise.scale) * Fraction(loss.loss) * (1 << noise.step)
