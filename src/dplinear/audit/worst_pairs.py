"""Pairs of tables that are hardest to keep apart, as integers of the grids they live on.

A second-moment matrix moves most for a row of full length that comes or goes, or that turns by a
right angle; a sum of rows for one that turns round. Where rows are projected, the row is sought
among the corners of all that are allowed. Nothing is shared with the mechanisms' own sensitivities.
"""

import itertools

import numpy as np

from dplinear.arrays import Array, Floats
from dplinear.exact.shape import Shape, Statistic
from dplinear.privacy.neighbours import Neighbours


def moments(shape: Shape, rows: Array, copies: int) -> Statistic:
    """Return the exact moments of `copies` of a few rows, each in columns of its own."""
    exact = np.array(rows, object).reshape(-1, shape.dimension)
    block = exact.T @ exact if len(exact) else np.zeros((shape.dimension,) * 2, int)
    d = shape.dimension
    integers = np.zeros((d * copies, d * copies), object)
    for copy in range(copies):
        integers[copy * d : (copy + 1) * d, copy * d : (copy + 1) * d] = block
    wide = Shape(d * copies, shape.steps_per_unit, shape.exponent)
    return Statistic(wide, integers, len(exact) * copies)


def matrix_pair(
    shape: Shape, neighbours: Neighbours, *, oblique: bool = False, base: int = 0
) -> tuple[Array, Array]:
    """Return the rows of two tables whose moments are as far apart as neighbours' can be.

    `oblique` rows are along the diagonals, so that every entry of the matrix moves.
    `base` rows along each axis are in both.
    """
    d, length = shape.dimension, 1 << shape.exponent
    row, turned = np.zeros(d, int), np.zeros(d, int)
    row[0] = turned[min(1, d - 1)] = length
    if oblique and d > 1:
        side = int(length / np.sqrt(2))
        row[:2], turned[:2] = (side, side), (side, -side)
    common = np.repeat(length * np.eye(d, dtype=int), base, axis=0)
    rest = np.zeros((0, d), int)
    if neighbours is Neighbours.REPLACE:
        # In one dimension nothing turns: the row becomes 0.
        rest = (turned if d > 1 else 0 * row)[None]
    return np.vstack((common, row)), np.vstack((common, rest))


def sum_pair(shape: Shape, neighbours: Neighbours) -> tuple[Floats, Floats]:
    """Return tables, columns first, with a row along each axis; turned round, or absent."""
    rows = np.eye(shape.dimension) * float(1 << shape.exponent)
    return rows, -rows if neighbours is Neighbours.REPLACE else rows[:, :0]


def row_pair(
    matrix: Floats, cells: int, neighbours: Neighbours, change: float | None, order: int
) -> tuple[Floats, Floats]:
    """Return two integer rows of cells in [−cells, cells] whose images are furthest apart.

    `matrix` maps a row to what is released; `order` is the norm that the noise is scaled by.
    `change`, in cells' units, is the most that a cell (element) or a row (row_l1, row_l2) moves.
    """
    features = len(matrix)
    width = 2.0 if change is None else min(change, 2.0)
    if neighbours is Neighbours.ROW_L2 and change is None:
        candidates = [
            2.0 * np.array(signs) for signs in itertools.product((1, -1), repeat=features)
        ]
    elif neighbours is Neighbours.ROW_L2:
        if order == 2:
            candidates = [width * np.linalg.svd(matrix)[0][:, 0]]
        else:
            turned = [matrix @ s for s in itertools.product((1.0, -1.0), repeat=matrix.shape[1])]
            candidates = [width * v / np.linalg.norm(v) for v in turned]
    else:
        candidates = list(width * np.eye(features))
    images = [float(np.linalg.norm(v @ matrix, order)) for v in candidates]
    half = np.trunc(candidates[int(np.argmax(images))] * cells / 2)
    return half, -half
