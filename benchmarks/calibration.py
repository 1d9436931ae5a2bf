"""How long a calibration takes, and how much noise it saves over the published constants.

Prints one table; exits 1 if a calibration misses its time: 2 ms for Gaussian noise, 50 ms for any
other. Times are the best of several runs in this process.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from dplinear.papers import constants
from dplinear.privacy import ApproxDP, calibrate

REPEATS = 15


def best_time(call: Callable[[], object]) -> float:
    """Return the least wall-clock time of several calls, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


class Case(NamedTuple):
    """A calibration, its time limit in milliseconds, and the published constant if there is one."""

    name: str
    limit: float
    calibrate: Callable[[], float]
    published: float | None = None


def cases(epsilon: float) -> Iterator[Case]:
    """Yield the calibrations at one ε."""
    g, tag = ApproxDP(epsilon, 1e-6), f"ε={epsilon:g}"
    published = constants.analyze_gauss(g, 1.0).value
    yield Case(f"Gaussian σ, {tag}", 2, partial(calibrate.gaussian, g, 1.0), published)
    grid = partial(calibrate.grid_gaussian, g, 2.0**40, 1600)
    yield Case(f"grid Gaussian σ², 1,600 entries, {tag}", 50, grid)
    for relation in ("add_remove", "replace"):
        for rows in (80, 10_000_000):
            call = partial(calibrate.sketch, g, rows, 1.0, relation)
            published = constants.sketch(g, rows, 1.0).value
            yield Case(f"sketch w², {rows:,} rows, {relation}, {tag}", 50, call, published)
        wishart = partial(calibrate.additive_wishart, g, 40, 1.0, relation)
        published = constants.additive_wishart(g, 40).value
        name = f"Wishart least k, {relation}, {tag}"
        yield Case(name, 50, lambda w=wishart: w(scale=1.0)[0], published)  # type: ignore[misc]
        yield Case(f"Wishart best (k, τ), {relation}, {tag}", 50, lambda w=wishart: w()[1])  # type: ignore[misc]


def main() -> int:
    """Print the table and return the exit code."""
    table = Table(title="Calibration at δ = 1e-6, rows of norm 1")
    table.add_column("calibration")
    for name in ("ms", "limit", "exact", "published", "published / exact"):
        table.add_column(name, justify="right")
    missed = 0
    for name, limit, call, published in (*cases(0.1), *cases(1.0)):
        milliseconds, value = best_time(call), call()
        missed += milliseconds > limit
        ratio = "" if published is None else f"{published / value:.1f}"
        shown = "" if published is None else f"{published:,.4g}"
        time_shown = f"{milliseconds:.2f}" + (" !" if milliseconds > limit else "")
        table.add_row(name, time_shown, f"{limit:g}", f"{value:,.6g}", shown, ratio)
    Console(width=110).print(table)
    print(f"{missed} over their limit")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
