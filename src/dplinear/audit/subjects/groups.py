"""Descents of two groups for one price: what they tell together of a row that changes its group.

A row of full length comes to one group or goes, which moves the sums of that one by all that is
paid for; or it leaves one group for the other, which moves those of both, as a row less and a row
more do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dplinear.audit.subjects.contract import Subject
from dplinear.audit.subjects.transcripts import ListeningRows, Rows, TranscriptSubject
from dplinear.curator.gates.one_model import design_of
from dplinear.descent.whitened import WhitenedDescent
from dplinear.mechanisms.groups import PreparedGroups, Separate
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_SCHEMA = Schema({"x": (-1, 1), "y": (-1, 1)}, intercept=False)
_STEPS = 3  # of each descent: more take longer, and tell the same


class _Overheard:
    """The groups of one of two tables, each of which hears its own answers."""

    def __init__(self, groups: Sequence[ListeningRows]) -> None:
        self.groups = groups

    @property
    def loss(self) -> float:
        """What all groups told."""
        return sum(group.loss for group in self.groups)

    @property
    def square(self) -> float:
        """How far apart all that they were asked is."""
        return sum(group.square for group in self.groups)


def groups_of_rows(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return descents of two groups, of which one has a row that the other gets, or nobody."""
    usual = WhitenedDescent(guarantee=guarantee, neighbours=neighbours)
    settings = replace(usual.settings, steps=_STEPS, plain_steps=_STEPS)
    solver = replace(usual, settings=settings)
    replaced = neighbours is Neighbours.REPLACE
    design = replace(design_of(_SCHEMA, (0,), 1), groups=1 + replaced, in_group=True)
    prepared = PreparedGroups(solver.prepare(design))
    one, none = (Rows(np.full((2, count), design.shape.steps_per_unit)) for count in (1, 0))
    pairs = [(one, none), (none, one) if replaced else (none, none)]

    def run(tables: Any, entropy: Entropy) -> object:
        return prepared.run(Separate(tables.groups), entropy)

    subject = TranscriptSubject(solver, run, _listening(pairs), exact=not replaced)
    subject.name = f"{solver.name} (groups)"
    return subject


def _listening(pairs: Sequence[tuple[Rows, Rows]]) -> Callable[[int], _Overheard]:
    """Return how the groups of a table are made that hear their answers."""
    return lambda truth: _Overheard([ListeningRows(pair, truth=truth) for pair in pairs])
