"""Audits of learners that release one point: draws among extreme points, and perturbed minima."""

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit import densities
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.convex.certified_gradient import Point
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame
from dplinear.convex.learners.contract import ConstrainedMechanism, Task
from dplinear.convex.learners.output_perturbation import OutputPerturbation, PreparedOutput
from dplinear.convex.losses import SquaredLoss
from dplinear.convex.sets import L1Ball
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import PureDP
from dplinear.privacy.neighbours import Neighbours

FRAME = Frame(1, 1.0)
_ROW = np.array([[1.0], [-1.0]]) * CELLS  # a feature, and the label that it should not have


def pair(neighbours: Neighbours, rows: int) -> tuple[Examples, Examples]:
    """Return tables of `rows` rows that say the same, and one more: absent, or mirrored.

    The second table has all of them, so that coefficients are larger on the first.
    """
    common = np.repeat(_ROW, rows, axis=1)
    turned = _ROW * [[-1.0], [1.0]]
    first = np.hstack((common, turned)) if neighbours is Neighbours.REPLACE else common
    tables = [Examples(FRAME, [Block.dense(each)]) for each in (first, np.hstack((common, _ROW)))]
    return tables[0], tables[1]


class LearnerSubject(Subject):
    """A learner of one coefficient on rows that all say the same, and one that may not.

    What is released is a number, and the event that tells most is chosen on half of the runs; where
    it is one of two `ends`, each of them is an event.
    """

    exact = False
    batch = 2_000
    runs = 4_000

    def __init__(
        self,
        learner: ConstrainedMechanism,
        radius: float = 1.0,
        rows: int = 1,
        *,
        ends: bool = False,
    ) -> None:
        self.name = learner.name
        self.guarantee, self.neighbours = learner.guarantee, learner.neighbours
        self.claim = Claim.of(self.guarantee, normal=False)
        self.chosen = not ends
        self._prepared = learner.prepare(task_of(radius))
        self._tables = pair(self.neighbours, rows)

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Learn, again and again."""
        table = self._tables[other]
        learnt = [self._prepared.run(table, entropy).point[0] for _ in range(count)]
        numbers = np.array(learnt, np.float64)
        return numbers if self.chosen else np.copysign(np.inf, numbers)


def task_of(radius: float) -> Task:
    """Return least squares of one coefficient."""
    return Task(FRAME, SquaredLoss(), Image(L1Ball(1, radius)), rows=10)


class OutputSubject(Subject):
    """A minimum plus noise: a row of which no model fits the half, so that its slope is clipped.

    The minima of both tables are then as far apart as is claimed, and the noise is known.
    """

    batch = 2_000
    slow = True
    _radius = 100.0  # wide, so that what is added as noise is not projected away

    def __init__(self, learner: OutputPerturbation) -> None:
        self._normal = not isinstance(learner.guarantee, PureDP)
        self.name = f"{learner.name} ({'gaussian' if self._normal else 'laplace'})"
        self.guarantee, self.neighbours = learner.guarantee, learner.neighbours
        self.claim = Claim.of(self.guarantee, normal=self._normal)
        self._prepared: PreparedOutput = learner.prepare(task_of(self._radius))
        self._tables = pair(self.neighbours, 0)
        minima = [self._prepared.sum.minimum(table, Point.zero(1)).values for table in self._tables]
        self._minima = minima[0], minima[1]

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Learn, again and again, and compare likelihoods."""
        table = self._tables[other]
        learnt = np.stack([self._prepared.run(table, entropy).point for _ in range(count)])
        scale = self._prepared.scale
        if self._normal:
            return densities.normal(learnt, *self._minima, np.array(scale**2))
        return densities.laplace(learnt, *self._minima, scale)
