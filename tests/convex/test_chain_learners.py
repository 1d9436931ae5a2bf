"""Learners by chains of noisy sums: neighbours, budgets, limits against scipy, and refusals."""

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dplinear.adaptive.noisy_sums import NoisySums
from dplinear.convex import examples
from dplinear.convex.example_blocks import CELLS
from dplinear.convex.examples import Frame
from dplinear.convex.learners.contract import Task
from dplinear.convex.learners.mirror_descent import MirrorDescent, mixture
from dplinear.convex.learners.noisy_gradient import NoisyGradient
from dplinear.convex.learners.whitened import Whitened, design_of
from dplinear.convex.sets import Atoms
from dplinear.descent.huber import HuberDescent
from dplinear.descent.logistic import LogisticDescent
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact import row_sums
from dplinear.noise import simulation
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP
from refusals import refused

from .learning import LOSSES, Recorded, made, risk, rows_of, shortfall, task_of, with_rows

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
GUARANTEE = ApproxDP(1, 1e-6)
CERTAIN = ZCDP(1e9)
STEPPED: dict[str, Any] = {"noisy_gradient": NoisyGradient, "mirror_descent": MirrorDescent}
LEARNERS: dict[str, Any] = {**STEPPED, "whitened": Whitened}


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> list[NoisySums]:
    """Every chain that is opened."""
    opened: list[NoisySums] = []
    real = NoisySums.__init__

    def kept(self: NoisySums, *arguments: Any) -> None:
        opened.append(self)
        real(self, *arguments)

    monkeypatch.setattr(NoisySums, "__init__", kept)
    return opened


# Neighbours and budgets


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("name", LEARNERS)
def test_sums_that_are_asked_move_within_their_bounds(
    name: str, loss: str, relation: Neighbours, chains: list[NoisySums]
) -> None:
    if name == "whitened" and loss == "hinge":
        return
    task = task_of("l1", loss, 6, 4, reach=1.3)
    examples, _, _ = made(task, 60)
    recorded = Recorded(examples)
    learner = LEARNERS[name](guarantee=GUARANTEE, neighbours=relation)
    learned = learner.prepare(task).run(recorded, simulation.entropy(1))
    rows = rows_of(examples)
    far = np.zeros((len(rows), 4))
    far[0, :2], far[1, 2:] = task.frame.norm, -task.frame.norm
    far[-1] = [CELLS, -CELLS, CELLS, -CELLS]
    tables = [np.column_stack((rows, row)) for row in far.T]
    pairs = [(rows, table) for table in tables]
    pairs = list(itertools.combinations(tables, 2)) if relation is REPLACE else pairs
    sums = [
        [with_rows(task.frame, table, block).sums(recorded.asked) for table in pair]
        for pair, block in zip(pairs, (7, 11, 60, 64, 33, 21), strict=False)
    ]
    for place, statistic in enumerate(recorded.asked):
        moved = [
            sum(int(a - b) ** 2 for a, b in zip(one[place], other[place], strict=True))
            for one, other in sums
        ]
        assert max(moved) <= statistic.sensitivity_squared(relation)
    (chain,) = chains
    assert chain.spent <= chain.budget.square
    assert chain.budget.neighbours is relation
    assert learned.account.holds == GUARANTEE


@pytest.mark.parametrize("name", STEPPED)
def test_rows_that_were_not_shortened_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same replay, with a row that nobody clips: so the check can fail.
    monkeypatch.setattr(examples, "held_block", lambda block, _: block)
    task = task_of("l1", "squared", 4)
    recorded = Recorded(made(task, 60)[0])
    STEPPED[name](guarantee=GUARANTEE).prepare(task).run(recorded, simulation.entropy(1))
    rows = rows_of(recorded.examples)
    long = np.array([2.0 * task.frame.norm, 0, 0, 0, CELLS])
    tables = [np.column_stack((rows, long)), np.column_stack((rows, long * [1, 1, 1, 1, -1]))]
    asked = [sum_ for sum_ in recorded.asked if not isinstance(sum_, row_sums.Count)]
    for statistic in asked:
        (base,) = with_rows(task.frame, rows).sums([statistic])
        sums = [with_rows(task.frame, table).sums([statistic])[0] for table in tables]
        moved = [sum(int(a - b) ** 2 for a, b in zip(base, s, strict=True)) for s in sums]
        assert max(moved) > statistic.sensitivity_squared(ADD_REMOVE)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("guarantee", [GUARANTEE, ZCDP(0.1)])
