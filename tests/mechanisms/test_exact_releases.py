"""What is released is the rounding of an ideal real draw: against balls of 800 bits, cell by cell.

The oracle knows the formula of each law, Arb's arithmetic and the digits of the numbers that were
drawn, which it asks for far beyond what the release needed; of the mechanisms' own code it uses
nothing.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from dplinear.exact import gaussian_draws, sketch_rows
from dplinear.exact.grid import shape_of as grid_of
from dplinear.exact.roots import is_positive_definite
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import AdditiveWishart, GaussianSketch, InverseWishart, MIProjection
from dplinear.mechanisms.release_grid import cells, power_of_two, ridge_units
from dplinear.noise import simulation
from dplinear.noise.bartlett import Bartlett
from dplinear.noise.normals import normals
from dplinear.privacy import MIDP, ApproxDP
from dplinear.schema import Schema

from .tables import multiple, random_statistic

DIGITS = 800
ASKED = ApproxDP(1.0, 1e-6)
SHAPES = [Shape(1, 724, 10), Shape(3, 2**20, 21), Shape(4, 100, 7)]


@pytest.fixture
def balls() -> Iterator[None]:
    before, ctx.prec = ctx.prec, DIGITS + 100
    yield
    ctx.prec = before


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of what releases draw from now on."""
    kept: list[Any] = []

    def keeping(draw: Any) -> Any:
        def kept_draw(*given: Any, **named: Any) -> Any:
            kept.append(draw(*given, **named))
            return kept[-1]

        return kept_draw

    monkeypatch.setattr(gaussian_draws, "Bartlett", keeping(Bartlett))
    monkeypatch.setattr(sketch_rows, "normals", keeping(normals))
    return kept


def exactly(value: Any) -> arb:
    fraction = Fraction(value)
    return arb(fraction.numerator) / arb(fraction.denominator)


def ball(integers: Any, precision: int) -> arb_mat:
    """Return the numbers that are known within 1 of integers, in units of 2^-precision."""
    return arb_mat([[arb(int(e), 1) / arb(2) ** precision for e in row] for row in integers])


def triangle(source: Any) -> arb_mat:
    found = ball(source.integers(DIGITS), DIGITS)
    size = source.dimension
    for i in range(size):
        for j in range(i + 1, size):
            found[i, j] = arb(0)
    return found


def cholesky(matrix: Any) -> arb_mat:
    size = len(matrix)
    factor = arb_mat(size, size)
    for j in range(size):
        for i in range(j, size):
            rest = exactly(matrix[i][j]) - sum((factor[i, k] * factor[j, k] for k in range(j)), 0)
            factor[i, j] = rest.sqrt() if i == j else rest / factor[j, j]
    return factor


def assert_rounded(values: Any, ideal: arb_mat, steps: Any) -> None:
    """Check that each value is its ideal, rounded to its step, ⌊t + 1/2⌋, and then to a float."""
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            step = Fraction(steps[j])
            whole = int((ideal[i, j] / exactly(step) + exactly(0.5)).floor().unique_fmpz())
            assert value == float(whole * step)


def table(shape: Shape, seed: int = 1) -> Statistic:
    return random_statistic(shape, 40, seed=seed)


def ridged(statistic: Statistic, ridges: Any) -> Any:
    """Return H in cells' units, exactly; ridges are whole units of the grid."""
    shape = statistic.shape
    units = [round(ridge * shape.unit) for ridge in ridges]
    whole = statistic.integers + np.diag(np.array(units, object))
    return [[Fraction(int(entry), shape.unit) for entry in row] for row in whole]


oracle = pytest.mark.oracle
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.dimension}")


@oracle
@every_shape
def test_additive_wishart_is_the_ideal_draw_on_the_grid_of_the_table(
    shape: Shape, drawn: list[Any], balls: None
) -> None:
    statistic = table(shape)
    prepared = AdditiveWishart(guarantee=ASKED).prepare(shape)
    values = prepared.run(statistic, simulation.entropy(2)).values
    half = triangle(drawn[0])
    exact = [[Fraction(int(e), shape.unit) for e in row] for row in statistic.integers]
    gram = arb_mat([[exactly(e) for e in row] for row in exact])
    ideal = half * half.transpose() * exactly(Fraction(prepared.scale) ** 2) + gram
    assert_rounded(values, ideal, [Fraction(1, shape.unit)] * shape.dimension)


@oracle
@every_shape
@pytest.mark.parametrize("share", [None, 0.3])
def test_the_matrix_of_a_sketch_is_the_ideal_draw(
    shape: Shape, share: float | None, drawn: list[Any], balls: None
) -> None:
    statistic = table(shape)
    mechanism = GaussianSketch(guarantee=ASKED, rows=7, least_eigenvalue_share=share)
    measured = mechanism.prepare(shape).run(statistic, simulation.entropy(2))
    facts = measured.parameters
    factor = cholesky(ridged(statistic, [facts["ridge"]] * shape.dimension)) * triangle(drawn[0])
    ideal = factor * factor.transpose() * exactly(Fraction(1, 7))
    assert_rounded(measured.values, ideal, [facts["grid_step"]] * shape.dimension)


@oracle
@every_shape
def test_an_inverse_wishart_matrix_is_the_ideal_draw(
    shape: Shape, drawn: list[Any], balls: None
) -> None:
    statistic = table(shape)
    measured = InverseWishart(guarantee=ASKED).prepare(shape).run(statistic, simulation.entropy(2))
    facts = measured.parameters
    factor = cholesky(ridged(statistic, [facts["ridge"]] * shape.dimension))
    half = factor * triangle(drawn[0]).inv().transpose()
    assert_rounded(measured.values, half * half.transpose(), [facts["grid_step"]] * shape.dimension)


