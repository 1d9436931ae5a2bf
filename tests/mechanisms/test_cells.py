"""What one source cell can do to a row, against every value that a cell can hold."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.mechanisms.cells.table_cells import Cell, cells_of
from dplinear.noise.simulation import generator

_NUMBERS = [-1e300, -100.0, 0.0, 3.0, 10.0, 35.0, 60.0, 1e300, float("nan"), None]
_WORDS = ["a", "b", "c", "unseen", "", None]
_SCHEMAS = [
    dpl.Schema({"x": (10, 60)}),
    dpl.Schema({"x": (10, 60)}, intercept=False),
    dpl.Schema({"x": {"type": "number", "low": 10, "high": 60, "missing_indicator": True}}),
    dpl.Schema({"x": ["a", "b"]}),
    dpl.Schema({"x": {"type": "category", "levels": ["a", "b"], "other": "a"}}),
    dpl.Schema({"x": {"type": "category", "levels": ["a", "b", "c"], "drop_first": False}}),
    dpl.Schema({"x": {"type": "category", "levels": ["a", "b", "c"], "other": "a"}}),
    dpl.Schema(
        {"x": {"type": "category", "levels": ["a", "b"], "other": "a", "drop_first": False}}
    ),
]


def _points(schema: dpl.Schema, cell: Cell) -> Any:
    """Return every vector that a value of the column is mapped to."""
    words = "levels" in str(schema.to_dict()) or not hasattr(schema.declared["x"], "low")
    column = pa.array(_WORDS if words else _NUMBERS)
    encoded = schema.encode(pa.record_batch({"x": column}))
    rest = [place for place in range(len(encoded)) if place not in cell.indices]
    assert np.ptp(encoded[rest], axis=1).sum() == 0  # nothing else moves
    return np.unique(encoded[list(cell.indices)].T, axis=0)


@pytest.mark.parametrize("place", range(len(_SCHEMAS)))
def test_every_value_lies_within_what_is_declared(place: int) -> None:
    schema = _SCHEMAS[place]
    (cell,) = cells_of(schema, "here")
    points = _points(schema, cell)
    furthest = max(
        (np.sum((a - b) ** 2) for a, b in itertools.combinations(points, 2)), default=0.0
    )
    assert furthest <= cell.diameter_squared
    centred = points - points[0]
    assert np.linalg.matrix_rank(centred) <= cell.freedom
    drawn = generator(place)
    priors = [drawn.dirichlet(np.full(len(points), c)) for c in (0.1, 1.0, 10.0) for _ in range(99)]
    ends = [np.eye(len(points))[[i, j]].mean(0) for i, j in np.ndindex(len(points), len(points))]
    even = np.full(len(points), 1 / len(points))
    total = [p @ np.sum((points - p @ points) ** 2, axis=1) for p in [*priors, *ends, even]]
    assert max(total) <= float(cell.spread) * (1 + 1e-12)
    assert max(total) > 0.7 * float(cell.spread)


def test_numbers_and_categories_by_hand() -> None:
    schema = dpl.Schema({"age": (0, 100), "smoker": ["no", "yes"], "charges": (0, 60_000)})
    age, smoker, charges = cells_of(schema, "here")
    assert age == Cell("age", (1,), Fraction(1), 1, Fraction(4))
    assert smoker == Cell("smoker", (2, 3), Fraction(1, 2), 2, Fraction(2))
    assert charges.indices == (4,)


@pytest.mark.parametrize("options", [{"derived": ["a^2"]}, {"row_norm": 0.5}])
def test_what_ties_cells_together_is_refused(options: dict[str, Any]) -> None:
    schema = dpl.Schema({"a": (0, 1)}, **options)
    with pytest.raises(ValueError, match=r"where single cells are protected[\s\S]*Hint"):
        cells_of(schema, "here")