@pytest.mark.parametrize("name", STEPPED)
def test_the_whole_budget_is_spent(
    name: str, guarantee: Any, relation: Neighbours, chains: list[NoisySums]
) -> None:
    task = task_of("l1")
    learner = STEPPED[name](guarantee=guarantee, neighbours=relation, steps=9)
    prepared = learner.prepare(task)
    learned = prepared.run(made(task, 50)[0], simulation.entropy(2))
    (chain,) = chains
    assert chain.spent <= chain.budget.square
    if isinstance(guarantee, ZCDP):
        assert chain.budget.square == 2 * Fraction(guarantee.rho)
    # A number of rows that is public costs nothing.
    free = Fraction(1, 50) if name == "noisy_gradient" and relation is REPLACE else 0
    assert 0 <= chain.remaining - free < Fraction(1, 10**6)
    assert learned.parameters["spent"] == pytest.approx(float(1 - free))
    if free:
        assert learned.parameters["rows"] == 50


# Limits


@pytest.mark.parametrize("kind", ["l1", "simplex", "polytope", "l2", "groups", "box"])
@pytest.mark.parametrize(("loss", "target"), [("squared", None), ("huber", 4), ("logistic", 4)])
def test_noisy_gradient_finds_the_least_risk_without_noise(
    kind: str, loss: str, target: int | None
) -> None:
    task = task_of(kind, loss, 5, target)
    examples, features, labels = made(task, 300)
    learner = NoisyGradient(guarantee=CERTAIN, steps=80, constrained=True)
    learned = learner.prepare(task).run(examples, simulation.entropy(3))
    assert learned.source is not None
    assert shortfall(task, features, labels, learned.source) < 2e-3
    assert np.abs(task.image.base.project(learned.source) - learned.source).max() < 1e-8
    assert np.allclose(learned.point, task.image.forward(learned.source), atol=1e-12)


@pytest.mark.parametrize("name", STEPPED)
def test_the_limit_is_scipys_minimiser(name: str) -> None:
    task = task_of("l1", "squared", 4)
    examples, features, labels = made(task, 200)

    def of_parts(parts: Any) -> float:
        return risk(task, features, labels, parts[:4] - parts[4:])

    within: Any = {"type": "ineq", "fun": lambda parts: 1.5 - parts.sum()}
    best = minimize(
        of_parts, np.full(8, 0.1), bounds=[(0, None)] * 8, constraints=within, tol=1e-14
    )
    steps = 80 if name == "noisy_gradient" else 400
    learned = (
        STEPPED[name](guarantee=CERTAIN, steps=steps)
        .prepare(task)
        .run(examples, simulation.entropy(3))
    )
    assert risk(task, features, labels, learned.point) <= float(best.fun) + 1e-4
    assert np.allclose(learned.point, best.x[:4] - best.x[4:], atol=0.03)


@pytest.mark.parametrize("constrained", [None, True])
def test_noisy_paths_end_in_the_image(constrained: bool | None) -> None:
    task = task_of("l1", "logistic", 12, 5)
    learner = NoisyGradient(guarantee=GUARANTEE, constrained=constrained, rate=30.0)
    learned = learner.prepare(task).run(made(task, 60)[0], simulation.entropy(8))
    assert learned.source is not None
    assert np.abs(learned.source).sum() <= 1.5 * (1 + 1e-9)
    assert np.allclose(task.image.forward(learned.source), learned.point, atol=1e-12)
    assert learned.parameters["constrained"] is bool(constrained)


def test_a_place_that_many_models_map_to_is_left_to_the_lift() -> None:
    task = task_of("l1", "squared", 40, 3)
    examples, features, labels = made(task, 300, noise=0.0)
    learned = (
        NoisyGradient(guarantee=CERTAIN, steps=60)
        .prepare(task)
        .run(examples, simulation.entropy(8))
    )
    assert learned.source is None
    nearest = task.image.project(learned.point)
    assert np.linalg.norm(nearest.point - learned.point) <= 1e-5
    exact = np.linalg.lstsq(features, labels, rcond=None)[0]
    assert np.allclose(learned.point, exact, atol=2e-3)


def test_default_steps_grow_with_rows_and_epsilon() -> None:
    def steps(rows: float | None, epsilon: float) -> int:
        task = dataclasses.replace(task_of(), rows=rows)
        return NoisyGradient(guarantee=ApproxDP(epsilon, 1e-6)).prepare(task).steps

    assert [steps(10.0, 0.1), steps(4000.0, 1.0), steps(1e6, 1.0)] == [5, 9, 30]  # 4000·.2367/100
    assert steps(None, 1.0) == steps(1e4, 1.0)


