"""CoinPress from absurd bounds: the error of means and covariances against the non-private ones.

    python benchmarks/coinpress.py

Normal rows of several numbers, dimensions and condition numbers, around means of three standard
deviations; every column declared within ±1e9. The error of a mean m̂ is ‖S^(−1/2)(m̂ − m)‖, that of a
covariance ‖S^(−1/2) Ŝ S^(−1/2) − I‖ in Frobenius norm, m and S those of the sample: what privacy
costs. Beside it, what sampling costs: the same of the sample against the population. Medians.
"""

import sys

import numpy as np
from rich.console import Console
from rich.table import Table

from dplinear.arrays import Floats
from dplinear.curator import release_covariance, release_mean
from dplinear.noise import simulation
from dplinear.privacy import ZCDP
from dplinear.schema import Schema

RHO, BOUND, DRAWS = 0.5, 1e9, 5
SIZES = ((5, 1_000), (5, 4_000), (5, 100_000), (20, 4_000), (20, 16_000), (20, 100_000))
CONDITIONS = (1.0, 1e3, 1e6)


def population(size: int, condition: float, seed: int) -> tuple[Floats, Floats]:
    """Return a root of the covariance, turned at random, and the mean."""
    turn, _ = np.linalg.qr(simulation.generator(seed).normal(size=(size, size)))
    root = turn * np.sqrt(np.geomspace(1.0, condition, size))
    return root, 3 * np.sqrt((root**2).sum(axis=1))


def distance(found: Floats, truth: Floats) -> float:
    """Return ‖S^(−1/2) Ŝ S^(−1/2) − I‖."""
    white = np.linalg.inv(np.linalg.cholesky(truth))
    return float(np.linalg.norm(white @ found @ white.T - np.eye(len(truth))))


def errors(size: int, count: int, condition: float, seed: int) -> list[float]:
    """Return the errors of the private mean, of the sample's, of both covariances."""
    root, middle = population(size, condition, seed)
    rows = simulation.generator(seed + 1000).normal(size=(count, size)) @ root.T + middle
    schema = Schema({f"x{place}": (-BOUND, BOUND) for place in range(size)})
    mean, sample, truth = rows.mean(axis=0), np.cov(rows.T, bias=True), root @ root.T
    with simulation.door(seed):
        found = release_mean(rows, schema, guarantee=ZCDP(RHO)).mean.values
        spread = release_covariance(rows, schema, guarantee=ZCDP(RHO)).covariance.values

    def length(gap: Floats, covariance: Floats) -> float:
        return float(np.sqrt(gap @ np.linalg.solve(covariance, gap)))

    return [
        length(found - mean, sample),
        length(mean - middle, truth),
        distance(spread, sample),
        distance(sample, truth),
    ]


def main() -> int:
    """Print the table."""
    heads = ("mean: privacy", "sampling", "covariance: privacy", "sampling")
    table = Table("columns", "rows", "condition", *heads, title=f"ρ = {RHO}, bounds ±{BOUND:g}")
    for size, count in SIZES:
        for condition in CONDITIONS:
            found = np.median([errors(size, count, condition, s) for s in range(DRAWS)], axis=0)
            shown = [f"{error:.2g}" for error in found]
            table.add_row(str(size), f"{count:,}", f"{condition:g}", *shown)
    Console(width=100).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
