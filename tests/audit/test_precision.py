"""Noise in floating point tells neighbours apart by which numbers can arise; exact noise does not.

Seeds are fixed, so there are no false alarms. The first test is why certificates of such mechanisms
speak of the ideal mechanism only, and why nothing recommends them.
"""

import numpy as np
import pytest

from dplinear.audit.precision import attack, can_arise, main
from dplinear.noise import simulation
from dplinear.noise.wishart import standard_normal


def test_a_sketch_of_one_column_is_told_from_its_neighbours() -> None:
    found = attack(1.0, 1e-6, rows=40, trials=40, entropy=simulation.entropy(1))
    assert found.right >= 78
    assert found.delta > 0.5
    assert found.guarantee.delta == 1e-6


def test_a_number_can_arise_from_its_own_factor_and_often_not_from_another() -> None:
    drawn = standard_normal((500, 1), entropy=simulation.entropy(2))
    for factor in (1.37, 1.9e7, 3.3e-5):
        released = drawn * factor
        assert can_arise(released, factor)
        assert not can_arise(released, factor * (1 + 2.0**-40))
    assert can_arise(np.array([[3.0]]), 2.0)


def test_the_command_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--trials", "5", "--rows", "30", "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert "of the ideal mechanism" in said
    assert "guesses right" in said
