"""Constraint sets against their inequalities, support functions and integrals."""

import itertools
import json
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from dplinear.convex.sets import Box, ConvexSet, GroupBall, L1Ball, L2Ball, Moved, Polytope, Simplex
from dplinear.convex.sets.contract import Atoms
from dplinear.convex.sets.hull import nearest_mixture
from dplinear.noise import simulation

from .convex import Floats, Oracle, sets

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

SMALL = sets(6)
ANYTHING: Any = lambda value: value  # noqa: E731 - hides its type
EVERY = pytest.mark.parametrize("oracle", SMALL, ids=lambda oracle: oracle.name)


def directions(count: int, d: int = 6) -> Floats:
    drawn = simulation.generator(count).standard_normal((count, d))
    drawn[0] = 0
    drawn[1] = np.eye(d)[0]
    return drawn


@EVERY
def test_the_minimiser_is_in_the_set_and_best(oracle: Oracle) -> None:
    for g in directions(20):
        found = oracle.made.minimiser(g)
        assert oracle.outside(found) <= 1e-12
        assert g @ found == pytest.approx(-oracle.support(-g), abs=1e-12)


@EVERY
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0, 1e9])
def test_the_projection_is_the_nearest_point(oracle: Oracle, size: float) -> None:
    """θ is nearest to p just where it is in the set and no point is further towards p − θ."""
    for point in size * directions(10):
        found = oracle.made.project(point)
        assert oracle.outside(found) <= 1e-9
        away = point - found
        assert away @ found >= oracle.support(away) - 1e-9 * max(1.0, float(np.abs(away).max()))
        assert np.allclose(oracle.made.project(found), found, atol=1e-9)


@EVERY
def test_the_gauge_is_the_least_multiple(oracle: Oracle) -> None:
    points = [*directions(5)[1:], *(oracle.made.project(g) for g in directions(5)[1:])]
    for point in points:
        gauge = oracle.made.gauge(point)
        inside = [tau for tau in np.geomspace(1e-2, 1e2, 8) if oracle.outside(point / tau) <= 0]
        if math.isinf(gauge):
            assert not inside
            continue
        assert oracle.outside(point / gauge) <= 1e-8
        assert oracle.outside(point / (gauge * (1 - 1e-4))) > 0
        assert all(tau >= gauge * (1 - 1e-9) for tau in inside)
    assert oracle.made.gauge(np.zeros(6)) == 0


def test_gauges_that_are_infinite() -> None:
    ones = np.ones(3)
    assert math.isinf(Simplex(3).gauge(-ones))
    assert Simplex(3).gauge(ones) == pytest.approx(3)
    assert math.isinf(Box(ones, 2 * ones).gauge(np.array([1.0, 1.0, 2.1])))
    assert Box(ones, 2 * ones).gauge(np.array([1.0, 1.0, 2.0])) == pytest.approx(1)
    assert math.isinf(Polytope(np.eye(3)).gauge(-ones))
    for ball in (L1Ball(3), L2Ball(3), GroupBall(np.array([0, 0, 1]))):
        beyond = Moved(ball, 1.0, 3 * ones)
        assert math.isinf(beyond.gauge(np.array([1.0, 1.0, -1.0])))
        assert math.isinf(beyond.gauge(-ones))
        assert beyond.gauge(ones) == pytest.approx(1 / (3 + 1 / ball.gauge(ones)), rel=1e-9)
        # The origin is on the rim, and no multiple reaches points beyond its flat.
        rim = Moved(ball, 1.0, np.array([1.0, 0.0, 0.0]))
        assert rim.gauge(np.array([2.0, 0.0, 0.0])) == pytest.approx(1)
        assert math.isinf(rim.gauge(np.array([-1.0, 0.0, 0.1])))


@EVERY
def test_radius_and_diameter_are_reached(oracle: Oracle) -> None:
    """By convexity at extreme points, among which climbing from many starts finds the furthest."""
    made = oracle.made
    best, apart = 0.0, 0.0
    for g in directions(100):
        point = made.minimiser(g)
        for _ in range(5):
            point = made.minimiser(-point)
        best = max(best, float(np.linalg.norm(point)))
        first, second = made.minimiser(g), made.minimiser(-g)
        for _ in range(5):
            first, second = made.minimiser(second - first), made.minimiser(first - second)
        apart = max(apart, float(np.linalg.norm(first - second)))
    assert apart == pytest.approx(made.diameter, rel=1e-9)
    assert best <= made.radius * (1 + 1e-12)
    if isinstance(made, Box):
        corners = itertools.product(*zip(made.low, made.high, strict=True))
        best = max(float(np.linalg.norm(corner)) for corner in corners)
    if not isinstance(made, Moved):
        assert best == pytest.approx(made.radius, rel=1e-9)


