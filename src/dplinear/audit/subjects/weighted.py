"""Descents on rows with weights: what a release tells of a unit of privacy, or of a heavy row.

The tables go through the readers that weigh rows. A unit has many rows of full length, and a row
the largest survey weight, so that either counts as one row at the bounds and moves every sum by all
that is paid for. Clustered errors add the outer products of units' scores, for half of the budget
here, so that an audit which did not see them could not come near the claim.

Where a unit becomes another, its features turn round. That is no change of counts, nor of the outer
products of scores, whose sign is lost: no pair of units moves all sums at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa

from dplinear.audit.subjects.contract import Subject
from dplinear.audit.subjects.transcripts import TranscriptSubject, overheard
from dplinear.curator.gates.one_model import design_of
from dplinear.curator.passes import open_table
from dplinear.descent.whitened import WhitenedDescent
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_STEPS = 3  # of the descent: more take longer, and tell the same
_ROWS, _ROWS_PER_UNIT = 64, 3  # of the unit, and as how many it counts
_CROWD = 100  # other units, where clustered errors are asked for: they are for lines that are seen
_HEAVIEST = 20
_SCORES = Fraction(1, 2)  # of the budget, for outer products
_WIDE = Fraction(1, 10)  # for the wide step that they are part of, at the most
_RUNS = 1_600  # enough for nine tenths, as the pairs move every sum in full
Make = Callable[[Guarantee, Neighbours], Subject]


def _table(xs: Sequence[float], crowd: int = 0) -> pa.Table:
    """Return the rows of one unit, whose target is at its bound; none of its weights is larger.

    A crowd of others has a row each, of half that length, near the line y = 0.
    """
    count = len(xs)
    columns = {
        "x": [*xs, *(0.5 * (-1) ** other for other in range(crowd))],
        "y": [1.0] * count + [0.02 * (-1) ** (other // 2) for other in range(crowd)],
        "weight": [float(_HEAVIEST)] * (count + crowd),
    }
    typed = {name: pa.array(cells, pa.float64()) for name, cells in columns.items()}
    ids = ["new"] * count + [str(other) for other in range(crowd)]
    return pa.table({**typed, "id": pa.array(ids, pa.string())})


def _schema(*, unit: bool, weight: bool) -> Schema:
    return Schema(
        {"x": (-1, 1), "y": (-1, 1)},
        intercept=False,
        unit="id" if unit else None,
        weight=("weight", 0, _HEAVIEST) if weight else None,
    )


def descent(
    kind: str, *, unit: bool = True, weight: bool = False, scores: Fraction = Fraction(0)
) -> Make:
    """Return a descent on a unit, or on a row without one: it comes, goes or turns round."""

    def make(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
        usual = WhitenedDescent(guarantee=guarantee, neighbours=neighbours)
        shares = replace(usual.settings, steps=_STEPS, plain_steps=_STEPS, wide_most=_WIDE)
        solver = replace(usual, settings=replace(shares, unit_scores=scores))
        schema = _schema(unit=unit, weight=weight)
        # No cell is missing, so that counts of those filled in would move by nothing.
        prepared = solver.prepare(replace(design_of(schema, (0,), 1), filled=()))
        count = _ROWS if unit else 1
        replaced = neighbours is Neighbours.REPLACE
        crowd = _CROWD if scores else 0
        one, other = (
            open_table(held, schema, rows_per_unit=_ROWS_PER_UNIT, threads=1, progress=False)
            for held in (
                _table([1.0] * count, crowd),
                _table([-1.0] * count if replaced else [], crowd),
            )
        )
        tables = overheard(one, other)
        subject = TranscriptSubject(solver, prepared.run, tables, exact=not replaced)
        subject.name = f"{solver.name} ({kind})"
        subject.runs = None if replaced else _RUNS
        return subject

    return make


WEIGHTED: dict[str, Make] = {
    "units": descent("units"),
    "clustered": descent("clustered errors", scores=_SCORES),
    "survey_weights": descent("survey weights", unit=False, weight=True),
    "survey_weights_of_units": descent("survey weights of units", weight=True),
}
