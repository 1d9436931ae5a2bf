"""The shortcut held to real rows: a stream of Gaussian rows through the curator's exact pass."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.stats import ks_2samp
from threadpoolctl import threadpool_limits

from dplinear.arrays import Floats
from dplinear.curator import second_moments
from dplinear.curator.gates.moments import release_moments
from dplinear.exact.shape import Statistic
from dplinear.noise import simulation
from dplinear.papers.sheffet.design import COLUMNS, NOISE, REDUNDANT, Design
from dplinear.papers.sheffet.study import table_seed
from dplinear.papers.sheffet.techniques import ANALYZE_GAUSS, DELTA, EPSILON, Bench, Technique

_BLOCK = 2**16


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors of releases of one real table, and of tables drawn by the shortcut.

    `rounding` is the largest difference of an entry of the exact pass from plain float64 products,
    in cells; `deviation` the largest from its expectation, in standard deviations; `longest` the
    norm of the longest row, where 1 is the bound; `gate` the error of a release through the gate,
    m = 0, by `MomentsRelease.regress`.
    """

    rows: int
    rounding: float
    deviation: float
    longest: float
    gate: float
    real: dict[tuple[str, Technique], Floats]
    drawn: dict[tuple[str, Technique], Floats]

    def likeness(self, calibration: str, technique: Technique, redundant: int) -> float:
        """Return the Kolmogorov-Smirnov p-value of both samples of errors coming from one law."""
        where = REDUNDANT.index(redundant)
        key = (calibration, technique)
        return float(ks_2samp(self.real[key][:, where], self.drawn[key][:, where]).pvalue)


def compare(bench: Bench, seed: int, *, exponent: int = 20, repetitions: int = 20) -> Comparison:
    """Set releases of one table of 2^exponent real rows beside those of tables drawn at once.

    The rows pass through the curator once; their moments are then released again and again.
    """
    design, rows = bench.design, 2**exponent
    exact = second_moments(stream(design, rows, seed), design.schema, progress=False)
    statistic = Statistic(design.shape, exact.integers, rows)
    plain, longest = _plainly(design, rows, seed)
    real, drawn = [], []
    with threadpool_limits(1, user_api="blas"):
        for repetition in range(repetitions):
            own = table_seed(seed, exponent, repetition)
            shortcut = design.moments(rows, simulation.generator(own))
            real.append(bench.errors(statistic, own))
            # Other noise: with the same, the two samples would not be independent.
            drawn.append(bench.errors(shortcut, own + 2**15))
    return Comparison(
        rows,
        float(np.abs(statistic.matrix() - plain).max()),
        _deviation(design, statistic.matrix(), rows),
        longest,
        gate_error(design, rows, seed),
        {key: np.array([errors[key] for errors in real]) for key in real[0]},
        {key: np.array([errors[key] for errors in drawn]) for key in drawn[0]},
    )


def stream(design: Design, rows: int, seed: int) -> pa.RecordBatchReader:
    """Return the rows of one table, block by block; the same for the same seed."""
    fields = pa.schema([(name, pa.float64()) for name in design.names])
    batches = (
        pa.RecordBatch.from_arrays([pa.array(column) for column in block.T], schema=fields)
        for block in blocks(design, rows, seed)
    )
    return pa.RecordBatchReader.from_batches(fields, batches)


def blocks(design: Design, rows: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of rows [x, y] in the columns' own units."""
    generator = simulation.generator(seed)
    for start in range(0, rows, _BLOCK):
        size = min(_BLOCK, rows - start)
        x = generator.standard_normal((size, COLUMNS))
        noise = NOISE * generator.standard_normal((size, COLUMNS))
        yield np.hstack([x, x @ design.coefficients + noise])


def gate_error(design: Design, rows: int, seed: int) -> float:
    """Return the error of a release through the gate and the analyst's own regression, m = 0."""
    with simulation.door(seed):
        release = release_moments(
            stream(design, rows, seed),
            design.schema,
            epsilon=EPSILON,
            delta=DELTA,
            mechanism=ANALYZE_GAUSS.mechanism,
            request="sheffet",
            progress=False,
        )
    features = list(design.names[:COLUMNS])
    fit = release.regress(design.names[-1], features, intercept=False, repair=ANALYZE_GAUSS.repair)
    truth = design.truth(0)
    return float(np.linalg.norm(fit.coefficients.values - truth) / np.linalg.norm(truth))


def _plainly(design: Design, rows: int, seed: int) -> tuple[Floats, float]:
    """Return the moments by plain float64 products, and the norm of the longest row, in cells."""
    total = np.zeros((design.dimension, design.dimension))
    longest = 0.0
    for block in blocks(design, rows, seed):
        cells = block / (design.bound * design.units)
        total += cells.T @ cells
        longest = max(longest, float(np.linalg.norm(cells, axis=1).max()))
    return total, longest


def _deviation(design: Design, matrix: Floats, rows: int) -> float:
    """Return the largest distance from the expectation, by Wishart's variance."""
    expected = design.cells
    variance = rows * (expected**2 + np.outer(np.diag(expected), np.diag(expected)))
    return float((np.abs(matrix - rows * expected) / np.sqrt(variance)).max())
