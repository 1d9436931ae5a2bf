"""A private fit against scikit-learn's: all figures of one run.

    python benchmarks/fit_time.py
    python benchmarks/fit_time.py --rows 100000 --columns 100

Fits take turns, and times are medians, so that a noisy machine disturbs both alike. One exact pass
over the same cells is there for scale. Exits with 1 if `PrivateLinearRegression().fit` takes more
than three times `LinearRegression().fit`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from dplinear.curator import Schema, second_moments
from dplinear.estimators import PrivateLinearRegression
from dplinear.noise import simulation

Array = np.ndarray[Any, np.dtype[np.float64]]

LIMIT = 3.0
BOUND, TARGET_BOUND = 4.0, 6.0  # about four standard deviations of either
PRIVATE, PLAIN = "PrivateLinearRegression.fit", "LinearRegression.fit"
ALONE, PASS = "LinearRegression.fit, one thread", "one exact pass"


def in_turns(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median time of each call, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: median(found) for name, found in times.items()}


def calls_of(rows: int, columns: int) -> dict[str, Callable[[], object]]:
    """Return what is timed: a fixed table with a signal as strong as its errors, in memory."""
    generator = simulation.generator(7)
    features = generator.standard_normal((rows, columns))
    target = features.sum(1) / np.sqrt(columns) + generator.standard_normal(rows)
    whole = np.column_stack([features, target])
    bounds = [(-BOUND, BOUND)] * columns + [(-TARGET_BOUND, TARGET_BOUND)]
    schema = Schema({f"x{place}": pair for place, pair in enumerate(bounds)})
    private = PrivateLinearRegression(
        bounds=(-BOUND, BOUND), target_bounds=(-TARGET_BOUND, TARGET_BOUND)
    )
    return {
        PRIVATE: lambda: private.fit(features, target),
        PLAIN: lambda: LinearRegression().fit(features, target),
        # Beside other work BLAS's threads hinder one another, and one thread alone is faster.
        ALONE: lambda: _on_one_thread(features, target),
        PASS: lambda: second_moments(whole, schema),
    }


def _on_one_thread(features: Array, target: Array) -> None:
    with threadpool_limits(1, user_api="blas"):
        LinearRegression().fit(features, target)


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description="A private fit against scikit-learn's.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args(words)


def report(times: Mapping[str, float]) -> int:
    """Print the table; return 1 if the threshold is missed."""
    for name, seconds in times.items():
        print(f"{name:<34} {seconds:7.3f}  {seconds / times[PLAIN]:18.2f}")
    ratio = times[PRIVATE] / times[PLAIN]
    word = "met" if ratio <= LIMIT else "MISSED"
    print(f"{PRIVATE} / {PLAIN}: {ratio:.2f}, at most {LIMIT:g}: {word}")
    return int(ratio > LIMIT)


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if the threshold is missed."""
    options = arguments(words)
    calls = calls_of(options.rows, options.columns)
    size = f"{options.rows:,} x {options.columns}, median of {options.repeats}"
    print(f"{size:<34} seconds  of scikit-learn's")
    return report(in_turns(calls, options.repeats))


if __name__ == "__main__":
    sys.exit(main())
