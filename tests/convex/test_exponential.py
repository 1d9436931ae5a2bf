"""The exponential mechanism: exact sums, neighbours' probabilities, and the laws that are drawn."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import sparse, stats

from dplinear.arguments import ArgumentTypeError
from dplinear.arrays import Floats
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame
from dplinear.convex.learners.contract import Task
from dplinear.convex.learners.exponential import Exponential, PreparedBall, PreparedSelection
from dplinear.convex.loss_sums import LossSum, excesses, extremes
from dplinear.convex.losses import LOSSES, HuberLoss, Loss
from dplinear.convex.sets import L1Ball, L2Ball, Polytope
from dplinear.noise import selection, simulation
from dplinear.noise.simulation import generator
from dplinear.privacy import ApproxDP, Neighbours, PureDP
from dplinear.privacy.profiles import Pure
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
FALSE_ALARM = 1e-6
FRAME = Frame(2, 1.0)


def examples(rows: Floats) -> Examples:
    """Return a table of rows that hold features, then a label, as numbers."""
    integers = np.trunc(np.asarray(rows).T * CELLS)
    return Examples(FRAME, [Block.dense(integers)] if len(rows) else [])


def adversaries(radius: float) -> Floats:
    """Return rows as long as they may be, along, against and across the corners, labels too."""
    angles = np.linspace(0, 2 * math.pi, 9)
    labels = [-1.0, -0.4, 0.0, 0.4, 1.0]
    return np.array(
        [[math.cos(a) * radius, math.sin(a) * radius, label] for a in angles for label in labels]
    )


ENDS = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, -1.0]])
ONE_SIDED = ENDS[:1]


class Asked(Exception):  # noqa: N818 - what a draw was asked for, not an error
    pass


def probabilities(learner: Exponential, public: Task, rows: Floats, patch: Any) -> Floats:
    """Return the logarithms of what each corner is drawn with, from what the draw is handed."""
    handed: list[Any] = []

    def record(qualities: Any, unit: Any, *, entropy: Any) -> int:
        handed.append((qualities, unit))
        raise Asked

    patch.setattr(selection, "draw", record)
    with pytest.raises(Asked):
        learner.prepare(public).run(examples(rows), simulation.entropy(1))
    patch.undo()
    ((qualities, unit),) = handed
    exponents = np.array([float(int(quality) * unit) for quality in qualities])
    return np.asarray(exponents - np.logaddexp.reduce(exponents))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize("name", LOSSES)
def test_no_row_changes_a_corners_chance_by_more_than_epsilon(
    name: str, radius: float, relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Exponential(guarantee=PureDP(0.8), neighbours=relation)
    public = Task(FRAME, LOSSES[name](), Image(L1Ball(2, radius)))
    rows, worst = adversaries(1.0), 0.0
    for base in (rows[:0], np.repeat(ONE_SIDED, 300, axis=0)):
        firsts = [base] if relation is ADD_REMOVE else [np.vstack([base, row]) for row in ENDS]
        for table in firsts:
            first = probabilities(learner, public, table, monkeypatch)
            for row in rows:
                second = probabilities(learner, public, np.vstack([base, row]), monkeypatch)
                worst = max(worst, float(np.abs(first - second).max()))
    assert worst <= 0.8 * (1 + 1e-9)
    # All of it is used where a table has all but settled on one corner, and rows can reach one end
    # of the losses at that corner and the other at another.
    assert worst > 0.8 * (0.97 if radius < 1 else 0.5)


def test_a_spread_without_the_clip_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label of 5, which no examples have, would show: the clip is what bounds it."""
    public = Task(FRAME, LOSSES["squared"](), Image(L1Ball(2, 1.0)))
    learner = Exponential(guarantee=PureDP(0.8))
    row = np.array([[1.0, 0.0, 5.0]])
    clipped = probabilities(learner, public, row, monkeypatch)
    even = probabilities(learner, public, row[:0], monkeypatch)
    assert np.abs(clipped - even).max() <= 0.8
    monkeypatch.setattr("dplinear.convex.loss_sums.np.clip", lambda values, *_: values)
    handed = LossSum(FRAME, public.loss, np.eye(2), 1.0, signed=True)
    (loose,) = examples(row).sums([handed])
    assert int(loose.max() - loose.min()) > 2 * handed.spread


@pytest.mark.parametrize("name", LOSSES)
def test_sums_are_the_losses_rounded_and_the_same_for_sparse_rows(name: str) -> None:
    draw = generator(51)
    loss, places = LOSSES[name](), draw.uniform(-1, 1, (2, 300))
    x = np.trunc(draw.uniform(-0.7, 0.7, (2, 40)) * CELLS)
    y = np.trunc(draw.uniform(-1, 1, 40) * CELLS)
    sums = LossSum(FRAME, loss, places, 1.5, signed=True)
    found = sums.over(x, y)
    margins = np.hstack([places, -places]).T @ x / CELLS
    exact = (loss.values(margins, y / CELLS) - loss.values(np.zeros(40), y / CELLS)).sum(axis=1)
    assert found.astype(float) * float(sums.unit) == pytest.approx(exact, abs=1e-5)
    assert np.array_equal(sums.over(sparse.csc_array(x), y), found)
    assert np.array_equal(sums.over(x[:, :17], y[:17]) + sums.over(x[:, 17:], y[17:]), found)
    assert sums.spread <= 2**30
    assert len(found) == sums.size == 600


