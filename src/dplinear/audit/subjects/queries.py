"""Audits of what asks for the least eigenvalue first, and of AdaSSP, which asks beside its sums."""

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit import densities
from dplinear.audit.subjects.adaptive import design_of
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.audit.subjects.matrices import SHAPE
from dplinear.exact.shape import Statistic
from dplinear.mechanisms.adassp import AdaSSP, PreparedAdaSSP
from dplinear.mechanisms.contract import Measurement, MomentsMechanism
from dplinear.mechanisms.moments.least_eigenvalue import LeastEigenvalue
from dplinear.noise.entropy import Entropy
from dplinear.privacy.neighbours import Neighbours

_UNITS = 1 << 20  # of the query, to B²
_AHEAD = 3  # rows more in the direction that is not the least


class EigenvalueSubject(Subject):
    """A sketch or draw whose ridge follows a query: rows on the axes, of which the fewer decide.

    The number adds what the query's answer tells to what the draw does, given that answer.
    """

    runs = 1_500
    chosen = True
    exact = False  # the query's ε and the draw's add up as if their worst came together

    def __init__(self, mechanism: MomentsMechanism) -> None:
        self.name = f"{mechanism.name} (least eigenvalue)"
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        self.claim = Claim.of(self.guarantee, normal=False)
        self._prepared = mechanism.prepare(SHAPE)
        ready = self._prepared.ready  # type: ignore[attr-defined]  # of both kinds that ask
        assert isinstance(ready, LeastEigenvalue)  # noqa: S101 - made for a query
        self._query = ready.query
        square = float(SHAPE.bound**2)
        # Enough rows that the ridge is nearly all taken off.
        few = int(ready.floor / square) + self._query.margin // _UNITS + 2
        one = np.array([few + 1, few + _AHEAD])
        moved = [1, -1] if self.neighbours is Neighbours.REPLACE else [1, 0]
        counts = one, one - moved
        length = 1 << 2 * SHAPE.exponent
        self._tables = [Statistic(SHAPE, np.diag(n).astype(object) * length) for n in counts]
        self._grams = [table.matrix() for table in self._tables]
        least = [int(min(n)) for n in counts]
        self._centres = [n * _UNITS - self._query.margin - _UNITS for n in least]

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Measure, and compare likelihoods."""
        table = self._tables[other]
        return np.array([self._loss(self._prepared.run(table, entropy)) for _ in range(count)])

    def _loss(self, measured: Measurement) -> float:
        answer = float(measured.parameters["lambda_lower"]) / float(SHAPE.bound**2) * _UNITS
        one, far = (np.array([float(centre)]) for centre in self._centres)
        asked = densities.laplace(np.array([answer]), one, far, float(self._query.scale))
        density = densities.BY_NOISE_MODEL[type(measured.noise_model)]
        first, second = self._grams
        drawn = density(measured.values[None], first, second, measured.noise_model)
        return float(asked) + float(drawn[0])


class AdaSSPSubject(Subject):
    """AdaSSP of one feature: a row at both bounds comes or goes, or its target turns round."""

    batch = 2_000
    slow = True

    def __init__(self, solver: AdaSSP) -> None:
        self.name = solver.name
        self.guarantee, self.neighbours = solver.guarantee, solver.neighbours
        self.claim = Claim.of(self.guarantee, normal=True)
        # A replaced row has the same square: only half of what is paid for can be seen at once.
        self.exact = self.neighbours is not Neighbours.REPLACE
        design = design_of(1)
        self._prepared: PreparedAdaSSP = solver.prepare(design)
        row = np.array([[1, 1]], object) * design.shape.steps_per_unit
        rest = row * [1, -1] if self.neighbours is Neighbours.REPLACE else row[:0]
        zero = np.zeros((2, 2), int).astype(object)
        self._tables = [Statistic(design.shape, zero + rows.T @ rows) for rows in (row, rest)]
        self._means = [self._vector(table) for table in self._tables]

    def _vector(self, table: Statistic) -> Floats:
        gram = table.matrix()
        return np.array([gram[0, 0], gram[0, 0], gram[0, 1]])

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Measure, and compare likelihoods."""
        table, prepared = self._tables[other], self._prepared
        drawn = [prepared.measure(table, entropy) for _ in range(count)]
        values = np.array([[one.least, one.gram[0, 0], one.cross[0]] for one in drawn])
        unit = prepared.design.shape.unit
        step = (1 << prepared.distance.step) / unit
        least = float(prepared.design.feature_square) / (_UNITS * unit)
        units = np.array([least, step, step])
        variance = np.array([float(part) for part in prepared.variances]) * units**2
        return densities.normal(values, self._means[0], self._means[1], variance)
