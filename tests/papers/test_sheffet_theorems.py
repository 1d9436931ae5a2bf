"""Theorems 3.1, 3.2 and 4.2 of Sheffet 2015, against simulation and each other."""

import math

import numpy as np
import pytest

from dplinear.noise import simulation
from dplinear.papers.sheffet import theorems
from dplinear.privacy import ApproxDP
from mechanisms.tables import interval
from refusals import refused

ASKED = ApproxDP(0.5, 1e-5)


def test_rows_invert_the_ridge() -> None:
    for rows in (11, 50, 1234):
        ridge = theorems.sketch_ridge(ASKED, rows, 2.0, 10)
        assert theorems.sketch_rows(ASKED, ridge * (1 + 1e-12), 2.0, 10) == rows
        assert theorems.sketch_rows(ASKED, ridge * (1 - 1e-9), 2.0, 10) in {rows - 1, None}
    assert theorems.sketch_rows(ASKED, 0.0, 2.0, 10) is None
    log = math.log(4e5)
    expected = 4 * 4.0 * (math.sqrt(2 * 50 * log) + log) / 0.5
    assert theorems.sketch_ridge(ASKED, 50, 2.0, 10) == pytest.approx(expected, rel=1e-14)


def test_validity_is_checked() -> None:
    with refused("rows", "theorems.sketch_ridge", hint="more rows than columns"):
        theorems.sketch_ridge(ASKED, 10, 1.0, 10)
    with refused("guarantee", "theorems.sketch_ridge", "δ below 1/e"):
        theorems.sketch_ridge(ApproxDP(1, 0.4), 20, 1.0, 10)
    with refused("failure", "theorems.sketch_rows_for_error"):
        theorems.sketch_rows_for_error(0.1, 0.5, 10)
    with refused("least_eigenvalue", "theorems.wishart_error"):
        theorems.wishart_error(1.0, 1.0, degrees=50, scale=1.0, features=5, failure=0.1)


def test_rows_for_an_error_grow_as_stated() -> None:
    rows = theorems.sketch_rows_for_error(0.1, 0.01, 10)
    assert rows == math.ceil(10 * math.log(10) * math.log(100) / 0.01)
    assert theorems.sketch_rows_for_error(0.05, 0.01, 10) == pytest.approx(4 * rows, abs=4)
    assert theorems.sketch_rows_for_error(0.1, 0.01, 10, constant=3.0) == pytest.approx(
        3 * rows, abs=3
    )
    assert theorems.sketch_rows_for_error(100.0, 0.4, 10) == 11


def test_the_sketched_solution_has_the_units_of_the_true_one() -> None:
    """Twice the units of the target double the distance; the printed bound would quadruple it."""
    once = theorems.sketch_error(0.1, 2.0, 3.0, 5.0)
    twice = theorems.sketch_error(0.1, 2.0, 3.0, 4 * 5.0)
    assert twice == pytest.approx(2 * once)
    assert once == pytest.approx(0.1 * math.sqrt(5.0 / 5.0))


def distances(gram: float, solution: np.ndarray, degrees: int, count: int) -> np.ndarray:
    """Return ‖b̃ − b̂‖ for XᵀX = gram·I and Wishart(I, degrees) noise on features and target."""
    p = len(solution)
    samples = simulation.generator(1).standard_normal((count, degrees, p + 1))
    noise = np.swapaxes(samples, -1, -2) @ samples
    left = gram * np.eye(p) + noise[:, :p, :p]
    right = gram * solution + noise[:, :p, p]
    found = np.linalg.solve(left, right[..., None])[..., 0]
    return np.asarray(np.linalg.norm(found - solution, axis=-1))


@pytest.mark.parametrize("ratio", [2.0, 8.0])
@pytest.mark.parametrize("norm", [0.0, 3.0])
def test_the_proved_bound_holds_as_often_as_promised(ratio: float, norm: float) -> None:
    k, p, failure = 30, 4, 0.1
    edge = (math.sqrt(k) + math.sqrt(p) + math.sqrt(2 * math.log(4 / failure))) ** 2
    solution = np.full(p, norm / math.sqrt(p))
    seen = distances(ratio * edge, solution, k, 3000)
    bound = theorems.wishart_error(
        norm, ratio * edge * (1 + 1e-12), degrees=k, scale=1.0, features=p, failure=failure
    )
    low, _ = interval(int((seen > bound).sum()), len(seen))
    assert low <= failure
    assert np.median(seen) > bound / 20  # a bound that says something


def test_the_printed_bound_is_false_where_the_solution_is_zero() -> None:
    k, p, failure = 30, 4, 0.1
    edge = (math.sqrt(k) + math.sqrt(p) + math.sqrt(2 * math.log(4 / failure))) ** 2
    seen = distances(2 * edge, np.zeros(p), k, 3000)
    printed = theorems.wishart_error(
        0.0,
        2 * edge * (1 + 1e-12),
        degrees=k,
        scale=1.0,
        features=p,
        failure=failure,
        printed=True,
    )
    low, _ = interval(int((seen > printed).sum()), len(seen))
    assert low > 0.9
