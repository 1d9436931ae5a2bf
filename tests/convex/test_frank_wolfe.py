"""Frank-Wolfe: exact odds of every path on neighbours, planted bugs, limits, budgets, refusals."""

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dplinear.adaptive.noisy_sums import NoisySums
from dplinear.arguments import ArgumentTypeError
from dplinear.convex import atom_scores
from dplinear.convex.cell_sums import CellSlopeSum
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS
from dplinear.convex.examples import Frame
from dplinear.convex.learners.contract import Task
from dplinear.convex.learners.frank_wolfe import FrankWolfe, PreparedSelections
from dplinear.convex.sets import L1Ball, Polytope, Simplex
from dplinear.noise import selection, simulation
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP, selections
from refusals import refused

from .learning import LOSSES, Matrix, Recorded, made, rows_of, shortfall, task_of, with_rows

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
EPSILON, STEPS = 1.2, 3
PURE = PureDP(EPSILON)


def odds(prepared: PreparedSelections, rows: Any, choices: int, patch: Any) -> dict[Any, Any]:
    """Return the exact logarithm of the probability of every path of choices.

    Choices are forced, one path after the other; what the learner asked for each of them, integer
    qualities and a rational unit, says how likely that choice was.
    """
    examples, found, real = with_rows(prepared.task.frame, rows), {}, selection.draw
    for path in itertools.product(range(choices), repeat=prepared.steps):
        forced, total = iter(path), mpmath.mpf(0)

        def draw(qualities: Any, unit: Fraction, *, entropy: Any) -> int:
            nonlocal total
            assert entropy is None
            chosen = next(forced)  # noqa: B023 - used up within this path
            rate = mpmath.mpf(unit.numerator) / unit.denominator
            exponents = [rate * int(quality) for quality in qualities]
            most = max(exponents)
            whole = mpmath.log(mpmath.fsum(mpmath.exp(e - most) for e in exponents)) + most
            total += exponents[chosen] - whole
            return int(chosen)

        patch.setattr(selection, "draw", draw)
        prepared.run(examples, None)  # type: ignore[arg-type]  # nothing else draws
        found[path] = total
    patch.setattr(selection, "draw", real)
    return found


SETS = {
    "l1": (Image(L1Ball(2, 1.0)), 4),
    "mapped l1": (Image(L1Ball(2, 1.0), Matrix(np.array([[1.0, 0.3], [-0.2, 0.8]]))), 4),
    "simplex": (Image(Simplex(3, 1.0)), 3),
    "polytope": (Image(Polytope(np.array([[1.0, 0.0], [-0.6, 0.5], [-0.6, -0.5]]))), 3),
}


def pulls(image: Image) -> tuple[Any, Any]:
    """Return rows that pull to one extreme point with all their might, and to its opposite."""
    atoms = image.atoms
    assert atoms is not None
    first = atoms.columns([0])[:, 0]
    other = atoms.columns([atoms.count if atoms.signed else 1])[:, 0]
    way = (first - other) / np.linalg.norm(first - other)
    cells = np.trunc(way * CELLS * (1 - 2.0**-40))
    return np.append(cells, -CELLS)[:, None], np.append(cells, CELLS)[:, None]


def worst(name: str, relation: Neighbours, patch: Any, cell: float | None = None) -> float:
    """Return the largest log-likelihood ratio over paths, for neighbours that pull hard."""
    image, choices = SETS[name]
    # So small a slope is clipped wherever the steps go: every row pulls with the same might.
    task = Task(Frame(image.dimension, 1.0), LOSSES["squared"], image)
    learner = FrankWolfe(guarantee=PURE, neighbours=relation, steps=STEPS, slope=0.05, cell=cell)
    prepared = learner.prepare(task)
    assert isinstance(prepared, PreparedSelections)
    away, towards = pulls(image)
    base = np.repeat(away, 60, axis=1)
    table = base if relation is ADD_REMOVE else np.column_stack((base, away))
    with_row = odds(prepared, np.column_stack((base, towards)), choices, patch)
    without = odds(prepared, table, choices, patch)
    return max(abs(float(with_row[path] - without[path])) for path in with_row)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("name", SETS)
