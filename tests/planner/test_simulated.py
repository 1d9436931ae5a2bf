"""Simulated rows are what the exact pass would make of the same cells, to the bit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.arrays import Floats
from dplinear.curator import Schema, open_table, release_model
from dplinear.curator.gates.one_model import OneModel
from dplinear.exact.mapped_sums import MappedGram
from dplinear.exact.residual_sums import Gradient, ResidualHistogram, SumOfSquares
from dplinear.exact.row_sums import ClippedGram, Count
from dplinear.exact.shape import Shape
from dplinear.exact.totals import Total
from dplinear.noise import simulation
from dplinear.planner.forecast import private_fit
from dplinear.planner.populations import Kind, Population
from dplinear.planner.simulated import SimulatedRows, plain_design
from dplinear.privacy import ApproxDP
from dplinear.registry import MODELS
from refusals import refused

pytestmark = pytest.mark.heavy


def schema_of(columns: int) -> Schema:
    names = [f"x{place}" for place in range(columns)]
    return Schema(dict.fromkeys([*names, "y"], (-1, 1)))


def cells_of(columns: int, rows: int) -> Floats:
    generator = simulation.generator(7)
    population = Population.draw(Kind(columns, tails="heavy", width=2.0), generator)
    return np.concatenate(list(population.cells(rows, generator)))


def unequal(cells: Floats) -> Iterator[Floats]:
    yield from np.split(cells, [1, 4098, 9000])


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 40, 300])
def test_the_design_is_the_curators(columns: int) -> None:
    model = OneModel.of(schema_of(columns), "y", None, intercept=True)
    assert plain_design(columns) == model.design


def test_sums_are_those_of_an_exact_pass_to_the_bit() -> None:
    cells = cells_of(3, 20_000)
    table = open_table(cells[:, 1:], schema_of(3))
    rows = SimulatedRows(plain_design(3).shape, unequal(cells))
    assert rows.shape == table.shape
    assert rows.count == 20_000
    weights, matrix = np.linspace(-0.5, 1, 5), np.diag(10.0 ** np.arange(5))
    sums = [
        Count(),
        ClippedGram(rows.shape, [0, 1, 3], norm=0.8),
        MappedGram(rows.shape, matrix, 3.0),
        SumOfSquares(rows.shape, weights, residual=0.5),
        ResidualHistogram(rows.shape, weights, 0.2, edges=(0.3, 0.5)),
        Gradient(rows.shape, matrix, weights, leverage=3.0, residual=0.5),
    ]
    for ours, theirs in zip(rows.sums(sums), table.sums(sums), strict=True):
        assert ours.tolist() == theirs.tolist()
    assert rows.moments().integers.tolist() == table.moments().integers.tolist()


@pytest.mark.parametrize("method", MODELS["squared"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_a_simulated_fit_is_the_gates_to_the_bit(method: str, neighbours: str) -> None:
    cells, guarantee = cells_of(3, 5_000), ApproxDP(1.0, 1e-6)
    options: dict[str, Any] = {"guarantee": guarantee, "neighbours": neighbours}
    with simulation.door(3):
        release = release_model(
            cells[:, 1:], schema_of(3), "y", mechanism=method, request="the first", **options
        )
    design = plain_design(3)
    rows = SimulatedRows(design.shape, unequal(cells))
    line = private_fit(MODELS["squared"][method](**options), design)(rows, 3)
    assert line.tolist() == [release.intercept, *release.coefficients.values]


def test_totals_do_not_overflow() -> None:
    total = Total((2,))
    for _ in range(100):
        total.add(np.array([2**62, -(2**62) + 1]), 2**62)
    assert total.integers().tolist() == [100 * 2**62, 100 * (1 - 2**62)]


@pytest.mark.parametrize(
    "block",
    [np.full((2, 5), 1.001), np.full((2, 5), np.nan), np.zeros((2, 4)), np.zeros(5)],
    ids=["large", "missing", "narrow", "flat"],
)
def test_what_are_no_cells_is_refused(block: Floats) -> None:
    with refused("blocks", "SimulatedRows", "rows of 5 cells"):
        SimulatedRows(plain_design(3).shape, iter([block]))


def test_rows_longer_than_their_shape_says_are_refused() -> None:
    with refused("blocks", "SimulatedRows", "rows of norm at most 1"):
        SimulatedRows(Shape(2, 1024, 10), iter([np.ones((3, 2))]))


def test_what_is_no_row_sum_is_refused() -> None:
    rows = SimulatedRows(plain_design(1).shape, iter([np.ones((3, 3))]))
    with refused("statistics", "SimulatedRows.sums", "a list of row sums", kind=ArgumentTypeError):
        rows.sums(["count"])