def test_steps_are_shortened_where_gradients_show_more_curvature() -> None:
    # All rows along one line: its curvature is that of a rate of 1, so a rate of 4 would diverge.
    task = task_of("l2", "squared", 3)
    features = np.zeros((200, 3))
    features[:, 0] = np.where(np.arange(200) % 2, 1.0, -1.0)
    labels = 0.5 * features[:, 0]
    rows = np.vstack((np.trunc(features.T * CELLS), labels * CELLS))
    examples = with_rows(task.frame, rows)
    learner = NoisyGradient(guarantee=CERTAIN, rate=50.0)
    learned = learner.prepare(task).run(examples, simulation.entropy(1))
    assert learned.point[0] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("kind", ["l1", "simplex", "polytope"])
def test_mirror_descent_finds_the_least_risk_without_noise(kind: str) -> None:
    task = task_of(kind, "squared", 5, 4)
    examples, features, labels = made(task, 300)
    learner = MirrorDescent(guarantee=CERTAIN, steps=200)
    learned = learner.prepare(task).run(examples, simulation.entropy(3))
    assert learned.source is not None
    assert shortfall(task, features, labels, learned.source) < 0.02


def test_mixtures_are_those_of_exponential_weights() -> None:
    exponents = np.array([0.3, -1.0])
    weights = np.exp([-0.3, 1.0, 0.3, -1.0])
    weights /= weights.sum()
    signed = mixture(Atoms(2, signed=True, size=2.0), exponents)
    assert np.allclose(signed, 2 * (weights[:2] - weights[2:]))
    corners = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 1.0]])
    plain = np.exp([-0.3, 1.0]) / np.exp([-0.3, 1.0]).sum()
    listed = mixture(Atoms(2, signed=False, size=1.0, matrix=corners), exponents)
    assert np.allclose(listed, corners @ plain)


# Whitened descent


@pytest.mark.parametrize(
    ("loss", "kind"),
    [("squared", WhitenedDescent), ("huber", HuberDescent), ("logistic", LogisticDescent)],
)
def test_whitened_descent_is_the_one_for_tables_brought_back_to_the_set(
    loss: str, kind: Any
) -> None:
    task = task_of("l1", loss, 7, 3)
    examples, _, _ = made(task, 500)
    learned = Whitened(guarantee=GUARANTEE).prepare(task).run(examples, simulation.entropy(5))
    prepared = kind(guarantee=GUARANTEE).prepare(design_of(task.frame))
    alone = prepared.run(examples, simulation.entropy(5))
    nearest = task.image.project(alone.coefficients)
    assert np.array_equal(learned.point, nearest.point)
    assert learned.account == prepared.account
    assert learned.parameters["mu"] == prepared.budget.mu


def test_designs_regress_the_label_on_all_features() -> None:
    frame = Frame(3, 1.5)
    design = design_of(frame)
    assert (design.features, design.target, design.intercept) == ((0, 1, 2), 3, False)
    assert (design.shape, design.indicators) == (frame.shape, (False,) * 3)
    assert (design.feature_square, design.target_square) == (frame.norm**2, CELLS**2)


def test_whitened_descent_finds_least_squares_without_noise() -> None:
    task = task_of("l2", "squared", 3)
    examples, features, labels = made(task, 3000)
    learned = Whitened(guarantee=CERTAIN).prepare(task).run(examples, simulation.entropy(5))
    exact = np.linalg.lstsq(features, labels, rcond=None)[0]
    assert np.allclose(learned.point, exact, atol=0.01)


# Refusals


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("guarantee", [PureDP(1), ApproxDP(1, 0), GDP(1), MIDP(1)])
def test_guarantees_that_normal_noise_cannot_keep_are_refused(name: str, guarantee: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="'guarantee' parameter"):
        LEARNERS[name](guarantee=guarantee)


def test_what_cannot_be_done_is_refused() -> None:
    with refused("constraint", "MirrorDescent", "extreme points can be listed"):
        MirrorDescent(guarantee=GUARANTEE).prepare(task_of("l2"))
    with refused("loss", "Whitened"):
        Whitened(guarantee=GUARANTEE).prepare(task_of("l1", "hinge"))
    task = task_of("l1")
    other = Task(Frame(4, 1.0), task.loss, task.image)
    for learner in LEARNERS.values():
        with pytest.raises(ValueError, match=r"'task\.frame' parameter"):
            learner(guarantee=GUARANTEE).prepare(other)
    wrongs: list[dict[str, Any]] = [{"steps": 0}, {"rate": 0.0}]
    for stepped, wrong in itertools.product(STEPPED.values(), wrongs):
        with pytest.raises(ValueError, match="must be"):
            stepped(guarantee=GUARANTEE, **wrong)
