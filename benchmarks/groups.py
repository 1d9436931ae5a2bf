"""What groups cost: an exact pass, and a whole model, with `by` beside one without, of one table.

Ratios of CPU seconds in one run, each the least of a few, of a Parquet file and of a table in
memory, with five groups. Run: python benchmarks/groups.py [--rows 1000000] [--groups 5]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import dplinear as dpl
from dplinear.curator.sources import open_reader
from dplinear.exact.gram import Moments
from dplinear.exact.groups import GroupReduction
from dplinear.noise import simulation
from dplinear.schema import Schema
from dplinear.schema.groups import group_levels, read_by

COLUMNS = 30
REPEATS = 3


def table(rows: int, groups: int) -> pa.Table:
    """Return uniform cells, and a level of a category for each row."""
    random = simulation.generator(1)
    columns = {f"x{i}": random.uniform(-1, 1, rows) for i in range(COLUMNS)}
    names = pa.array([f"g{i}" for i in range(groups)])
    codes = pa.array(random.integers(0, groups, rows), pa.int32())
    return pa.table({**columns, "group": names.take(codes)})


def seconds(run: Callable[[], object]) -> float:
    """Return the least CPU seconds of a few runs."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def passed(held: Any, schema: Schema, reduction: Any) -> object:
    """Run one pass over a table."""
    return open_reader(held, schema).run(reduction)


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=5)
    asked = parser.parse_args()
    numbers: dict[str, Any] = {f"x{i}": (-1, 1) for i in range(COLUMNS)}
    plain = Schema(numbers)
    whole = Schema(
        numbers | {"group": {"type": "category", "levels": [f"g{i}" for i in range(asked.groups)]}}
    )
    split = read_by(whole, "group", "benchmark")
    passes = GroupReduction(split, [Moments(plain) for _ in group_levels(split)])
    budget: Any = {"epsilon": 1.0, "delta": 1e-6}
    print(f"{asked.rows} rows of {COLUMNS} columns, {asked.groups} groups: ratio with by / without")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        data = table(asked.rows, asked.groups)
        parquet.write_table(data, path, row_group_size=100_000)
        for name, held in (("Parquet", path), ("memory", data)):
            one = seconds(partial(passed, held, plain, Moments(plain)))
            many = seconds(partial(passed, held, split, passes))
            print(f"moments, {name}: {one:.2f} s, {many:.2f} s, ratio {many / one:.2f}")
            one = seconds(partial(dpl.release_model, held, plain, "x0", **budget))
            many = seconds(partial(dpl.release_model, held, whole, "x0", by="group", **budget))
            print(f"model, {name}: {one:.2f} s, {many:.2f} s, ratio {many / one:.2f}")


if __name__ == "__main__":
    main()
