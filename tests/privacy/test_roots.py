"""Roots: the returned float is private itself, and hardly anything beyond it is."""

import math
from collections.abc import Callable

import pytest

from dplinear.privacy.roots import largest_private, smallest_private

ROOTS = [1e-9, 0.3, 1.0, 12345.678]
GUESSES = [1e-3, 0.9, 1.0, 1.1, 1e3]


def counted(delta: Callable[[float], float]) -> tuple[Callable[[float], float], list[float]]:
    asked: list[float] = []

    def call(x: float) -> float:
        asked.append(x)
        return delta(x)

    return call, asked


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("off", GUESSES)
def test_the_largest_is_private_and_close(root: float, off: float) -> None:
    target = 1e-6
    delta, asked = counted(lambda x: min(target * (x / root) ** 9, 1.0))
    found = largest_private(delta, target, root * off)
    assert delta(found) <= target
    assert found == pytest.approx(root, rel=2e-14)
    last = largest_private(delta, target, root * off, to_the_last=True)
    assert delta(last) <= target < delta(last * (1 + 2**-51))
    assert len(asked) < 120


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("off", GUESSES)
def test_the_smallest_is_private_and_close(root: float, off: float) -> None:
    target = 1e-6
    delta, asked = counted(lambda x: min(target * (root / x) ** 9, 1.0))
    found = smallest_private(delta, target, root * off)
    assert delta(found) <= target
    assert found == pytest.approx(root, rel=2e-14)
    rough = smallest_private(delta, target, root * off, within=0.01)
    assert delta(rough) <= target
    assert rough == pytest.approx(root, rel=0.04)
    assert len(asked) < 100


@pytest.mark.parametrize("guess", [0.1, 1.0, 40.0])
def test_steps_and_flat_ends_are_searched_too(guess: float) -> None:
    """δ is 0 below 1 and 1 above 7, and jumps past the target between."""

    def stairs(x: float) -> float:
        return 0.0 if x < 1 else 1.0 if x > 7 else 1e-3 * x

    assert largest_private(stairs, 0.005, guess) == pytest.approx(5.0, rel=1e-13)
    assert stairs(largest_private(stairs, 0.005, guess)) <= 0.005

    def falls(x: float) -> float:
        return 0.4 if x < 3 else 0.0

    found = smallest_private(falls, 0.1, guess)
    assert found >= 3
    assert found == pytest.approx(3.0, rel=1e-13)


def test_what_no_float_meets_is_refused() -> None:
    sentence = "No setting within the range of floats"

    def always(value: float) -> Callable[[float], float]:
        def delta(x: float) -> float:
            assert 0 < x < math.inf
            return value

        return delta

    for value in (1e-9, 1e-3):
        with pytest.raises(ArithmeticError, match=sentence):
            largest_private(always(value), 1e-6, 1.0)
        with pytest.raises(ArithmeticError, match=sentence):
            smallest_private(always(value), 1e-6, 1.0)
    assert math.isfinite(largest_private(lambda x: min(x * 1e-290, 1.0), 1e-6, 1.0))
