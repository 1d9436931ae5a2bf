"""Sums of the outer products of units' scores, against Python's integers, unit by unit."""

import math
from typing import Any

import numpy as np
import pytest

from descent.descents import shape_of
from dplinear.exact.residual_sums import Gradient
from dplinear.exact.unit_scores import UnitScores, UnitTotals
from dplinear.exact.weights import BITS, WHOLE, shared_weights
from dplinear.noise import simulation
from dplinear.privacy import Neighbours

SHAPE = shape_of(4)
MATRIX = np.array([[1.0, 0.3, 0.0, 0.0], [0.0, -2.0, 0.5, 0.0]])
WEIGHTS = np.array([0.5, 0.0, -1.0, 1.0])
GRADIENT = Gradient(SHAPE, MATRIX, WEIGHTS, 0.4, 0.3)
SCORES = UnitScores(GRADIENT)


def some_units(seed: int, sizes: list[int], k: int) -> tuple[Any, Any, Any]:
    """Return rows of units of these sizes, their weights, and where each unit starts."""
    random = simulation.generator(seed)
    reach = SHAPE.steps_per_unit // 2
    rows = random.integers(-reach, reach + 1, (SHAPE.dimension, sum(sizes))).astype(float)
    weights = shared_weights(np.array(sizes), k)
    starts = np.cumsum([0, *sizes[:-1]])
    return rows, np.repeat(weights, sizes), starts


def added(rows: Any, weights: Any, starts: Any) -> Any:
    """Return the sum over all units, as a pass adds it up."""
    owners = np.repeat(np.arange(len(starts)), np.diff([*starts.tolist(), rows.shape[1]]))
    totals = UnitTotals(SCORES, len(starts))
    order = simulation.generator(8).permutation(rows.shape[1])
    for some in np.array_split(order, 3):  # rows of a unit come one after the other, or not
        totals.add(rows[:, some], weights[some], owners[some])
    return sum(block for block, _ in totals.blocks())


def by_hand(rows: Any, weights: Any, starts: Any) -> Any:
    """Return the same sum on Python's integers."""
    gradients = GRADIENT.of_rows(rows).astype(int).T.tolist()
    ends = [*starts.tolist()[1:], rows.shape[1]]
    total = np.zeros((GRADIENT.size, GRADIENT.size), object)
    down = max(GRADIENT.bound.bit_length() - 20, 0)
    for start, end in zip(starts.tolist(), ends, strict=True):
        score = [0] * GRADIENT.size
        for row in range(start, end):
            for place, entry in enumerate(gradients[row]):
                score[place] += int(weights[row]) * entry
        short = [int(math.copysign(abs(one) >> (BITS + down), one)) for one in score]
        total += np.outer(np.array(short, object), np.array(short, object))
    return total.ravel()


@pytest.mark.parametrize("k", [1, 3])
def test_sums_of_scores_are_those_of_each_unit_by_itself(k: int) -> None:
    sizes = [1, 7, 1, 5_000, 2, 30, 4_096, 1]  # some of them longer than a block
    units = some_units(1, sizes, k)
    assert (added(*units) == by_hand(*units)).all()


def test_many_units_are_added_up_in_blocks() -> None:
    units = some_units(9, [1] * 9_000, 1)
    assert (added(*units) == by_hand(*units)).all()


def test_one_unit_reaches_the_bound_and_none_is_beyond_it() -> None:
    random, most = simulation.generator(4), 0.0
    for _ in range(300):
        size, k = int(random.choice([1, 2, 5, 64, 1_000])), int(random.integers(1, 6))
        rows, weights, starts = some_units(int(random.integers(2**30)), [size], k)
        if random.uniform() < 0.7:  # all rows alike, and as far out as rows are
            rows = np.tile(rows[:, :1], (1, size)) * 2
        found = added(rows, weights, starts)
        assert sum(int(one) ** 2 for one in found) <= SCORES.bound**2
        most = max(most, math.sqrt(sum(int(one) ** 2 for one in found)) / SCORES.bound)
    assert most > 0.99


def test_one_unit_for_another_moves_the_sum_by_no_more_than_is_declared() -> None:
    random = simulation.generator(5)
    limit = SCORES.sensitivity_squared(Neighbours.REPLACE)
    assert limit == 2 * SCORES.bound**2
    for _ in range(200):
        pair = [
            added(*some_units(int(random.integers(2**30)), [int(size)], 1)).astype(object)
            for size in random.choice([1, 3, 100], 2)
        ]
        assert sum(int(one) ** 2 for one in pair[0] - pair[1]) <= limit


def test_weights_of_more_than_one_are_refused() -> None:
    rows, weights, starts = some_units(6, [3, 2], 1)
    with pytest.raises(ArithmeticError):
        added(rows, weights + WHOLE // 2, starts)


def test_rows_that_do_not_say_whose_they_are_are_refused() -> None:
    rows, *_ = some_units(7, [3], 1)
    with pytest.raises(TypeError):
        SCORES.sum(rows)