@oracle
@every_shape
def test_sketched_rows_are_the_ideal_draw(shape: Shape, drawn: list[Any], balls: None) -> None:
    statistic = table(shape)
    mechanism = GaussianSketch(guarantee=ASKED, rows=30, release="sketch")
    measured = mechanism.prepare(shape).run(statistic, simulation.entropy(2))
    facts = measured.parameters
    factor = cholesky(ridged(statistic, [facts["ridge"]] * shape.dimension))
    z = ball(drawn[0].integers(DIGITS).reshape(30, -1), DIGITS)
    assert_rounded(measured.values, z * factor.transpose(), [facts["grid_step"]] * shape.dimension)


@oracle
@pytest.mark.parametrize("public", [False, True])
def test_rows_for_single_cells_are_the_ideal_draw_with_a_step_for_each_column(
    public: bool, drawn: list[Any], balls: None
) -> None:
    flag = {"type": "category", "levels": ["no", "yes"], "other": "no"}
    schema = Schema({"a": (-1, 1), "flag": flag, "b": (-1, 1)})
    shape = grid_of(schema)
    cell = simulation.generator(3).uniform(-1, 1, (25, 4)) * shape.steps_per_unit
    integers = np.array([[int(e) for e in row] for row in np.abs(cell)], object)
    statistic = Statistic(shape, integers.T @ integers, 25)
    method = MIProjection(guarantee=MIDP(0.5), rows=30, target="b", y_public=public)
    measured = method.prepare(schema, shape).run(statistic, simulation.entropy(2))
    ridges = measured.noise_model.ridges  # type: ignore[attr-defined]
    z = ball(drawn[0].integers(DIGITS).reshape(30, -1), DIGITS)
    # A number needs noise of 30, a flag of a quarter; what needs none has the finest grid.
    number, fine = (power_of_two(2.0**-16 * math.sqrt(least)) for least in (30.0, 7.5))
    steps = [fine, number, fine, fine if public else number]
    assert_rounded(measured.values, z * cholesky(ridged(statistic, ridges)).transpose(), steps)


# Grids, and what rounding leaves


def test_grids_are_public_and_a_ridge_is_never_0() -> None:
    assert power_of_two(1.0) == 1
    assert power_of_two(0.999) == Fraction(1, 2)
    assert power_of_two(5e-324) == Fraction(1, 2**1074)
    assert ridge_units(0.0, 0.0, 7) == 1
    assert ridge_units(1.0, 1.0, 7) == 7
    assert ridge_units(1.0 + 2.0**-52, 1.0, 7) == 8
    assert ridge_units(0.0, 2.0**30, 1000) == 1000
    for release in ("matrix", "sketch"):
        prepared = GaussianSketch(guarantee=ASKED, release=release).prepare(SHAPES[1])
        seen = {
            prepared.run(each, simulation.entropy(1)).parameters["grid_step"]
            for each in (table(SHAPES[1]), multiple(SHAPES[1], 10**15), multiple(SHAPES[1], 0))
        }
        assert len(seen) == 1


def test_integers_of_any_size_become_floats_with_one_rounding() -> None:
    whole = np.array([[3, -(2**70) - 1], [10**30, 0]], object)
    for step in (Fraction(1, 7), Fraction(1, 2**20), Fraction(8)):
        assert (cells(whole, step) == [[float(e * step) for e in row] for row in whole]).all()


@pytest.mark.heavy
@pytest.mark.parametrize("kind", [AdditiveWishart, GaussianSketch, InverseWishart])
@pytest.mark.parametrize("count", [0, 3, 1000])
def test_what_is_released_stays_positive_definite_at_usual_sizes(kind: Any, count: int) -> None:
    shape = Shape(8, 2**20, 22)
    statistic = random_statistic(shape, count, seed=4) if count else multiple(shape, 0)
    prepared = kind(guarantee=ASKED).prepare(shape)
    for seed in range(20):
        values = prepared.run(statistic, simulation.entropy(seed)).values
        whole = np.array([[int(Fraction(e) * 2**80) for e in row] for row in values], object)
        assert is_positive_definite(whole)


def test_fewer_rows_than_columns_make_a_matrix_of_their_rank() -> None:
    shape = Shape(5, 2**20, 22)
    prepared = GaussianSketch(guarantee=ASKED, rows=2).prepare(shape)
    values = prepared.run(random_statistic(shape, 50, seed=4), simulation.entropy(1)).values
    assert (values == values.T).all()
    sizes = np.linalg.svd(values, compute_uv=False)
    assert (sizes > 1e-9 * sizes[0]).sum() == 2
    assert np.linalg.eigvalsh(values)[0] > -1e-9 * np.abs(values).max()


@pytest.mark.parametrize("rows", [2, 5, 9])
def test_released_entries_are_on_the_grid_that_the_certificate_names(rows: int) -> None:
    shape = Shape(5, 2**20, 22)
    prepared = GaussianSketch(guarantee=ASKED, rows=rows).prepare(shape)
    found = prepared.run(random_statistic(shape, 50, seed=4), simulation.entropy(1))
    units = found.values / found.parameters["grid_step"]
    assert np.abs(units).max() < 2**52  # so that float64 tells whole numbers
    np.testing.assert_allclose(units, np.rint(units), rtol=4e-16, atol=0)
