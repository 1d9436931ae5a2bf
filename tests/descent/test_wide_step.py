"""Intervals by a wide step: least squares' own line and errors, whatever the errors' variances."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dplinear.adaptive.noisy_sums import Answer
from dplinear.descent import wide_step
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
    run = prepared(OF, ZCDP(1e9)).run(Rows(rows), simulation.entropy(1))
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


@pytest.mark.parametrize("shape", [0.5, 0.7, 1.0, 2.0])
def test_a_clip_takes_little_off_a_tail_of_which_the_end_is_not_seen(shape: float) -> None:
    """Scores with Weibull's tails, of which bands of fewer than some hundred rows are not clear.

    What is taken off is next to nothing beside the clip's noise for tails as heavy as shape ½; the
    factor 2 is for the bands, in which rows are counted at their middle.
    """
    edges, rows, noise = np.array(wide_step.EDGES), 20_000.0, 9.0
    past = rows * np.exp(-((np.append(edges, np.inf) / 0.8) ** shape))
    histogram = Answer(-np.diff(past), 40.0)
    clip = wide_step._reach(histogram, rows, noise, 1)
    points = np.geomspace(clip, 3000, 100_000)
    beyond = rows * np.exp(-((points / 0.8) ** shape))
    lost = float(beyond[:-1] @ np.diff(points))
    assert lost < 2 * wide_step._BIAS * noise * clip
    assert clip < 100


def test_a_step_says_nothing_where_noise_hides_how_steep_it_is() -> None:
    one = np.eye(2)
    clear = wide_step.WideStep(np.zeros(2), one, one, width=1.0, blur=0.2, parameters={})
    assert not clear.hidden
    assert replace(clear, blur=4.0).hidden
    assert replace(clear, width=30.0).hidden
