"""Distances of projected rows: what they are off by, by how much they vary, and their edges."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import chi2

import dplinear as dpl
from dplinear.analyst.noise_models.rows import NOISES, PROJECTIONS
from dplinear.analyst.rows import distances
from dplinear.analyst.rows.distance_errors import DistanceErrorModel
from dplinear.noise import simulation
from refusals import refused

MEAN = 5.5  # standard errors: a false alarm in 3e7
VARIANCE = 4.9  # standard errors: one in 1e6
PAIRS = RELEASES = 1000


def projections(kind: str, count: int, d: int, k: int, generator: Any) -> Any:
    normal = generator.standard_normal((count, d, k))
    if kind == "gaussian":
        return normal / math.sqrt(k)
    if kind == "rademacher":
        return np.sign(normal) / math.sqrt(k)
    return np.linalg.qr(normal)[0] * math.sqrt(d / k)


def noisy(apart: Any, P: Any, noise: str, scale: Any, generator: Any) -> tuple[Any, Any]:
    """Return |U|² and the noise's variance of a released number, for each P and scale."""
    count, d, k = P.shape
    width = d if noise.startswith("perturbed") else k
    normal = noise.endswith("gaussian")
    drawn = (generator.normal if normal else generator.laplace)(0, 1, (2, count, width))
    steps = np.reshape(scale, (-1, 1)) * (drawn[0] - drawn[1])
    own = np.reshape(scale, -1) ** 2 * (1 if normal else 2)
    if noise.startswith("perturbed"):
        images = np.einsum("rd,rdk->rk", apart + steps, P)
        return (images**2).sum(1), own * (P**2).sum((1, 2)) / k
    images = np.einsum("rd,rdk->rk", apart, P)
    return ((images + steps) ** 2).sum(1), np.broadcast_to(own, count)


def scores(errors: Any, variance: Any) -> float:
    """Return by how many standard errors squares differ from a claimed variance, on average."""
    apart = np.ravel(errors**2 - variance)
    return float(apart.mean() / apart.std() * math.sqrt(apart.size))


@pytest.mark.heavy
@pytest.mark.parametrize("realised", [False, True])
def test_distances_are_recovered_and_vary_as_they_should_and_not_as_the_paper_says(
    realised: bool,
) -> None:
    # The paper's experiment: 1000 pairs, 1000 releases of each, d = 3, k = 2, ε = 4.
    generator = simulation.generator(7)
    d, k = 3, 2
    centres = np.array([[2.0, 0, 0], [-2.0, 0, 0]])
    rows = generator.standard_normal((2, PAIRS, d)) + centres[generator.integers(0, 2, (2, PAIRS))]
    squared = ((rows[0] - rows[1]) ** 2).sum(1)
    errors, claims, papers = (np.empty((PAIRS, RELEASES)) for _ in range(3))
    for pair in range(PAIRS):
        apart = np.tile(rows[0, pair] - rows[1, pair], (RELEASES, 1))
        P = projections("gaussian", RELEASES, d, k, generator)
        image = (np.einsum("rd,rdk->rk", apart, P) ** 2).sum(1)
        scale = np.abs(P).sum(2).max(1) / 4 if realised else np.full(RELEASES, 2 * math.sqrt(k) / 4)
        found, variance = noisy(apart, P, "laplace", scale, generator)
        s = squared[pair]
        errors[pair] = found - 2 * k * variance - s
        # A scale that is a function of P varies with |aP|²; otherwise their mean is s.
        between = image if realised else s
        claims[pair] = 2 / k * s**2 + 14 * k * variance**2 + 8 * variance * between
        papers[pair] = 2 / k * s**2 + 2 * k * (7 * variance**2 - variance) + 4 * variance * s
        if not realised:
            law = DistanceErrorModel("laplace", k, d, float(variance[0]), "gaussian")
            assert law.variances.at(s) == pytest.approx(claims[pair, 0], rel=1e-12)
            assert law.offset == pytest.approx(2 * k * variance[0])
    assert abs(errors.mean()) < MEAN * errors.std() / math.sqrt(errors.size)
    assert abs(scores(errors, claims)) < VARIANCE
    assert scores(errors, papers) > VARIANCE


@pytest.mark.heavy
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("noise", NOISES)
def test_the_variance_holds_for_every_projection_and_noise(projection: str, noise: str) -> None:
    generator = simulation.generator(11)
    d, k, count = 5, 3, 60_000
    apart = np.full((count, d), 2 / math.sqrt(d))  # where signs spread most
    P = projections(projection, count, d, k, generator)
    found, variance = noisy(apart, P, noise, 0.6, generator)
    law = DistanceErrorModel(noise, k, d, float(variance.mean()), projection)
    if noise.startswith("perturbed"):
        cell = 0.36 * (1 if noise.endswith("gaussian") else 2)
        law = DistanceErrorModel(noise, k, d, cell * d / k, projection)
    errors = found - 2 * k * variance - 4.0
    assert abs(errors.mean()) < MEAN * errors.std() / math.sqrt(count)
    assert abs(scores(errors, law.variances.at(np.array(4.0)))) < VARIANCE


