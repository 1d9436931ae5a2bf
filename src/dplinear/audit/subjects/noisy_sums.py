"""Audits of noise on sums: adaptive normal noise, and Laplace noise on one number."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dplinear.adaptive.noisy_sums import Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.audit import densities, worst_pairs
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.exact.mapped_sums import MappedSum
from dplinear.exact.row_sums import RowSum
from dplinear.exact.shape import Shape
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours

_COORDINATES = 64
_STEPS = 1 << 20


class _Rows:
    """A table as chains see it."""

    denominator = 1

    def __init__(self, rows: Floats) -> None:
        self._rows = rows

    def sums(self, statistics: Sequence[RowSum]) -> list[Any]:
        return [statistic.sum(self._rows).astype(object) for statistic in statistics]


class NoisySumsSubject(Subject):
    """A chain that spends all on one sum of rows: a row comes or goes, or turns round.

    The chain is what every descent draws its noise from. A table has such a row in every
    coordinate, and each coordinate, with noise of its own, is a run. `steps` sums share the budget;
    rows are clipped to a part `clip` of their length.
    """

    name = "chain"

    def __init__(
        self, guarantee: Guarantee, neighbours: Neighbours, *, steps: int = 1, clip: float = 1.0
    ) -> None:
        self.guarantee, self.neighbours = guarantee, neighbours
        self.claim = Claim.of(guarantee, normal=True)
        shape = Shape(_COORDINATES, 1 << 7, 10)
        self._sum = MappedSum(shape, np.eye(_COORDINATES), norm=clip * float(shape.bound))
        self._steps = steps
        coordinates = _COORDINATES * steps
        self._budget = Budget.of(guarantee, coordinates, neighbours, "audit")
        pair = worst_pairs.sum_pair(shape, neighbours)
        self._tables = [_Rows(rows) for rows in pair]
        unit = float(self._sum.unit)
        self._means = [self._sum.sum(rows).astype(np.float64)[:, None] * unit for rows in pair]

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Ask the chain for its sums, and compare likelihoods of them all."""
        share = Fraction(1, self._steps)
        found = []
        for _ in range(-(-count // _COORDINATES)):
            sums = NoisySums(self._tables[other], self._budget, entropy)
            answers = [sums.ask([Query(self._sum, share)])[0] for _ in range(self._steps)]
            values = np.stack([answer.values for answer in answers], axis=1)
            variance = np.array([answer.sigma**2 for answer in answers])
            found.append(densities.normal(values, self._means[0], self._means[1], variance))
        return np.concatenate(found)[:count]


class LaplaceSubject(Subject):
    """Laplace noise on a whole number that neighbours move by a known step."""

    name = "laplace"

    def __init__(self, guarantee: PureDP, neighbours: Neighbours) -> None:
        self.guarantee, self.neighbours = guarantee, neighbours
        self.claim = Claim.of(guarantee, normal=False)
        self._scale = calibrate.laplace(guarantee, float(_STEPS))

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Add noise, and compare likelihoods."""
        noise = discrete.laplace(self._scale, (count, 1), entropy=entropy).astype(np.float64)
        one, far = np.array([0.0]), np.array([float(_STEPS)])
        return densities.laplace(noise + (far if other else one), one, far, self._scale)
