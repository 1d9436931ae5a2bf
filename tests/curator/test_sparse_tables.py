"""Sparse tables behind every gate: what one row stores changes no other row's integers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dplinear.curator import Schema, second_moments
from dplinear.curator.gates.model import _open_part
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.ordered import open_rows
from dplinear.exact.grid import shape_of
from dplinear.exact.mapped_sums import MappedSum
from dplinear.exact.sums import Sums

Seeded = Callable[[int], Any]
SCHEMA = Schema({"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}, derived=["a*b"])
ROWS = 500


def stored(own: list[tuple[int, float]], random: Any) -> Any:
    """A table in COO's format: in all rows but the last, cells in parts whose order matters.

    They are many, since SciPy's sort keeps the order of up to 16.
    """
    parts = np.tile([1e16, 0.4, -1e16, 0.3], 6)
    row = np.repeat(np.arange(ROWS), len(parts))
    column = np.zeros(len(row), int)
    values = np.tile(parts, ROWS)
    other = np.arange(ROWS)
    row = np.concatenate((row, other, [ROWS] * len(own)))
    column = np.concatenate((column, other % 2 + 1, np.array([place for place, _ in own], int)))
    values = np.concatenate((values, random.uniform(-1, 1, ROWS), [value for _, value in own]))
    return sparse.coo_matrix((values, (row, column)), (ROWS + 1, 3))


def integers(data: Any) -> Any:
    with open_rows(data, SCHEMA, "test", threads=1).through(np.copy) as blocks:
        return np.hstack(list(blocks))


FIRST = [(0, 0.5), (1, 0.5)]
ODD = [[(1, 0.5), (0, 0.5)], [], [(2, 1.0)] * 5, [(2, np.nan), (0, -np.inf), (2, 1.0)]]


@pytest.mark.parametrize("other", ODD)
@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_one_row_changes_no_other_row(
    kind: str, other: list[tuple[int, float]], generator: Seeded
) -> None:
    """SciPy's tocsr() sorts all rows where one is not sorted, and so adds up in another order."""
    one, two = (unsummed(stored(own, generator(5)), kind) for own in (FIRST, other))
    assert (integers(one)[:, :ROWS] == integers(two)[:, :ROWS]).all()
    change = second_moments(one, SCHEMA).integers - second_moments(two, SCHEMA).integers
    mine = [second_moments(made[ROWS:], SCHEMA).integers for made in map(by_rows, (one, two))]
    assert (change == mine[0] - mine[1]).all()


def unsummed(matrix: Any, kind: str) -> Any:
    """The same entries in another format, none of them added up."""
    if kind == "coo":
        return matrix
    along, across = (matrix.row, matrix.col) if kind == "csr" else (matrix.col, matrix.row)
    order = np.argsort(along, kind="stable")
    size = matrix.shape[0 if kind == "csr" else 1]
    starts = np.concatenate(([0], np.cumsum(np.bincount(along, minlength=size))))
    make = getattr(sparse, f"{kind}_matrix")
    return make((matrix.data[order], across[order], starts), matrix.shape)


def by_rows(matrix: Any) -> Any:
    return unsummed(matrix.tocoo(), "csr")


def test_a_model_of_some_columns_reads_rows_alike(generator: Seeded) -> None:
    part = Schema({"c": (-1, 1), "a": (-1, 1)})
    sums = Sums(part, (MappedSum(shape_of(part), np.eye(3)[1:], norm=2.0),))
    found = []
    for own in (FIRST, *ODD):
        for kind in ("coo", "csc", "csr"):
            table = unsummed(stored(own, generator(5)), kind)
            whole = _open_part(table, SCHEMA, part)().run(sums).integers()[0]
            last = _open_part(by_rows(table)[ROWS:], SCHEMA, part)().run(sums).integers()[0]
            found.append((whole - last).tolist())
    assert found == found[:1] * len(found)


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_every_format_gives_the_bits_of_an_array(kind: str, generator: Seeded) -> None:
    cells = generator(8).normal(size=(40, 3)) * (generator(9).random((40, 3)) < 0.5)
    want = second_moments(cells, SCHEMA)
    for name in ("matrix", "array"):
        assert second_moments(getattr(sparse, f"{kind}_{name}")(cells), SCHEMA) == want


def test_complex_cells_are_refused_by_type() -> None:
    with pytest.raises(ValueError, match=r"'data' parameter .* of real numbers"):
        open_reader(sparse.csr_matrix(np.zeros((3, 3), complex)), SCHEMA)
