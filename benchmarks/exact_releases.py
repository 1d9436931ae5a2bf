"""Whole releases with exact real noise, against the same releases with noise in floating point.

    python benchmarks/exact_releases.py

The float versions are what the papers' algorithms are in NumPy: an eigendecomposition or a Cholesky
factor, float64 draws, a product. They protect nobody (`python -m dplinear.audit.precision`). Runs
are interleaved, and the best of each counts, so that a noisy machine disturbs both alike. Exits
with 1 if a release takes more than 2 times as long at 20 columns, or 10 times at 100.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from dplinear.arrays import Floats
from dplinear.curator import Schema, release_moments, release_sketch
from dplinear.exact.shape import Statistic
from dplinear.mechanisms.cells.mi_projection import PreparedProjection
from dplinear.mechanisms.contract import Measurement
from dplinear.mechanisms.moments.additive_wishart import PreparedWishart
from dplinear.mechanisms.moments.inverse_wishart import PreparedInverse
from dplinear.mechanisms.moments.sketch import PreparedSketch
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy
from dplinear.papers.float_noise import square_root, standard_normal

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import float_draws

TABLES = ((100_000, 20, 2.0), (20_000, 100, 10.0))  # rows, columns, the most times as long
REPEATS, SKETCHED = 9, 1000
PRIVACY = {"epsilon": 1.0, "delta": 1e-6}

Draw = Callable[[Any, Statistic, Entropy], Floats]


def additive(prepared: Any, statistic: Statistic, entropy: Entropy) -> Floats:
    """Return G + N."""
    factor = prepared.scale * np.eye(prepared.shape.dimension)
    return statistic.matrix() + float_draws.wishart(factor, prepared.degrees, entropy=entropy)


def _root(prepared: Any, statistic: Statistic) -> Floats:
    values, vectors = np.linalg.eigh(statistic.matrix())
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0) + prepared.ready.setting.ridge))


def sketch(prepared: Any, statistic: Statistic, entropy: Entropy) -> Floats:
    """Return the rows of a sketch, or its matrix."""
    factor, rows = _root(prepared, statistic), prepared.ready.setting.degrees
    if prepared.release == "matrix":
        return np.asarray(float_draws.wishart(factor, rows, entropy=entropy) / rows)
    return np.asarray(standard_normal((rows, len(factor)), entropy=entropy) @ factor.T)


def inverse(prepared: Any, statistic: Statistic, entropy: Entropy) -> Floats:
    """Return F·M·Fᵀ."""
    factor, degrees = _root(prepared, statistic), prepared.ready.setting.degrees
    return float_draws.inverse_wishart(factor, degrees, entropy=entropy)


def projection(prepared: Any, statistic: Statistic, entropy: Entropy) -> Floats:
    """Return the rows of a sketch with a ridge for each column."""
    ridge = SKETCHED * max(prepared.variances)
    factor = square_root(statistic.matrix() + ridge * np.eye(prepared.shape.dimension))
    return np.asarray(standard_normal((SKETCHED, len(factor)), entropy=entropy) @ factor.T)


CASES: dict[str, tuple[type, Draw, Callable[..., Any], dict[str, Any]]] = {
    "additive_wishart": (PreparedWishart, additive, release_moments, PRIVACY),
    "sketch": (PreparedSketch, sketch, release_moments, PRIVACY),
    "inverse_wishart": (PreparedInverse, inverse, release_moments, PRIVACY),
    f"sketch, {SKETCHED} rows": (PreparedSketch, sketch, release_sketch, PRIVACY),
    f"mi_projection, {SKETCHED} rows": (
        PreparedProjection,
        projection,
        release_sketch,
        {"bits": 0.5},
    ),
}


def floating(prepared: type, draw: Draw, sample: Measurement) -> Any:
    """Put draws in floating point in the place of exact ones."""

    def run(self: Any, statistic: Statistic, entropy: Entropy) -> Measurement:
        values = draw(self, statistic, entropy)
        return Measurement(values, sample.noise_model, self.account, sample.parameters)

    return mock.patch.object(prepared, "run", run)


def sampled(prepared: type, release: Callable[[], Any]) -> Measurement:
    """Return the measurement of one exact release."""
    kept: list[Measurement] = []
    honest = prepared.run  # type: ignore[attr-defined]

    def run(self: Any, statistic: Statistic, entropy: Entropy) -> Measurement:
        kept.append(honest(self, statistic, entropy))
        return kept[-1]

    with mock.patch.object(prepared, "run", run):
        release()
    return kept[0]


def seconds(release: Callable[[], Any]) -> float:
    """Return how long one release takes."""
    start = time.perf_counter()
    release()
    return time.perf_counter() - start


def compared(case: str, table: Any, schema: Schema) -> tuple[float, float]:
    """Return the best times of exact and of float releases, in seconds."""
    prepared, draw, gate, options = CASES[case]
    chosen = dict(options, mechanism=case.partition(",")[0])
    if gate is release_sketch:
        chosen["rows"] = SKETCHED

    def release() -> None:
        gate(table, schema, **chosen)

    sample = sampled(prepared, release)
    times = []
    for _ in range(REPEATS):
        exact = seconds(release)
        with floating(prepared, draw, sample):
            times.append((exact, seconds(release)))
    exact, fast = (min(each) for each in zip(*times, strict=True))
    return exact, fast


def main() -> int:
    """Print the times; return 1 if a threshold is missed."""
    slow = 0
    for rows, columns, most in TABLES:
        table = simulation.generator(1).uniform(-1, 1, (rows, columns))
        schema = Schema({f"x{j}": (-1, 1) for j in range(columns)})
        print(f"{rows:,} rows, {columns} columns: whole release, ms (at most {most:g} times)")
        for case in CASES:
            exact, fast = compared(case, table, schema)
            slow += exact > most * fast
            times = f"{1e3 * fast:7.1f} → {1e3 * exact:7.1f}"
            print(f"  {case:26} float64 → exact {times}   {exact / fast:5.2f} times")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
