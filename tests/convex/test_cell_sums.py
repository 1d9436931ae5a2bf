"""Gradients by clipped cells: exact against Python's integers, dense and sparse alike."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dplinear.convex.cell_sums import CellSlopeSum
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, SlopeSum
from dplinear.noise import simulation

from .learning import LOSSES, made, rows_of, task_of

PLACE = np.array([0.4, -0.2, 0.1, 0.0, 0.3, -0.6])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cell", [0.05, 0.3, 2.0, 1e-9])
def test_sums_are_those_of_python_and_of_sparse_rows(loss: str, cell: float) -> None:
    task = task_of("l1", loss, 6)
    examples, _, _ = made(task, 70)
    rows = rows_of(examples)
    statistic = CellSlopeSum(task.frame, task.loss, PLACE, 1.1, cell)
    most = min(max(int(cell * CELLS), 1), task.frame.norm)
    slopes = SlopeSum(task.frame, task.loss, PLACE, 1.1).slopes(rows[:-1], rows[-1])
    exact = [
        sum(min(max(int(x), -most), most) * int(s) for x, s in zip(row, slopes, strict=True))
        for row in rows[:-1]
    ]
    assert examples.sums([statistic])[0].tolist() == exact
    blocks = [Block(sparse.csc_array(rows[:-1]), rows[-1])]
    assert Examples(task.frame, blocks).sums([statistic])[0].tolist() == exact
    assert statistic.largest == most * statistic.steepest
    assert statistic.bound == SlopeSum(task.frame, task.loss, PLACE, 1.1).bound


def test_no_row_adds_more_than_the_largest() -> None:
    task = task_of("l1", "hinge", 6)
    statistic = CellSlopeSum(task.frame, task.loss, PLACE, 1.0, 0.2)
    random = simulation.generator(3)
    seen = 0
    for _ in range(50):
        row = random.normal(size=6) ** 3
        row = np.trunc(row / np.linalg.norm(row) * (task.frame.norm - 1))
        one = np.append(row, -CELLS)[:, None]
        (total,) = Examples(task.frame, [Block.dense(one)]).sums([statistic])
        seen = max(seen, *(abs(int(entry)) for entry in total))
    assert seen == statistic.largest


def test_parts_of_a_cell_are_added_before_they_are_clipped() -> None:
    task = task_of("l1", "hinge", 6)
    statistic = CellSlopeSum(task.frame, task.loss, PLACE, 1.0, 0.2)
    half = 0.15 * CELLS
    parts: Any = sparse.csc_array(
        (np.array([half, half]), np.array([0, 0]), np.array([0, 2])), shape=(6, 1)
    )
    (total,) = Examples(task.frame, [Block(parts, np.array([-CELLS * 1.0]))]).sums([statistic])
    assert total[0] == statistic.largest
    assert parts.nnz == 2  # what was handed over stays as it is
