"""Norms behind noise scales: against brute force, and never below."""

import itertools
import math

import numpy as np
import pytest

from dplinear.mechanisms.rows.operator_norms import sign_norm, spectral_norm
from dplinear.noise import simulation


def integers(rows: int, columns: int, seed: int) -> np.ndarray:
    return np.rint(simulation.generator(seed).standard_normal((rows, columns)) * 2.0**20)


def by_brute_force(matrix: np.ndarray) -> int:
    """Return the largest ‖As‖² over all signs, on Python integers."""
    exact = [[int(entry) for entry in row] for row in matrix]
    best = 0
    for signs in itertools.product((1, -1), repeat=matrix.shape[1]):
        image = [sum(a * s for a, s in zip(row, signs, strict=True)) for row in exact]
        best = max(best, sum(entry * entry for entry in image))
    return best


@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 1), (5, 1), (1, 6), (3, 2), (10, 3), (20, 7), (4, 9), (6, 11)]
)
def test_all_signs_are_tried(rows: int, columns: int) -> None:
    matrix = integers(rows, columns, rows + 31 * columns)
    exact = by_brute_force(matrix)
    found = sign_norm(matrix)
    assert found**2 * (1 + 2.0**-52) >= exact
    assert found <= math.sqrt(exact) * (1 + 1e-9)


def test_twenty_columns_against_brute_force() -> None:
    """Column by column, every image doubles into two: exact on 64-bit integers."""
    matrix = integers(3, 20, 5)
    images = matrix[:, :1].astype(np.int64)
    for column in matrix[:, 1:].astype(np.int64).T:
        images = np.hstack((images + column[:, None], images - column[:, None]))
    assert images.shape == (3, 1 << 19)
    best = int((images**2).sum(axis=0).max())
    found = sign_norm(matrix)
    assert math.sqrt(best) <= found * (1 + 2.0**-51)
    assert found <= math.sqrt(best) * (1 + 1e-9)


def test_beyond_twenty_columns_the_bound_is_above_many_signs() -> None:
    matrix = integers(30, 24, 6)
    signs = np.sign(simulation.generator(1).standard_normal((24, 20_000)))
    assert np.linalg.norm(matrix @ signs, axis=0).max() <= sign_norm(matrix)
    assert sign_norm(matrix) == pytest.approx(math.sqrt(24) * np.linalg.norm(matrix, 2), rel=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 2), (2, 3), (50, 10), (10, 50)])
def test_the_spectral_norm_is_never_below(rows: int, columns: int) -> None:
    matrix = integers(rows, columns, rows + columns)
    largest = np.linalg.svd(matrix, compute_uv=False)[0]
    assert largest <= spectral_norm(matrix) <= largest * (1 + 1e-7)


def test_a_spectral_norm_that_falls_short_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """If eigenvalues came out a hundredth too small, the factorisation would find it out."""
    honest = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda gram: honest(gram) * 0.99)
    matrix = integers(8, 5, 3)
    assert spectral_norm(matrix) >= np.linalg.svd(matrix, compute_uv=False)[0]


def test_nothing_moves_nothing() -> None:
    assert spectral_norm(np.zeros((3, 2))) == 0
    assert sign_norm(np.zeros((3, 2))) == 0
