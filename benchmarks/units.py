"""What units of privacy cost: an exact pass with weights beside one without, of the same table.

Ratios of CPU seconds in one run, each the least of a few, and the largest memory of a process of
its own. Run: python benchmarks/units.py [--rows 5000000] [--ids 500000] [--columns 30] [--text]
More ids than memory holds: --rows 100000000 --ids 65000000 --columns 4, some 51 million of them.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from dplinear.curator.sources import open_reader
from dplinear.exact.gram import Moments
from dplinear.noise import simulation
from dplinear.schema import Schema


def schema(columns: int, *, unit: bool) -> Schema:
    """Return the schema of the table, with its unit or without."""
    return Schema({f"x{i}": (-1, 1) for i in range(columns)}, unit="id" if unit else None)


def write(path: Path, rows: int, ids: int, columns: int, *, text: bool) -> None:
    """Write a table of uniform cells and random ids, group by group."""
    random = simulation.generator(1)
    writer = None
    for start in range(0, rows, 500_000):
        count = min(500_000, rows - start)
        cells = {f"x{i}": random.uniform(-1, 1, count) for i in range(columns)}
        numbers = random.integers(0, ids, count)
        own = pa.array(np.char.add("P", numbers.astype(str)) if text else numbers)
        table = pa.table({**cells, "id": own})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=100_000)
    if writer is not None:
        writer.close()


def measure(path: Path, *, unit: bool) -> None:
    """Print the CPU seconds of a pass, and the largest memory of this process in MB."""
    asked = schema(len(parquet.read_schema(path)) - 1, unit=unit)
    start = time.process_time()
    open_reader(path, asked).run(Moments(asked))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.process_time() - start, peak)


def seconds_and_memory(path: Path, *, unit: bool, repeats: int) -> tuple[float, float]:
    """Return the least CPU seconds of a few processes, and the most memory."""
    call = [sys.executable, __file__, "--measure", str(path), *(["--unit"] if unit else [])]
    runs = []
    for _ in range(repeats):
        done = subprocess.run(call, check=True, capture_output=True)  # noqa: S603 - ourselves
        runs.append([float(number) for number in done.stdout.split()])
    return min(run[0] for run in runs), max(run[1] for run in runs)


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--ids", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--unit", action="store_true")
    asked = parser.parse_args()
    if asked.measure is not None:
        measure(asked.measure, unit=asked.unit)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, asked.rows, asked.ids, asked.columns, text=asked.text)
        plain, memory = seconds_and_memory(path, unit=False, repeats=asked.repeats)
        weighted, most = seconds_and_memory(path, unit=True, repeats=asked.repeats)
    print(f"{asked.rows:,} rows x {asked.columns}, {asked.ids:,} ids, Parquet, CPU seconds")
    print(f"without a unit: {plain:.2f} s, {memory:,.0f} MB")
    print(f"with a unit:    {weighted:.2f} s, {most:,.0f} MB: {weighted / plain:.2f} times")


if __name__ == "__main__":
    main()
