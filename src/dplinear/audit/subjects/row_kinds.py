"""Audits of the other ways to release rows: noise before the projection, by quantiles, labels."""

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit import densities, worst_pairs
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.audit.subjects.released_rows import NUMBERS, release_block
from dplinear.exact.grid import shape_of
from dplinear.mechanisms.rows.projection import PreparedProjection, ProjectedRows
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_LEVELS = ("a", "b", "c")


class Perturbed(Subject):
    """Noise on a row that is then turned: who knows the matrix turns it back.

    Requires: a square orthonormal matrix. The pair is the widest change of a row as it is.
    """

    def __init__(self, mechanism: ProjectedRows, entropy: Entropy) -> None:
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        shape = shape_of(NUMBERS)
        self._prepared = mechanism.prepare(NUMBERS, shape, entropy)
        self._normal = self._prepared.noise.normal
        self.name = f"{mechanism.name} ({self._prepared.noise.kind})"
        self.claim = Claim.of(self.guarantee, normal=self._normal)
        matrix = self._prepared.projection.matrix()
        self._inverse = np.linalg.inv(matrix)
        order = 2 if self._normal else 1
        self._rows = worst_pairs.row_pair(
            np.eye(len(matrix)), shape.steps_per_unit, self.neighbours, mechanism.change, order
        )
        self._means = self._rows[0] / shape.steps_per_unit, self._rows[1] / shape.steps_per_unit
        self._scale = self._prepared.noise_model.scale

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Release, turn back, and compare likelihoods."""
        turned = release_block(self._prepared, self._rows[other], count, entropy) @ self._inverse
        if self._normal:
            return densities.normal(turned, *self._means, np.array(self._scale**2))
        return densities.laplace(turned, *self._means, self._scale)


class Quantile(Subject):
    """Noise by a quantile of random matrices: a matrix of its own for every run, known to all.

    δ is the chance of a matrix that is too long, so that hardly a run shows more than its ε.
    """

    exact = False
    chosen = True
    runs = 500

    def __init__(self, mechanism: ProjectedRows) -> None:
        self._mechanism = mechanism
        self.name = f"{mechanism.name} ({mechanism.noise})"
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        self.claim = Claim.of(self.guarantee, normal=False)
        self._shape = shape_of(NUMBERS)
        order, whole = 2, np.eye(len(NUMBERS.names))
        self._rows = worst_pairs.row_pair(
            whole, self._shape.steps_per_unit, self.neighbours, mechanism.change, order
        )

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Draw a matrix and a row, and compare likelihoods, again and again."""
        return np.array([self._run(entropy, other=other) for _ in range(count)])

    def _run(self, entropy: Entropy, *, other: bool) -> float:
        prepared = self._mechanism.prepare(NUMBERS, self._shape, entropy)
        matrix = prepared.projection.matrix()
        one, far = (row / self._shape.steps_per_unit @ matrix for row in self._rows)
        values = release_block(prepared, self._rows[other], 1, entropy)
        return float(densities.laplace(values, one, far, prepared.noise_model.scale)[0])


class Labelled(Subject):
    """The label beside projected rows: a level told at random, or a number with noise.

    Of two tables whose one difference is the label, the projected rows tell nothing.
    """

    def __init__(self, guarantee: Guarantee, kind: str, entropy: Entropy) -> None:
        self.guarantee, self.neighbours = guarantee, Neighbours.ELEMENT
        self.name = f"label ({kind})"
        self.claim = Claim.of(guarantee, normal=False)
        levels = kind == "levels"
        column = {"type": "category", "levels": list(_LEVELS), "other": "c"} if levels else (-1, 1)
        schema = Schema({"x": (-1, 1), "label": column}, intercept=False)
        mechanism = ProjectedRows(guarantee=guarantee, k=1, noise="laplace", label="label")
        shape = shape_of(schema)
        self._prepared: PreparedProjection = mechanism.prepare(schema, shape, entropy)
        self._label = self._prepared.noise_model.label or {}
        rows = np.zeros((2, schema.dimension))
        indices = schema.own_features("label")
        if levels:  # the first level has no feature of its own
            rows[1, indices[0]] = shape.steps_per_unit
        else:
            rows[:, indices[0]] = shape.steps_per_unit, -shape.steps_per_unit
        self._rows = rows
        self._levels = levels

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Release, and compare likelihoods."""
        block = np.repeat(self._rows[int(other)][:, None], count, axis=1)
        column = self._prepared.release(block, entropy).column("label")
        told = np.asarray(column.to_numpy(zero_copy_only=False))
        return self._of_levels(told) if self._levels else self._of_numbers(told)

    def _of_levels(self, told: Floats) -> Floats:
        truth = float(self._label["truth"])
        loss = np.log(truth / ((1 - truth) / (len(_LEVELS) - 1)))
        return np.asarray((told == _LEVELS[0]) * loss - (told == _LEVELS[1]) * loss)

    def _of_numbers(self, told: Floats) -> Floats:
        scale = float(self._label["scale"])
        ends = np.array([1.0]), np.array([-1.0])
        return densities.laplace(told.astype(np.float64)[:, None], *ends, scale)
