"""What the mechanisms are calibrated to: oracles, laws and limits."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import (
    AdditiveWishart,
    AnalyzeGauss,
    GaussianSketch,
    InverseWishart,
    MomentsMechanism,
)
from dplinear.mechanisms.moments import analyze_gauss
from dplinear.noise import simulation
from dplinear.papers.sheffet.published import PublishedAnalyzeGauss, PublishedSketch
from dplinear.privacy import ZCDP, ApproxDP, Neighbours
from dplinear.registry import MOMENTS

from .tables import FALSE_ALARM, UNIT, draws, multiple, random_statistic, released, shape_of

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(0.1, 0.0275446502438276), (1, 0.236704380663436), (4, 0.837858757089998)]
)
@pytest.mark.parametrize(("relation", "distance"), [(ADD, 1.0), (REPLACE, math.sqrt(2))])
def test_sigma_of_analyze_gauss(
    epsilon: float, mu: float, relation: Neighbours, distance: float
) -> None:
    mechanism = AnalyzeGauss(guarantee=ApproxDP(epsilon, 1e-6), neighbours=relation)
    law = released(mechanism, UNIT[5]).noise_model
    assert math.sqrt(law.diagonal) == pytest.approx(distance / mu, rel=1e-7)
    assert law.off_diagonal == law.diagonal / 2
    alone = released(
        mechanism, UNIT[1]
    ).noise_model  # in one dimension rows are never at right angles
    assert math.sqrt(alone.diagonal) == pytest.approx(1 / mu, rel=1e-7)


def test_concentrated_noise_is_exact() -> None:
    for relation, square in ((ADD, 1.0), (REPLACE, 2.0)):
        mechanism = AnalyzeGauss(guarantee=ZCDP(0.02), neighbours=relation)
        measured = released(mechanism, UNIT[5])
        assert measured.noise_model.diagonal == pytest.approx(square / (2 * 0.02), rel=1e-14)
        assert measured.account.holds == ZCDP(0.02)
        assert measured.account.profile.mu**2 / 2 <= 0.02 * (1 + 1e-15)


@pytest.mark.parametrize("guarantee", [ApproxDP(1e-3, 1e-6), ApproxDP(0.1, 1e-9), ZCDP(1e-8)])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_wide_noise_goes_to_a_coarser_grid(guarantee: Any, relation: Neighbours) -> None:
    """σ² would be far above what the sampler takes; the coarser grid costs next to nothing."""
    shape = Shape(40, 2**22, 26)
    measured = released(AnalyzeGauss(guarantee=guarantee, neighbours=relation), shape)
    fine = released(AnalyzeGauss(guarantee=guarantee, neighbours=relation), Shape(40, 64, 10))
    scale = float(shape.bound / Shape(40, 64, 10).bound) ** 4
    assert measured.parameters["grid_step"] > 1 / shape.unit
    assert measured.noise_model.diagonal == pytest.approx(
        fine.noise_model.diagonal * scale, rel=2e-3
    )
    assert measured.noise_model.diagonal > released(
        AnalyzeGauss(guarantee=guarantee, neighbours=relation), Shape(40, 2**16, 20)
    ).noise_model.diagonal * (1 - 1e-9)
    if isinstance(guarantee, ApproxDP):
        assert measured.account.profile.delta(guarantee.epsilon) <= guarantee.delta


def test_a_coarser_grid_moves_neighbours_by_no_more_than_it_claims() -> None:
    """Rounded differences of random neighbours stay within the widened sensitivity."""
    shape, step = Shape(3, 2**6, 8), 10
    generator = simulation.generator(4)
    difference = analyze_gauss.Difference.of(shape, step, ADD, 2)
    largest = 0.0
    for _ in range(300):
        base = generator.integers(0, 2**30, (3, 3)).astype(object)
        row = generator.normal(size=3)
        exact = np.trunc(row / np.linalg.norm(row) * 2**8).astype(int).astype(object)
        gap = analyze_gauss._coarser(base + np.outer(exact, exact), step) - analyze_gauss._coarser(
            base, step
        )
        largest = max(largest, float(np.sqrt((gap.astype(float) ** 2).sum())))
    assert 2**16 / 2**10 < largest <= difference.norm


def test_the_least_noise_is_the_least_of_the_grid() -> None:
    """On a coarse grid a huge ε asks for less noise than the grid lemma covers: more is drawn."""
    shape = Shape(3, 1, 1)
    measured = released(AnalyzeGauss(guarantee=ApproxDP(1e6, 1e-6)), shape)
    assert measured.noise_model.diagonal == 242.0
    assert measured.noise_model.off_diagonal == 121.0
    assert measured.account.profile.delta(1e6) <= 1e-6


@pytest.mark.parametrize(
    ("relation", "epsilon", "rows", "ridge"),
    [
        (ADD, 0.1, 80, 274.440294707),
        (ADD, 1, 80, 32.4083537187),
        (ADD, 1, 500, 72.3522086943),
        (ADD, 2, 40, 12.9871767199),
        (REPLACE, 1, 80, 39.1203482),
        (REPLACE, 0.1, 80, 335.839753),
    ],
)
def test_ridges_of_sketches_and_inverse_wishart_draws(
    relation: Neighbours, epsilon: float, rows: int, ridge: float
) -> None:
    asked = ApproxDP(epsilon, 1e-6)
    sketch = released(GaussianSketch(guarantee=asked, neighbours=relation, rows=rows), UNIT[10])
    assert sketch.noise_model.ridge == pytest.approx(ridge, rel=1e-8)
    inverse = InverseWishart(guarantee=asked, neighbours=relation, degrees=rows)
    assert released(inverse, UNIT[10]).noise_model.ridge == pytest.approx(ridge, rel=1e-8)


@pytest.mark.parametrize(
    ("relation", "epsilon", "d", "degrees"),
    [(ADD, 0.1, 40, 883), (ADD, 0.5, 10, 95), (ADD, 1, 5, 47), (REPLACE, 1, 5, 62),
     (REPLACE, 0.5, 10, 162)],
)  # fmt: skip
def test_degrees_of_wishart_noise(
    relation: Neighbours, epsilon: float, d: int, degrees: int
) -> None:
    asked = ApproxDP(epsilon, 1e-6)
    measured = released(AdditiveWishart(guarantee=asked, neighbours=relation, scale=1.0), UNIT[d])
    assert measured.noise_model == WishartNoise(degrees, 1.0)


LAWS: list[tuple[type[MomentsMechanism], dict[str, Any]]] = [
    (AnalyzeGauss, {}),
    (PublishedAnalyzeGauss, {}),
    (AdditiveWishart, {"most_degrees": 60}),
    (GaussianSketch, {"rows": 20}),
    (GaussianSketch, {"rows": 2}),
    (InverseWishart, {"degrees": 40}),
]


@pytest.mark.parametrize(("kind", "options"), LAWS)
def test_releases_follow_the_law_they_state(kind: Any, options: dict[str, Any]) -> None:
    """Means and variances of five projections, each at its share of the false-alarm rate."""
    shape = shape_of(3)
    table = random_statistic(shape, 40, seed=5)
    mechanism: Any = kind(guarantee=ApproxDP(2.0, 0.01), **options)
    seen = draws(mechanism.prepare(shape), table, 1500, seed=6)
    law = seen[0].noise_model
    gram = table.matrix()
    unbiased = np.array([law.unbiased_estimate(one.values) for one in seen])
    generator = simulation.generator(7)
    for case in range(5):
        direction = generator.normal(size=(3, 3)) if case else np.diag([0.0, 1.0, 0.0])
        direction = direction + direction.T
        if case == 1:
            direction -= np.diag(np.diag(direction))
        found = (direction * unbiased).sum((-2, -1))
        variance = float(law.variance(direction, gram))
        limit = float(stats.norm.isf(FALSE_ALARM / 20))
        error = math.sqrt(variance / len(found))
        assert abs(found.mean() - (direction * gram).sum()) <= 1.3 * limit * error
        spread = ((found - found.mean()) ** 2).std() / math.sqrt(len(found))
        assert abs(found.var() - variance) <= 1.3 * limit * spread
        assert spread < variance / 10  # so that twice or half the variance would be seen


def test_too_much_noise_off_the_diagonal_would_be_seen() -> None:
    honest = SymmetricGaussian(2.0, 1.0)
    careless = SymmetricGaussian(2.0, 2.0)
    direction = np.ones((3, 3)) - np.eye(3)
    assert careless.variance(direction, np.eye(3)) == 2 * honest.variance(direction, np.eye(3))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_without_a_budget_to_speak_of_regression_is_that_of_the_table(
    relation: Neighbours,
) -> None:
    """At ε = 1e6 coefficients agree with ordinary least squares to 1e-4."""
    shape = Shape(6, 2**19, 21)
    generator = simulation.generator(8)
    rows = generator.integers(-(2**19), 2**19 + 1, (20_000, 6))
    rows[:, 5] = (rows[:, :5] @ [4, -3, 2, 0, 1] + rows[:, 5]) // 11
    exact = rows.astype(object)
    table = Statistic(shape, np.asarray(exact.T @ exact))
    truth = np.linalg.lstsq(rows[:, :5].astype(float), rows[:, 5].astype(float), rcond=None)[0]
    for kind in (AnalyzeGauss, AdditiveWishart):
        mechanism: Any = kind(guarantee=ApproxDP(1e6, 1e-6), neighbours=relation)
        measured = mechanism.prepare(shape).run(table, simulation.entropy(9))
        whole = measured.noise_model.unbiased_estimate(measured.values)
        np.testing.assert_allclose(np.diag(whole), np.diag(table.matrix()), rtol=1e-4)
        found = np.linalg.solve(whole[:5, :5], whole[:5, 5])
        np.testing.assert_allclose(found, truth, atol=1e-4 * float(np.abs(truth).max()))


def test_integers_beyond_floats_keep_their_digits() -> None:
    """The noise is added to the exact integer, and the sum is rounded once."""
    shape = Shape(2, 2**20, 20)
    huge = np.array([[2**90 + 3, 2**70 + 1], [2**70 + 1, 2**89 + 7]], object)
    nothing = np.zeros((2, 2), object)
    prepared = AnalyzeGauss(guarantee=ApproxDP(1.0, 1e-6)).prepare(shape)
    noise, total = (
        prepared.run(Statistic(shape, integers), simulation.entropy(10)).values
        for integers in (nothing, huge)
    )
    for place in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert total[place] == float(huge[place] + Fraction(noise[place]) * 4**20) / 4**20


def test_a_nearly_singular_table_never_stops_a_draw() -> None:
    """A large table of one direction and a ridge lost in rounding beside it."""
    shape = shape_of(3, 20)
    row = np.array([2**19, 2**18, -(2**18)], object)
    table = Statistic(shape, np.outer(row, row) * 10**14, 10**14)
    for name in ("sketch", "inverse_wishart"):
        variant: dict[str, Any] = {"least_eigenvalue_share": 0.1, "adjust": "rows"}
        for options in ({}, variant):
            mechanism: Any = MOMENTS[name](guarantee=ApproxDP(1e5, 1e-6), **options)
            measured = mechanism.prepare(shape).run(table, simulation.entropy(2))
            assert np.isfinite(measured.values).all()


def test_many_rows_where_the_least_eigenvalue_is_large() -> None:
    """A million rows, well conditioned: next to no ridge, and hundreds of thousands of rows."""
    shape = Shape(5, 2**19, 21)
    table = multiple(shape, 10**6 * 4**19 // 3)
    asked = ApproxDP(1.0, 1e-6)
    for kind, least in ((GaussianSketch, 5_000_000), (PublishedSketch, 50_000)):
        mechanism = kind(guarantee=asked, least_eigenvalue_share=0.1, adjust="rows")
        measured = mechanism.prepare(shape).run(table, simulation.entropy(1))
        assert isinstance(measured.noise_model, SketchNoise)
        assert 0 < measured.noise_model.ridge < 1e-3
        assert measured.noise_model.rows > least
        assert measured.account.holds == asked
    small = Statistic(shape, np.zeros((5, 5), object))
    fallen = GaussianSketch(guarantee=asked, least_eigenvalue_share=0.1, adjust="rows", ridge=3.0)
    back = fallen.prepare(shape).run(small, simulation.entropy(1))
    assert back.parameters["adjust"] == "ridge"
    assert back.parameters["rows"] == 10
    assert back.parameters["ridge"] > 3
    kept = InverseWishart(guarantee=asked, least_eigenvalue_share=0.1, adjust="rows", ridge=3.0)
    drawn = kept.prepare(shape).run(table, simulation.entropy(1))
    assert isinstance(drawn.noise_model, InverseWishartNoise)
    assert drawn.noise_model.ridge == 3.0
    assert drawn.noise_model.degrees > 5_000_000
