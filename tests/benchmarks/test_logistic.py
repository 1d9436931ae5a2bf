"""The benchmark of logistic regression: its measure, and a tiny run."""

import numpy as np
import pytest

from benchmarks import logistic
from benchmarks.designs import seeded
from benchmarks.logistic import BASE, DESCENT, LIKELIEST, NEWTON, OURS, SGD, Cell
from benchmarks.rivals.common import Line

pytestmark = pytest.mark.heavy

SMALL = Cell(2000, 3, 1.0, 0.5, 1.0)


def test_the_measure_is_the_distance_of_chances() -> None:
    table = logistic.drawn(SMALL, seeded("test"))
    true = 1 / (1 + np.exp(-table.odds))
    flat = table.excess(Line(0.0, np.zeros(3)))
    entropy = true * np.log(true / 0.5) + (1 - true) * np.log((1 - true) / 0.5)
    assert flat == pytest.approx(entropy.mean())
    assert table.excess(logistic.likeliest(table)) < 0.05 * flat


def test_all_methods_are_measured_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    logistic.main(["--tables", "2"], [SMALL])
    shown = capsys.readouterr().out
    assert "n=2,000 d=3" in shown
    assert all(name in shown for name in (OURS, DESCENT, SGD, NEWTON, LIKELIEST, BASE))
    medians = logistic.measured(SMALL, 2)
    assert max(medians[LIKELIEST], medians[OURS]) < 0.2 * medians[BASE]
