"""Pairs of tables for methods made of noisy sums: descents, CoinPress, bounds, learners.

A row moves all that is asked by as much as is paid for if it is long, contradicts what was learnt,
and lies where nobody looks. The pairs here do so at (nearly) every step, but for the methods and
relations of `_PARTIAL`, where what one sum needs another forbids: a replaced row must turn round
for a gradient and by a right angle for a Gram matrix, and a logistic model cannot be as wrong about
two rows as about one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit.subjects.contract import Subject
from dplinear.audit.subjects.transcripts import (
    Rows,
    TranscriptSubject,
    Window,
    overheard,
    overheard_windows,
)
from dplinear.coinpress.bounds import Bounds
from dplinear.coinpress.centred import CentredCovariance
from dplinear.coinpress.methods import CoinPress, CoinPressCovariance, CoinPressMean
from dplinear.coinpress.regression import CoinPressRegression
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame
from dplinear.convex.learners.contract import Task
from dplinear.convex.learners.frank_wolfe import FrankWolfe
from dplinear.convex.learners.mirror_descent import MirrorDescent
from dplinear.convex.learners.noisy_gradient import NoisyGradient
from dplinear.convex.losses import SquaredLoss
from dplinear.convex.sets import L1Ball, L2Ball
from dplinear.descent.common import Descent
from dplinear.descent.huber import HuberDescent
from dplinear.descent.logistic import LogisticDescent
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact.design import Design
from dplinear.exact.grid import plain_shape
from dplinear.mechanisms.model import ModelMechanism
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours

_STEPS = 3  # of every descent: more take longer, and tell the same
_FAR = 1e3  # the bounds of columns, in standard deviations
_FEATURES = 4  # so that a descent of so few rows buys no Gram matrix
_PARTIAL = {
    ("logistic_descent", Neighbours.REPLACE),
    ("coinpress", Neighbours.REPLACE),
    ("centred_covariance", Neighbours.REPLACE),
}


def _exact(name: str, neighbours: Neighbours) -> bool:
    return (name, neighbours) not in _PARTIAL


def design_of(features: int) -> Design:
    """Return a regression on so many features, without an intercept, on the finest grid."""
    shape = plain_shape(features + 1)
    whole = shape.unit
    indices, flags = tuple(range(features)), (False,) * features
    return Design(
        shape, indices, features, features * whole, whole, intercept=False, indicators=flags
    )


def _solver_subject(solver: ModelMechanism, design: Design, one: Floats, other: Floats) -> Subject:
    """Return a solver on two tables of cells, a row in each line."""
    tables = [Rows(np.rint(table.T * design.shape.steps_per_unit)) for table in (one, other)]
    prepared = solver.prepare(design)
    exact = _exact(solver.name, solver.neighbours)
    return TranscriptSubject(solver, prepared.run, overheard(*tables), exact=exact)


def descent(kind: type[Descent]) -> Callable[[Guarantee, Neighbours], Subject]:
    """Return how a descent is audited: a row of full length comes or goes, or is mirrored."""

    def make(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
        usual = kind(guarantee=guarantee, neighbours=neighbours)
        settings = replace(usual.settings, steps=_STEPS, plain_steps=_STEPS)
        solver = replace(usual, settings=settings)
        if neighbours is Neighbours.REPLACE:
            row = np.ones((1, _FEATURES + 1))
            mirrored = np.append(-row[:, :-1], [[1.0]], axis=1)
            return _solver_subject(solver, design_of(_FEATURES), row, mirrored)
        # A logistic model soon believes a single row, and then it pulls no more.
        rows = np.tile([[1.0, -1.0]], (20 if kind is LogisticDescent else 0, 1))
        return _solver_subject(solver, design_of(1), np.vstack((rows, [[1.0, 1.0]])), rows)

    return make


def coinpress(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return CoinPress's regression: rows near the middle, and one at the bounds, or mirrored."""
    solver = CoinPressRegression(guarantee=guarantee, neighbours=neighbours, steps=_STEPS)
    near = np.tile([[0.02, 0.02], [-0.02, -0.02]], (15, 1))
    far = np.vstack((near, [[1.0, 1.0]]))
    replaced = neighbours is Neighbours.REPLACE
    return _solver_subject(
        solver, design_of(1), far, np.vstack((near, [[-1.0, 1.0]])) if replaced else near
    )


