"""Bits of released floats: nothing for exact noise, and far too much for noise in floating point.

Verdicts are wrong once in 10,000 audits at the most; seeds are fixed.
"""

from typing import Any

import numpy as np
import pytest

from dplinear.audit.bits import audit_bits, bit_numbers, main, results, trailing_zeros
from dplinear.noise import simulation
from dplinear.noise.entropy import words
from dplinear.privacy import ApproxDP, PureDP


def careless_laplace(count: int, other: bool, entropy: Any) -> Any:
    """A cell of 0 or 1 plus Laplace noise, as a textbook would write it in floats."""
    uniform = (words(entropy, 2 * count) >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54
    noise = -np.log(uniform[:count]) * np.where(uniform[count:] < 0.5, -1.0, 1.0)
    return (float(other) + noise)[:, None]


def careless_gaussian(count: int, other: bool, entropy: Any) -> Any:
    """The same with normal noise by Box and Muller."""
    uniform = (words(entropy, 2 * count) >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54
    radius = np.sqrt(-2 * np.log(uniform[:count]))
    return (float(other) + 4 * radius * np.cos(2 * np.pi * uniform[count:]))[:, None]


def test_zeros_at_the_end_are_counted() -> None:
    values = np.array([1.0, 1.5, 1 + 2.0**-52, 3 * 2.0**-30, 0.1])
    assert trailing_zeros(values).tolist() == [52.0, 51.0, 0.0, 51.0, 1.0]
    numbers = bit_numbers(values[:, None], np.array([1.0]))
    assert numbers.shape == (5, 12)
    assert numbers[2, 0] == 1
    assert numbers[3, -1] == 52
    assert numbers[1, 8:].tolist() == [0.0] * 4


@pytest.mark.heavy
def test_noise_in_floating_point_is_seen_in_its_bits() -> None:
    found = audit_bits(
        "careless",
        PureDP(1.0),
        careless_laplace,
        normal=False,
        trials=80_000,
        entropy=simulation.entropy(1),
    )
    assert found.broken
    found = audit_bits(
        "careless",
        ApproxDP(1.0, 1e-3),
        careless_gaussian,
        normal=False,
        trials=80_000,
        entropy=simulation.entropy(1),
    )
    assert found.broken


@pytest.mark.heavy
def test_bits_of_exact_noise_tell_nothing_beyond_the_claim() -> None:
    for result in results(1.0, 400, seed=2):
        assert not result.broken, result.mechanism


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_many_bits_of_exact_noise_tell_nothing_either(epsilon: float) -> None:
    assert not any(result.broken for result in results(epsilon, 40_000, seed=3))


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--trials", "200", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 6
    assert "analyze_gauss" in lines[2]
