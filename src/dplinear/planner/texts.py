"""Simulated tables of many features, like texts or dense, and the best model of a set for each.

A row like a text has the words that a draw by Zipf's law gives, each counted once, which share a
norm of 1 evenly. The truth is on few features, the most frequent ones.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit

from dplinear.arrays import Floats
from dplinear.convex.compression.projections import Projection
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame
from dplinear.convex.losses import Loss
from dplinear.convex.sets import ConvexSet
from dplinear.exact.row_sums import BLOCK_ROWS
from dplinear.noise import simulation

_STEPS = 400
_RAMPS = (0.2, 0.05, 0.01)  # that stand for the hinge's jump, one after the other


@dataclass(frozen=True, eq=False)
class Assumed:
    """What is assumed of a table, all of it public.

    `base` is the set C, in as many dimensions as there are features; `nonzeros` about how many of
    them a row has (None: all, in a random direction); `relevant` how many the truth is on, the
    nearest point of C to ±1, in turns, on that many, far out; `spread` the standard deviation of
    labels around it, for losses that are not of classes, whose labels come from the logistic model.
    """

    base: ConvexSet
    loss: Loss
    nonzeros: float | None = 50.0
    relevant: int = 20
    spread: float = 0.2

    @property
    def truth(self) -> Floats:
        """The model that labels come from."""
        features = self.base.dimension
        count = min(self.relevant, features)
        far = np.zeros(features)
        far[:count] = np.where(np.arange(count) % 2, -1.0, 1.0)
        return self.base.project(far * self.base.radius / math.sqrt(count))

    @property
    def usual(self) -> Floats:
        """The model that needs no data: the point of C that is nearest to 0."""
        return self.base.project(np.zeros(self.base.dimension))


@dataclass(frozen=True, eq=False)
class SimulatedTable:
    """Rows of norm at most 1, dense or sparse, a label within ±1 for each, and the least risk in C.

    `least` is the smallest mean loss in the set, or a little above, as steps towards it end.
    """

    assumed: Assumed
    rows: Any
    labels: Floats
    least: float

    @classmethod
    def draw(cls, assumed: Assumed, rows: int, seed: int) -> "SimulatedTable":
        """Draw a table."""
        source, features = simulation.generator(seed), assumed.base.dimension
        if assumed.nonzeros is None:
            cells = source.standard_normal((rows, features))
            cells /= np.linalg.norm(cells, axis=1)[:, None]
        else:
            cells = draw_texts(source, rows, features, words_for(assumed.nonzeros, features))
        margins = np.asarray(cells @ assumed.truth) * source.choice([-1.0, 1.0])
        if assumed.loss.classes:
            labels = np.where(source.random(rows) < expit(margins), 1.0, -1.0)
        else:
            noise = assumed.spread * source.standard_normal(rows)
            labels = np.clip(margins + noise, -1.0, 1.0)
        least = least_risk(cells, labels, assumed.loss, assumed.base)
        return cls(assumed, cells, labels, least)

    def excess(self, model: Floats) -> float:
        """Return the mean loss beyond the least one in the set."""
        return mean_loss(self.rows, self.labels, self.assumed.loss, model) - self.least

    def examples(self, projection: Projection | None, clip: float) -> Examples:
        """Return the table as learners see it: integers, projected if at all, and then clipped."""
        frame = frame_of(self.assumed.base, projection, clip)
        labels = np.rint(self.labels * CELLS)
        blocks = []
        for at in range(0, len(labels), BLOCK_ROWS):
            # Towards 0, so that no norm grows.
            part: Any = self.rows[at : at + BLOCK_ROWS].T * (CELLS * (1 - 2.0**-40))
            features = part.trunc().tocsc() if _is_sparse(part) else np.trunc(part)
            own = labels[at : at + BLOCK_ROWS]
            if projection is not None:
                features = projection.project(features, frame.norm)
            if _is_sparse(features):
                blocks.append(Block(features, own))
            else:
                blocks.append(Block.dense(np.vstack((features, own))))
        return Examples(frame, blocks)


def frame_of(base: ConvexSet, projection: Projection | None, clip: float) -> Frame:
    """Return what is public about examples: rows of norm 1, or projected ones of norm `clip`."""
    return Frame(base.dimension, 1.0) if projection is None else Frame(projection.target, clip)


def words_for(different: float, features: int) -> float:
    """Return how many words a text has on average that has so many different ones.

    The number of words is a Poisson one, so that features are there or not independently.
    """
    probabilities = 1.0 / np.arange(1, features + 1)
    probabilities /= probabilities.sum()

    def short(log_words: float) -> float:
        return float(-np.expm1(-math.exp(log_words) * probabilities).sum() - different)

    most = math.log(-math.log1p(-different / features) / float(probabilities[-1])) + 1.0
    return math.exp(brentq(short, math.log(different) - 1.0, most))


def draw_texts(source: simulation.Generator, rows: int, features: int, words: float) -> Any:
    """Draw sparse rows of norm 1: words by Zipf's law, each counted once."""
    popularity = np.cumsum(1.0 / np.arange(1, features + 1))
    lengths = np.maximum(source.poisson(words, rows), 1)
    drawn = source.random(int(lengths.sum())) * popularity[-1]
    found = np.minimum(np.searchsorted(popularity, drawn), features - 1)
    indices = np.repeat(np.arange(rows), lengths)
    shape = (rows, features)
    counted = sparse.csr_array((np.ones(len(found)), (indices, found)), shape=shape)
    counted.sum_duplicates()
    different = np.diff(counted.indptr)
    counted.data = np.repeat(1.0 / np.sqrt(different), different)
    return counted