@pytest.mark.parametrize(("d", "k"), [(3, 2), (6, 6)])
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("noise", NOISES)
def test_drawn_parts_have_the_moments_of_the_law(
    noise: str, projection: str, d: int, k: int
) -> None:
    law = DistanceErrorModel(noise, k, d, 0.4, projection)
    parts = law.parts(40_000, simulation.generator(3))
    for s in (0.0, 2.0):
        drawn = s * parts.own + 2 * math.sqrt(s) * parts.cross + parts.noise - law.offset - s
        assert abs(drawn.mean()) < MEAN * drawn.std() / 200
        claimed = law.variances.at(np.array(s))
        if projection == "rademacher":  # drawn as a normal projection
            claimed = DistanceErrorModel(noise, k, d, 0.4, "gaussian").variances.at(np.array(s))
        if law.before:  # drawn without what is known of |P|², which only widens
            assert drawn.var() > 0.9 * claimed
        else:
            assert abs(scores(drawn, claimed)) < VARIANCE


@pytest.mark.heavy
@pytest.mark.parametrize("squared", [0.0, 1.0, 16.0])
@pytest.mark.parametrize(
    ("noise", "projection", "realised"),
    [
        ("laplace", "gaussian", False),
        ("laplace", "gaussian", True),
        ("gaussian", "gaussian", False),
        ("laplace", "orthonormal", False),
        ("gaussian", "rademacher", False),
        ("perturbed", "gaussian", False),
        ("perturbed gaussian", "orthonormal", False),
    ],
)
def test_intervals_cover(noise: str, projection: str, realised: bool, squared: float) -> None:
    generator = simulation.generator(5)
    d, k, count = 6, 3, 20_000
    apart = generator.standard_normal((count, d))
    apart *= math.sqrt(squared) / np.linalg.norm(apart, axis=1, keepdims=True)
    P = projections(projection, count, d, k, generator)
    scale = np.abs(P).sum(2).max(1) / 4 if realised else 0.5
    found, variance = noisy(apart, P, noise, scale, generator)
    # All in units of each release's own noise, so that one law serves all.
    law = DistanceErrorModel(noise, k, d, 1.0, projection)
    shown = distances.Distances(law, found / variance, np.zeros(count, bool))
    covered = {}
    for method in distances.METHODS:
        low, high = shown.interval(0.95, method)
        assert (low <= high).all()
        covered[method] = np.mean((low <= squared / variance) & (squared / variance <= high))
    # The draws here and those of the table, at a false-alarm rate of 1e-6.
    slack = VARIANCE * math.sqrt(0.05 * 0.95 * (1 / count + 1 / 40_000))
    assert covered["chebyshev"] > 0.95
    exact = noise in {"laplace", "gaussian"} and projection != "rademacher" and not realised
    assert covered["simulated"] > 0.95 - slack - (0 if exact else 0.01)
    if exact and squared:
        assert covered["simulated"] < 0.95 + slack


def test_normal_rows_have_exact_chi_square_intervals() -> None:
    # A normal projection and normal noise: |U|² is (s/k + 2σ²)·χ²_k.
    law = DistanceErrorModel("gaussian", 8, 20, 0.25, "gaussian")
    found = np.array([5.0, 20.0, 400.0])
    low, high = distances.simulated_interval(found, law, 0.1)
    ends = [8 * (found / chi2.ppf(q, 8) - 0.5) for q in (0.95, 0.05)]
    np.testing.assert_allclose(low, np.maximum(ends[0], 0), rtol=0.03, atol=0.03)
    np.testing.assert_allclose(high, np.maximum(ends[1], 0), rtol=0.03)


def test_chebyshev_solves_its_inequality() -> None:
    law = DistanceErrorModel("laplace", 100, 200, 0.02, "gaussian")
    grid = np.linspace(0, 200, 200_001)
    for estimate in (-6.0, 0.0, 3.0, 40.0):
        low, high = distances.chebyshev(np.array(estimate), law.variances, 0.1)
        inside = grid[(estimate - grid) ** 2 <= law.variances.at(grid) / 0.1]
        if len(inside):
            assert low == pytest.approx(inside[0], abs=2e-3)
            assert high == pytest.approx(inside[-1], abs=2e-3)
    few = DistanceErrorModel("laplace", 2, 200, 0.02, "gaussian")
    low, high = distances.chebyshev(np.array([50.0, 0.0]), few.variances, 0.05)
    inside = grid[(50 - grid) ** 2 <= few.variances.at(grid) / 0.05]
    assert low[0] == pytest.approx(inside[0], abs=2e-3)
    assert low[1] == 0
    assert np.isinf(high).all()


@pytest.fixture(scope="module")
def released() -> tuple[Any, Any]:
    """Return cells, and their release with hardly any noise through an isometry."""
    cells = simulation.generator(1).uniform(-1, 1, (60, 4))
    cells[7] = cells[3]
    schema = dpl.Schema(dict.fromkeys("abcd", (-1, 1)))
    with simulation.door(1):
        rows = dpl.release_rows(
            cells, schema, mechanism="projection", epsilon=1e7, k=4, projection="orthonormal"
        )
    return cells, rows


