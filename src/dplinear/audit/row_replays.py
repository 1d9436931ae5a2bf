"""Replays of what sees rows one by one: released rows, and the gradients of learners."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit.holders import Holder, names_of
from dplinear.convex.examples import SlopeSum
from dplinear.convex.losses import SquaredLoss
from dplinear.curator.examples import Rules, read_examples
from dplinear.curator.sources.ordered import open_rows
from dplinear.exact.grid import shape_of
from dplinear.mechanisms.cells.cell_moves import Bounded
from dplinear.mechanisms.rows import row_maps
from dplinear.mechanisms.rows.row_changes import changes_of
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_ODD = (-1.0, 1.0, 0.3, 0.0, 1e300, -np.inf, np.nan)
Line = tuple[str, Neighbours, str, float, float, int]


def sizes(limit: int, moved: int, unit: float) -> tuple[float, float]:
    """Return the roots of two squares, in units; a larger integer is a larger float, too."""
    declared, seen = math.sqrt(limit) * unit, math.sqrt(moved) * unit
    return declared, max(seen, math.nextafter(declared, math.inf)) if moved > limit else seen


def released_rows(holder: Holder, schema: Schema, bound: float, folder: Path) -> Iterator[Line]:
    """Yield how far one cell, or one row, moves what is released of a row.

    All rows are read in one pass: each becomes a function of itself alone.
    """
    columns, shape = len(schema.columns), shape_of(schema)
    odd = np.array([value * bound if abs(value) <= 1 else value for value in _ODD])
    indices = tuple(range(1, columns + 1))  # behind the constant
    matrix = row_maps.draw("gaussian", columns, 2, simulation.entropy(1)).integers
    for relation in (Neighbours.ELEMENT, Neighbours.ROW_L2):
        one_cell = relation is Neighbours.ELEMENT
        groups = [
            np.eye(columns)[index] * np.where(np.isfinite(odd), odd, 0.0)[:, None]
            for index in range(columns)
        ]
        for index, group in enumerate(groups):
            group[:, index] = odd
        if not one_cell:
            groups = [np.array(list(itertools.product(odd[[0, 1, -1]], repeat=columns)))]
        read = _integers(holder, np.vstack(groups), schema, folder)[1 : columns + 1]
        ends = np.cumsum([0, *(len(group) for group in groups)])
        moves = np.vstack(
            [
                (part[:, :, None] - part[:, None, :]).reshape(columns, -1).T
                for part in (read[:, a:b] for a, b in itertools.pairwise(ends))
            ]
        )
        changes = changes_of(schema, shape, relation, Bounded(), indices, "replay")
        image = float(np.abs(moves @ matrix).sum(axis=1).max())
        declared = changes.image_l1(matrix)
        yield "projection", relation, "‖vA‖₁", declared, image, len(moves)
        if one_cell:
            length = math.sqrt(float((moves**2).sum(axis=1).max()))
            yield "additive_noise", relation, "‖v‖₂", changes.l2, length, len(moves)


def _integers(holder: Holder, rows: Floats, schema: Schema, folder: Path) -> Floats:
    table = open_rows(holder.hold(rows, folder), schema, "replay", threads=1)
    with table.through(np.copy) as blocks:
        return np.concatenate(list(blocks), axis=1)


def gradients(holder: Holder, pairs: Any, relation: Neighbours, folder: Path) -> Line:
    """Return how far a row moves the gradient that learners by noisy gradients ask for.

    Requires: pairs of tables whose last column is the label.
    """
    rules = Rules(
        features=len(names_of(pairs[0][0].shape[1])) - 1, row_norm=1.0, target_bounds=(-1, 1)
    )
    index = np.linspace(-0.3, 0.4, rules.features)
    gradient = SlopeSum(rules.frame, SquaredLoss(), index, 0.5)
    limit, most = gradient.sensitivity_squared(relation), 0
    for pair in pairs:
        one, other = (
            read_examples(
                holder.hold(rows[:, :-1], folder), rows[:, -1], rules, progress=False
            ).sums([gradient])[0]
            for rows in pair
        )
        most = max(most, int(((one - other) ** 2).sum()))
    found = sizes(limit, most, float(gradient.unit))
    return "learners by gradients", relation, "SlopeSum", *found, len(pairs)