def mean_loss(rows: Any, labels: Floats, loss: Loss, model: Floats) -> float:
    """Return the mean loss of a model."""
    return float(loss.values(np.asarray(rows @ model), labels).mean())


def least_risk(rows: Any, labels: Floats, loss: Loss, base: ConvexSet) -> float:
    """Return the least mean loss in the set, without privacy, by accelerated gradients."""
    turned = rows.T.tocsr() if _is_sparse(rows) else rows.T
    curvature = _curvature(rows, turned)
    model, best = base.project(np.zeros(base.dimension)), math.inf
    for ramp in _RAMPS if math.isinf(loss.smoothness) else (None,):
        smoothness = loss.smoothness if ramp is None else 1 / ramp
        length = 1 / (1.01 * smoothness * curvature)
        here, ahead, momentum = model, model, 1.0
        for _ in range(_STEPS):
            slopes = _slopes(loss, np.asarray(rows @ ahead), labels, ramp)
            there = base.project(ahead - length * np.asarray(turned @ slopes) / len(labels))
            if float((ahead - there) @ (there - here)) > 0:
                momentum = 1.0
            following = (1 + math.sqrt(1 + 4 * momentum * momentum)) / 2
            ahead = there + (momentum - 1) / following * (there - here)
            here, momentum = there, following
        model = here
        best = min(best, mean_loss(rows, labels, loss, model))
    return best


def _is_sparse(rows: object) -> bool:
    return bool(sparse.issparse(rows))


def _slopes(loss: Loss, margins: Floats, labels: Floats, ramp: float | None) -> Floats:
    """Return the loss's slopes; the hinge's rise over a ramp instead of jumping."""
    if ramp is None:
        return loss.slopes(margins, labels)
    return np.asarray(-labels * np.clip((1 - labels * margins) / ramp, 0.0, 1.0))


def _curvature(rows: Any, turned: Any) -> float:
    """Return about the largest eigenvalue of the rows' second moments."""
    direction, length = np.ones(rows.shape[1]), 1.0
    for _ in range(30):
        direction = np.asarray(turned @ (rows @ direction)) / rows.shape[0]
        length = float(np.linalg.norm(direction))
        direction /= length
    return length
