"""Neighbours replayed: releases of both tables, their exact likelihood ratios, and what is claimed.

The claimed δ(ε) must not lie below Clopper and Pearson's interval of the δ that is measured; where
the profile is exact and the pair the worst, not above it either. Planted bugs must be caught.
"""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import (
    AdditiveWishart,
    AnalyzeGauss,
    GaussianSketch,
    InverseWishart,
    Measurement,
    MomentsMechanism,
)
from dplinear.mechanisms.moments import analyze_gauss, ridged
from dplinear.mechanisms.moments.eigenvalues import UNITS
from dplinear.mechanisms.moments.least_eigenvalue import AfterQuery, LeastEigenvalue, Query
from dplinear.noise import simulation
from dplinear.papers.sheffet.published import PublishedAnalyzeGauss, PublishedSketch
from dplinear.papers.sheffet.ridges import PublishedRidged
from dplinear.privacy import ApproxDP, Neighbours
from dplinear.privacy.rounding import ceiling
from refusals import refused

from . import likelihoods
from .tables import Loss, Matrix, axis, claimed, draws, interval, multiple, replayed, statistic

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

COUNT = 500
QUERIES = 2500
# A large δ, so that a few hundred releases measure it.
EPSILON = 0.5
ASKED = ApproxDP(EPSILON, 0.25)
SHAPE = Shape(2, 45, 6)

CASES: list[tuple[type[MomentsMechanism], dict[str, Any], Loss]] = [
    (AnalyzeGauss, {}, likelihoods.gaussian),
    (AdditiveWishart, {}, likelihoods.wishart),
    (AdditiveWishart, {"most_degrees": 12}, likelihoods.wishart),
    (GaussianSketch, {"rows": 3}, likelihoods.sketch),
    (GaussianSketch, {"rows": 3, "release": "sketch"}, likelihoods.sketch),
    (InverseWishart, {"degrees": 6}, likelihoods.inverse),
]


def neighbours(relation: str) -> tuple[Statistic, Statistic]:
    """Return the tables that are hardest to hide: an empty one, or rows at right angles."""
    first = statistic(SHAPE, [axis(SHAPE, 0)])
    return first, statistic(SHAPE, [axis(SHAPE, 1)] if relation == "replace" else [])


def build(kind: type[MomentsMechanism], relation: str, options: dict[str, Any]) -> Any:
    return kind(guarantee=ASKED, neighbours=Neighbours(relation), **options)


@pytest.mark.parametrize("count", [COUNT, pytest.param(40 * COUNT, marks=pytest.mark.long)])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(("kind", "options", "loss"), CASES)
def test_claims_hold_and_are_tight(
    kind: type[MomentsMechanism], options: dict[str, Any], loss: Loss, relation: str, count: int
) -> None:
    prepared = build(kind, relation, options).prepare(SHAPE)
    one, other = neighbours(relation)
    curves = claimed(prepared, one).directions(np.array([EPSILON]))
    removing, adding = (float(curve[0]) for curve in curves)
    low, high = replayed(prepared, one, other, loss, EPSILON, count)
    back_low, back_high = replayed(prepared, other, one, loss, EPSILON, count)
    assert low <= removing
    assert back_low <= adding
    if kind is AdditiveWishart and relation == "replace":
        return  # a bound, not the profile of these rows
    assert removing <= high
    assert adding <= back_high


def test_oblique_rows_are_as_far_apart_for_halved_noise() -> None:
    """Along the diagonal both kinds of entries count: with σ² everywhere δ would be less."""
    prepared = build(AnalyzeGauss, "add_remove", {}).prepare(SHAPE)
    oblique = statistic(SHAPE, [[45, 45]])
    low, high = replayed(
        prepared, oblique, statistic(SHAPE, []), likelihoods.gaussian, EPSILON, 2 * COUNT
    )
    assert low <= claimed(prepared, oblique).delta(EPSILON) <= high


def test_the_published_sigma_is_replayed_with_its_own_law() -> None:
    asked = ApproxDP(1.0, 0.2)
    prepared = PublishedAnalyzeGauss(guarantee=asked).prepare(SHAPE)
    one, other = neighbours("add_remove")
    low, high = replayed(prepared, one, other, likelihoods.gaussian, 0.1, COUNT)
    assert low <= claimed(prepared, one).delta(0.1) <= high


