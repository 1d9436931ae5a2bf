"""Populations have the moments they say. False alarms: 1e-6 for each comparison."""

import math

import numpy as np
import pytest
from scipy import stats

from dplinear.noise import simulation
from dplinear.planner.forecast import least_squares
from dplinear.planner.populations import Kind, Population, seed_of

pytestmark = pytest.mark.heavy

RATE = 1e-6
TAILS = np.array([RATE / 2, 1 - RATE / 2])
ROWS = 40_000


def drawn(kind: Kind, seed: int = 1) -> Population:
    return Population.draw(kind, simulation.generator(seed))


def test_the_best_line_and_the_mean_have_excess_0_and_1() -> None:
    population = drawn(Kind(6, explained=0.3, condition=50.0, width=3.0))
    own = population.best * population.half_widths / population.target_half_width
    assert population.excess(np.array([0.0, *own])) < 1e-25
    assert population.excess(np.zeros(7)) == pytest.approx(1)
    moved = np.array([0.1, *own])
    assert population.excess(moved) == pytest.approx((0.1 * 3.0) ** 2 / 0.3)


def test_the_covariance_has_the_condition_number() -> None:
    population = drawn(Kind(6, condition=50.0))
    assert np.linalg.cond(population.root) ** 2 == pytest.approx(50.0)


def test_cells_have_the_width_and_the_share_explained() -> None:
    kind = Kind(4, explained=0.3, condition=10.0)
    population = drawn(kind)
    table = np.concatenate(list(population.cells(ROWS, simulation.generator(2))))
    assert (table[:, 0] == 1).all()
    # Sums of squares are χ² of as many degrees as rows; clamping at 4 takes less than 1e-3 of them.
    low, high = stats.chi2.ppf(TAILS, ROWS) / ROWS
    squares = 16 * np.mean(table[:, 1:] ** 2, axis=0)
    assert ((low - 1e-3 < squares) & (squares < high)).all()
    own = population.best * population.half_widths / population.target_half_width
    errors = np.mean((table[:, -1] - table[:, 1:-1] @ own) ** 2) * 16 / 0.7
    assert low - 1e-3 < errors < high + 1e-3


def test_heavy_tails_are_those_of_t_with_four_degrees() -> None:
    population = drawn(Kind(3, tails="heavy"))
    table = np.concatenate(list(population.cells(ROWS, simulation.generator(3))))
    expected = 2 * stats.t.sf(3 * math.sqrt(2), 4)  # its variance is 2
    low, high = stats.binom.ppf(TAILS, ROWS, expected)
    for column in table[:, 1:-1].T:
        assert low <= np.count_nonzero(np.abs(column) > 3 / 4) <= high


def test_least_squares_errs_as_theory_says() -> None:
    tables, rows, kind = 200, 1_000, Kind(3)
    total = 0.0
    for table in range(tables):
        generator = simulation.generator(seed_of("theory", table))
        population = Population.draw(kind, generator)
        line = least_squares(population.table(rows, generator), population.design)
        total += population.excess(line)
    # n·excess is nearly χ² of four degrees; its mean is off by about 6/n, and clamping adds 1e-3.
    low, high = stats.chi2.ppf(TAILS, 4 * tables)
    assert 0.98 * low < rows * total < 1.02 * high


def test_seeds_differ() -> None:
    assert len({seed_of("a", 1), seed_of("a", 2), seed_of("b", 1), seed_of("a", 1, 1)}) == 4
