"""A table with columns of every kind, and releases of its exact moments, for tests."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dplinear.analyst.noise_models.matrices import NoiseModel, SymmetricGaussian
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

Array = NDArray[np.float64]
SILENT = SymmetricGaussian(1e-24, 1e-24)
COLUMNS: dict[str, Any] = {
    "age": (0, 100),
    "bmi": {"type": "number", "low": 10, "high": 60, "missing": 25},
    "smoker": {"type": "category", "levels": ["no", "yes"], "other": "no"},
    "ward": {"type": "category", "levels": ["a", "b", "c"]},
    "visit": {"type": "date", "low": "2020-01-01", "high": "2030-01-01"},
    "charges": (0, 60_000),
    "stay": (-5, 90),
}
DERIVED = ["age*smoker", "bmi^2", "age>=65"]
EVERYTHING = Schema(COLUMNS, derived=DERIVED)
EPOCH = dt.date(1970, 1, 1)


def certificate() -> Certificate:
    return Certificate(
        mechanism="none, for tests",
        parameters={},
        neighbours=Neighbours.ADD_REMOVE,
        asked=ApproxDP(1.0, 1e-6),
        holds=None,
        curve=(),
        numerics="idealised",
        calibration="exact",
        simulated=True,
        request="test",
    )


def people(count: int = 400, seed: int = 1) -> pa.Table:
    """Rows within the bounds, some cells missing, every level of every category present."""
    draw = simulation.generator(seed)
    age = draw.uniform(18, 95, count)
    bmi = np.clip(draw.normal(27, 4, count), 11, 59)
    smoker = draw.integers(0, 2, count)
    ward = draw.integers(0, 4, count)
    visit = draw.integers(18_300, 21_900, count)
    charges = 200 + 120 * age + 300 * bmi + 9_000 * smoker - 40 * age * smoker
    charges = np.clip(charges + draw.normal(0, 1_500, count), 1, 59_999)
    stay = np.clip(0.1 * age + 2.0 * (ward == 1) + draw.normal(0, 3, count), -5, 90)
    holes = draw.uniform(size=count) < 0.05
    return pa.table(
        {
            "age": age,
            "bmi": pa.array(np.where(holes, np.nan, bmi)),
            "smoker": [("no", "yes")[i] for i in smoker],
            "ward": [("a", "b", "c", "unheard of")[i] for i in ward],
            "visit": pa.array(visit.astype(np.int32), pa.int32()).cast(pa.date32()),
            "charges": charges,
            "stay": stay,
            "unused": np.zeros(count),
        }
    )


def cells(schema: Schema, table: pa.Table) -> Array:
    """Return rows x features, in the cells' units."""
    batch = table.combine_chunks().to_batches()[0]
    return np.array(schema.encode(batch).T)


def raw(schema: Schema, table: pa.Table, names: list[str] | None = None) -> Array:
    """Return rows x features in their own units, the intercept left out unless it is named."""
    inner = cells(schema, table)
    chosen = schema.names[1 if schema.has_intercept else 0 :] if names is None else names
    places = [schema.names.index(name) for name in chosen]
    features = [schema.features[place] for place in places]
    width = np.array([float(feature.half_width) for feature in features])
    centre = np.array([float(feature.centre) for feature in features])
    values: Array = inner[:, places] * width + centre
    return values


def exact(
    schema: Schema, table: pa.Table, law: NoiseModel = SILENT, rows: int | None = None
) -> MomentsRelease:
    """Return the true moments of a table, as if released without noise."""
    inner = cells(schema, table)
    return MomentsRelease(schema, inner.T @ inner, law, certificate(), rows)


def least_squares(x: Array, y: Array, alpha: float = 0.0, *, intercept: bool = True) -> Array:
    """Return [intercept, coefficients] (or the latter alone) from the rows, by a QR of them."""
    shift = x.mean(0) if intercept else np.zeros(x.shape[1])
    level = y.mean(0) if intercept else 0.0 * y[0]
    tall = np.vstack([x - shift, np.sqrt(alpha) * np.eye(x.shape[1])])
    right = np.concatenate([y - level, np.zeros((x.shape[1], *y.shape[1:]))])
    # Columns of one size, so that lstsq does not take a short one for a dependent one.
    size = np.linalg.norm(tall, axis=0)
    found = np.linalg.lstsq(tall / size, right, rcond=None)[0]
    b: Array = (found.T / size).T
    return np.concatenate([np.atleast_1d(level - shift @ b), b]) if intercept else b
