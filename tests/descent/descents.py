"""Designs, tables and transcripts for tests of whole descents."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.adaptive.noisy_sums import (
    VARIANCE,
    Answer,
    Budget,
    NoisySums,
    Query,
    SummableTable,
    _Noise,
    _scale,
)
from dplinear.arrays import Floats
from dplinear.descent import common as descent
from dplinear.descent.common import PreparedDescent
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact.block_moments import design_moments
from dplinear.exact.design import Design
from dplinear.exact.row_sums import RowSum
from dplinear.exact.shape import Shape
from dplinear.mechanisms.model import Solution
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, Neighbours
from exact.oracles import square

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
BLOCK = 4096


def shape_of(dimension: int) -> Shape:
    """The finest grid on which rows of so many cells need no clipping."""
    for exponent in range(26, 0, -1):
        cells = math.isqrt(4**exponent // dimension)
        if cells**2 <= 2**53 // BLOCK:
            return Shape(dimension, cells, exponent)
    raise AssertionError(dimension)


def design(features: int, *, intercept: bool = True) -> Design:
    """The constant first, if any, then the features, then the target."""
    size = features + intercept
    shape = shape_of(size + 1)
    whole = shape.steps_per_unit**2
    return Design(shape, tuple(range(size)), size, size * whole, whole, intercept, (False,) * size)


def integer_rows(of: Design, features: Floats, target: Floats) -> Floats:
    """Cells in [−1, 1] as the pass rounds them, a row in each column."""
    cells = [np.ones((1, len(target)))] if of.intercept else []
    cells += [np.atleast_2d(features), target[None]]
    return np.asarray(np.rint(np.clip(np.concatenate(cells), -1, 1) * of.shape.steps_per_unit))


def normal_cells(random: Any, count: int, features: int, noise: float = 0.5) -> tuple[Any, Any]:
    """Normal features and errors, with bounds at four standard deviations."""
    x = random.normal(size=(features, count))
    y = x.sum(axis=0) / math.sqrt(max(features, 1)) + noise * random.normal(size=count)
    return x / 4, y / (4 * math.sqrt(1 + noise**2))


def normal_rows(seed: int, of: Design, count: int, noise: float = 0.5) -> Floats:
    features = of.dimension - of.intercept
    return integer_rows(of, *normal_cells(simulation.generator(seed), count, features, noise))


def heavy_rows(seed: int, of: Design, count: int) -> Floats:
    """Rows that are long in all directions at once, and errors with tails like theirs."""
    random, features = simulation.generator(seed), of.dimension - of.intercept
    x = random.normal(size=(features, count)) * np.sqrt(2 / random.chisquare(4, count))
    y = x.sum(axis=0) / math.sqrt(features) + random.standard_t(4, count) / math.sqrt(2)
    return integer_rows(of, x / 4, y / (4 * math.sqrt(2)))


def rare_rows(seed: int, of: Design, count: int) -> Floats:
    """A label that one row in seventy has: those that are farthest out in one feature."""
    random, features = simulation.generator(seed), of.dimension - of.intercept
    x = random.normal(size=(features, count))
    return integer_rows(of, x / 4, np.where(x[0] > 2.2, 0.9, -0.9))


class Rows:
    """An integer table in memory."""

    denominator = 1

    def __init__(self, rows: Floats, block: int = BLOCK) -> None:
        self.rows, self.block = rows, block

    def moments(self) -> Any:
        raise AssertionError("A descent asks for sums alone.")

    def bounded_moments(self, design: Design) -> Any:
        return design_moments(self, design)

    def sums(self, asked: Sequence[RowSum]) -> list[Any]:
        return [self.exact(statistic) for statistic in asked]

    def exact(self, statistic: RowSum) -> Any:
        blocks = range(0, max(self.rows.shape[1], 1), self.block)
        return sum(statistic.sum(self.rows[:, i : i + self.block]).astype(object) for i in blocks)


@dataclass
class Transcript:
    """What a descent asked, what it was told, and what it had spent in the end."""

    queries: list[list[Query]]
    answers: list[list[Answer]]
    solution: Solution
    chain: NoisySums

    @property
    def asked(self) -> list[Query]:
        return [query for queries in self.queries for query in queries]

    @property
    def told(self) -> list[Answer]:
        return [answer for answers in self.answers for answer in answers]


def prepared(
    of: Design, guarantee: Any = None, relation: Neighbours = ADD_REMOVE
) -> PreparedDescent:
    asked = ApproxDP(1.0, 1e-6) if guarantee is None else guarantee
    return WhitenedDescent(guarantee=asked, neighbours=relation).prepare(of)


def recorded(
    ready: Any, rows: Floats, seed: int, script: Sequence[list[Answer]] | None = None
) -> Transcript:
    """Run a descent; with a script, answer what it asks from that instead of from the rows."""
    queries: list[list[Query]] = []
    answers: list[list[Answer]] = []
    made: list[NoisySums] = []

    class Recording(NoisySums):
        def ask(self, asked: Sequence[Query], rows: SummableTable | None = None) -> list[Answer]:
            queries.append(list(asked))
            told = super().ask(asked, rows)
            answers.append(told if script is None else script[len(answers)])
            return answers[-1]

    def chain(*arguments: Any) -> NoisySums:
        made.append(Recording(*arguments))
        return made[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descent, "NoisySums", chain)
        solution = ready.run(Rows(rows), simulation.entropy(seed))
    return Transcript(queries, answers, solution, made[0])


def spelled(query: Query) -> tuple[Any, ...]:
    """Everything about a query, for comparison."""
    return type(query.statistic), query.share, facts_of(query.statistic)


def facts_of(statistic: RowSum) -> list[tuple[str, Any]]:
    """Everything that a statistic holds; one that it is made of, by what that holds."""
    facts = dict(vars(statistic))
    for name, value in facts.items():
        if isinstance(value, RowSum):
            facts[name] = facts_of(value)
        elif isinstance(value, np.ndarray):
            facts[name] = value.tobytes()
    return sorted(facts.items())


@dataclass(frozen=True)
class Replayed:
    """How far the sums of a transcript are apart for two tables.

    `sums` are squared distances, of what each query says is possible; `spent` is Σ Δ²/σ², of μ².
    """

    sums: list[Fraction]
    spent: Fraction

    @property
    def kept(self) -> bool:
        return max(self.sums) <= 1 and self.spent <= 1


@dataclass(frozen=True)
class _Asked:
    """The sums of one table, as they are and at the scales in use."""

    exact: list[Any]
    scaled: list[Any]


def replayed(
    asked: Sequence[Query], of: Budget, pairs: Sequence[tuple[Floats, Floats]]
) -> Replayed:
    """Ask the same of pairs of tables, on exact integers; the farthest that any two are apart."""
    most = [query.statistic.sensitivity_squared(of.neighbours) for query in asked]
    scales = [_Noise.of(query, of).scale for query in asked]
    known: dict[int, _Asked] = {}

    def sums(table: Floats) -> _Asked:
        if id(table) not in known:
            exact = Rows(table).sums([query.statistic for query in asked])
            both = zip(exact, scales, strict=True)
            scaled = [_scale(total, scale) for total, scale in both if scale]
            known[id(table)] = _Asked(exact, scaled)
        return known[id(table)]

    apart, spent = [Fraction(0)] * len(asked), Fraction(0)
    for one, other in pairs:
        first, second = sums(one), sums(other)
        for place, limit in enumerate(most):
            moved = square(first.exact[place] - second.exact[place])
            of_limit = Fraction(moved, limit) if limit else Fraction(2 * bool(moved))
            apart[place] = max(apart[place], of_limit)
        moves = (square(a - b) for a, b in zip(first.scaled, second.scaled, strict=True))
        spent = max(spent, sum(moves) / VARIANCE / of.square)
    return Replayed(apart, spent)


def loss(transcript: Transcript, one: Floats, other: Floats) -> float:
    """ln of the ratio of likelihoods of all answers, from their stated noise."""
    total = 0.0
    for query, answer in zip(transcript.asked, transcript.told, strict=True):
        if not answer.sigma:
            continue
        unit, shape = float(query.statistic.unit), answer.values.shape
        weight = np.ones(shape)
        if query.statistic.symmetric:
            weight = np.triu(2 * weight) - np.eye(len(weight))
        squares = [
            float((weight * (answer.values - _cells(table, query, unit).reshape(shape)) ** 2).sum())
            for table in (one, other)
        ]
        total += (squares[1] - squares[0]) / (2 * answer.sigma**2)
    return total


def _cells(rows: Floats, query: Query, unit: float) -> Any:
    return np.asarray(Rows(rows).exact(query.statistic), float) * unit