def test_logistic_losses_are_right_to_twelve_digits() -> None:
    margins = np.array([-30.0, -3.0, -1e-3, 0.0, 0.2, 1.0, 9.0, 31.0])
    for label in (-1.0, 1.0):
        found = excesses(LOSSES["logistic"](), margins, np.full(8, label))
        exact = [float(mpmath.log((1 + mpmath.exp(-label * m)) / 2)) for m in margins]
        assert found == pytest.approx(exact, abs=2e-12)


@pytest.mark.parametrize("reach", [0.1, 0.7, 1.0, 2.5])
@pytest.mark.parametrize("loss", [*(kind() for kind in LOSSES.values()), HuberLoss(1.5)])
def test_extremes_hold_for_all_margins_and_labels(loss: Loss, reach: float) -> None:
    margins, labels = np.meshgrid(np.linspace(-reach, reach, 201), np.linspace(-1, 1, 81))
    values = loss.values(margins, labels) - loss.values(np.zeros_like(margins), labels)
    low, high = extremes(loss, reach)
    assert values.min() >= low - 1e-12
    assert values.max() <= high + 1e-12
    assert values.min() == pytest.approx(low, abs=0.01)
    assert values.max() == pytest.approx(high, abs=0.01)


def test_corners_are_drawn_with_their_chances() -> None:
    corners = np.array([[0.9, 0.0], [0.0, 0.8], [-0.5, -0.5], [0.1, 0.2]])
    public = Task(FRAME, LOSSES["huber"](), Image(Polytope(corners)))
    matrix = public.image.atoms
    assert matrix is not None
    assert matrix.matrix is not None
    points = matrix.matrix.T * matrix.size
    rows = np.array([[0.9, 0.1, 0.8], [0.2, 0.9, -0.1], [0.5, 0.5, 0.3]])
    prepared = Exponential(guarantee=PureDP(4.0)).prepare(public)
    low, high = extremes(public.loss, public.image.radius)
    losses = public.loss.values(points @ rows[:, :2].T, rows[:, 2]).sum(axis=1)
    weights = np.exp(-4.0 / (high - low) * losses)
    entropy, table = simulation.entropy(52), examples(rows)
    drawn = [prepared.run(table, entropy) for _ in range(1000)]
    index = [int(np.abs(points - one.point).sum(axis=1).argmin()) for one in drawn]
    counts = np.bincount(index, minlength=len(points))
    assert stats.chisquare(counts, 1000 * weights / weights.sum()).pvalue > FALSE_ALARM
    assert all(one.source is not None for one in drawn)


class Flat:
    """A map from R³ to the plane."""

    source, target = 3, 2
    matrix = np.array([[0.8, 0.3, -0.2], [0.1, -0.5, 0.6]])

    def forward(self, vector: Floats) -> Floats:
        return np.asarray(self.matrix @ vector)

    def adjoint(self, vector: Floats) -> Floats:
        return np.asarray(self.matrix.T @ vector)


def test_corners_of_an_image_carry_their_source() -> None:
    image = Image(L1Ball(3, 0.7), Flat())
    prepared = Exponential(guarantee=PureDP(1.0)).prepare(Task(FRAME, LOSSES["hinge"](), image))
    assert isinstance(prepared, PreparedSelection)
    found = prepared.run(examples(adversaries(0.9)), simulation.entropy(53))
    assert found.source is not None
    assert np.abs(found.source).sum() == pytest.approx(0.7)
    assert found.point == pytest.approx(image.forward(found.source))


def density(prepared: PreparedBall, image: Image, rows: Floats, axis: Floats) -> Floats:
    """Return the law on a grid: exp(−unit·Σ (⟨z, ϑ⟩ − y)²) in the image, adding up to 1."""
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    errors = points @ rows[:, :2].T - rows[:, 2]
    weights = np.exp(-prepared.unit * (errors**2).sum(axis=1))
    shape = np.eye(2) if image.map is None else Flat.matrix @ Flat.matrix.T
    base = image.base
    inside = np.einsum("ij,ij->i", points @ np.linalg.inv(shape), points) <= base.radius**2
    weights = np.where(inside, weights, 0.0)
    return np.asarray((weights / weights.sum()).reshape(len(axis), len(axis)))


