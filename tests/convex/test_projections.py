"""Projections: pinned bits, the right law, exact products, and clips that hold for any row."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import sparse, stats

from dplinear.convex.compression import projections
from dplinear.convex.compression.projections import KINDS, Projection
from exact.oracles import square

Seeded = Callable[[int], Any]
FALSE_ALARMS = 1e-6


def dense(matrix: Any) -> Any:
    return np.asarray(matrix) if isinstance(matrix, np.ndarray) else matrix.toarray()


def stream(name: str, count: int) -> bytes:
    """AES-256 in counter mode from zero, its key a hash of the name."""
    key = hashlib.sha256(name.encode()).digest()
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(count))


def drawn(kind: str, data: bytes, place: int, odds: int) -> int:
    """Entry number `place` of a chunk, from its bytes."""
    if kind == "gaussian":
        return int.from_bytes(data[8 * place : 8 * place + 8], "big").bit_count() - 32
    if kind == "rademacher":
        return 1 if data[place // 8] >> (7 - place % 8) & 1 else -1
    uniform = int.from_bytes(data[4 * place : 4 * place + 4], "little")
    return 0 if uniform >= odds else 1 if uniform < odds // 2 else -1


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_is_what_its_name_says(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projections, "_CHUNK", 40)  # 5 columns at a time, the last ones fewer
    m, d, seed = 7, 23, 11
    matrix = Projection(kind, m, d, seed)
    odds = round((matrix.density or 0) * 2**32)
    found = dense(matrix.integers)
    for column in range(d):
        first = column - column % 5
        data = stream(f"dplinear projection {kind} {m} {d} {seed} {first}", 8 * 5 * m)
        places = range((column - first) * m, (column - first + 1) * m)
        assert found[:, column].tolist() == [drawn(kind, data, place, odds) for place in places]


PINS = {
    "gaussian": "2f8b011ffe249ff8",
    "rademacher": "7cbcb17054125a6e",
    "sparse": "2c45838e59f7a4d0",
    "very_sparse": "11f89facae705c08",
}


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_never_change(kind: str) -> None:
    entries = dense(Projection(kind, 50, 4000, 2016).integers).astype(np.int8)
    assert hashlib.sha256(np.ascontiguousarray(entries).tobytes()).hexdigest()[:16] == PINS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_entries_have_their_law(kind: str) -> None:
    matrix = Projection(kind, 100, 2000, 1)
    entries = dense(matrix.integers)
    if kind == "gaussian":
        values = np.arange(-32, 33)
        chances = stats.binom(64, 0.5).pmf(values + 32)
    else:
        values = np.array([-1, 0, 1])
        thin = matrix.density or 1.0
        chances = np.array([thin / 2, 1 - thin, thin / 2])
    assert np.isin(entries, values).all()
    assert (chances * values).sum() == pytest.approx(0, abs=1e-12)
    assert (chances * values**2).sum() * 100 * matrix.unit**2 == pytest.approx(1, rel=1e-9)
    counts = np.array([(entries == value).sum() for value in values], float)
    likely = chances * entries.size > 50
    seen = np.append(counts[likely], counts[~likely].sum())
    awaited = np.append(chances[likely], chances[~likely].sum()) * entries.size
    used = awaited > 0
    if used.sum() > 1:
        assert stats.chisquare(seen[used], awaited[used]).pvalue > FALSE_ALARMS
    assert seen[~used].sum() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_neighbouring_entries_know_nothing_of_each_other(kind: str) -> None:
    signs = np.sign(dense(Projection(kind, 100, 2000, 2).integers)).astype(int)
    for one, other in ((signs[1:], signs[:-1]), (signs[:, 1:], signs[:, :-1])):
        products = (one * other)[(one != 0) & (other != 0)]
        test = stats.binomtest(int((products > 0).sum()), products.size)
        assert test.pvalue > FALSE_ALARMS
    again = np.sign(dense(Projection(kind, 100, 2000, 3).integers)).astype(int)
    products = (signs * again)[(signs != 0) & (again != 0)]
    assert stats.binomtest(int((products > 0).sum()), products.size).pvalue > FALSE_ALARMS


@pytest.mark.parametrize("kind", KINDS)
def test_maps_agree_with_their_integers(kind: str, generator: Seeded) -> None:
    random = generator(4)
    matrix = Projection(kind, 30, 200, 5)
    whole = dense(matrix.integers) * matrix.unit
    theta, g = random.normal(size=200), random.normal(size=30)
    assert matrix.forward(theta) == pytest.approx(whole @ theta, abs=1e-12)
    assert matrix.adjoint(g) == pytest.approx(whole.T @ g, abs=1e-12)
    assert matrix.forward(np.eye(200)) == pytest.approx(whole, abs=1e-12)
    assert (matrix.columns([3, 199]) == whole[:, [3, 199]]).all()
    assert (matrix.columns(7) == whole[:, [7]]).all()


def integer_rows(random: Any, matrix: Projection, count: int) -> Any:
    """Rows of norm at most 2^20, some of them along a row of the matrix, as long as they can be."""
    rows = random.normal(size=(matrix.source, count))
    rows[:, ::3] = dense(matrix.integers).T[
        :, random.integers(matrix.target, size=rows[:, ::3].shape[1])
    ]
    rows[:, 1::3] *= random.random(rows[:, 1::3].shape) < 0.02
    lengths = np.linalg.norm(rows, axis=0)
    rows = np.trunc(rows * ((2**20 - 1) / np.maximum(lengths, 1e-9)))
    assert max(square(row) for row in rows.T) <= 4**20
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_exact_dense_and_sparse(kind: str, generator: Seeded) -> None:
    random = generator(6)
    matrix = Projection(kind, 8, 3000, 9)
    rows = integer_rows(random, matrix, 6)
    whole = dense(matrix.integers).astype(np.int64).astype(object)
    exact = whole @ rows.astype(np.int64).astype(object)
    for given in (rows, np.asfortranarray(rows), sparse.csc_array(rows), sparse.csr_array(rows)):
        found = matrix.products(given)
        assert isinstance(found, np.ndarray)
        assert found.astype(np.int64).tolist() == exact.tolist()
    assert int(abs(exact).max()) < 2**53


@pytest.mark.parametrize("kind", KINDS)
def test_projected_rows_are_bounded_and_each_by_itself(kind: str, generator: Seeded) -> None:
    random = generator(7)
    matrix = Projection(kind, 20, 400, 3)
    rows = integer_rows(random, matrix, 60)
    worst = np.linalg.svd(dense(matrix.integers))[2][0]
    rows[:, 0] = np.trunc(worst * (2**20 - 1))
    norm = int(1.2 * 2**20)
    found = matrix.project(rows, norm)
    assert (found == np.rint(found)).all()
    squares = [square(column) for column in found.T]
    assert max(squares) <= norm**2
    assert squares[0] > 0.999 * norm**2
    exact = dense(matrix.integers) @ rows * matrix.unit
    short = np.linalg.norm(exact, axis=0) < norm - 10
    assert 0 < short.sum() < 60
    assert np.abs(found - exact)[:, short].max() <= 0.5
    for some in ([0], [5, 3], list(range(59, -1, -1))):
        assert (matrix.project(rows[:, some], norm) == found[:, some]).all()
        assert (matrix.project(sparse.csc_array(rows[:, some]), norm) == found[:, some]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_facts_make_the_same_matrix(kind: str) -> None:
    density = 0.123 if "sparse" in kind else None
    matrix = Projection(kind, 6, 90, 4, density)
    again = Projection(**matrix.facts())
    assert (dense(again.integers) == dense(matrix.integers)).all()
    assert again.unit == matrix.unit
    assert again.facts() == matrix.facts()
    other = Projection(kind, 6, 90, 5, density)
    assert (dense(other.integers) != dense(matrix.integers)).any()


def test_a_density_of_one_leaves_no_zero() -> None:
    matrix = Projection("sparse", 10, 50, 1, density=1.0)
    assert (np.abs(dense(matrix.integers)) == 1).all()


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"kind": "fourier"}, "kind"),
        ({"kind": None}, "kind"),
        ({"target": 0}, "target"),
        ({"source": 2.5}, "source"),
        ({"seed": -1}, "seed"),
        ({"density": 0.5}, "density"),
        ({"kind": "sparse", "density": 0.0}, "density"),
        ({"kind": "sparse", "density": 1.5}, "density"),
        ({"kind": "sparse", "density": "li"}, "density"),
    ],
)
def test_wrong_arguments_are_one_error(change: dict[str, Any], parameter: str) -> None:
    facts: dict[str, Any] = {"kind": "gaussian", "target": 3, "source": 5, "seed": 0} | change
    with pytest.raises((TypeError, ValueError), match=f"'{parameter}' parameter of Projection"):
        Projection(**facts)
