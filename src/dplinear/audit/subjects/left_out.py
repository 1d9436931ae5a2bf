"""A descent where rows are left out for want of a number: what a release tells of one of them.

The tables go through the exact pass, which leaves rows out. A row of full length comes or goes,
which moves every sum but the number of rows left out by all that is paid for; or it loses its
target, which moves both counts in full, and other sums by half of what is paid for a row's
opposite.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dplinear.arrays import BigIntegers, Floats
from dplinear.audit.subjects.contract import Subject
from dplinear.audit.subjects.transcripts import TranscriptSubject, overheard
from dplinear.curator.gates.one_model import design_of
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact.row_sums import RowSum
from dplinear.exact.sums import Sums
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_SCHEMA = Schema({"x": (-1, 1), "y": (-1, 1)}, intercept=False).leaving_out()
_STEPS = 3  # of the descent: more take longer, and tell the same
_GAP = (1.0, np.nan)


class _Gapped:
    """A table with gaps, read anew in every pass: rows that were left out are counted each time."""

    denominator = 1

    def __init__(self, rows: Sequence[tuple[float, float]]) -> None:
        self._rows: Floats = np.array(rows, float).reshape(-1, 2)

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return exact sums of the rows that are left."""
        accumulator = Sums(_SCHEMA, statistics).accumulator()
        accumulator.update_array(self._rows)
        return accumulator.result().integers()


def rows_left_out(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return a descent on a row with a gap, beside a whole row, no other, or another gap."""
    usual = WhitenedDescent(guarantee=guarantee, neighbours=neighbours)
    settings = replace(usual.settings, steps=_STEPS, plain_steps=_STEPS)
    solver = replace(usual, settings=settings)
    prepared = solver.prepare(design_of(_SCHEMA, (0,), 1))
    replaced = neighbours is Neighbours.REPLACE
    one, other = [_GAP, (1.0, 1.0)], [_GAP, _GAP] if replaced else [_GAP]
    tables = overheard(_Gapped(one), _Gapped(other))
    subject = TranscriptSubject(solver, prepared.run, tables, exact=not replaced)
    subject.name = f"{solver.name} (rows left out)"
    return subject