def test_without_noise_distances_and_neighbours_are_those_of_the_rows(released: Any) -> None:
    cells, rows = released
    true = squareform(pdist(cells, "sqeuclidean"))
    np.testing.assert_allclose(rows.distance_matrix(), true, atol=1e-4)
    np.testing.assert_allclose(squareform(rows.distance_matrix(condensed=True)), true, atol=1e-4)
    np.fill_diagonal(true, np.inf)
    found = rows.nearest(np.arange(60), 5)
    np.testing.assert_array_equal(found.indices[:, 0][[3, 7]], [7, 3])
    places, wanted = found.indices, np.argsort(true)[:, :5]
    # Rows 3 and 7 are equal, so they come in either order.
    np.testing.assert_array_equal(
        np.where(places == 7, 3, places), np.where(wanted == 7, 3, wanted)
    )
    np.testing.assert_allclose(found.squared, np.sort(true, axis=1)[:, :5], atol=1e-4)
    assert rows.nearest(3).indices.shape == (1,)
    kernel = rows.kernel(0.7)
    np.fill_diagonal(true, 0)
    np.testing.assert_allclose(kernel, np.exp(-true / (2 * 0.49)), atol=1e-3)
    np.testing.assert_array_equal(rows.kernel(0.7, 2, [5, 2]), kernel[[2]][:, [5, 2]])


def test_a_row_is_where_it_is(released: Any) -> None:
    _, rows = released
    same = rows.distances([2, -1, 0], [2, 59, 1])
    np.testing.assert_array_equal(same.squared[:2], 0)
    np.testing.assert_array_equal(same.standard_error[:2], 0)
    for method in distances.METHODS:
        np.testing.assert_array_equal(same.interval(0.9, method).high[:2], 0)
    assert same.squared[2] > 0
    assert same.lengths[2] == pytest.approx(math.sqrt(same.squared[2]))
    assert float(rows.distances(0, 1).squared) == same.squared[2]
    assert rows.distances(np.empty(0, int), 3).squared.shape == (0,)
    assert "3 estimated squared distance(s)" in repr(same)


def test_blocks_make_the_matrix(released: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, rows = released
    whole, near = rows.distance_matrix(), rows.nearest(np.arange(60), 3)
    pairs = rows.distances(np.arange(60)[:, None], np.arange(60))
    np.testing.assert_allclose(pairs.squared, whole, atol=1e-12)
    monkeypatch.setattr(distances, "_BLOCK", 130)
    blocks = list(rows.distance_blocks())
    assert [start for start, _ in blocks] == list(range(0, 60, 2))
    np.testing.assert_allclose(np.concatenate([block for _, block in blocks]), whole, atol=1e-12)
    np.testing.assert_array_equal(rows.nearest(np.arange(60), 3).indices, near.indices)
    again = rows.distances(np.arange(60)[:, None], np.arange(60))
    np.testing.assert_array_equal(again.noisy, pairs.noisy)


def test_one_row_has_no_neighbour() -> None:
    law, one = DistanceErrorModel("laplace", 2, 3, 1.0, "gaussian"), np.ones((1, 2))
    np.testing.assert_array_equal(distances.distance_matrix(one, law), [[0.0]])
    assert distances.distance_matrix(one, law, condensed=True).shape == (0,)
    assert distances.distances(one, law, 0, 0).squared == 0
    with refused("rows", "nearest", "at least two"):
        distances.nearest(one, law, 0)


@pytest.mark.parametrize(
    ("i", "error"), [(60, ValueError), (-61, ValueError), (0.5, TypeError), ("a", TypeError)]
)
def test_places_are_those_of_rows(released: Any, i: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="'i' parameter of distances must be"):
        released[1].distances(i, 0)


def test_wrong_arguments_are_refused(released: Any) -> None:
    _, rows = released
    with refused("count", "nearest"):
        rows.nearest(0, 60)
    for confidence in (0, 1, "?"):
        with pytest.raises((ValueError, TypeError), match="'confidence' parameter"):
            rows.distances(0, 1).interval(confidence)
    with refused("method", "Distances.interval", "one of 'simulated', 'chebyshev'"):
        rows.distances(0, 1).interval(method="exact")


def test_rows_that_were_not_projected_have_no_such_distances() -> None:
    schema = dpl.Schema({"a": (-1, 1)})
    rows = dpl.release_rows(np.zeros((3, 1)), schema, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match=r"released through a projection.*additive noise"):
        rows.distances(0, 1)


def test_rows_that_were_projected_have_no_moments() -> None:
    schema = dpl.Schema({"a": (-1, 1), "b": (-1, 1)})
    rows = dpl.release_rows(np.zeros((3, 2)), schema, k=1, epsilon=1.0)
    with pytest.raises(ValueError, match=r"'rows' parameter.*\n\nHint: .* are for distances"):
        rows.regress("a")
