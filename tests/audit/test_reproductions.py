"""Pairs of tables that once told more than was certified: their real ε is at most the certified.

A release of second moments adds normal noise of a known size to exact integers, so what a pair of
neighbours tells follows from how far their integers are apart. That is the real ε, not a bound.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dplinear.audit.bounds import gaussian_epsilon
from dplinear.curator import Schema, second_moments
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, calibrate
from services import library

Pair = tuple[Any, Any]
EPSILON, DELTA = 1.0, 1e-6
ROWS = 1_000
NUMBERS = Schema({"a": (-1, 1), "b": (-1, 1)})


def real_epsilon(pair: Pair, schema: Schema) -> float:
    """Return the ε of analyze_gauss at ε = 1 between two tables of which a row was replaced."""
    one, two = (second_moments(table, schema) for table in pair)
    change = (one.integers - two.integers).astype(object)
    squared = sum(int(entry) ** 2 for entry in change.ravel())  # Frobenius, as the noise is scaled
    sensitivity = one.grid.sensitivity * 2**0.5
    mu = 1 / calibrate.gaussian(ApproxDP(EPSILON, DELTA), 1.0)
    return gaussian_epsilon(mu * squared**0.5 / sensitivity, DELTA)


def repeated_entries(_: Path) -> Pair:
    """Return cells in parts whose order matters, and a row that is stored in order or not."""
    parts = np.tile([1e16, 0.4, -1e16, 0.3], 6)
    row = np.repeat(np.arange(ROWS), len(parts))
    values = np.tile(parts, ROWS)
    made = []
    for own in ([0, 1], [1, 0]):
        rows, columns = np.append(row, [ROWS] * 2), np.append(np.zeros(len(row), int), own)
        entries = (np.append(values, [0.5, 0.5]), (rows, columns))
        made.append(sparse.coo_matrix(entries, (ROWS + 1, 2)))
    return made[0], made[1]


def carriage_returns(folder: Path) -> Pair:
    files = []
    for name, note in (("one", "fine"), ("two", "x\r" * 5_000)):
        lines = ["a,b,note", *(["0.5,0.5,fine"] * ROWS), f"1,1,{note}"]
        file = folder / f"{name}.csv"
        file.write_bytes("\n".join(lines).encode() + b"\n")
        files.append(file)
    return files[0], files[1]


@pytest.mark.parametrize("make", [repeated_entries, carriage_returns])
def test_neighbours_are_not_told_apart(make: Callable[[Path], Pair], tmp_path: Path) -> None:
    assert real_epsilon(make(tmp_path), NUMBERS) <= EPSILON


FRAMES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda file: library("pandas").read_csv(file),
    "polars": lambda file: library("polars").read_csv(file, try_parse_dates=True),
    "duckdb": lambda file: library("duckdb").read_csv(str(file)),
    "dask": lambda file: library("dask.dataframe").read_csv(str(file)),
    "arrow": lambda file: library("pyarrow.csv").read_csv(file),
}
CELLS: dict[str, tuple[str, Any]] = {
    "postcodes": ("02139", ["02139", "10001"]),
    "whole numbers": ("1", ["1.0", "2.0"]),
    "truth": ("True", ["true", "false"]),
    "truth as a number": ("True", (0, 1)),
    "dates": ("2020-01-01", ["2020-01-01", "2021-01-01"]),
    "ends of time": (
        "9999-12-31T23:59:59.999999",
        {"type": "date", "low": "2000-01-01", "high": "2030-01-01"},
    ),
    "long ids": ("12345678901234567", ["12345678901234567", "5"]),
}


@pytest.mark.engine
@pytest.mark.parametrize("odd", ["?", "", "123456789012345678901234567890"])
@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("frames", FRAMES)
def test_a_guessed_type_tells_no_more(frames: str, cells: str, odd: str, tmp_path: Path) -> None:
    cell, declared = CELLS[cells]
    pair = []
    for name, second in (("one", cell), ("two", odd)):  # where every reader's sample sees it
        file = tmp_path / f"{name}.csv"
        content = f"x,n\n{cell},1\n{second},2\n" + f"{cell},1\n" * 200
        file.write_text(content, encoding="utf-8")
        pair.append(FRAMES[frames](file))
    assert real_epsilon((pair[0], pair[1]), Schema({"x": declared, "n": (0, 2)})) <= EPSILON


def test_the_measure_sees_what_is_too_far() -> None:
    generator = simulation.generator(1)
    rows = generator.uniform(-1, 1, (ROWS, 2))
    assert real_epsilon((rows, np.vstack((rows[:-3], np.ones((3, 2))))), NUMBERS) > EPSILON