@EVERY
def test_the_width_is_a_mean_of_the_support_function(oracle: Oracle) -> None:
    """False alarms: 1e-6 in all 14 together, by 5.4 standard errors each, the width's included."""
    drawn = simulation.generator(77).standard_normal((2_000, 6))
    # A set and its mirror image have the same width; their mean has less noise.
    tops = np.array([(oracle.support(g) + oracle.support(-g)) / 2 for g in drawn])
    width = oracle.made.width()
    error = math.hypot(float(tops.std()) / math.sqrt(len(tops)), width.error)
    assert abs(tops.mean() - width.value) <= 5.4 * error
    assert (width.error > 0) == ("polytope" in oracle.name)


def test_widths_in_closed_form() -> None:
    root = math.sqrt(math.pi)
    assert Simplex(1).width().value == pytest.approx(0, abs=1e-12)
    assert Simplex(2, 3.0).width().value == pytest.approx(3 / root, rel=1e-12)
    assert Simplex(3).width().value == pytest.approx(1.5 / root, rel=1e-12)
    assert L1Ball(1, 2.0).width().value == pytest.approx(2 * math.sqrt(2 / math.pi), rel=1e-12)
    assert L1Ball(2).width().value == pytest.approx(2 / root, rel=1e-12)
    assert L2Ball(2).width().value == pytest.approx(math.sqrt(math.pi / 2), rel=1e-12)
    assert L2Ball(100_000).width().value == pytest.approx(math.sqrt(100_000 - 0.5), rel=1e-9)
    one_each, all_one = GroupBall(np.arange(50)), GroupBall(np.zeros(50, int))
    assert one_each.width().value == pytest.approx(L1Ball(50).width().value, rel=1e-12)
    assert all_one.width().value == pytest.approx(L2Ball(50).width().value, rel=1e-12)
    beyond = lambda t: 1 - mpmath.erf(t / mpmath.sqrt(2)) ** 100_000  # noqa: E731
    exact = mpmath.quad(beyond, [0, 3, 4, 4.5, 5, 6, 8, 12])
    assert L1Ball(100_000).width().value == pytest.approx(float(exact), rel=1e-10)


@EVERY
def test_atoms_span_the_set(oracle: Oracle) -> None:
    atoms = oracle.made.atoms
    if atoms is None:
        assert oracle.made.name in {"l2", "box", "group_l1", "moved"}
        return
    columns = atoms.columns(list(range(atoms.total)))
    for g in directions(20):
        assert (g @ columns).max() == pytest.approx(oracle.support(g), abs=1e-12)
        lowest = atoms.lowest(g)
        assert g @ columns[:, lowest] == pytest.approx(-oracle.support(-g), abs=1e-12)
        assert atoms.scores(g) == pytest.approx((g @ columns)[: atoms.count], abs=1e-12)
    weights = np.linspace(0, 1, atoms.total)
    mixed = atoms.mix(range(atoms.total), weights)
    assert mixed == pytest.approx(columns @ weights, abs=1e-12)


def test_a_long_list_of_moved_atoms_is_not_written_out() -> None:
    ball = L1Ball(3_000)
    assert Moved(ball, 2.0).atoms is not None
    assert Moved(ball, 2.0, np.ones(3_000)).atoms is None


@EVERY
def test_no_image_is_longer_than_the_bound(oracle: Oracle) -> None:
    """Corners of the box are all tried; others are climbed to, from many starts."""
    matrix = simulation.generator(5).standard_normal((4, 6))
    bound = oracle.made.image_norm_bound(matrix)
    longest = 0.0
    for g in directions(50):
        point = oracle.made.minimiser(g)
        for _ in range(30):
            point = oracle.made.minimiser(-(matrix.T @ (matrix @ point)))
        longest = max(longest, float(np.linalg.norm(matrix @ point)))
    assert longest <= bound
    if oracle.name in {"l1", "l2", "simplex", "group", "polytope", "polytope away"}:
        assert longest == pytest.approx(bound, rel=1e-9)
    if isinstance(oracle.made, Box):
        corners = itertools.product(*zip(oracle.made.low, oracle.made.high, strict=True))
        assert max(float(np.linalg.norm(matrix @ corner)) for corner in corners) <= bound