def test_a_lost_root_of_two_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = analyze_gauss.Difference.of

    def careless(shape: Shape, step: int, relation: Neighbours, weight: int, *others: Any) -> Any:
        del relation
        return honest(shape, step, Neighbours.ADD_REMOVE, weight, *others)

    monkeypatch.setattr(analyze_gauss.Difference, "of", careless)
    prepared = build(AnalyzeGauss, "replace", {}).prepare(SHAPE)
    one, other = neighbours("replace")
    low, _ = replayed(prepared, one, other, likelihoods.gaussian, EPSILON, COUNT)
    assert low > claimed(prepared, one).delta(EPSILON)


def test_too_little_noise_off_the_diagonal_is_caught() -> None:
    prepared = build(AnalyzeGauss, "add_remove", {}).prepare(SHAPE)
    careless = dataclasses.replace(prepared, weight=6)
    oblique = statistic(SHAPE, [[45, 45]])
    low, _ = replayed(careless, oblique, statistic(SHAPE, []), likelihoods.gaussian, EPSILON, COUNT)
    assert low > claimed(careless, oblique).delta(EPSILON)


def test_a_ridge_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridged, "ceiling", lambda exact: ceiling(exact) / 2)
    prepared = build(GaussianSketch, "add_remove", {"rows": 3}).prepare(SHAPE)
    one, other = neighbours("add_remove")
    low, _ = replayed(prepared, one, other, likelihoods.sketch, EPSILON, COUNT)
    assert low > claimed(prepared, one).delta(EPSILON)


# The least eigenvalue


def failures(query: Query) -> tuple[float, float]:
    """Return the interval of the probability that the bound exceeds what a neighbour has."""
    entropy = simulation.entropy(21)
    square, least = Fraction(3), 30.0
    units = 10 * UNITS  # the most that a table with an eigenvalue of 30 may be said to have
    bounds = [query.ask(units, square, entropy) for _ in range(QUERIES)]
    # The neighbour without a row has an eigenvalue of 30 − 3.
    return interval(sum(bound > least - 3 for bound in bounds), QUERIES)


def test_the_bound_on_the_least_eigenvalue_fails_as_rarely_as_promised() -> None:
    query = Query(1.0, 0.05)
    low, high = failures(query)
    assert low <= 0.05 <= high


def test_forgetting_the_row_that_a_neighbour_lacks_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = Query.ask
    monkeypatch.setattr(
        Query, "ask", lambda self, units, square, entropy: honest(self, units, square, entropy) + 3
    )
    low, _ = failures(Query(1.0, 0.05))
    assert low > 0.05


def test_forgetting_the_margin_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Query, "margin", 0)
    low, _ = failures(Query(1.0, 0.05))
    assert low > 0.05


