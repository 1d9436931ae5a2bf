"""Images of sets: their radius, and the nearest point with its proof."""

from dataclasses import dataclass

import numpy as np
import pytest

from dplinear.convex.compression.images import Image
from dplinear.convex.sets import L1Ball, L2Ball, Moved
from dplinear.noise import simulation

from .convex import Floats, Oracle, sets

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

SOURCE, TARGET = 30, 8


@dataclass(frozen=True, eq=False)
class Dense:
    """A map that is a matrix."""

    matrix: Floats

    @property
    def target(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def source(self) -> int:
        return int(self.matrix.shape[1])

    def forward(self, vector: Floats) -> Floats:
        return np.asarray(self.matrix @ vector)

    def adjoint(self, vector: Floats) -> Floats:
        return np.asarray(self.matrix.T @ vector)


PHI = Dense(simulation.generator(1).standard_normal((TARGET, SOURCE)) / np.sqrt(TARGET))
EVERY = pytest.mark.parametrize("oracle", sets(SOURCE), ids=lambda oracle: oracle.name)


def points(image: Image, count: int = 3) -> list[Floats]:
    """Return points well inside, about the rim, outside and far away, about the image."""
    drawn = simulation.generator(2)
    sizes = [0.01, 0.2, 0.6, 2.0, 1e6]
    middle = image.forward(image.base.minimiser(np.zeros(SOURCE)))
    return [
        middle * (size < 1) + size * image.radius * drawn.standard_normal(TARGET)
        for size in sizes
        for _ in range(count)
    ]


@EVERY
def test_the_nearest_point_is_nearest(oracle: Oracle) -> None:
    """No point of the image is further towards what is left, and the image is where it came from.

    The inequality with slack s proves a distance of √s at most from the nearest point.
    """
    image = Image(oracle.made, PHI)
    for point in points(image):
        found = image.project(point)
        assert oracle.outside(found.source) <= 1e-9
        assert found.point == pytest.approx(PHI.forward(found.source), abs=1e-12)
        left = point - found.point
        slack = oracle.support(PHI.adjoint(left)) - float(left @ found.point)
        size = max(1.0, float(np.linalg.norm(left)) / image.radius)
        assert slack <= (2e-7 * image.radius) ** 2 * size
        assert found.gap**2 >= slack - 1e-14 * size * image.radius**2
        again = image.project(point, near=found.source)
        assert again.point == pytest.approx(found.point, abs=5e-7 * image.radius)


@EVERY
def test_points_of_the_image_stay(oracle: Oracle) -> None:
    image = Image(oracle.made, PHI)
    for g in simulation.generator(3).standard_normal((5, SOURCE)):
        place = PHI.forward(0.6 * oracle.made.minimiser(g) + 0.4 * oracle.made.minimiser(-g))
        found = image.project(place)
        assert found.point == pytest.approx(place, abs=2e-7 * image.radius)


@EVERY
def test_a_search_that_was_stopped_says_how_far_it_may_be_off(oracle: Oracle) -> None:
    image = Image(oracle.made, PHI)
    for point in points(image, 1):
        exact = image.project(point)
        rough = image.project(point, cap=2)
        off = float(np.linalg.norm(rough.point - exact.point))
        assert off <= rough.gap + exact.gap + 1e-9 * image.radius
        assert oracle.outside(rough.source) <= 1e-9


@EVERY
def test_nothing_in_the_image_is_longer_than_its_radius(oracle: Oracle) -> None:
    image = Image(oracle.made, PHI)
    longest = 0.0
    for g in simulation.generator(4).standard_normal((30, TARGET)):
        for _ in range(20):
            g = -image.forward(image.minimiser(g))  # noqa: PLW2901 - climbs
        longest = max(longest, float(np.linalg.norm(g)))
    assert longest <= image.radius
    if oracle.name in {"l1", "l2", "simplex", "group", "polytope", "polytope away"}:
        assert longest == pytest.approx(image.radius, rel=1e-9)


@EVERY
def test_atoms_of_the_image_span_it(oracle: Oracle) -> None:
    image = Image(oracle.made, PHI)
    if image.atoms is None:
        assert oracle.made.atoms is None
        return
    columns = image.atoms.columns(range(image.atoms.total))
    for g in simulation.generator(5).standard_normal((10, TARGET)):
        assert (g @ columns).max() == pytest.approx(oracle.support(PHI.adjoint(g)), abs=1e-12)


@EVERY
def test_without_a_map_it_is_the_set(oracle: Oracle) -> None:
    image = Image(oracle.made)
    point = simulation.generator(6).standard_normal(SOURCE)
    found = image.project(point)
    assert found.gap == 0
    assert (found.point == oracle.made.project(point)).all()
    assert oracle.made.radius <= image.radius <= oracle.made.radius * (1 + 1e-13)
    assert image.dimension == SOURCE
    assert image.matrix is None


def test_the_radius_of_a_cross_polytope_is_its_longest_column() -> None:
    image = Image(Moved(L1Ball(SOURCE, 2.0), 1.5), PHI)
    longest = max(float(np.linalg.norm(column)) for column in PHI.matrix.T)
    assert image.radius == pytest.approx(3 * longest, rel=1e-14)
    assert image.radius >= 3 * longest


def test_maps_that_lose_directions() -> None:
    """A map of low rank, or of zeros, has an image as well."""
    low = Dense(np.outer(np.ones(TARGET), PHI.matrix[0]))
    nothing = Dense(np.zeros((TARGET, SOURCE)))
    for oracle in sets(SOURCE):
        point = np.arange(TARGET, dtype=float)
        found = Image(oracle.made, low).project(point)
        left = point - found.point
        slack = oracle.support(low.adjoint(left)) - float(left @ found.point)
        assert slack <= 1e-11 * Image(oracle.made, low).radius ** 2
        assert not Image(oracle.made, nothing).project(point).point.any()


def test_ellipsoids_have_the_penalty_that_ridge_regression_has() -> None:
    image = Image(L2Ball(SOURCE, 0.3), PHI)
    point = np.full(TARGET, 2.0)
    found = image.project(point)
    penalties = (PHI.adjoint(point - found.point)) / found.source
    assert penalties == pytest.approx(np.full(SOURCE, penalties[0]), rel=1e-9)
    assert float(np.linalg.norm(found.source)) == pytest.approx(0.3, rel=1e-12)
