"""Releasing rows, from Parquet to Parquet: exact noise against NumPy's, and the memory it takes.

    python benchmarks/rows.py                           two million rows, both mechanisms
    python benchmarks/rows.py --rows 10000000           as many as asked for
    python benchmarks/rows.py --mechanism projection    one mechanism: 20 columns to 10 numbers

"NumPy's" is the same pass with floating-point noise in place of exact noise, which protects nobody.
Ratios are of interleaved runs, the best of each, so that a noisy machine disturbs both alike.
OpenDP's sampler is timed on a million draws of the projection's noise, in vectors as long as suit
it, and multiplied: noise alone, on one core. Exits with 1 if a threshold is missed. Data is made in
a temporary folder and deleted.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dplinear.curator import Schema, release_rows
from dplinear.noise import simulation

COLUMNS, GROUP, REPEATS = 20, 131_072, 3
MOST_TIMES, MOST_MEGABYTES, LEAST_TIMES = 3.0, 600.0, 20.0
NUMBERS, DRAWS, BLOCK = 10, 1_000_000, 100_000
CASES: dict[str, tuple[dict[str, Any], str]] = {  # arguments, and where the noise is drawn
    "additive_noise": ({"bits": 0.5}, "dplinear.mechanisms.rows.additive_noise.discrete"),
    "projection": (
        {"epsilon": 1.0, "k": NUMBERS, "noise": "laplace"},
        "dplinear.mechanisms.rows.row_noise.discrete",
    ),
}


def schema() -> Schema:
    """Return the schema of the table."""
    return Schema({f"x{j}": (-4, 4) for j in range(COLUMNS)})


def write(path: Path, rows: int) -> None:
    """Write a table of normal numbers, a row group at a time."""
    draw = simulation.generator(11)
    names = [f"x{j}" for j in range(COLUMNS)]
    columns = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, columns, compression="none", use_dictionary=False) as file:
        for start in range(0, rows, GROUP):
            block = draw.standard_normal((COLUMNS, min(GROUP, rows - start)))
            file.write_table(pa.table(dict(zip(names, block, strict=True)), schema=columns))


class Unsafe(threading.local):
    """NumPy's noise, rounded: as fast as it comes, and no protection."""

    def __init__(self) -> None:
        self.draw = simulation.generator(threading.get_ident() % 2**32)

    def gaussian(self, variance: Any, size: tuple[int, ...], **_: Any) -> Any:
        """Return what `noise.discrete.gaussian` would."""
        drawn = self.draw.standard_normal(size)
        drawn *= float(variance) ** 0.5
        return np.rint(drawn, out=drawn).astype(np.int64)

    def laplace(self, scale: Any, size: tuple[int, ...], **_: Any) -> Any:
        """Return what `noise.discrete.laplace` would."""
        drawn = self.draw.laplace(0.0, float(scale), size)
        return np.rint(drawn, out=drawn).astype(np.int64)


def unsafe(mechanism: str) -> AbstractContextManager[Any]:
    """Put NumPy's noise in the place of exact noise."""
    return mock.patch(CASES[mechanism][1], Unsafe())


def run(path: Path, mechanism: str, noise: AbstractContextManager[Any]) -> float:
    """Return the seconds that one release takes."""
    output = path.with_name("released.parquet")
    output.unlink(missing_ok=True)
    options = CASES[mechanism][0]
    with noise:
        start = time.perf_counter()
        release_rows(path, schema(), mechanism=mechanism, output=output, progress=False, **options)
        return time.perf_counter() - start


def peak(path: Path, mechanism: str) -> float:
    """Return the most memory that one release takes, in megabytes, in a process of its own."""
    command = [sys.executable, __file__, "--peak", str(path), "--mechanism", mechanism]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ourselves
    return float(done.stdout)


def rival_seconds(draws: int) -> float:
    """Return how long a loop over OpenDP's sampler would take for all draws."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    sampler = dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=2.0**42)
    block = [0] * BLOCK
    start = time.perf_counter()
    for _ in range(DRAWS // BLOCK):
        sampler(block)
    return (time.perf_counter() - start) * draws / DRAWS


def measured(path: Path, mechanism: str, rows: int) -> bool:
    """Print the figures of a mechanism; return whether it keeps within its thresholds."""
    times = [
        (run(path, mechanism, nullcontext()), run(path, mechanism, unsafe(mechanism)))
        for _ in range(REPEATS)
    ]
    megabytes = peak(path, mechanism)
    exact, fast = (min(each) for each in zip(*times, strict=True))
    ratio, drawn = exact / fast, rows * (NUMBERS if mechanism == "projection" else COLUMNS)
    print(f"{mechanism}, {rows:,} rows of {COLUMNS} columns, Parquet to Parquet")
    print(f"  exact noise      {exact:8.2f} s  ({drawn / exact / 1e6:.1f} M draws/s)")
    print(f"  NumPy's          {fast:8.2f} s")
    print(f"  ratio            {ratio:8.2f} x   ≤ {MOST_TIMES:g}")
    print(f"  peak memory      {megabytes:8.0f} MB  ≤ {MOST_MEGABYTES:g}")
    kept = ratio <= MOST_TIMES and megabytes <= MOST_MEGABYTES
    if mechanism == "projection":
        rival = rival_seconds(drawn)
        print(f"  OpenDP's sampler {rival:8.0f} s  (noise alone, from {DRAWS:,} draws)")
        print(f"  times faster     {rival / exact:8.0f} x   ≥ {LEAST_TIMES:g}")
        kept = kept and rival / exact >= LEAST_TIMES
    return kept


def main() -> int:
    """Print the figures; return 1 if a threshold is missed."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--rows", type=int, default=2_000_000)
    reader.add_argument("--mechanism", choices=list(CASES))
    reader.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    asked = reader.parse_args()
    if asked.peak is not None:
        run(asked.peak, asked.mechanism, nullcontext())
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write(path, asked.rows)
        chosen = list(CASES) if asked.mechanism is None else [asked.mechanism]
        kept = [measured(path, mechanism, asked.rows) for mechanism in chosen]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
