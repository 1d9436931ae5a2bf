"""Intervals by a wide step: least squares' own line and errors, whatever the errors' variances."""

import math
from typing import Any

import numpy as np
import pytest

from dplinear.exact.design import Design
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, ApproxDP

from .descents import Rows, design, integer_rows, prepared

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

OF = design(3)
ROWS = 6000


def uneven_rows(seed: int, of: Design, count: int) -> Any:
    """Exponential errors, whose spread grows with the first feature: h = ½."""
    random = simulation.generator(seed)
    features = random.standard_normal((3, count))
    errors = (random.exponential(size=count) - 1) * np.exp(features[0] / 2 - 0.25)
    return integer_rows(of, features / 4, (features.sum(axis=0) / math.sqrt(3) + errors) / 16)


def least_squares(rows: Any) -> tuple[Any, Any]:
    """The line of integer rows, and its errors by White's sandwich."""
    cells = rows / OF.shape.steps_per_unit
    features, target = cells[:-1].T, cells[-1]
    inverse = np.linalg.inv(features.T @ features)
    line = inverse @ features.T @ target
    scores = features * (target - features @ line)[:, None]
    return line, np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))


def best_line() -> Any:
    """That of a hundred times as many rows: its own error is a tenth of a table's."""
    return least_squares(uneven_rows(99, OF, 100 * ROWS))[0]


def test_intervals_hold_the_line_where_errors_are_skewed_and_their_spread_changes() -> None:
    """24 tables at ε = 2. Close clips alone were off by three to four standard errors.

    If z has deviation 1, a mean of 24 is beyond 1.2, with 0.1 for the truth's own error, with
    probability 4e-8 for each of four numbers; below 17 of 24 hold a 95% interval with 4e-6.
    """
    truth, ready, found = best_line(), prepared(OF, ApproxDP(2.0, 1e-6)), []
    for seed in range(24):
        run = ready.run(Rows(uneven_rows(seed, OF, ROWS)), simulation.entropy(seed))
        assert run.unknown is None
        found.append((np.asarray(run.centre) - truth) / np.sqrt(np.diag(np.asarray(run.spread))))
    assert (np.abs(np.mean(found, axis=0)) < 1.2).all()
    assert (np.sum(np.abs(found) < 1.96, axis=0) >= 17).all()


def test_without_noise_it_is_least_squares_with_robust_errors() -> None:
    rows = uneven_rows(7, OF, ROWS)
    line, errors = least_squares(rows)
    run = prepared(OF, ZCDP(1e8)).run(Rows(rows), simulation.entropy(1))
    assert np.asarray(run.centre) == pytest.approx(line, abs=1e-4 * float(errors.max()) + 1e-6)
    assert run.coefficients == pytest.approx(line, abs=0.05 * float(errors.max()))
    stated = np.sqrt(np.diag(np.asarray(run.spread)))
    assert stated == pytest.approx(errors, rel=0.02)


def test_what_is_kept_back_for_intervals_goes_to_the_line_where_there_are_none() -> None:
    rows = uneven_rows(8, OF, 150)
    run = prepared(OF, ApproxDP(0.6, 1e-6)).run(Rows(rows), simulation.entropy(1))
    assert run.unknown is not None
    assert run.centre is None
    assert run.spread is None
    assert run.parameters["spent"] > 0.95
