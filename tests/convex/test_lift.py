"""The lift: sparse vectors come back, every θ is in its set, and linear programs agree."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from dplinear.convex.compression.images import Image
from dplinear.convex.compression.lift import _correct_residual, lift
from dplinear.convex.compression.nearest import Nearest
from dplinear.convex.sets import Box, GroupBall, L1Ball, L2Ball, Moved, Polytope, Simplex
from dplinear.noise import simulation

from .convex import Floats, Oracle, sets
from .test_images import PHI, SOURCE, TARGET, Dense

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

EVERY = pytest.mark.parametrize("oracle", sets(SOURCE), ids=lambda oracle: oracle.name)
FEATURES, SPARSE = 600, 5
ENOUGH = math.ceil(4 * SPARSE * math.log(FEATURES / SPARSE))


def compressed(seed: int, rows: int) -> Dense:
    drawn = simulation.generator(seed).standard_normal((rows, FEATURES))
    return Dense(drawn / math.sqrt(rows))


def sparse(seed: int) -> Floats:
    drawn = simulation.generator(seed)
    truth = np.zeros(FEATURES)
    truth[drawn.choice(FEATURES, SPARSE, replace=False)] = drawn.standard_normal(SPARSE)
    return truth


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_sparse_vectors_come_back(seed: int, share: float) -> None:
    """From m = 4s·ln(d/s) numbers, inside the set (a share of its size) and on its rim."""
    phi, truth = compressed(seed, ENOUGH), sparse(seed)
    ball = L1Ball(FEATURES, float(np.abs(truth).sum()) / share)
    found = lift(Image(ball, phi), phi.forward(truth))
    assert found.source == pytest.approx(truth, abs=1e-8)
    assert found.gauge == pytest.approx(share, rel=1e-8)
    assert found.residual <= 1e-9
    assert np.count_nonzero(np.abs(found.source) > 1e-8) == SPARSE


def test_sparse_mixtures_and_groups_come_back() -> None:
    phi, truth = compressed(7, ENOUGH), np.abs(sparse(7))
    truth /= truth.sum()
    found = lift(Image(Simplex(FEATURES), phi), phi.forward(truth))
    assert found.source == pytest.approx(truth, abs=1e-7)
    assert found.method == "mixture"
    groups = np.arange(FEATURES) // SPARSE
    truth = np.where(groups == 3, simulation.generator(8).standard_normal(FEATURES), 0.0)
    found = lift(Image(GroupBall(groups, 10.0), phi), phi.forward(truth))
    assert found.source == pytest.approx(truth, abs=1e-6)
    assert found.method == "newton"


def test_too_few_numbers_bring_back_something_else() -> None:
    phi, truth = compressed(1, 8), sparse(1)
    ball = L1Ball(FEATURES, float(np.abs(truth).sum()))
    found = lift(Image(ball, phi), phi.forward(truth))
    assert found.gauge < 0.99
    assert found.residual <= 1e-9
    assert np.abs(found.source - truth).max() > 0.1


def places(image: Image) -> list[Floats]:
    """Return images of points inside and on the rim, and points that are no images."""
    drawn = simulation.generator(4)
    made = image.base
    mixed = [
        0.7 * made.minimiser(g) + 0.3 * made.minimiser(h)
        for g, h in drawn.standard_normal((2, 2, SOURCE))
    ]
    rim = [image.minimiser(drawn.standard_normal(TARGET))]
    outside = 5 * image.radius * drawn.standard_normal(TARGET)
    return [*(image.forward(theta) for theta in mixed + rim), image.project(outside).point, outside]


@EVERY
def test_every_lift_is_in_its_set(oracle: Oracle) -> None:
    image = Image(oracle.made, PHI)
    *within, outside = places(image)
    for place in within:
        found = lift(image, place)
        assert oracle.outside(found.source) <= 1e-8
        assert found.method != "projection"
        left = float(np.linalg.norm(PHI.forward(found.source) - place))
        assert found.residual == pytest.approx(left, abs=1e-12)
        assert left <= 2e-7 * image.radius
        assert 0 <= found.floor <= found.gauge <= 1 + 1e-12
        if found.method != "mixture":
            assert found.gauge - found.floor <= 1e-6
    found = lift(image, outside)
    assert oracle.outside(found.source) <= 1e-8
    assert found.method == "projection"
    assert found.residual > image.radius
    bare = lift(Image(oracle.made), found.source)
    assert bare.residual <= 1e-8
    assert bare.method == "projection"


def least_sum(columns: Floats, place: Floats) -> float:
    found = linprog(np.ones(columns.shape[1]), A_eq=columns, b_eq=place)
    assert found.fun is not None
    return float(found.fun)


def least_box(box: Box, place: Floats) -> float:
    """Minimise τ over θ and τ with τ·low ≤ θ ≤ τ·high and Φθ = place."""
    unit = np.eye(SOURCE)
    above = np.hstack([unit, -box.high[:, None]])
    below = np.hstack([-unit, box.low[:, None]])
    equal = np.hstack([PHI.matrix, np.zeros((TARGET, 1))])
    free = [(None, None)] * SOURCE + [(0, None)]
    zero = np.zeros(2 * SOURCE)
    cost = np.append(np.zeros(SOURCE), 1.0)
    found = linprog(cost, np.vstack([above, below]), zero, equal, place, free)
    assert found.fun is not None
    return float(found.fun)


def test_gauges_are_those_of_linear_programs() -> None:
    vertices = simulation.generator(11).standard_normal((3 * SOURCE, SOURCE))
    box = Box(-np.ones(SOURCE), np.linspace(0, 1, SOURCE))
    for made in (L1Ball(SOURCE, 1.5), Polytope(vertices), box):
        image = Image(made, PHI)
        for place in places(image)[:-1]:
            found = lift(image, place)
            if isinstance(made, Box):
                least = least_box(made, place)
            elif isinstance(made, L1Ball):
                least = least_sum(1.5 * np.hstack([PHI.matrix, -PHI.matrix]), place)
            else:
                least = least_sum(PHI.matrix @ vertices.T, place)
            assert found.gauge == pytest.approx(least, abs=1e-6)
            assert found.floor <= least + 1e-6


def test_groups_meet_the_conditions_of_optimality() -> None:
    """A y with Φᵀy = θ/‖θ‖ in the groups of θ, and shorter than 1 elsewhere, proves the lift."""
    phi = compressed(3, 40)
    groups = np.arange(FEATURES) // 4
    truth = np.where(groups % 30 == 0, simulation.generator(3).standard_normal(FEATURES), 0.0)
    image = Image(GroupBall(groups, 100.0), phi)
    found = lift(image, phi.forward(truth))
    lengths = np.sqrt(np.bincount(groups, found.source**2))[groups]
    live = lengths > 1e-4 * lengths.max()
    wanted = found.source[live] / lengths[live]
    dual = np.linalg.lstsq(phi.matrix.T[live], wanted, rcond=None)[0]
    slopes = np.sqrt(np.bincount(groups, phi.adjoint(dual) ** 2))
    assert phi.adjoint(dual)[live] == pytest.approx(wanted, abs=1e-3)
    assert slopes.max() <= 1 + 1e-3
    assert found.gauge - found.floor <= 1e-7


def test_balls_are_lifted_by_the_pseudo_inverse() -> None:
    for made in (L2Ball(SOURCE), Moved(L2Ball(SOURCE), 2.0, np.full(SOURCE, 0.1))):
        image = Image(made, PHI)
        inner = np.asarray(simulation.generator(5).standard_normal(SOURCE)) / 20
        shift = 0.1 if isinstance(made, Moved) else 0.0
        found = lift(image, PHI.forward(inner + shift))
        expected = np.linalg.pinv(PHI.matrix) @ PHI.forward(inner) + shift
        assert found.source == pytest.approx(expected, abs=1e-12)
        assert found.method == "pseudo_inverse"


@pytest.mark.parametrize("made", [L1Ball(SOURCE), GroupBall(np.arange(SOURCE) // 2)])
def test_mending_never_leaves_the_set(made: L1Ball | GroupBall) -> None:
    """A residual that asks for a gauge a hair above 1 is mended, and θ scaled back; others stay."""
    image = Image(made, PHI)
    corner = np.eye(SOURCE)[0]
    for beyond, moved in ((1e-10, True), (1e-3, False)):
        place = PHI.forward(corner) * (1 + beyond)
        found = Nearest(place, corner * (1 - 1e-11), 0.0, (0,))
        source, gauge = _correct_residual(image, found, 1 - 1e-11)
        assert made.gauge(source) <= 1 + 1e-15
        assert gauge == pytest.approx(made.gauge(source), rel=1e-12)
        assert (source != found.source).any() == moved


def test_a_start_changes_nothing_but_the_time() -> None:
    phi, truth = compressed(2, 60), sparse(2)
    image = Image(L1Ball(FEATURES, 1.1 * float(np.abs(truth).sum())), phi)
    plain = lift(image, phi.forward(truth))
    started = lift(image, phi.forward(truth), near=truth)
    assert started.source == pytest.approx(plain.source, abs=1e-8)
