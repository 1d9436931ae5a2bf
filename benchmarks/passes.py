"""The passes of a descent against the Gram pass and scikit-learn: all figures of one run.

    python benchmarks/passes.py

Ratios are of interleaved runs, the best of each, so that a noisy machine disturbs both alike.
Exits with 1 if the passes of a whole fit take more than three times `LinearRegression.fit`.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LinearRegression

from dplinear.curator import Schema, open_table, second_moments
from dplinear.exact.mapped_sums import MappedGram, MappedNorms, MappedSum
from dplinear.exact.residual_sums import Gradient, ResidualHistogram, Residuals, SumOfSquares
from dplinear.exact.row_sums import ClippedGram, Count, RowSum, SquaredNorms
from dplinear.noise import simulation

ROWS, DIMENSION, STEPS, REPEATS = 1_000_000, 40, 6, 3
LIMIT = 3.0


def interleaved(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the best time of each call, taking turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main() -> int:
    """Print the table; return 1 if the threshold is missed."""
    rows = simulation.generator(7).standard_normal((ROWS, DIMENSION + 1))
    features, target = rows[:, :-1].copy(), rows[:, -1].copy()
    schema = Schema({f"x{j}": (-4, 4) for j in range(DIMENSION + 1)})
    shape = open_table(rows[:1], schema).shape
    weights = np.append(np.zeros(DIMENSION + 1), 1.0)
    whitening = np.eye(DIMENSION + 1, DIMENSION + 2)
    columns = range(DIMENSION + 1)
    gradient = Gradient(shape, whitening, weights, leverage=2.0, residual=0.4)
    sums: dict[str, RowSum] = {
        "Count": Count(),
        "SquaredNorms": SquaredNorms(shape, columns, limit=4.0),
        "ClippedGram, a tenth of the rows clipped": ClippedGram(shape, columns, norm=2.14),
        "SumOfSquares": SumOfSquares(shape, weights, residual=0.4),
        "Gradient": gradient,
        "MappedSum": MappedSum(shape, whitening, norm=2.0),
        "MappedNorms": MappedNorms(shape, whitening, limit=4.0),
        "MappedGram, no row clipped": MappedGram(shape, whitening, norm=8.0),
        "MappedGram, a tenth of the rows clipped": MappedGram(shape, whitening, norm=2.14),
        "MappedGram, every row clipped": MappedGram(shape, whitening, norm=0.5),
        "ResidualHistogram": ResidualHistogram(shape, weights, residual=0.25, edges=(0.625, 1.25)),
        "Residuals": Residuals(shape, weights, residual=0.4),
    }
    kept = open_table(rows, schema)
    kept.moments()

    def fit() -> None:
        table = open_table(rows, schema)
        table.sums([Count(), sums["SquaredNorms"]])
        table.moments()
        for _ in range(STEPS):
            table.sums([sums["SumOfSquares"], gradient])

    calls: dict[str, Callable[[], object]] = {
        "LinearRegression.fit": lambda: LinearRegression().fit(features, target),
        "second_moments": lambda: second_moments(rows, schema),
        "moments, rows kept": kept.moments,
    }
    calls |= {f"{name}, rows kept": _call(kept.sums, [one]) for name, one in sums.items()}
    calls |= {"Gradient, first pass": lambda: open_table(rows, schema).sums([gradient])}
    calls |= {f"a whole fit, {STEPS + 2} passes": fit}
    times = interleaved(calls)
    scikit, gram = times["LinearRegression.fit"], times["second_moments"]
    print(f"{ROWS:,} x {DIMENSION + 1}{'':<30}  seconds  of Gram  of LinearRegression.fit")
    for name, seconds in times.items():
        print(f"{name:<46} {seconds:7.3f}  {seconds / gram:7.2f}  {seconds / scikit:7.2f}")
    met = times[f"a whole fit, {STEPS + 2} passes"] <= LIMIT * scikit
    print(f"a whole fit within {LIMIT:g} times LinearRegression.fit: {'met' if met else 'MISSED'}")
    return int(not met)


def _call(function: Callable[[list[RowSum]], object], sums: list[RowSum]) -> Callable[[], object]:
    return lambda: function(sums)


if __name__ == "__main__":
    sys.exit(main())
