"""Profiles made of others, against the releases that they bound, enumerated."""

import itertools
import math

import numpy as np
import pytest

from dplinear.privacy import Neighbours
from dplinear.privacy.profiles import BesidePure, EitherOf, Gaussian, Laplace, Pure, WithFailure

Pair = list[tuple[float, float]]


def response(epsilon: float) -> Pair:
    """Randomised response: its answers' chances on two neighbours."""
    p = 1 / (1 + math.exp(-epsilon))
    return [(p, 1 - p), (1 - p, p)]


def divergence(pair: Pair, epsilon: float) -> float:
    return sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in pair)


def together(first: Pair, second: Pair) -> Pair:
    return [(p * r, q * s) for (p, q), (r, s) in itertools.product(first, second)]


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, 0.9, 1.2, 1.6])
def test_a_label_beside_rows_is_bounded(epsilon: float) -> None:
    both = together(response(0.9), response(0.5))
    bound = BesidePure(Pure(0.9), 0.5)
    assert bound.delta(epsilon) >= divergence(both, epsilon) - 1e-15
    assert bound.delta(1.4) == pytest.approx(0, abs=1e-12)
    assert bound.epsilon(0.0) == pytest.approx(1.4)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
def test_failures_add_to_delta(epsilon: float) -> None:
    failing = [(0.01, 0.0), (0.0, 0.01)] + [(0.99 * p, 0.99 * q) for p, q in response(1.0)]
    bound = WithFailure(Pure(1.0), 0.01)
    assert divergence(failing, epsilon) <= bound.delta(epsilon) + 1e-15
    assert bound.delta(5.0) == 0.01
    assert WithFailure(Pure(1.0), 1.0).delta(0.0) == 1.0


def test_the_worse_of_two_counts() -> None:
    either = EitherOf(Pure(0.4), Gaussian(0.5))
    grid = np.linspace(0, 3, 31)
    worst = np.maximum(Pure(0.4).curve(grid), Gaussian(0.5).curve(grid))
    assert (either.curve(grid) == worst).all()
    assert EitherOf(Pure(0.4), Laplace(0.7)).epsilon(0.0) == 0.7


def test_the_relation_is_the_parts() -> None:
    pure = Pure(1.0, Neighbours.ROW_L2)
    for profile in (WithFailure(pure, 0.1), BesidePure(pure, 0.1), EitherOf(pure, pure)):
        assert profile.neighbours is Neighbours.ROW_L2