@pytest.mark.parametrize("projected", [False, True])
def test_points_of_a_ball_are_drawn_with_their_density(projected: bool) -> None:
    image = Image(L2Ball(3, 1.2), Flat()) if projected else Image(L2Ball(2, 1.2))
    public = Task(FRAME, LOSSES["squared"](), image)
    prepared = Exponential(guarantee=PureDP(6.0)).prepare(public)
    assert isinstance(prepared, PreparedBall)
    rows = adversaries(0.7)[4:14]
    axis = np.linspace(-1.3, 1.3, 801)
    law = density(prepared, image, rows, axis)
    table, entropy = examples(rows), simulation.entropy(54)
    drawn = np.array([prepared.run(table, entropy).point for _ in range(300)])
    for coordinate in (0, 1):
        mass = np.cumsum(law.sum(axis=1 - coordinate))
        found = stats.kstest(drawn[:, coordinate], partial(np.interp, xp=axis, fp=mass))
        assert found.pvalue > FALSE_ALARM


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("radius", [0.4, 1.5])
def test_no_row_changes_a_density_by_more_than_epsilon(radius: float, relation: Neighbours) -> None:
    image = Image(L2Ball(2, radius))
    learner = Exponential(guarantee=PureDP(0.8), neighbours=relation)
    prepared = learner.prepare(Task(FRAME, LOSSES["squared"](), image))
    assert isinstance(prepared, PreparedBall)
    axis = np.linspace(-radius, radius, 41)
    rows, worst = adversaries(1.0), 0.0
    for base in (rows[:0], np.repeat(ONE_SIDED, 200, axis=0)):
        table = base if relation is ADD_REMOVE else np.vstack([base, ENDS[1]])
        first = density(prepared, image, table, axis)
        for row in rows:
            second = density(prepared, image, np.vstack([base, row]), axis)
            inside = (first > 0) & (second > 0)
            worst = max(worst, float(np.abs(np.log(first[inside] / second[inside])).max()))
    assert worst <= 0.8 * (1 + 1e-6)
    assert worst > 0.8 * (0.9 if radius < 1 else 0.7)


def test_sparse_examples_of_a_ball_give_the_same_draw() -> None:
    public = Task(FRAME, LOSSES["squared"](), Image(L2Ball(2)))
    prepared = Exponential(guarantee=PureDP(1.0)).prepare(public)
    rows = np.trunc(adversaries(0.9).T * CELLS)
    thin = Examples(FRAME, [Block(sparse.csc_array(rows[:2]), rows[2])])
    places = [
        prepared.run(table, simulation.entropy(55)).point
        for table in (examples(adversaries(0.9)), thin)
    ]
    assert places[0] == pytest.approx(places[1])


@pytest.mark.parametrize("radius", [1e-4, 1e-8, 1e-12, 1e-15, 1e-16, 1e-40])
def test_a_small_ball_has_no_more_than_epsilon(radius: float) -> None:
    """A row at an end of the ball, with the label 1, has losses from −(2 − r)·r to (2 + r)·r."""
    task = Task(FRAME, LOSSES["squared"](), Image(L2Ball(2, radius)))
    prepared = Exponential(guarantee=PureDP(0.8)).prepare(task)
    assert isinstance(prepared, PreparedBall)
    spent = Fraction(prepared.unit) * 4 * Fraction(radius)
    assert Fraction(0.8) * (1 - Fraction(1, 2**40)) < spent <= Fraction(0.8)


@pytest.mark.parametrize("name", ["logistic", "hinge", "huber"])
def test_margins_too_small_to_tell_losses_apart_are_refused_beforehand(name: str) -> None:
    for radius in (1e-14, 1e-20, 1e-300):
        with refused("constraint", "Exponential"):
            Exponential(guarantee=PureDP(0.8)).prepare(
                Task(FRAME, LOSSES[name](), Image(L1Ball(2, radius)))
            )


def test_what_would_need_markov_chains_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(selection, "MOST", 3)
        with refused("constraint", "Exponential", hint="drawn from exactly"):
            Exponential(guarantee=PureDP(1.0)).prepare(
                Task(FRAME, LOSSES["squared"](), Image(L1Ball(2)))
            )
    learner = Exponential(guarantee=PureDP(1.0))
    for name in ("logistic", "hinge", "huber"):
        with refused("constraint", "Exponential", hint="drawn from exactly"):
            learner.prepare(Task(FRAME, LOSSES[name](), Image(L2Ball(2))))
    wide = Frame(4096, 1.0)
    with refused("constraint", "Exponential", hint="drawn from exactly"):
        learner.prepare(Task(wide, LOSSES["squared"](), Image(L2Ball(4096))))
    with refused("guarantee", "Exponential", kind=ArgumentTypeError, hint="pure as it stands"):
        Exponential(guarantee=ApproxDP(1.0, 1e-6))
    assert learner.prepare(Task(FRAME, LOSSES["squared"](), Image(L2Ball(2)))).account.profile == (
        Pure(1.0)
    )
