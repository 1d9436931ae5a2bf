"""Weights of rows are exact: multipliers add up to them, and sums to those of repeated rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplinear.exact.gram import Accumulator
from dplinear.exact.totals import Total
from dplinear.exact.weights import WHOLE, parts, shared_weights
from dplinear.noise import simulation
from dplinear.schema import Schema

WEIGHTS = st.lists(st.integers(0, WHOLE), min_size=1, max_size=300)
SCHEMA = Schema({"x": (-1, 1), "y": (0, 3)})


@given(WEIGHTS)
def test_multipliers_of_a_row_add_up_to_its_weight(weights: list[int]) -> None:
    total = np.zeros(len(weights), np.int64)
    for times, rows in parts(np.array(weights)):
        assert abs(times) <= WHOLE
        total[rows] += times
    assert total.tolist() == weights


def test_few_weights_are_a_part_each() -> None:
    found = list(parts(np.array([5, 0, 7, 5])))
    assert [(times, rows.tolist()) for times, rows in found] == [(5, [0, 3]), (7, [2])]


def test_many_weights_take_few_parts() -> None:
    weights = shared_weights(np.arange(1, 100_001), 1)
    added = sum(len(rows) for _, rows in parts(weights))
    assert added < 5 * len(weights)


@given(st.lists(st.integers(1, 2**26), min_size=1, max_size=50), st.integers(1, 2**20))
def test_weights_of_a_unit_add_up_to_at_most_one(counts: list[int], most: int) -> None:
    weights = shared_weights(np.array(counts), most)
    for count, weight in zip(counts, weights.tolist(), strict=True):
        exact = WHOLE / max(count, most)
        assert 0 <= weight * count <= WHOLE
        assert weight <= exact
        assert weight > exact * (1 - 2.0**-11) - 1


@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(-WHOLE, WHOLE)), max_size=40))
def test_multiples_add_up_exactly(terms: list[tuple[int, int]]) -> None:
    total = Total((1,))
    for value, times in terms:
        total.add(np.array([value]), 1 << 62, times)
        total.add(np.array([value]), 1 << 62)
    assert total.integers()[0] == sum(value * (times + 1) for value, times in terms)


def test_a_multiple_that_two_words_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="two words"):
        Total((1,)).add(np.array([1]), 1, 2 * WHOLE)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=200), st.integers(0, 2**31))
def test_a_weighted_sum_is_that_of_rows_as_often_as_they_count(
    weights: list[int], seed: int
) -> None:
    rows = simulation.generator(seed).integers(-500, 500, (3, len(weights))).astype(float)
    weighted, repeated = Accumulator(SCHEMA), Accumulator(SCHEMA)
    weighted.add_weighted(rows, np.array(weights))
    for start in range(0, len(weights), 60):
        part = slice(start, start + 60)
        repeated.add(np.repeat(rows[:, part], weights[part], axis=1))
    assert weighted.result() == repeated.result()