def after_query(loss: Loss, query: Query) -> Loss:
    """Return the loss of the answer and the draw together, from the densities of both."""

    def together(measurement: Measurement, one: Matrix, other: Matrix) -> float:
        square = float(SHAPE.bound**2)
        units = round(float(measurement.parameters["lambda_lower"]) / square * 2**20)

        def density(gram: Matrix) -> float:
            least = max(float(np.linalg.eigvalsh(gram)[0]), 0.0)
            centre = np.floor(least / square * 2**20) - query.margin - 2**20
            return -abs(units - float(centre)) / float(query.scale)

        return density(one) - density(other) + loss(measurement, one, other)

    return together


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("kind", "options", "loss"),
    [
        (GaussianSketch, {"rows": 3}, likelihoods.sketch),
        (GaussianSketch, {"rows": 3, "adjust": "rows", "most_rows": 100}, likelihoods.sketch),
        (InverseWishart, {"degrees": 6}, likelihoods.inverse),
        (
            InverseWishart,
            {"degrees": 6, "adjust": "rows", "most_degrees": 100},
            likelihoods.inverse,
        ),
    ],
)
@pytest.mark.parametrize("eigenvalue", [1, 30])
@pytest.mark.parametrize("count", [12, pytest.param(3000, marks=pytest.mark.long)])
def test_the_query_and_the_draw_keep_their_promise_together(
    kind: type[MomentsMechanism],
    options: dict[str, Any],
    loss: Loss,
    relation: str,
    eigenvalue: int,
    count: int,
) -> None:
    asked = ApproxDP(1.5, 0.3)
    options = {"least_eigenvalue_share": 0.4, **options}
    mechanism: Any = kind(guarantee=asked, neighbours=Neighbours(relation), **options)
    prepared = mechanism.prepare(SHAPE)
    base = multiple(SHAPE, eigenvalue * SHAPE.sensitivity)
    extra = [statistic(SHAPE, [axis(SHAPE, which)]).integers for which in (0, 1)]
    one = Statistic(SHAPE, base.integers + extra[0])
    other = Statistic(SHAPE, base.integers + extra[1]) if relation == "replace" else base
    joint = after_query(loss, prepared.ready.query)
    for left, right in ((one, other), (other, one)):
        low, _ = replayed(prepared, left, right, joint, 1.5, count)
        assert low <= claimed(prepared, left).delta(1.5) <= 0.3


def test_a_forgotten_failure_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If δ is all given to the draw, what was asked for is no longer kept, and is refused."""
    asked = ApproxDP(1.5, 0.3)
    mechanism = GaussianSketch(guarantee=asked, rows=3, least_eigenvalue_share=0.4)
    held = mechanism.prepare(SHAPE).ready
    assert isinstance(held, LeastEigenvalue)
    honest = held.account.profile
    assert isinstance(honest, AfterQuery)
    assert honest.failure == pytest.approx(0.03)
    assert 0.2999 < honest.delta(1.5) <= 0.3
    monkeypatch.setattr("dplinear.mechanisms.moments.least_eigenvalue.down", lambda *_: 0.3)
    with refused("guarantee", "LeastEigenvalue", "keep together"):
        mechanism.prepare(SHAPE)
    careless = PublishedSketch(guarantee=asked, rows=3, least_eigenvalue_share=0.4)
    monkeypatch.setattr(PublishedRidged, "floor", ridged.Ridged.floor)
    account = careless.prepare(SHAPE).account
    assert account.profile is not None
    assert account.profile.delta(1.5) > 0.3
    assert account.holds != asked


def test_the_adjusted_ridge_meets_the_bound_that_was_found() -> None:
    mechanism = GaussianSketch(guarantee=ASKED, rows=3, least_eigenvalue_share=0.4)
    prepared = mechanism.prepare(SHAPE)
    ready = prepared.ready
    assert isinstance(ready, LeastEigenvalue)
    seen = draws(prepared, multiple(SHAPE, 9 * SHAPE.sensitivity), 100, seed=31)
    ridges = [one.parameters["ridge"] for one in seen]
    known = [max(one.parameters["lambda_lower"], 0.0) for one in seen]
    assert min(ridges) < max(ridges)
    unit = 1 / SHAPE.unit  # ridges are whole units, and one at least (2^-30 of the floor is less)
    for ridge, bound in zip(ridges, known, strict=True):
        assert ridge + bound >= ready.floor
        assert ridge == unit or ridge + bound < (ready.floor + unit) * (1 + 1e-12)


def test_a_sum_that_was_rounded_up_to_the_floor_does_not_reach_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: dict[str, Any] = {"least_eigenvalue_share": 0.4, "adjust": "rows", "ridge": 1.0}
    ready = GaussianSketch(guarantee=ASKED, rows=3, **options).prepare(SHAPE).ready
    assert isinstance(ready, LeastEigenvalue)
    known, floor = 0.75 * 2.0**-52, 1 + 2.0**-52
    assert 1.0 + known == floor
    monkeypatch.setattr(Query, "ask", lambda *_: known)
    close = dataclasses.replace(ready, floor=floor)
    setting = close.settle(multiple(SHAPE, 0), simulation.entropy(1))
    assert Fraction(setting.units, setting.unit) + Fraction(known) >= Fraction(floor)
