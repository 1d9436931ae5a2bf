"""Coordinates of many levels: what each holds, and steps that find their means."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dplinear.descent.diagonal import expected_sizes
from dplinear.descent.survey import steepness_shown
from dplinear.exact.mapped_sums import MappedGram, MappedSquares
from dplinear.exact.shape import Shape
from dplinear.noise import simulation
from dplinear.privacy import ZCDP

from .descents import ADD_REMOVE, Transcript, design, integer_rows, prepared, recorded, replayed

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

LEVELS, ROWS = 200, 4000


def levels(seed: int) -> tuple[Transcript, np.ndarray, np.ndarray, np.ndarray]:
    """A category whose k-th level has a share of rows like 1/k, and means that explain half."""
    random = simulation.generator(seed)
    shares = 1 / np.arange(1.0, LEVELS + 1)
    codes = random.choice(LEVELS, ROWS, p=shares / shares.sum())
    means = random.normal(size=LEVELS)
    target = (means[codes] + random.normal(size=ROWS)) / 8
    of = design(LEVELS)
    cells = math.isqrt(4**of.shape.exponent // 3)
    cells = min(cells, math.isqrt(2**53 // 4096))
    shape = Shape(of.shape.dimension, cells, of.shape.exponent)
    of = replace(
        of,
        shape=shape,
        feature_square=2 * cells**2,
        target_square=cells**2,
        indicators=(False, *(True,) * LEVELS),
    )
    rows = integer_rows(of, np.eye(LEVELS)[codes].T, target)
    found = recorded(prepared(of, ZCDP(0.05)), rows, seed)
    return found, rows, codes, target


def test_many_levels_are_found_without_a_matrix() -> None:
    found, rows, codes, target = levels(1)
    kinds = [type(query.statistic) for query in found.asked]
    assert MappedSquares in kinds
    assert MappedGram not in kinds
    coefficients = found.solution.coefficients
    left = target - coefficients[0] - coefficients[1:][codes]
    assert left.var() < 0.7 * target.var()  # the levels leave about 0.5; seen: 0.57
    steps = rows[0, 0]
    row = np.zeros(len(rows))
    row[[0, 5, -1]] = steps, steps, -steps
    pairs = [(rows, np.column_stack((rows, row)))]
    assert replayed(found.asked, found.chain.budget, pairs).kept
    assert found.chain.budget.neighbours is ADD_REMOVE


def test_sizes_that_are_alike_are_seen_to_be_and_large_ones_stand_out() -> None:
    random = simulation.generator(2)
    truth = np.full(500, 30.0)
    truth[:3] = 900.0
    sizes = expected_sizes(truth + 20 * random.normal(size=500), 20.0)
    # The noise's own error is 20; the mean square of 497 is below a quarter of its, surely.
    assert np.sqrt(np.mean((sizes.means[3:] - 30) ** 2)) < 10
    assert (np.abs(sizes.means[:3] - 900) < 120).all()


@pytest.mark.parametrize(("steep", "shown"), [(0.0, False), (0.3, False), (14.0, True)])
def test_a_steep_direction_shows_where_noise_lifts_it_to(steep: float, shown: bool) -> None:
    """In units of the mean, at an edge of 20; a false alarm once in ten thousand matrices."""
    size, random = 300, simulation.generator(3)
    sigma = 20 / math.sqrt(2 * size)
    noise = random.normal(size=(size, size)) * sigma
    noise = (noise + noise.T) / 2
    matrix = np.eye(size) + noise
    matrix[0, 0] += steep
    assert (np.linalg.eigvalsh(matrix)[-1] > steepness_shown(1.0, sigma, size)) == shown
