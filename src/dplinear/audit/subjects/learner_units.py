"""Learners in a set where neighbours differ by all rows of one unit, such as a person's.

The rows go through the weighing that the gate does. A unit of many rows, all of them of full length
and against what was learnt, moves every sum by all that is paid for.
"""

from collections.abc import Sequence

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit.subjects.contract import Subject
from dplinear.audit.subjects.learners import FRAME, LearnerSubject
from dplinear.audit.subjects.transcripts import TranscriptSubject, overheard
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples
from dplinear.convex.learners.contract import ConstrainedMechanism, Task
from dplinear.convex.learners.noisy_gradient import NoisyGradient
from dplinear.convex.losses import SquaredLoss
from dplinear.convex.sets import L1Ball
from dplinear.curator.row_weights import RowWeights
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.units import Unit

_UNIT = Unit("id", 4)  # and so many rows count
_STEPS = 3
_MANY, _FEWER = 64, 32  # rows of the unit, and of what it becomes
_AGAINST = np.array([1.0, -1.0]) * CELLS  # a feature, and the label that it should not have


def examples_of(units: Sequence[tuple[int, Floats]]) -> Examples:
    """Return the examples of units, each with so many rows that are all alike."""
    sizes = [size for size, _ in units]
    ids = np.repeat(np.arange(len(units)), sizes)
    rows = np.hstack([np.zeros((2, 0)), *(np.tile(row[:, None], size) for size, row in units)])
    weights = RowWeights(ids, None, _UNIT, None).read()
    return Examples(FRAME, [Block.dense(rows, weights)], weighted=True)


def pair(neighbours: Neighbours, others: int) -> tuple[Examples, Examples]:
    """Return tables of `others` that say the same, and one more unit: absent, or mirrored.

    The second table has all of them, as in `learners.pair`.
    """
    common = [(_UNIT.rows, _AGAINST)] * others
    turned = (_FEWER, _AGAINST * [-1.0, 1.0])
    first = [*common, turned] if neighbours is Neighbours.REPLACE else common
    return examples_of(first), examples_of([*common, (_MANY, _AGAINST)])


def gradients_of_units(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return a learner by noisy gradients: a unit that no model of the set can fit."""
    method = NoisyGradient(guarantee=guarantee, neighbours=neighbours, steps=_STEPS, slope=0.5)
    task = Task(FRAME, SquaredLoss(), Image(L1Ball(1, 0.5)), rows=10, weighted=True)
    prepared = method.prepare(task)
    subject = TranscriptSubject(
        method, prepared.run, overheard(*pair(neighbours, 0)[::-1]), exact=True
    )
    subject.name = f"{method.name} (units)"
    return subject


class DrawsOfUnits(LearnerSubject):
    """A draw among extreme points, of tables that differ by a unit."""

    def __init__(self, learner: ConstrainedMechanism, others: int) -> None:
        super().__init__(learner, rows=others, ends=True)
        self.name = f"{learner.name} (units)"
        self._tables = pair(self.neighbours, others)
