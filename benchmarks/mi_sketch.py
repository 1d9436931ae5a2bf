"""A sketch for single cells against forming S: one run, the ratio of the two.

    python benchmarks/mi_sketch.py            1,000,000 rows, 40 columns, 200 rows of the sketch
    python benchmarks/mi_sketch.py 50000      fewer rows

The release is all of it: reading the table, the exact matrix, cryptographic noise, the certificate.
The other draws S by NumPy, a block of rows of the table at a time, and multiplies; it checks no
bound and promises nothing. Both use one core. Exits with 1 if the release is not at least 20 times
faster.
"""

import sys
import time

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dplinear.curator import Schema, release_sketch
from dplinear.noise import simulation

ROWS, DIMENSION, SKETCH, BLOCK = 1_000_000, 40, 200, 10_000
LEAST = 20.0


def formed(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return S·X, S drawn a block at a time."""
    generator = simulation.generator(2)
    total = np.zeros((SKETCH, table.shape[1]))
    for start in range(0, len(table), BLOCK):
        block = table[start : start + BLOCK]
        total += generator.standard_normal((SKETCH, len(block))) @ block
    return total


def main() -> int:
    """Print both times and their ratio; return 1 if it is too small."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    table = simulation.generator(1).uniform(-1, 1, (count, DIMENSION))
    schema = Schema({f"x{j}": (-1, 1) for j in range(DIMENSION)}, intercept=False)

    def released(table: NDArray[np.float64]) -> NDArray[np.float64]:
        release = release_sketch(
            table, schema, mechanism="mi_projection", bits=0.5, rows=SKETCH, threads=1
        )
        return release.values

    with threadpool_limits(1):
        released(table[:1000])  # modules are loaded once
        start = time.perf_counter()
        released(table)
        ours = time.perf_counter() - start
        start = time.perf_counter()
        formed(table)
        theirs = time.perf_counter() - start
    ratio = theirs / ours
    print(f"{count:,} rows, {DIMENSION} columns, a sketch of {SKETCH} rows, one core")
    print(f"release_sketch, mi_projection   {ours:8.2f} s")
    print(f"forming S and SX                {theirs:8.2f} s")
    print(f"ratio                           {ratio:8.1f}   ≥ {LEAST:g} {_verdict(ratio)}")
    return 0 if ratio >= LEAST else 1


def _verdict(ratio: float) -> str:
    return "met" if ratio >= LEAST else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
