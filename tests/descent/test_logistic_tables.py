"""Logistic descent on a real table: a larger budget gives a better model, up to the likeliest.

scikit-learn's breast cancer: 569 tumours by 30 measurements, most of which say the same, and
classes that a plane separates.
"""

from functools import cache
from statistics import median

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from dplinear.arrays import Floats
from dplinear.descent.covariance_filter import cap
from dplinear.descent.logistic import LogisticDescent
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP

from .descents import ADD_REMOVE, Rows, design, integer_rows

pytestmark = pytest.mark.heavy

OF = design(30)
# Largest means, standard errors and worst cells of these ten measurements, round numbers.
MEANS = np.array([30.0, 40.0, 200.0, 2500.0, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1])
HIGH = np.concatenate((MEANS, 0.1 * MEANS, 1.5 * MEANS))
SEEDS = range(6)


@cache
def tumours() -> tuple[Floats, Floats]:
    """Features in [−1, 1], a row in each column, and labels of ±1."""
    values, labels = load_breast_cancer(return_X_y=True)
    return np.clip(2 * values.T / HIGH[:, None] - 1, -1, 1), 2.0 * labels - 1


def losses(epsilon: float, *, overlapping: bool = False) -> list[float]:
    """The log-loss on the rows themselves, for each seed."""
    cells, labels = tumours()
    labels = flipped() if overlapping else labels
    ready = LogisticDescent(guarantee=ApproxDP(epsilon, 1e-6), neighbours=ADD_REMOVE).prepare(OF)
    rows = Rows(integer_rows(OF, cells, labels))
    found = [ready.run(rows, simulation.entropy(seed)).coefficients for seed in SEEDS]
    return [log_loss(one[0] + one[1:] @ cells, labels) for one in found]


def flipped() -> Floats:
    """Labels of which every fifth is the other one, so that the likelihood has a maximum."""
    labels = tumours()[1].copy()
    labels[::5] *= -1
    return labels


def log_loss(odds: Floats, labels: Floats) -> float:
    return float(np.logaddexp(0, -labels * odds).mean())


def test_a_larger_budget_gives_a_better_model() -> None:
    """Medians of six; they fall by 10% or more from one to the next but the last."""
    medians = [median(losses(epsilon)) for epsilon in (0.3, 1.0, 3.0, 10.0, 100.0)]
    assert medians == sorted(medians, reverse=True)
    assert medians[-1] < 0.08


def test_separable_classes_are_not_shrunk_to_their_base_rate() -> None:
    """At ε = 1 its signs are right for 95% of the rows; the base rate has log-loss 0.66."""
    assert np.mean(losses(1.0)) < 0.27


def test_collinear_columns_leave_the_limit_what_it_is() -> None:
    """No noise: the likeliest model's log-loss to 5e-4, though the table is nearly singular."""
    cells, labels = tumours()[0], flipped()
    model = LogisticRegression(C=1e8, tol=1e-8, max_iter=10_000).fit(cells.T, labels)
    best = log_loss(model.decision_function(cells.T), labels)
    assert max(losses(1e6, overlapping=True)) < best + 5e-4


def test_a_gain_is_lowered_only_where_it_overshoots() -> None:
    """Curvatures of 4 and ¼ and a gain of 1: the first becomes ¼, the second stays."""
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    steepest = turn @ np.diag([4.0, 0.25]) @ turn.T
    np.testing.assert_allclose(
        cap(np.eye(2), steepest), turn @ np.diag([0.25, 1.0]) @ turn.T, atol=1e-9
    )
    assert cap(0.1 * np.eye(2), steepest) == pytest.approx(0.1 * np.eye(2))
