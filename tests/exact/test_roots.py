"""Certified roots, inverses and least eigenvalues against exact and ball arithmetic."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq_mat, fmpz_mat
from scipy import linalg

from dplinear.arrays import BigIntegers
from dplinear.exact import roots
from dplinear.exact.roots import Root, inverse_triangle, is_positive_definite, least_eigenvalue
from dplinear.noise import simulation
from exact import arb_draws

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions


def gram(size: int, bits: int, ridge: int, seed: int = 1) -> BigIntegers:
    """Return a Gram matrix, and a ridge; some directions have next to nothing in them."""
    rng = simulation.generator(seed)
    rows = np.rint(rng.standard_normal((3 * size, size)) * 2.0**bits).astype(np.int64)
    rows[:, ::3] = rows[:, :1] + rng.integers(-1, 2, rows[:, ::3].shape)
    big = rows.astype(object)
    matrix: BigIntegers = big.T.dot(big)
    matrix[np.diag_indices(size)] += ridge
    return matrix


def hilbert(size: int) -> BigIntegers:
    scale = 1
    for k in range(1, 2 * size):
        scale *= k
    return np.array([[scale // (i + j + 1) for j in range(size)] for i in range(size)], object)


MATRICES = {
    "one": (np.array([[7]], object), 7),
    "unit": (np.diag([1, 1, 1]).astype(object), 1),
    "gram": (gram(8, 15, 2**20), 2**20),
    "wide": (gram(25, 15, 2**20), 2**20),
    "steep": (gram(6, 26, 1), 1),  # far beyond float64
    "hilbert": (hilbert(9), 1),
    "huge": (gram(5, 20, 2**10) << 1200, 2**1210),
    "graded": (np.diag([2**400, 1, 2**90, 3]).astype(object), 1),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("precision", [1, 20, 64, 96, 300])
def test_errors_of_a_root_are_bounds(name: str, precision: int) -> None:
    matrix, floor = MATRICES[name]
    root = Root(matrix, floor)
    root.refine(precision)
    check(root, precision)


def check(root: Root, asked: int) -> None:
    assert root.precision >= asked
    size, before = len(root), ctx.prec
    try:
        ctx.prec = 8000
        exact = arb_draws.cholesky(root.matrix)
        unit = arb(2) ** root.precision
        for i in range(size):
            gaps = [exact[i, j] * unit - arb(int(root.factor[i, j])) for j in range(size)]
            distance = sum((gap * gap for gap in gaps), arb(0)).sqrt()
            assert distance <= arb(int(root.errors[i]))
            length = sum(int(cell) ** 2 for cell in root.factor[i])
            assert (int(root.norms[i]) - 1) ** 2 < length <= int(root.norms[i]) ** 2
            assert (
                root.errors[i] <= Fraction(3, 2) * int(root.norms[i]) * Fraction(root.looseness) + 1
            )
            assert not root.factor[i, i + 1 :].any()
    finally:
        ctx.prec = before


def test_refining_goes_on_from_what_is_known() -> None:
    matrix, floor = MATRICES["wide"]
    root = Root(matrix, floor)
    for precision in (10, 64, 65, 64, 200, 1000):
        root.refine(precision)
        check(root, precision)
    known = root.precision
    root.refine(50)
    assert root.precision == known


@pytest.mark.parametrize("name", ["wide", "steep"])
@pytest.mark.parametrize("spoil", ["nan", "wrong", "raise"])
def test_no_bound_rests_on_lapack(name: str, spoil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(matrix: np.ndarray, **_: object) -> np.ndarray:
        if spoil == "raise":
            raise np.linalg.LinAlgError
        return np.full(matrix.shape, np.nan) if spoil == "nan" else np.tril(matrix) * 1e-3 + 1

    monkeypatch.setattr(linalg, "cholesky", bad)
    matrix, floor = MATRICES[name]
    root = Root(matrix, floor)
    root.refine(64)
    check(root, 64)


def test_errors_fall_with_the_precision() -> None:
    matrix, floor = MATRICES["steep"]
    root = Root(matrix, floor)
    root.refine(100)
    known, errors = root.precision, [Fraction(int(e), 2**root.precision) for e in root.errors]
    root.refine(2 * known)
    for old, new in zip(errors, root.errors, strict=True):
        assert Fraction(int(new), 2**root.precision) < old / 2 ** (known // 2)


def triangle(size: int, bits: int, seed: int) -> BigIntegers:
    source = simulation.entropy(seed)
    cells = [[source.bits(bits + 3) - 2 ** (bits + 2) for _ in range(size)] for _ in range(size)]
    full = np.tril(np.array(cells, object))
    full[np.diag_indices(size)] = [2**bits + abs(int(k)) for k in np.diag(full)]
    return full


@pytest.mark.parametrize(("size", "bits"), [(1, 40), (4, 60), (25, 96), (30, 300)])
@pytest.mark.parametrize("slack", [0, 1, 30])
def test_inverses_are_within_their_error(size: int, bits: int, slack: int) -> None:
    known = triangle(size, bits, size)
    found = inverse_triangle(known, bits, slack)
    assert found is not None
    inverse, error = found
    # The true triangle is as far off as it may be, in one cell or spread over the diagonal.
    for cells, step in (((-1, 0), slack), ((0, 0), -slack), ((-1, -1), slack)):
        true = known.copy()
        true[cells] += step
        exact = fmpq_mat(fmpz_mat(true.tolist())).inv() * 4**bits
        squares = sum(
            (Fraction(int(exact[i, j].p), int(exact[i, j].q)) - int(inverse[i, j])) ** 2
            for i in range(size)
            for j in range(size)
        )
        assert squares <= error**2


def test_inverses_beyond_float64_are_found_by_integers() -> None:
    known: BigIntegers = np.diag([2**1500, 2**100, 1]).astype(object)
    known[2, 0] = 5
    assert inverse_triangle(known, 100, 1) is None  # the last number may be 0
    found = inverse_triangle(known << 3000, 3100, 1)
    assert found is not None
    inverse, error = found
    assert abs(int(inverse[0, 0]) - 2**1700) <= error
    assert abs(int(inverse[2, 2]) - 2**3200) <= error < 2**3300
    assert inverse_triangle(np.zeros((2, 2), object), 50, 0) is None


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("width", [Fraction(1), Fraction(2**12), Fraction(1, 2**70)])
def test_least_eigenvalues_are_enclosed(name: str, width: Fraction) -> None:
    matrix, floor = MATRICES[name]
    low, high = least_eigenvalue(matrix, width=width)
    assert 0 <= high - low <= width
    assert high >= floor
    assert definite_at(matrix, low - width / 2**60)
    assert not definite_at(matrix, high + width / 2**60)


def definite_at(matrix: BigIntegers, shift: Fraction) -> bool:
    """Return whether matrix − shift·I has a Cholesky factor, in rational numbers."""
    size = len(matrix)
    rest = [[Fraction(int(cell)) for cell in row] for row in matrix]
    for i in range(size):
        rest[i][i] -= shift
    for k in range(size):
        if rest[k][k] <= 0:
            return False
        for i in range(k + 1, size):
            part = rest[i][k] / rest[k][k]
            for j in range(k + 1, size):
                rest[i][j] -= part * rest[k][j]
    return True


def test_least_eigenvalues_of_singular_and_indefinite_matrices() -> None:
    ones = np.ones((6, 6), object)
    low, high = least_eigenvalue(ones)
    assert low <= 0 <= high <= low + 1
    turned = -np.array(MATRICES["gram"][0])
    low, high = least_eigenvalue(turned)
    assert high - low <= 1
    assert definite_at(turned, low - 1)
    assert not definite_at(turned, high + 1)
    low, high = least_eigenvalue(np.zeros((3, 3), np.int64))
    assert low <= 0 <= high <= low + 1


@pytest.mark.parametrize("spoil", ["nan", "zero", "raise"])
def test_least_eigenvalues_do_not_rest_on_lapack(
    spoil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bad(matrix: np.ndarray, **_: object) -> tuple[np.ndarray, np.ndarray]:
        if spoil == "raise":
            raise np.linalg.LinAlgError
        return np.zeros(len(matrix)), np.full(matrix.shape, np.nan if spoil == "nan" else 0.0)

    monkeypatch.setattr(linalg, "eigh", bad)
    matrix, _ = MATRICES["gram"]
    low, high = least_eigenvalue(matrix)
    assert high - low <= 1
    assert definite_at(matrix, low - 1)
    assert not definite_at(matrix, high + 1)


def test_definiteness_is_decided_exactly() -> None:
    matrix = hilbert(7)
    assert is_positive_definite(matrix)
    assert not is_positive_definite(-matrix)
    assert not is_positive_definite(np.ones((4, 4), object))
    assert is_positive_definite(
        np.ones((4, 4), object) * 10**30 + np.eye(4, dtype=int).astype(object)
    )
    edge = np.array([[4, 6], [6, 9]], object)
    assert not is_positive_definite(edge)
    edge[1, 1] += 1
    assert is_positive_definite(edge)


@pytest.mark.parametrize("exponent", [34, 40, 60, 200])
def test_many_rows_take_few_eliminations(exponent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2^34 rows float64 sees no unit: a few short rows must not send the search astray."""
    counted: list[int] = []
    real = roots.is_positive_definite

    def count(matrix: Any) -> bool:
        counted.append(max(int(abs(each)).bit_length() for each in matrix.ravel()))
        return real(matrix)

    monkeypatch.setattr(roots, "is_positive_definite", count)
    short = simulation.generator(exponent).integers(-1000, 1000, (7, 8)).astype(object)
    matrix = short.T @ short
    matrix[np.diag_indices(8)] += 1 << exponent + 40
    low, high = least_eigenvalue(matrix)
    assert high - low <= 1
    assert len(counted) <= exponent + 60
    assert all(bits < 2 * exponent + 120 for bits in counted)


@pytest.mark.parametrize("copies", [10**12, 10**15, 10**40])
@pytest.mark.parametrize("size", [2, 20])
def test_a_row_held_by_very_many_takes_no_elimination(
    size: int, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Float64 sees nothing of the least eigenvector then, and eliminations take hours."""

    def refuse(_: Any) -> bool:
        raise AssertionError

    draw = simulation.generator(size)
    others = draw.integers(-100, 100, (2 * size, size)).astype(object)
    row = draw.integers(-1000, 1000, size).astype(object)
    matrix = others.T @ others + np.multiply.outer(row, row) * copies
    monkeypatch.setattr(roots, "is_positive_definite", refuse)
    low, high = least_eigenvalue(matrix)
    assert high - low <= 1
    assert definite_at(matrix, low - Fraction(1, 2**60))
    assert not definite_at(matrix, high + Fraction(1, 2**60))