def moments(
    kind: type[CoinPressMean | CoinPressCovariance],
) -> Callable[[Guarantee, Neighbours], Subject]:
    """Return CoinPress's mean, or covariance: a row in a corner; opposite, or at a right angle."""

    def make(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
        middle = kind is CoinPressCovariance
        method: CoinPress[Any] = kind(
            guarantee=guarantee, neighbours=neighbours, scale=1.0, steps=2
        )
        if isinstance(method, CoinPressCovariance):
            method = replace(method, centred=True)
        corner = np.array([[_FAR], [_FAR]])
        turned = corner * [[1.0], [-1.0]] if middle else -corner
        near = np.tile([[1.0, -1.0, 1.0, -1.0], [1.0, -1.0, -1.0, 1.0]], 10)
        ends = np.full(2, -_FAR), np.full(2, _FAR)
        rest = np.hstack((near, turned)) if neighbours is Neighbours.REPLACE else near
        pair = Window(np.hstack((near, corner)), *ends), Window(rest, *ends)
        prepared = method.prepare(2)
        return TranscriptSubject(method, prepared.run, overheard_windows(*pair), exact=True)

    return make


def centred(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return second moments around a centre: rows near it, and one in a corner, or in another.

    Seen from the middle, corners are at a right angle. So a replaced row moves the matrix as far as
    it can, and the sum half as far in square; to move lengths it would have to be a short one.
    """
    method = CentredCovariance(guarantee=guarantee, neighbours=neighbours)
    corner = np.array([[_FAR], [_FAR]])
    near = np.tile([[1.0, -1.0, 1.0, -1.0], [1.0, -1.0, -1.0, 1.0]], 10)
    replaced = neighbours is Neighbours.REPLACE
    rest = np.hstack((near, corner * [[1.0], [-1.0]])) if replaced else near
    ends = np.full(2, -_FAR), np.full(2, _FAR)
    pair = Window(np.hstack((near, corner)), *ends), Window(rest, *ends)
    exact = _exact(method.name, neighbours)
    run = method.prepare(2).run
    return TranscriptSubject(method, run, overheard_windows(*pair), exact=exact)


def bounds(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
    """Return the bounds of two columns: a row, its opposite or nothing."""
    method = Bounds(guarantee=guarantee, neighbours=neighbours)
    ends = np.full(2, -_FAR), np.full(2, _FAR)
    row = np.full((2, 1), 0.9 * _FAR)
    rest = -row if neighbours is Neighbours.REPLACE else row[:, :0]
    pair = Window(row, *ends), Window(rest, *ends)
    prepared = method.prepare(2)
    return TranscriptSubject(method, prepared.run, overheard_windows(*pair), exact=True)


def learner(
    kind: type[NoisyGradient | MirrorDescent | FrankWolfe],
) -> Callable[[Guarantee, Neighbours], Subject]:
    """Return a learner by noisy gradients: a row that no model of the set can fit, or mirrored."""

    def make(guarantee: Guarantee, neighbours: Neighbours) -> Subject:
        # Margins within ±1/2 leave slopes of 1 and more, which are clipped to 1/2.
        method = kind(guarantee=guarantee, neighbours=neighbours, steps=_STEPS, slope=0.5)
        frame = Frame(1, 1.0)
        image = Image(L2Ball(1, 0.5) if kind is FrankWolfe else L1Ball(1, 0.5))
        prepared = method.prepare(Task(frame, SquaredLoss(), image, rows=10))
        row = np.array([[1.0], [-1.0]]) * CELLS
        rest = row * [[-1.0], [1.0]] if neighbours is Neighbours.REPLACE else row[:, :0]
        tables = [Examples(frame, [Block.dense(rows)]) for rows in (row, rest)]
        return TranscriptSubject(method, prepared.run, overheard(*tables), exact=True)

    return make


SUBJECTS: dict[str, Callable[[Guarantee, Neighbours], Subject]] = {
    "whitened_descent": descent(WhitenedDescent),
    "huber_descent": descent(HuberDescent),
    "logistic_descent": descent(LogisticDescent),
    "coinpress": coinpress,
    "coinpress_mean": moments(CoinPressMean),
    "coinpress_covariance": moments(CoinPressCovariance),
    "centred_covariance": centred,
    "suggest_bounds": bounds,
    "noisy_gradient": learner(NoisyGradient),
    "mirror_descent": learner(MirrorDescent),
    "frank_wolfe": learner(FrankWolfe),
}
