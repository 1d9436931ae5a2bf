"""Output and objective perturbation: sensitivities on adversarial neighbours, noise, limits."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from dplinear.arguments import ArgumentTypeError
from dplinear.arrays import Floats
from dplinear.convex.certified_gradient import Point, Regularised
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame
from dplinear.convex.learners import perturbation
from dplinear.convex.learners.contract import Task
from dplinear.convex.learners.objective_perturbation import ObjectivePerturbation
from dplinear.convex.learners.output_perturbation import OutputPerturbation, PreparedOutput
from dplinear.convex.losses import LOSSES, HingeLoss, LogisticLoss, SquaredLoss
from dplinear.convex.minimiser import minimise
from dplinear.convex.sets import L1Ball, L2Ball
from dplinear.noise import simulation
from dplinear.noise.simulation import generator
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP, calibrate
from dplinear.privacy.profiles import Gaussian, Objective, Pure
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
FALSE_ALARM = 1e-6
FRAME = Frame(2, 1.0)


def examples(rows: Floats, frame: Frame = FRAME) -> Examples:
    """Return a table of rows that hold features, then a label, as numbers."""
    integers = np.rint(np.asarray(rows).T * CELLS)
    return Examples(frame, [Block.dense(integers)] if len(rows) else [])


def task(name: str = "squared", radius: float = 1.0, frame: Frame = FRAME) -> Task:
    return Task(frame, LOSSES[name](), Image(L2Ball(frame.features, radius)), rows=100)


def minimum(prepared: Any, rows: Floats, tolerance: float = 1e-10) -> Floats:
    """Return the minimum itself, to ten digits."""
    sum_ = prepared.sum
    problem = Regularised(sum_.loss, sum_.weight, Point.zero(2), sum_.norm)
    return minimise(problem, examples(rows).blocks(), tolerance).values


def rows_at_the_edge(count: int, seed: int) -> Floats:
    """Return rows as long as they may be, with labels of ±1."""
    draw = generator(seed)
    angles = draw.uniform(0, 2 * math.pi, count)
    signs = np.where(draw.random(count) < 0.5, 1.0, -1.0)
    return np.column_stack([np.cos(angles), np.sin(angles), signs]) * [0.999999, 0.999999, 1.0]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("name", LOSSES)
def test_no_row_moves_a_minimum_by_more_than_the_sensitivity(
    name: str, relation: Neighbours
) -> None:
    learner = OutputPerturbation(
        guarantee=PureDP(1.0), neighbours=relation, regularisation=0.3, slope=0.8
    )
    prepared = learner.prepare(task(name))
    farthest = 0.0
    for seed in range(12):
        rows = rows_at_the_edge(1 + seed % 4, seed)
        other = rows_at_the_edge(6, 100 + seed)
        here = minimum(prepared, rows)
        changed = [
            np.vstack([rows, row]) if relation is ADD_REMOVE else np.vstack([rows[1:], row])
            for row in other
        ]
        moved = [float(np.linalg.norm(minimum(prepared, table) - here)) for table in changed]
        farthest = max(farthest, *moved)
    assert farthest <= prepared.sensitivity
    # A bound with half the regularisation would be far off; this one is not.
    assert farthest > 0.3 * prepared.sensitivity


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_the_sensitivity_is_reached(relation: Neighbours) -> None:
    """A row whose slope is at its clip moves an empty table's minimum by L/Λ; another by 2L/Λ."""
    learner = OutputPerturbation(
        guarantee=PureDP(1.0), neighbours=relation, regularisation=100.0, slope=0.5
    )
    prepared = learner.prepare(task())
    row = np.array([[1.0, 0.0, 1.0]])
    first = np.zeros((0, 3)) if relation is ADD_REMOVE else -row * [1, 1, -1]
    moved = float(np.linalg.norm(minimum(prepared, row) - minimum(prepared, first)))
    exact = (1 if relation is ADD_REMOVE else 2) * 0.5 / 100.0
    assert moved == pytest.approx(exact, rel=1e-6)
    # What is left is the tolerance, 2^−10 of L on either side.
    assert moved <= prepared.sensitivity == pytest.approx(exact + 2 * 2**-10 * 0.5 / 100)


