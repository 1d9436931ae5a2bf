"""Products by slices are those of Python's integers."""

import numpy as np
import pytest

from dplinear.arrays import BigIntegers
from dplinear.exact import products
from dplinear.exact.products import product, square
from dplinear.noise import simulation


def integers(shape: tuple[int, int], bits: int, seed: int = 1) -> BigIntegers:
    source = simulation.entropy(seed)
    cells = [source.bits(bits + 1) - 2**bits for _ in range(shape[0] * shape[1])]
    return np.array(cells, object).reshape(shape)


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "left", "right"),
    [
        (1, 1, 1, 300, 1),
        (30, 30, 30, 5, 200),
        (40, 25, 33, 150, 149),
        (25, 40, 25, 0, 3),
        (60, 60, 5, 100, 130),
        (5, 3000, 5, 33, 64),
        (9, 9000, 1, 20, 100),
        (21, 21, 21, 6000, 6001),
    ],
)
def test_products_are_exact(rows: int, inner: int, columns: int, left: int, right: int) -> None:
    a, b = integers((rows, inner), left, 1), integers((inner, columns), right, 2)
    assert np.array_equal(product(a, b), a.dot(b))
    assert np.array_equal(product(b.T, a.T), a.dot(b).T)
    if rows < 100:
        assert np.array_equal(square(a), a.dot(a.T))


@pytest.mark.parametrize("value", [2**60 - 1, -(2**60), 2**63, -1, 0, 2**20 - 1, 2**39, -(2**39)])
@pytest.mark.parametrize("inner", [30, 31, 32, 33, 300])
def test_equal_cells_that_fill_every_slice_are_exact(value: int, inner: int) -> None:
    a = np.full((40, inner), value, object)
    assert (product(a, a.T) == inner * value**2).all()
    assert (square(a) == inner * value**2).all()
    mixed = a.copy()
    mixed[::2] *= -1
    assert np.array_equal(square(mixed), mixed.dot(mixed.T))


def test_carries_are_taken_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_RUN", 2)
    a, b = integers((25, 25), 500, 3), integers((25, 25), 700, 4)
    assert np.array_equal(product(a, b), a.dot(b))
    assert np.array_equal(square(a), a.dot(a.T))


def test_slices_multiply_exactly_in_float64() -> None:
    for terms in (1, 2, 31, 32, 8191, 8192, 2**20):
        width = products._width(terms)
        assert 2 * width % 8 == 0
        assert terms * 2 ** (2 * width) <= 2**53
        assert width <= 24