def test_no_path_is_likelier_by_more_than_epsilon(
    name: str, relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = worst(name, relation, monkeypatch)
    assert largest <= EPSILON
    assert largest >= 0.6 * EPSILON  # and the neighbours are such as to show it


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("name", ["l1", "simplex"])
def test_clipped_cells_keep_epsilon_with_as_much_less_noise(
    name: str, relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = worst(name, relation, monkeypatch, cell=0.1)
    assert 0.6 * EPSILON <= largest <= EPSILON


def test_cells_that_are_not_clipped_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CellSlopeSum, "_clip", lambda _self, features: features)
    assert worst("l1", ADD_REMOVE, monkeypatch, cell=0.1) > EPSILON


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_a_sensitivity_halved_by_mistake_is_seen(
    relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = atom_scores.AtomScores.__post_init__

    def halved(self: Any) -> None:
        real(self)
        self._set(range=self.range // 2, replaced_range=self.replaced_range // 2)

    monkeypatch.setattr(atom_scores.AtomScores, "__post_init__", halved)
    assert worst("l1", relation, monkeypatch) > EPSILON


def test_an_epsilon_that_is_not_divided_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def undivided(guarantee: Any, count: int) -> Fraction:
        assert count == STEPS
        return Fraction(guarantee.epsilon)

    monkeypatch.setattr(selections, "range_of", undivided)
    assert worst("l1", ADD_REMOVE, monkeypatch) > EPSILON


def test_a_replaced_row_counted_once_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = atom_scores.AtomScores.__post_init__

    def single(self: Any) -> None:
        real(self)
        self._set(replaced_range=self.range)

    monkeypatch.setattr(atom_scores.AtomScores, "__post_init__", single)
    assert worst("simplex", REPLACE, monkeypatch) > EPSILON


@pytest.mark.parametrize("guarantee", [ZCDP(0.02), ApproxDP(1, 1e-6), PureDP(0.5)])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_what_is_promised_adds_up(guarantee: Any, relation: Neighbours) -> None:
    prepared = FrankWolfe(guarantee=guarantee, neighbours=relation, steps=7).prepare(task_of())
    assert isinstance(prepared, PreparedSelections)
    account, each = prepared.account, prepared.epsilon
    assert account.asked == account.holds == guarantee
    assert account.profile is not None
    assert account.profile.neighbours is relation
    if isinstance(guarantee, ZCDP):
        assert 7 * each**2 / 8 <= Fraction(guarantee.rho)
    if isinstance(guarantee, ApproxDP):
        assert account.profile.delta(1.0) <= 1e-6
    if isinstance(guarantee, PureDP):
        assert 7 * each == Fraction(0.5)
        assert account.profile.epsilon(0.0) == 0.5


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("target", [None, 4])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_sums_that_are_asked_move_within_their_bounds(
    loss: str, target: int | None, relation: Neighbours
) -> None:
    task = task_of("l1", loss, 6, target, reach=1.3)
    examples, _, _ = made(task, 40)
    recorded = Recorded(examples)
    learner = FrankWolfe(guarantee=PureDP(3), neighbours=relation, steps=6)
    learner.prepare(task).run(recorded, simulation.entropy(1))
    assert len(recorded.asked) == 6
    rows = rows_of(examples)
    far = np.zeros((len(rows), 4))
    far[0, :2], far[1, 2:] = task.frame.norm, -task.frame.norm
    far[-1] = [CELLS, -CELLS, CELLS, -CELLS]
    for statistic in recorded.asked:
        most, largest = statistic.sensitivity_squared(relation), 0
        tables = [np.column_stack((rows, row)) for row in far.T]
        pairs = [(rows, table) for table in tables]
        if relation is REPLACE:
            pairs = list(itertools.combinations(tables, 2))
        for one, other in pairs:
            (first,) = with_rows(task.frame, one).sums([statistic])
            (second,) = with_rows(task.frame, other, block=7).sums([statistic])
            moved = sum(int(a - b) ** 2 for a, b in zip(first, second, strict=True))
            largest = max(largest, moved)
        assert largest <= most
        assert largest >= most // 16


@pytest.mark.parametrize("kind", ["l1", "simplex", "polytope", "l2", "groups", "box"])
@pytest.mark.parametrize(("loss", "target"), [("squared", None), ("logistic", 4)])
def test_without_noise_the_least_risk_is_approached(
    kind: str, loss: str, target: int | None
) -> None:
    task = task_of(kind, loss, 5, target)
    examples, features, labels = made(task, 400)
    listed = task.image.atoms is not None
    guarantee = PureDP(1e9) if listed else ZCDP(1e9)
    learner = FrankWolfe(guarantee=guarantee, steps=200, stride=None)
    learned = learner.prepare(task).run(examples, simulation.entropy(3))
    assert learned.source is not None
    assert shortfall(task, features, labels, learned.source) < 0.02
    nearest = task.image.base.project(learned.source)
    assert np.abs(nearest - learned.source).max() < 1e-8
    assert np.array_equal(learned.point, task.image.forward(learned.source))
    assert learned.parameters["steps"] == 200


def test_strides_are_the_public_ones() -> None:
    task = task_of("l1")
    examples, _, _ = made(task, 30)
    one = FrankWolfe(guarantee=PureDP(1), steps=1, stride=0.25).prepare(task)
    learned = one.run(examples, simulation.entropy(1))
    assert learned.source is not None
    assert np.abs(learned.source).sum() == pytest.approx(0.25 * 1.5)
    again = one.run(examples, simulation.entropy(1))
    assert np.array_equal(again.point, learned.point)


def test_default_steps_grow_with_rows_and_epsilon() -> None:
    def steps(rows: float | None, guarantee: Any) -> Any:
        task = dataclasses.replace(task_of(), rows=rows)
        return vars(FrankWolfe(guarantee=guarantee).prepare(task))["steps"]

    pure = [steps(rows, PureDP(1)) for rows in (100.0, 2e4, 1e6)]
    assert pure == [1, 6, 40]
    approximate = [steps(rows, ApproxDP(1, 1e-6)) for rows in (100.0, 5e3, 1e6)]
    assert approximate[0] == 1 < approximate[1] < approximate[2] == 40
    assert steps(None, PureDP(1)) == steps(1e4, PureDP(1))


def test_noisy_directions_spend_the_whole_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    chains: list[NoisySums] = []
    real = NoisySums.__init__

    def kept(self: NoisySums, *arguments: Any) -> None:
        chains.append(self)
        real(self, *arguments)

    monkeypatch.setattr(NoisySums, "__init__", kept)
    task = task_of("l2")
    learner = FrankWolfe(guarantee=ApproxDP(1, 1e-6), steps=9)
    prepared = learner.prepare(task)
    prepared.run(made(task, 30)[0], simulation.entropy(1))
    (chain,) = chains
    assert chain.spent <= chain.budget.square
    assert chain.remaining < Fraction(1, 10**6)
    assert prepared.account.profile is not None
    assert prepared.account.profile.delta(1.0) <= 1e-6


@pytest.mark.parametrize("guarantee", [GDP(1), MIDP(1)])
def test_guarantees_without_a_theorem_are_refused(guarantee: Any) -> None:
    with refused("guarantee", "FrankWolfe", kind=ArgumentTypeError):
        FrankWolfe(guarantee=guarantee)


def test_what_cannot_be_done_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("guarantee", "FrankWolfe", "extreme points can be listed"):
        FrankWolfe(guarantee=PureDP(1)).prepare(task_of("l2"))
    task = task_of("l1")
    with refused("task.frame", "FrankWolfe"):
        FrankWolfe(guarantee=PureDP(1)).prepare(Task(Frame(4, 1.0), task.loss, task.image))
    wrong: Any
    for wrong in ({"steps": 0}, {"stride": 0.0}, {"stride": 1.5}, {"cell": 0}):
        with pytest.raises(ValueError, match="FrankWolfe must be"):
            FrankWolfe(guarantee=PureDP(1), **wrong)
    with monkeypatch.context() as patch:
        patch.setattr(selection, "MOST", 9)
        with refused("constraint", "FrankWolfe", "at most 9 extreme points"):
            FrankWolfe(guarantee=PureDP(1)).prepare(task)
    for other in (task_of("l1", "squared", 5, 4), task_of("polytope"), task_of("l2")):
        with refused("cell", "FrankWolfe"):
            FrankWolfe(guarantee=ZCDP(1), cell=0.1).prepare(other)
    with refused("slope", "FrankWolfe"):
        FrankWolfe(guarantee=PureDP(1), slope=-1.0).prepare(task)
