"""The least eigenvalue: proved errors against exact arithmetic, and its sensitivity for any n."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import linalg

from dplinear.mechanisms.moments.eigenvalues import SENSITIVITY, UNITS, least_units
from dplinear.noise import simulation

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

SQUARE = 1 << 44  # B², in units of the integer matrix


def exact_least(matrix: Any) -> Fraction:
    """Return λ_min/B² of a matrix of integers, to 120 digits."""
    with mpmath.workdps(120):
        lifted = mpmath.matrix([[mpmath.mpf(int(e)) for e in row] for row in matrix])
        return Fraction(str(mpmath.eigsy(lifted, eigvals_only=True)[0])) / SQUARE


def rotated(seed: int, values: Any) -> Any:
    """Return a matrix of integers with about these eigenvalues, in units of B²."""
    size = len(values)
    turn = np.linalg.qr(simulation.generator(seed).standard_normal((size, size)))[0]
    matrix = (turn * np.asarray(values, float)) @ turn.T * SQUARE
    lower = np.array([[int(entry) for entry in row] for row in np.tril(matrix)], object)
    return lower + np.tril(lower, -1).T


SPECTRA = [
    [1.0],
    [0.0, 1.0],
    [3.0, 3.0, 3.0],
    [0.0, 0.0, 5e9],
    [1e-7, 1.0, 2.0**34],
    [17.25, 2.0**30, 2.0**34, 2.0**34],
    list(np.linspace(0, 1e6, 8)),
    [1e-3] * 11 + [2.0**33],
    [1e9, 1e40],
]


@pytest.mark.parametrize("spectrum", SPECTRA, ids=lambda s: f"{len(s)}-{max(s):g}")
def test_the_answer_is_below_the_eigenvalue_by_less_than_two_units(spectrum: list[float]) -> None:
    for seed in range(4):
        matrix = rotated(seed, spectrum)
        true = max(exact_least(matrix), Fraction(0)) * UNITS
        found = least_units(matrix, SQUARE)
        assert found == 0 or found <= true
        assert true - 2 < found


@pytest.mark.parametrize("off", [-0.3, 0.3])
def test_an_eigensolver_that_is_wrong_is_not_believed(
    off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = linalg.eigh

    def wrong(matrix: Any, **options: Any) -> Any:
        values, vectors = honest(matrix, **options)
        return values + off * SQUARE, vectors + off

    matrix = rotated(1, [2.0, 5.0, 9.0])
    true = exact_least(matrix) * UNITS
    monkeypatch.setattr(linalg, "eigh", wrong)
    assert true - 2 < least_units(matrix, SQUARE) <= true


def test_an_eigensolver_that_gives_up_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise linalg.LinAlgError

    matrix = rotated(2, [0.5, 4.0])
    true = exact_least(matrix) * UNITS
    monkeypatch.setattr(linalg, "eigh", failing)
    assert true - 2 < least_units(matrix, SQUARE) <= true


def tables(seed: int) -> tuple[Any, Any]:
    """Return second moments of two tables that differ in one row; of any size."""
    random = simulation.generator(seed)
    size = int(random.choice([1, 2, 4]))
    trace = float(random.choice([10, 1e9, 2.0**37, 2.0**60, 2.0**100]))
    values = random.dirichlet(np.ones(size) * float(random.choice([0.02, 1.0, 100.0]))) * trace
    base = rotated(seed + 1, np.maximum(values, 1.0 + trace * 2.0**-40))
    near = np.linalg.eigh((base / SQUARE).astype(float))[1][:, 0]

    def plus(weight: float) -> Any:
        row = near if random.random() < 0.7 else random.standard_normal(size)
        length = max(float(np.linalg.norm(row)), 1e-9)
        own = row / length * 2.0**22 * np.sqrt(weight) * (1 - 1e-9)
        whole = np.array([int(entry) for entry in own], object)
        return base + np.outer(whole, whole)

    return plus(1.0), (base if seed % 2 else plus(float(random.random())))


@pytest.mark.parametrize("seed", range(60))
def test_one_row_moves_the_answer_by_its_sensitivity_whatever_the_number_of_rows(
    seed: int,
) -> None:
    pair = tables(seed)
    true = [exact_least(gram) for gram in pair]
    assert abs(true[0] - true[1]) <= 1
    found = [least_units(gram, SQUARE) for gram in pair]
    assert abs(found[0] - found[1]) <= SENSITIVITY
    for units, exact in zip(found, true, strict=True):
        assert exact * UNITS - 2 < units <= exact * UNITS


def test_a_table_without_rows_has_none() -> None:
    assert least_units(np.zeros((3, 3), int).astype(object), SQUARE) == 0
    assert least_units(np.diag([7, 9]).astype(object) * SQUARE, SQUARE) in (
        7 * UNITS - 1,
        7 * UNITS,
    )