def test_planted_bugs_are_seen() -> None:
    """Λ halved, L without a clip and the tolerance left out each break the bound."""
    row = np.array([[1.0, 0.0, 1.0]])
    honest = OutputPerturbation(guarantee=PureDP(1.0), regularisation=100.0, slope=0.5)
    bound = honest.prepare(task()).sensitivity
    empty = np.zeros((0, 3))

    def moved(weight: float, slope: float, tolerance: float) -> float:
        learner = OutputPerturbation(guarantee=PureDP(1.0), regularisation=weight, slope=slope)
        prepared = learner.prepare(task())
        apart = np.linalg.norm(minimum(prepared, row) - minimum(prepared, empty))
        return float(apart) + 2 * tolerance / weight

    assert moved(100.0, 0.5, 0.0) <= bound
    assert moved(50.0, 0.5, 0.0) > bound
    assert moved(100.0, 4.0, 0.0) > bound
    assert moved(100.0, 0.5, 0.01) > bound


def test_what_is_found_is_as_close_as_the_tolerance_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The minimiser is asked for the very tolerance that the sensitivity counts."""
    asked = []

    def recorded(problem: Regularised, _: Any, tolerance: float) -> Point:
        asked.append((problem.weight, problem.loss.slope, tolerance))
        return Point.zero(2)

    monkeypatch.setattr(perturbation, "minimise", recorded)
    pure = OutputPerturbation(guarantee=PureDP(1.0), regularisation=3.0, tolerance=0.01, slope=0.7)
    prepared = pure.prepare(task())
    prepared.run(examples(rows_at_the_edge(3, 1)), simulation.entropy(1))
    assert asked[0] == pytest.approx((3.0, 0.7, 0.007))
    assert prepared.sensitivity == pytest.approx((0.7 + 2 * 0.007) / 3.0)
    asked.clear()
    other = ObjectivePerturbation(guarantee=ApproxDP(1.0, 1e-6), regularisation=30.0)
    ready = other.prepare(task())
    ready.run(examples(rows_at_the_edge(3, 1)), simulation.entropy(1))
    ((weight, _, tolerance),) = asked
    profile = ready.account.profile
    assert isinstance(profile, Objective)
    assert 2 * tolerance / weight / ready.output <= profile.output_mu


def released(learner: Any, rows: Floats, count: int, radius: float) -> Floats:
    """Return what is released from a set so large that nothing is projected."""
    prepared = learner.prepare(task("huber", radius))
    table, entropy = examples(rows), simulation.entropy(41)
    return np.array([prepared.run(table, entropy).point for _ in range(count)])


def check_normal(numbers: Floats) -> None:
    """Check the shape of a standard normal sample, and the sum of its squares."""
    squares = stats.chi2(numbers.size)
    assert stats.kstest(numbers.ravel(), "norm").pvalue > FALSE_ALARM
    total = float((numbers**2).sum())
    assert 2 * min(squares.cdf(total), squares.sf(total)) > FALSE_ALARM


def test_pure_noise_has_the_law_that_epsilon_asks_for() -> None:
    rows = rows_at_the_edge(5, 42)
    learner = OutputPerturbation(guarantee=PureDP(0.5), regularisation=2.0)
    prepared = learner.prepare(task("huber", 1e4))
    assert prepared.scale == pytest.approx(prepared.sensitivity / 0.5)
    noise = released(learner, rows, 400, 1e4) - minimum(prepared, rows)
    lengths = np.linalg.norm(noise, axis=1)
    law = stats.gamma(2, scale=prepared.sensitivity / 0.5)
    assert stats.kstest(lengths, law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("guarantee", [PureDP(0.5), ApproxDP(0.5, 1e-5)])
def test_what_a_row_moves_is_never_lost_below_the_least_float(guarantee: Any) -> None:
    hidden = OutputPerturbation(guarantee=guarantee, regularisation=1e100, slope=1e-300)
    with refused("regularisation", "OutputPerturbation"):
        hidden.prepare(task("huber", 1e4))


@pytest.mark.parametrize("guarantee", [ApproxDP(0.5, 1e-5), ZCDP(0.1)])
def test_normal_noise_has_the_law_that_was_calibrated(guarantee: Any) -> None:
    rows = rows_at_the_edge(5, 43)
    learner = OutputPerturbation(guarantee=guarantee, regularisation=2.0)
    prepared = learner.prepare(task("huber", 1e4))
    sigma = calibrate.gaussian(guarantee, prepared.sensitivity)
    noise = released(learner, rows, 400, 1e4) - minimum(prepared, rows)
    check_normal(noise / sigma)
    assert isinstance(prepared.account.profile, Gaussian)
    assert prepared.account.profile.mu >= prepared.sensitivity / sigma


def test_the_minimum_with_a_slope_has_the_law_of_the_slope() -> None:
    """At what is released, minus the gradient without the slope is the slope: normal, variance σ².

    The output's noise, a ten-thousandth of it, does not show.
    """
    rows = rows_at_the_edge(5, 44)
    learner = ObjectivePerturbation(guarantee=ApproxDP(1.0, 1e-5), regularisation=20.0)
    prepared = learner.prepare(task("huber", 1e4))
    places = released(learner, rows, 400, 1e4)
    x, y = np.rint(rows[:, :2] * CELLS) / CELLS, rows[:, 2]
    slopes = np.clip(places @ x.T - y, -0.25, 0.25)
    gradients = slopes @ x + 20.0 * places
    check_normal(gradients / prepared.sigma)
    assert isinstance(prepared.account.profile, Objective)
    assert prepared.account.profile.mu >= 0.25 / prepared.sigma
    assert prepared.account.profile.ratio >= 1 / 20.0


@pytest.mark.parametrize("name", LOSSES)
def test_with_a_huge_budget_it_is_scipys_minimum_in_the_image(name: str) -> None:
    draw = generator(45)
    x = draw.uniform(-0.7, 0.7, (300, 2))
    y = np.clip(x @ [0.5, -0.3] + 0.2 * draw.standard_normal(300), -1, 1)
    rows = np.column_stack([x, y])
    # A weight at which the minimum lies inside the ball.
    setting: dict[str, Any] = {"regularisation": 100.0, "tolerance": 2.0**-20}
    public = task(name, 3.0)

    def value(place: Floats) -> float:
        losses = public.loss.values(x @ place, y)
        return float(losses.sum() + 50 * place @ place)

    exact = optimize.minimize(value, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-7}).x
    for learner in (
        OutputPerturbation(guarantee=PureDP(1e6), **setting),
        ObjectivePerturbation(guarantee=ApproxDP(1e4, 1e-3), **setting),
    ):
        found = learner.prepare(public).run(examples(rows), simulation.entropy(46))
        # Half of the hinge's ramp is what its loss may be off.
        close = 0.06 if name == "hinge" else 0.02
        assert found.point == pytest.approx(exact, abs=close)


def test_points_are_projected_into_the_image() -> None:
    rows = rows_at_the_edge(20, 47)
    public = Task(FRAME, LogisticLoss(), Image(L1Ball(2, 0.2)), rows=20)
    for learner in (
        OutputPerturbation(guarantee=PureDP(0.1)),
        ObjectivePerturbation(guarantee=ApproxDP(0.1, 1e-6)),
    ):
        found = learner.prepare(public).run(examples(rows), simulation.entropy(48))
        assert np.abs(found.point).sum() <= 0.2 * (1 + 1e-9)
        assert found.source is not None
        assert found.source == pytest.approx(found.point)


def test_accounts_say_what_was_asked() -> None:
    prepared = OutputPerturbation(guarantee=PureDP(0.7)).prepare(task())
    assert isinstance(prepared, PreparedOutput)
    assert prepared.account.holds == PureDP(0.7)
    assert prepared.account.profile == Pure(0.7)
    asked = ApproxDP(0.7, 1e-6)
    for relation in (ADD_REMOVE, REPLACE):
        ready = ObjectivePerturbation(guarantee=asked, neighbours=relation).prepare(task())
        profile = ready.account.profile
        assert profile is not None
        assert profile.neighbours is relation
        assert 0.99e-6 <= profile.delta(0.7) <= 1e-6


def test_the_regularisation_is_chosen_without_rows() -> None:
    """More noise or more rows ask for more of it; the bend takes a sixteenth of ε at the most."""
    weights = [
        OutputPerturbation(guarantee=PureDP(epsilon)).prepare(task()).sum.weight
        for epsilon in (2.0, 1.0, 0.1)
    ]
    assert weights == sorted(weights)
    ready = ObjectivePerturbation(guarantee=ApproxDP(1.0, 1e-6)).prepare(task("logistic"))
    profile = ready.account.profile
    assert isinstance(profile, Objective)
    assert math.log1p(profile.ratio) <= 1 / 16 + 1e-9


def test_steep_losses_get_slopes_that_the_image_needs() -> None:
    """No margin in the image is above 2, so no slope of the squared loss above 6."""
    prepared = OutputPerturbation(guarantee=PureDP(1.0)).prepare(task("squared", 2.0))
    assert prepared.sum.loss.slope == pytest.approx(6.0)
    assert isinstance(prepared.sum.loss.base, SquaredLoss)
    hinge = ObjectivePerturbation(guarantee=ApproxDP(1.0, 1e-6), ramp=0.2).prepare(task("hinge"))
    assert isinstance(hinge.sum.loss.base, HingeLoss)
    assert hinge.sum.smoothness == pytest.approx(5.0)


def test_what_cannot_be_kept_is_refused() -> None:
    little = ObjectivePerturbation(guarantee=ApproxDP(1.0, 1e-6), regularisation=1.0)
    with refused("regularisation", "ObjectivePerturbation", "above βc²"):
        little.prepare(task("squared"))
    with refused("guarantee", "ObjectivePerturbation", hint="delta=1e-6"):
        ObjectivePerturbation(guarantee=PureDP(1.0))
    with refused("guarantee", "ObjectivePerturbation", kind=ArgumentTypeError, hint="no theorem"):
        ObjectivePerturbation(guarantee=GDP(1.0))
    with refused("guarantee", "OutputPerturbation", kind=ArgumentTypeError, hint="bits"):
        OutputPerturbation(guarantee=MIDP(1.0))
    early: list[dict[str, Any]] = [
        {"regularisation": 0.0},
        {"tolerance": 0.0},
        {"neighbours": "element"},
    ]
    late: list[dict[str, Any]] = [{"slope": -1.0}, {"ramp": 0.0}]
    for kind in (OutputPerturbation, ObjectivePerturbation):
        for wrong in early:
            with pytest.raises(ValueError, match=kind.__name__):
                kind(guarantee=ApproxDP(1.0, 1e-6), **wrong)
        for wrong in late:
            learner = kind(guarantee=ApproxDP(1.0, 1e-6), **wrong)
            with pytest.raises(ValueError, match="must be"):
                learner.prepare(task())


@pytest.mark.parametrize("weight", [1e-300, 1e-9, 1e200, 1e300])
def test_a_weight_with_which_only_some_tables_fail_is_refused(weight: float) -> None:
    """With 1e300 an empty table had its minimum, and one of a single row an error."""
    for learner in (
        OutputPerturbation(guarantee=PureDP(1.0), regularisation=weight),
        ObjectivePerturbation(guarantee=ApproxDP(1.0, 1e-6), regularisation=weight),
    ):
        with pytest.raises(ValueError, match="'regularisation' parameter"):
            learner.prepare(task())


@pytest.mark.parametrize("radius", [1e-200, 1e-100, 1e100, 1e200])
def test_a_weight_that_is_chosen_finds_the_minima_of_all_tables(radius: float) -> None:
    """No table raises or warns where the set makes Λ next to nothing, or huge."""
    for learner in (
        OutputPerturbation(guarantee=PureDP(1.0)),
        ObjectivePerturbation(guarantee=ApproxDP(1.0, 1e-6)),
    ):
        prepared = learner.prepare(task("huber", radius))
        for rows in (0, 1, 50):
            found = prepared.sum.minimum(
                examples(rows_at_the_edge(rows, 61)), Point.of(np.array([1.0, -2.0]))
            )
            assert np.isfinite(found.values).all()
