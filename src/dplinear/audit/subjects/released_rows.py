"""Audits of mechanisms that release rows, and of a sketch that protects single cells.

Every row has fresh noise of its own, so a block of equal rows is as many runs on a table of one.
"""

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit import densities, worst_pairs
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.exact.grid import shape_of
from dplinear.exact.shape import Statistic
from dplinear.mechanisms.cells.mi_projection import MIProjection
from dplinear.mechanisms.rows.additive_noise import AdditiveNoise
from dplinear.mechanisms.rows.contract import PreparedRows
from dplinear.mechanisms.rows.projection import ProjectedRows
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import MIDP
from dplinear.schema import Schema

NUMBERS = Schema({"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}, intercept=False)
PUBLIC = "known"


def release_block(prepared: PreparedRows, row: Floats, count: int, entropy: Entropy) -> Floats:
    """Return a block of equal rows as it is released, shape (count, columns)."""
    batch = prepared.release(np.repeat(row[:, None], count, axis=1), entropy)
    return np.stack([column.to_numpy() for column in batch.columns], axis=1)


class NoisyCells(Subject):
    """Rows with noise on every cell: one cell goes from one end of its column to the other."""

    def __init__(self, mechanism: AdditiveNoise, entropy: Entropy) -> None:
        self.name = mechanism.name
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        self.claim = Claim.of(self.guarantee, normal=True)
        self.exact = not isinstance(self.guarantee, MIDP)
        shape = shape_of(NUMBERS)
        self._prepared = mechanism.prepare(NUMBERS, shape, entropy)
        cells = float(shape.steps_per_unit)
        self._rows = [np.array([end, 0.0, cells]) for end in (cells, -cells)]
        self._means = (self._rows[0] / cells, self._rows[1] / cells)
        self._variance = np.array(self._prepared.noise_model.variances)

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Release, and compare likelihoods."""
        values = release_block(self._prepared, self._rows[other], count, entropy)
        return densities.normal(values, self._means[0], self._means[1], self._variance)


class Projected(Subject):
    """Projected rows: the pair whose images under the matrix that was drawn are furthest apart.

    Requires: noise on the projected rows ("laplace" or "gaussian"); the auditor knows the matrix.
    """

    def __init__(self, mechanism: ProjectedRows, entropy: Entropy) -> None:
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        self.name = f"{mechanism.name} ({mechanism.noise})"
        self._normal = mechanism.noise == "gaussian"
        self.claim = Claim.of(self.guarantee, normal=self._normal)
        shape = shape_of(NUMBERS)
        self._prepared = mechanism.prepare(NUMBERS, shape, entropy)
        matrix = self._prepared.projection.matrix()
        order = 2 if self._normal else 1
        self._rows = worst_pairs.row_pair(
            matrix, shape.steps_per_unit, self.neighbours, mechanism.change, order
        )
        self._means = tuple(row / shape.steps_per_unit @ matrix for row in self._rows)
        self._scale = self._prepared.noise_model.scale

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Release, and compare likelihoods."""
        values = release_block(self._prepared, self._rows[other], count, entropy)
        if self._normal:
            return densities.normal(
                values, self._means[0], self._means[1], np.array(self._scale**2)
            )
        return densities.laplace(values, self._means[0], self._means[1], self._scale)


class CellSketch(Subject):
    """A sketch for single cells: a number at either end of its range, beside a public one.

    The public column tells the weight of the row in each row of the sketch, so that nothing but the
    cell's own noise hides its sign.
    """

    exact = False  # bits are claimed whatever is believed of a cell; two values are not the worst

    def __init__(self, mechanism: MIProjection) -> None:
        self.name = mechanism.name
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        self.claim = Claim.of(self.guarantee, normal=False)
        schema = Schema({"cell": (-1, 1), PUBLIC: (-1, 1)}, intercept=False)
        shape = shape_of(schema)
        self._prepared = mechanism.prepare(schema, shape)
        rows = [
            np.array([[sign * shape.steps_per_unit, shape.steps_per_unit]], object)
            for sign in (1, -1)
        ]
        self._tables = [Statistic(shape, row.T @ row, 1) for row in rows]

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Measure, and compare the likelihoods of the cell's column, given the public one."""
        table, found = self._tables[other], np.empty(count)
        for run in range(count):
            measured = self._prepared.run(table, entropy)
            column, weights = measured.values.T
            found[run] = 2 * (column @ weights) / float(measured.parameters["largest_ridge"])
        return found
