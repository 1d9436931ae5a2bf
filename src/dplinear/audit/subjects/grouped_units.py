"""Groups for one price: what all groups together tell of a unit that is in several of them.

Nearly all rows of the unit are in one group, and one row is in each of the others: parts of a unit
in several groups are at right angles to each other, so that one which is spread evenly would move
all of them together by less than is paid for. Where a unit becomes another, it leaves one group for
another one. The tables go through the readers that weigh and split rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dplinear.arrays import BigIntegers, Floats
from dplinear.audit import densities
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.audit.subjects.transcripts import ListeningRows, TranscriptSubject
from dplinear.curator.gates.one_model import OneModel
from dplinear.curator.in_step import InStep
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.source import Reader
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact.blocks import Reduction
from dplinear.exact.gram import Moments
from dplinear.exact.grid import moments_shape
from dplinear.exact.groups import GroupParts, GroupReduction
from dplinear.exact.row_sums import RowSum
from dplinear.exact.shape import Shape, Statistic
from dplinear.exact.sums import Sums
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms.groups import PreparedGroups, Separate
from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.groups import group_levels, read_by

_SCHEMA = Schema({"x": (-1, 1), "y": (-1, 1), "ward": ["a", "b"]}, intercept=False, unit="id")
_ROWS_PER_UNIT = 3  # as how many the unit counts, whatever rows it has
_STEPS = 3  # of a descent: more take longer, and tell the same
_COPIES = 12  # of the same pair in one release, each in columns of its own
_RUNS = 2_400  # of descents: enough for nine tenths, as the pair moves every sum nearly in full


def _unit(most: str, rows: int) -> pa.Table:
    """Return a unit with all rows but two in one ward, and one in each of the others."""
    wards = [each for each in ("a", "b", "none of them") if each != most]
    ones = [1.0] * rows
    return pa.table(
        {"x": ones, "y": ones, "ward": [most] * (rows - 2) + wards, "id": ["new"] * rows}
    )


def _pair(neighbours: Neighbours, rows: int) -> tuple[pa.Table, pa.Table]:
    one = _unit("a", rows)
    return one, _unit("b", rows) if neighbours is Neighbours.REPLACE else one.slice(0, 0)


def _reader(table: pa.Table, split: Schema) -> Reader:
    again: Any = {"again": True, "rows_per_unit": _ROWS_PER_UNIT, "threads": 1, "progress": False}
    return open_reader(table, split, **again)


class GroupMoments(Subject):
    """Second moments of all groups, by Analyze Gauss."""

    def __init__(self, mechanism: AnalyzeGauss) -> None:
        self.name = f"{mechanism.name} (units in groups)"
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        self.claim = Claim.of(self.guarantee, normal=True)
        split = read_by(_SCHEMA, "ward", "audit")
        shape = moments_shape(split.of_group())
        prepared = mechanism.prepare_groups(shape, len(group_levels(split)))
        wide = Shape(shape.dimension * _COPIES, shape.steps_per_unit, shape.exponent)
        self._prepared = PreparedGroups(replace(prepared, shape=wide))
        self._noise_model = prepared.noise_model
        exact = [_moments(table, split) for table in _pair(self.neighbours, 256)]
        copies = np.eye(_COPIES, dtype=int).astype(object)
        self._tables = [
            Separate([Statistic(wide, np.kron(copies, one)) for one in groups]) for groups in exact
        ]
        self._grams = [[Statistic(shape, one).matrix() for one in groups] for groups in exact]

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Measure all groups, and compare likelihoods of them together."""
        table, runs = self._tables[other], -(-count // _COPIES)
        measured = [self._prepared.run(table, entropy).each for _ in range(runs)]
        losses = np.zeros(runs * _COPIES)
        for group, (one, far) in enumerate(zip(*self._grams, strict=True)):
            stacked = np.stack([each[group].values for each in measured])
            losses += densities.symmetric_gaussian(_blocks(stacked), one, far, self._noise_model)
        return losses[:count]


def _moments(table: pa.Table, split: Schema) -> list[BigIntegers]:
    passes = [Moments(split.of_group()) for _ in group_levels(split)]
    found = _reader(table, split).run(GroupReduction(split, passes))
    return [part.integers for part in found.parts]


def _blocks(stacked: Floats) -> Floats:
    """Return the diagonal blocks of each matrix, those of one copy in every matrix first."""
    runs, size, _ = stacked.shape
    side = size // _COPIES
    copies = np.arange(_COPIES)
    blocks = stacked.reshape(runs, _COPIES, side, _COPIES, side)[:, copies, :, copies]
    return np.asarray(blocks.reshape(-1, side, side))


class _PairReader:
    """Two tables that are read in step: every sum is a pair of sums."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers

    def run(self, reduction: Reduction[Any]) -> Any:
        """Return what the reduction comes to over either table, group by group."""
        one, other = (reader.run(reduction) for reader in self._readers)
        return GroupParts(list(zip(one.parts, other.parts, strict=True)))


class _ListeningGroup(ListeningRows):
    """One group of one of two tables, which hears its answers."""

    def __init__(self, reader: Reader, schema: Schema, *, truth: int) -> None:
        self._reader, self._schema, self._truth = reader, schema, truth
        self.loss, self.square = 0.0, 0.0

    @property
    def denominator(self) -> int:
        """How many units of weight a row of weight 1 has."""
        return WHOLE

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return the sums of the table that answers; remember the other's."""
        found: Any = self._reader.run(Sums(self._schema, statistics))
        both: list[list[BigIntegers]] = [part.integers() for part in found]
        self._asked = list(zip(statistics, *both, strict=True))
        return both[self._truth]


class _ListeningGroups:
    """All groups of one of two tables; `loss` and `square` are of all their chains together."""

    def __init__(self, readers: Sequence[Reader], split: Schema, *, truth: int) -> None:
        self._heard: list[_ListeningGroup] = []
        inner = split.of_group()

        def make(reader: Reader) -> _ListeningGroup:
            self._heard.append(_ListeningGroup(reader, inner, truth=truth))
            return self._heard[-1]

        both, groups = _PairReader(readers), len(group_levels(split))
        self._groups = InStep(lambda _: both, split, groups, make)

    def each(self, job: Callable[[Any], Any]) -> list[Any]:
        """Run a solver on each group, all of them in step."""
        return self._groups.each(job)

    @property
    def loss(self) -> float:
        """What all groups told."""
        return sum(group.loss for group in self._heard)

    @property
    def square(self) -> float:
        """How far apart all that was asked is."""
        return sum(group.square for group in self._heard)


def group_moments(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return Analyze Gauss on the groups of two tables."""
    return GroupMoments(AnalyzeGauss(guarantee=guarantee, neighbours=neighbours))


def group_models(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return a descent for each group of two tables."""
    usual = WhitenedDescent(guarantee=guarantee, neighbours=neighbours)
    # No wide step: its clips lie beyond the rows of such a table, which so cannot move all of it.
    settings = replace(usual.settings, steps=_STEPS, plain_steps=_STEPS, wide_most=Fraction(0))
    solver = replace(usual, settings=settings)
    model = OneModel.of(read_by(_SCHEMA, "ward", "audit"), "y", ["x"], intercept=False)
    split = model.schema
    design = replace(model.design, groups=len(group_levels(split)))
    prepared = PreparedGroups(solver.prepare(design))
    readers = [_reader(table, split) for table in _pair(neighbours, 1_024)]

    def listening(truth: int) -> Any:
        return _ListeningGroups(readers, split, truth=truth)

    subject = TranscriptSubject(solver, prepared.run, listening, exact=True)
    subject.name, subject.runs = f"{solver.name} (units in groups)", _RUNS
    return subject


GROUPS: dict[str, Callable[[Guarantee, Neighbours], Subject]] = {
    "groups_of_units": group_moments,
    "groups_of_units_model": group_models,
}
