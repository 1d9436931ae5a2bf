"""Gram matrices of curvature and of scores: values, bounds on the integers, neighbours."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.arrays import Floats
from dplinear.exact.logistic_grams import LogisticGram
from dplinear.noise import simulation
from dplinear.privacy import Neighbours
from exact.oracles import SHAPES, integer_rows, square

PLAIN = SHAPES["plain"]
LABEL, CLIP = 2, 1.5
KINDS = [(None, 1.0), (None, 0.6), (LABEL, 1.0), (LABEL, 0.6)]


def made(label: int | None, score: float, clip: float = CLIP) -> tuple[LogisticGram, Any, Any]:
    """A sum, with the whitening and the weights that it was made of."""
    random = simulation.generator(1)
    whitening = random.normal(0, 1, (5, 6))
    weights = np.array([1.0, -2.0, 0.0, 3.0, 0.5, 5.0])
    whitening[:, LABEL] = 0
    return LogisticGram(PLAIN, whitening, weights, clip, score, label), whitening, weights


def rows_of(seed: int, count: int) -> Floats:
    return integer_rows(simulation.generator(seed), PLAIN, count)


@pytest.mark.parametrize(("label", "score"), KINDS)
def test_values_are_integers_times_the_unit(label: int | None, score: float) -> None:
    statistic, whitening, weights = made(label, score)
    rows = rows_of(2, 60)
    cells = rows / PLAIN.steps_per_unit
    chances = 1 / (1 + np.exp(-weights @ cells))
    weight = np.minimum(1, score / np.maximum(chances, 1 - chances))
    vectors = whitening @ cells
    vectors *= np.minimum(1, CLIP / np.maximum(np.linalg.norm(vectors, axis=0), 1e-300))
    each = weight * chances * (1 - chances)
    if label is not None:
        each = (weight * ((cells[LABEL] > 0) - chances)) ** 2
    got = statistic.sum(rows).reshape(5, 5) * float(statistic.unit)
    np.testing.assert_allclose(got, (vectors * each) @ vectors.T, atol=1e-3)
    limit = Fraction(CLIP) ** 2 * (Fraction(1, 4) if label is None else Fraction(score) ** 2)
    assert statistic.bound * statistic.unit <= limit
    assert float(statistic.bound * statistic.unit) == pytest.approx(float(limit), rel=1e-4)


@pytest.mark.parametrize(("label", "score"), KINDS)
def test_rows_add_up_alone_and_within_the_bound(label: int | None, score: float) -> None:
    statistic, _, _ = made(label, score, 0.3)
    rows = rows_of(3, 40)
    before = rows.copy()
    alone = [statistic.sum(rows[:, i : i + 1].copy()) for i in range(rows.shape[1])]
    assert (np.sum(alone, axis=0) == statistic.sum(rows)).all()
    assert (rows == before).all()
    largest = max(square(one) for one in alone)
    assert 0.2 * statistic.bound**2 < largest <= statistic.bound**2
    apart = max(square(one - other) for one in alone for other in alone)
    assert apart <= statistic.sensitivity_squared(Neighbours.REPLACE)


def test_a_row_is_replaced_by_one_at_a_right_angle() -> None:
    """That is twice the square of a row more, which a smaller factor would not pay for."""
    statistic = LogisticGram(PLAIN, np.eye(2, 6), np.zeros(6), 0.1)
    rows = PLAIN.steps_per_unit * np.eye(6)[:, :2]
    one, other = (statistic.sum(rows[:, i : i + 1]) for i in range(2))
    moved = square(one - other)
    assert moved <= statistic.sensitivity_squared(Neighbours.REPLACE)
    assert moved > 1.9 * statistic.sensitivity_squared(Neighbours.ADD_REMOVE)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"leverage": 0.0}, "above 0"),
        ({"score": 0.4}, r"\[0.5, 1\]"),
        ({"label": 6}, r"\[0, 5\]"),
        ({"label": 1}, "neither whitening nor weights"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    facts: dict[str, Any] = {"leverage": 1.0, "score": 1.0, "label": 5} | arguments
    with pytest.raises(ValueError, match=words):
        LogisticGram(PLAIN, np.eye(3, 6), np.append(np.ones(5), 0), **facts)
