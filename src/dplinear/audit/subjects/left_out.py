"""A descent on rows with gaps, left out or filled in: what a release tells of one of them.

The tables go through the exact pass, which leaves rows out. A row of full length comes or goes,
which moves every sum but the number of rows left out by all that is paid for; or it loses its
target, which moves both counts in full, and other sums by half of what is paid for a row's
opposite.

Where a missing feature is filled in with its bound, such a row is as long as any other: it moves
every sum by all that is paid for, the count of cells that are filled in among them.
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
_FILLED = Schema(
    {"x": {"type": "number", "low": -1, "high": 1, "missing": 1}, "y": (-1, 1)}, intercept=False
).leaving_out()
_STEPS = 3  # of the descent: more take longer, and tell the same
_GAP = (1.0, np.nan)


class _Gapped:
    """A table with gaps, read anew in every pass: rows that were left out are counted each time."""

    denominator = 1

    def __init__(self, rows: Sequence[tuple[float, float]], schema: Schema = _SCHEMA) -> None:
        self._schema = schema
        self._rows: Floats = np.array(rows, float).reshape(-1, 2)

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return exact sums of the rows that are left."""
        accumulator = Sums(self._schema, statistics).accumulator()
        accumulator.update_array(self._rows)
        return accumulator.result().integers()


def rows_left_out(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return a descent on a row with a gap, beside a whole row, no other, or another gap."""
    replaced = neighbours is Neighbours.REPLACE
    one, other = [_GAP, (1.0, 1.0)], [_GAP, _GAP] if replaced else [_GAP]
    tables = _Gapped(one), _Gapped(other)
    return _descent(guarantee, neighbours, tables, _SCHEMA, "rows left out")


def cells_filled_in(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return a descent on a row whose feature is filled in, or on none, or on its opposite."""
    row = (np.nan, 1.0)
    other = [(-1.0, 1.0)] if neighbours is Neighbours.REPLACE else []
    tables = _Gapped([_GAP, row], _FILLED), _Gapped([_GAP, *other], _FILLED)
    return _descent(guarantee, neighbours, tables, _FILLED, "cells filled in")


def _descent(
    guarantee: Guarantee,
    neighbours: Neighbours,
    tables: tuple[_Gapped, _Gapped],
    schema: Schema,
    about: str,
) -> Subject:
    usual = WhitenedDescent(guarantee=guarantee, neighbours=neighbours)
    settings = replace(usual.settings, steps=_STEPS, plain_steps=_STEPS)
    solver = replace(usual, settings=settings)
    prepared = solver.prepare(design_of(schema, (0,), 1))
    exact = neighbours is not Neighbours.REPLACE
    subject = TranscriptSubject(solver, prepared.run, overheard(*tables), exact=exact)
    subject.name = f"{solver.name} ({about})"
    return subject