def test_the_hull_of_atoms_that_repeat_or_lie_on_a_line() -> None:
    line = np.outer(np.arange(5.0), [1.0, 2.0, 3.0])
    flat = Polytope(np.vstack([line, line, line[2:3]]))
    assert flat.project(np.array([2.5, 5.0, 7.5])) == pytest.approx([2.5, 5.0, 7.5], abs=1e-12)
    assert flat.project(np.array([9.0, 9.0, 90.0])) == pytest.approx(line[4], abs=1e-12)
    assert Polytope(np.ones((4, 3))).project(np.zeros(3)) == pytest.approx(np.ones(3))


def test_a_mixture_that_was_stopped_says_how_far_it_may_be_off() -> None:
    drawn = simulation.generator(9)
    atoms = Atoms(200, signed=True, size=1.0, matrix=drawn.standard_normal((20, 200)))
    point = drawn.standard_normal(20) * 2
    best = nearest_mixture(atoms, point, tolerance=1e-7, cap=1_000)
    assert best.gap <= 1e-7
    for cap in (1, 3, 8):
        rough = nearest_mixture(atoms, point, tolerance=1e-7, cap=cap)
        assert 1e-6 < float(np.linalg.norm(rough.point - best.point)) <= rough.gap + 1e-7


def test_wide_sets_are_projected_onto() -> None:
    d = 100_000
    point = simulation.generator(3).standard_normal(d)
    for made in (L1Ball(d), Simplex(d), GroupBall(np.arange(d) // 3)):
        found = made.project(point)
        assert made.gauge(found) == pytest.approx(1, rel=1e-12)
        away = point - found
        assert away @ found == pytest.approx(away @ made.minimiser(-away), rel=1e-10)


@EVERY
def test_facts_can_be_written_and_tell_sets_apart(oracle: Oracle) -> None:
    facts = json.loads(json.dumps(dict(oracle.made.facts())))
    assert facts["set"] == oracle.made.name
    assert facts["dimension"] == oracle.made.dimension
    others = [dict(other.made.facts()) for other in SMALL if other is not oracle]
    assert dict(oracle.made.facts()) not in others
    assert dict(oracle.made.facts()) not in [dict(other.made.facts()) for other in sets(8)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L1Ball(0), "'dimension' parameter of L1Ball"),
        (lambda: L1Ball(3, -1.0), "'radius' parameter of L1Ball"),
        (lambda: L2Ball(3, math.inf), "'radius' parameter of L2Ball"),
        (lambda: Simplex(3, 0.0), "'size' parameter of Simplex"),
        (lambda: GroupBall(np.array([[0], [1]])), "'groups' parameter of GroupBall"),
        (lambda: GroupBall(ANYTHING([0.5, 1])), "'groups' parameter of GroupBall"),
        (lambda: Box(np.array([0.0, 1.0]), np.array([1.0, 0.0])), "'high' parameter of Box"),
        (lambda: Box(np.array([0.0, 1.0]), np.ones(1)), "'high' parameter of Box"),
        (lambda: Box(np.array([0.0, math.nan]), np.ones(2)), "'low' parameter of Box"),
        (lambda: Polytope(np.zeros(3)), "'vertices' parameter of Polytope"),
        (lambda: Polytope(ANYTHING("no")), "'vertices' parameter of Polytope"),
        (lambda: Moved(ANYTHING("no")), "'base' parameter of Moved"),
        (lambda: Moved(L1Ball(3), 0.0), "'factor' parameter of Moved"),
        (lambda: Moved(L1Ball(3), 1.0, np.ones(2)), "'shift' parameter of Moved"),
    ],
)
def test_what_makes_no_set_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_sets_cannot_be_changed_from_outside() -> None:
    low = np.zeros(2)
    box = Box(low, np.ones(2))
    low[0] = 5
    assert box.low[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        box.high[0] = 2
    sized: ConvexSet = L1Ball(2)
    assert sized == L1Ball(2, 1.0)
