"""Functions of one's own, told apart by values, by bits, or by a score of them all."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.audit import audit_callable
from dplinear.audit.classifier import numbers_of, scores
from dplinear.noise import discrete, simulation
from dplinear.privacy import ApproxDP, PureDP
from refusals import refused

GRID = 1 << 20


class Noisy:
    """A sum with Laplace noise of a given ε, on a grid."""

    def __init__(self, epsilon: float, seed: int) -> None:
        entropy = simulation.entropy(seed)
        self._noise = iter(discrete.laplace(GRID / epsilon, 20_000, entropy=entropy))

    def __call__(self, table: list[int]) -> float:
        return float(sum(table) * GRID + int(next(self._noise))) / GRID


def test_a_function_that_keeps_its_promise_is_not_refuted() -> None:
    result = audit_callable(Noisy(1.0, 1), [1, 1], [1], PureDP(1.0), trials=6000)
    assert 0.5 < result.audited < 1
    assert not result.broken
    assert result.mechanism == "Noisy"
    assert result.counts[0].trials == 3000


def test_a_function_with_half_its_noise_is_caught() -> None:
    assert audit_callable(Noisy(2.0, 1), [1, 1], [1], PureDP(1.0), trials=6000).broken


def test_what_was_found_is_printed_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / "pictures" / "audit.png"
    result = audit_callable(Noisy(2.0, 1), [1, 1], [1], PureDP(1.0), trials=6000, plot=plot)
    assert str(result) == (
        "Noisy (ε = 1; neighbours as given): ε = 1 claimed, "
        f"ε ≥ {result.audited:.3g} audited in 6,000 runs on each table: broken"
    )
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("told", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_tells_tables_apart(told: float) -> None:
    for one, other in ((True, False), (False, True)):
        result = audit_callable(lambda odd: told if odd else 0.0, one, other, PureDP(1.0))
        assert result.broken


def test_noise_that_is_coarser_than_what_it_hides_is_seen_in_the_last_bits() -> None:
    draw = simulation.generator(4)

    def careless(table: float) -> float:
        # Noise in steps of 1/2 cannot hide what is smaller.
        return table + float(np.rint(draw.normal() * 20)) / 2

    tables = 1024 + 2.0**-42, 1024 + 2.0**-41
    asked = ApproxDP(1.0, 1e-3)
    assert not audit_callable(careless, *tables, asked, trials=2000).broken
    assert audit_callable(careless, *tables, asked, trials=2000, bits=True).broken


def test_a_score_adds_up_what_no_number_tells_alone() -> None:
    draw = simulation.generator(5)

    def spread(table: float) -> Any:
        return draw.normal(size=12) + table * 0.35

    claim = ApproxDP(0.6, 0.05)  # μ = 0.55 is allowed, and 0.35·√12 = 1.21 it is
    assert audit_callable(spread, 0.0, 1.0, claim, trials=4000, normal=True).broken
    assert not audit_callable(lambda x: spread(x)[:2], 0.0, 1.0, claim, trials=4000).broken


def test_squares_are_scored_too() -> None:
    draw = simulation.generator(6)
    training = [draw.normal(size=(2000, 3)) * width for width in (2.0, 1.0)]
    first, second = scores(training, training)
    assert first[0].shape == (2000, 4)
    assert np.array_equal(first[0], second[0])
    assert np.median(first[0][:, 3]) > np.median(first[1][:, 3]) + 0.5


def test_what_is_no_number_is_a_value_as_well() -> None:
    draw = simulation.generator(7)

    def telling(table: int) -> float:
        return math.inf if table and draw.uniform() < 0.5 else float(draw.normal())

    assert audit_callable(telling, 1, 0, ApproxDP(1.0, 1e-3), trials=2000).broken
    assert numbers_of([[1, 2], [3, 4]], bits=False).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert len(numbers_of(1.5, bits=True)) == 9
    with refused("function", "audit_callable", "one that returns numbers", kind=ArgumentTypeError):
        numbers_of("a word", bits=False)


def test_arguments_are_checked() -> None:
    with refused("function", "audit_callable", "callable", kind=ArgumentTypeError):
        audit_callable(3, 1, 0, PureDP(1.0))  # type: ignore[arg-type]
    with refused("trials", "audit_callable"):
        audit_callable(Noisy(1.0, 1), [1], [], PureDP(1.0), trials=10)
    with refused("confidence", "audit_callable"):
        audit_callable(Noisy(1.0, 1), [1], [], PureDP(1.0), confidence=1.0)
