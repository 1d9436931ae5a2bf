"""Tables seen through windows, transcripts of CoinPress, and the algorithm in plain NumPy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from dplinear.coinpress import centred, methods
from dplinear.curator.passes import exact_sums
from dplinear.curator.sources import open_reader
from dplinear.curator.windows import Windowed
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, Neighbours
from dplinear.schema import Schema
from exact.oracles import square

SILENT = ZCDP(2.0**39)  # noise of a millionth of a sensitivity: as good as none
ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
Array = Any


def schema_of(columns: int, bound: float) -> Schema:
    return Schema({f"c{place}": (-bound, bound) for place in range(columns)})


def windowed(rows: Array, bound: float) -> Windowed:
    """A table whose columns all have the bounds ±bound."""

    def opened(schema: Schema) -> Any:
        return open_reader(rows, schema, threads=1, again=True)

    return Windowed(opened, schema_of(rows.shape[1], bound))


def chain_of(
    table: Windowed, guarantee: Any = None, relation: Neighbours = REPLACE, seed: int = 0
) -> NoisySums:
    asked = ZCDP(0.5) if guarantee is None else guarantee
    budget = Budget.of(asked, 10**7, relation, "a test")
    return NoisySums(table.through(table.low, table.high), budget, simulation.entropy(seed))


def rotated(seed: int, rows: int, condition: float, columns: int) -> tuple[Array, Array]:
    """Normal rows around (1, 2, …), and a whitening of twice their population's covariance."""
    random = simulation.generator(seed)
    turn, _ = np.linalg.qr(random.normal(size=(columns, columns)))
    lengths = np.sqrt(np.geomspace(1.0, condition, columns))
    points = random.normal(size=(rows, columns)) * lengths @ turn.T
    return points + np.arange(1, columns + 1), turn


# CoinPress in plain NumPy: rows on the left, A on their right, as the paper has them


def shortened(images: Array, length: float) -> Array:
    norms = np.sqrt((images**2).sum(axis=1))
    return images * np.minimum(1.0, length / np.maximum(norms, 1e-300))[:, None]


def paper_length(columns: int, beta: float) -> float:
    extra = -math.log(beta)
    return math.sqrt(columns + 2 * math.sqrt(columns * extra) + 2 * extra)


def plain_covariance(
    rows: Array, start: Array, centre: Array, steps: int, *, reference: bool = False
) -> Array:
    """The covariance without noise, after so many steps, centred as we go.

    `reference`: whitenings multiplied in the order of the public reference code, and its last line.
    """
    n, d = rows.shape
    ridge = math.sqrt(d / n) + d / n / 2
    whitening, middle = start, centre
    for step in range(steps):
        images = shortened((rows - middle) @ whitening, paper_length(d, 0.1))
        own = np.cov(images, rowvar=False, bias=True).reshape(d, d)
        back = np.linalg.inv(whitening)
        if step == steps - 1:
            break
        values, vectors = np.linalg.eigh(own + ridge * np.eye(d))
        rounder = vectors @ np.diag(values**-0.5) @ vectors.T
        middle = middle + images.mean(axis=0) @ back
        whitening = rounder @ whitening if reference else whitening @ rounder
    return back @ own @ back if reference else back.T @ own @ back


# Transcripts


@dataclass
class Transcript:
    """What was asked, under which schema, and what was told."""

    asked: list[tuple[list[Query], Schema]] = field(default_factory=list)
    told: list[list[Answer]] = field(default_factory=list)
    outcome: Any = None
    chain: Any = None


def recorded(
    method: Any, rows: Array, bound: float, seed: int, script: Sequence[list[Answer]] | None = None
) -> Transcript:
    """Run a method; with a script, answer what it asks from that instead of from the rows."""
    kept = Transcript()

    class Recording(NoisySums):
        def ask(self, asked: Sequence[Query], rows: SummableTable | None = None) -> list[Answer]:
            view: Any = self._rows if rows is None else rows
            kept.asked.append((list(asked), view.schema))
            told = super().ask(asked, rows)
            kept.told.append(told if script is None else script[len(kept.told)])
            kept.chain = self
            return kept.told[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(methods, "NoisySums", Recording)
        patch.setattr(centred, "NoisySums", Recording)
        ready = method.prepare(rows.shape[1])
        kept.outcome = ready.run(windowed(rows, bound), simulation.entropy(seed))
    return kept


def apart(
    transcript: Transcript, pairs: Sequence[tuple[Array, Array]]
) -> tuple[Fraction, Fraction]:
    """The farthest that any sum is between two tables, of its sensitivity; and Σ Δ²/σ², of μ²."""
    budget = transcript.chain.budget
    asked = [query for queries, _ in transcript.asked for query in queries]
    limits = [query.statistic.sensitivity_squared(budget.neighbours) for query in asked]
    scales = [_Noise.of(query, budget).scale for query in asked]
    known: dict[int, list[Any]] = {}

    def sums(rows: Array) -> list[Any]:
        if id(rows) not in known:
            passes = [
                exact_sums(rows, schema, [query.statistic for query in queries], threads=1)
                for queries, schema in transcript.asked
            ]
            known[id(rows)] = [total for found in passes for total in found]
        return known[id(rows)]

    farthest = spent = Fraction(0)
    for one, other in pairs:
        total = Fraction(0)
        for first, second, limit, scale in zip(sums(one), sums(other), limits, scales, strict=True):
            moved = square(first - second)
            assert limit or not moved
            if limit and scale and moved:
                farthest = max(farthest, Fraction(moved, limit))
                changed = first != second  # of a histogram's bins, very few
                gap = _scale(first[changed], scale) - _scale(second[changed], scale)
                total += square(gap) / VARIANCE
        spent = max(spent, total / budget.square)
    return farthest, spent
