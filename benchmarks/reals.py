"""Exact real numbers beside float64: normal numbers a second, and milliseconds of whole draws.

Fails if normal numbers are slower beside another sampler than `LEAST_RATIO`, or Wishart noise takes
longer than `MOST_MS`, on one core.
"""

import os
import sys
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import opendp.prelude as dp
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from dplinear.arrays import BigIntegers, Floats
from dplinear.exact import gaussian_draws, sketch_rows
from dplinear.exact.roots import Root, least_eigenvalue
from dplinear.noise import simulation
from dplinear.noise.normals import normals
from dplinear.papers.float_noise import square_root, standard_normal

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import float_draws
from benchmarks.noise import rival_rate, seconds

VECTOR = 10**6
RIDGE = 2**30
LEAST_RATIO = {"NumPy (no cryptography)": 0.2, "float64 Box-Muller, same bits": 0.7, "OpenDP": 10.0}
MOST_MS = {"Wishart, d = 20": 20.0, "Wishart, d = 100": 150.0}


def gram(size: int, spread: float = 2.0**14) -> BigIntegers:
    """Return a Gram matrix of 5000 integer rows of that standard deviation, and a ridge."""
    rows = np.rint(simulation.generator(1).standard_normal((5000, size)) * spread)
    matrix: BigIntegers = (rows.T @ rows).astype(np.int64).astype(np.object_)
    matrix[np.diag_indices(size)] += RIDGE
    return matrix


def normal_rates() -> list[tuple[str, float]]:
    """Return numbers a second, ours first."""
    dp.enable_features("contrib")
    generator = simulation.generator(1)
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    theirs = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=1.0)
    return [
        ("dplinear, exact", VECTOR / seconds(lambda: normals(VECTOR))),
        (
            "NumPy (no cryptography)",
            VECTOR / seconds(lambda: generator.standard_normal(VECTOR)),
        ),
        (
            "float64 Box-Muller, same bits",
            VECTOR / seconds(lambda: standard_normal(VECTOR)),
        ),
        ("OpenDP", rival_rate(lambda zeros: theirs([float(zero) for zero in zeros]))),
    ]


Draw = Callable[[], object]


def float_matrix(matrix: Floats) -> Floats:
    """Return a Wishart matrix of 1000 degrees, in float64."""
    return float_draws.wishart(square_root(matrix), 1000.0)


def float_rows(matrix: Floats) -> Floats:
    """Return 1000 rows of a sketch, in float64."""
    draws = standard_normal((1000, len(matrix)))
    return np.asarray(draws @ square_root(matrix).T)


def draws() -> list[tuple[str, Draw, Draw]]:
    """Return draws by name: exactly, and in float64."""
    small, large = gram(20), gram(100)
    real = large.astype(np.float64)
    fine = Fraction(2**20, RIDGE)
    unit, units = np.eye(20), np.eye(100)
    rows_scale = Fraction(2**16, 2**15)
    return [
        (
            "Wishart, d = 20",
            lambda: gaussian_draws.wishart_integers(20, 1000, 2**40),
            lambda: float_draws.wishart(unit, 1000.0),
        ),
        (
            "Wishart, d = 100",
            lambda: gaussian_draws.wishart_integers(100, 1000, 2**40),
            lambda: float_draws.wishart(units, 1000.0),
        ),
        (
            "sketch matrix, d = 20",
            lambda: gaussian_draws.sketch_matrix(Root(small, RIDGE), 1000, fine),
            lambda: float_matrix(small.astype(np.float64)),
        ),
        (
            "sketch matrix, d = 100",
            lambda: gaussian_draws.sketch_matrix(Root(large, RIDGE), 1000, fine),
            lambda: float_matrix(real),
        ),
        (
            "inverse-Wishart, d = 100",
            lambda: gaussian_draws.inverse_wishart(Root(large, RIDGE), 1000, 1000 * fine),
            lambda: float_draws.inverse_wishart(square_root(real), 1000.0),
        ),
        (
            "sketch rows, 1000 x 100",
            lambda: sketch_rows.sketch_rows(Root(large, RIDGE), 1000, rows_scale),
            lambda: float_rows(real),
        ),
        (
            "the same, integers alone",
            lambda: sketch_rows.wide_rows_of(Root(large, RIDGE), normals(100_000), rows_scale),
            lambda: float_rows(real),
        ),
        (
            "least eigenvalue, d = 100",
            lambda: least_eigenvalue(large),
            lambda: np.linalg.eigvalsh(real),
        ),
    ]


def peak(work: Draw) -> float:
    """Return the most memory that a call holds, in MB."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def refinements(spread: float, rounds: int) -> str:
    """Return how many cells of sketches float64 left open, and how many it may."""
    matrix = gram(100, spread)
    root = Root(matrix, RIDGE)
    root.refine(sketch_rows.PRECISION)
    seen, bound = 0, 0.0
    for _ in range(rounds):
        z = normals(100_000).floats().reshape(-1, 100)
        middle, error = sketch_rows.float_cells(root, z, Fraction(2))
        seen += int((0.5 - np.abs(middle - np.rint(middle)) <= error).sum())
        bound += float(2 * error.sum())
    ratio = matrix.diagonal().astype(float).mean() / RIDGE - 1
    return (
        f"G_jj/ridge = {ratio:.3g}: float64 left {seen} cells of {rounds} sketches of 1000 x 100 "
        f"open, of {bound / rounds:.2g} expected in each"
    )


def main() -> int:
    """Print the tables; return 1 if something is too slow."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    console, slow = Console(), []
    table = Table(title=f"Normal numbers, vectors of {VECTOR:,}, one core")
    for column in ("sampler", "a second", "dplinear is faster by"):
        table.add_column(column, justify="left" if column == "sampler" else "right")
    rates = normal_rates()
    for name, rate in rates:
        ratio = rates[0][1] / rate
        table.add_row(name, f"{rate:.3g}", f"{ratio:.2f}")
        if ratio < LEAST_RATIO.get(name, 0.0):
            slow.append(f"normal numbers beside {name}")
    console.print(table)
    table = Table(title="Draws, milliseconds, one core")
    for column in ("draw", "exact", "float64", "ratio", "exact, MB"):
        table.add_column(column, justify="left" if column == "draw" else "right")
    with threadpool_limits(1):
        for name, exact, floating in draws():
            ours, theirs = 1e3 * seconds(exact), 1e3 * seconds(floating)
            cells = f"{ours:.1f}", f"{theirs:.2f}", f"{ours / theirs:.0f}", f"{peak(exact):.1f}"
            table.add_row(name, *cells)
            if ours > MOST_MS.get(name, float("inf")):
                slow.append(name)
        console.print(table)
        for spread in (0.0, 2.0**14, 10 * 2.0**14):
            console.print(refinements(spread, 20))
    if slow:
        console.print("too slow: " + ", ".join(slow))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
