"""Rows of sparse matrices: each a function of the set of its own entries, in every format."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dplinear.schema.sparse_rows import SparseRows

Seeded = Callable[[int], Any]
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "f4", "f8", "g")


def held(kind: str, cells: Any) -> list[Any]:
    """The same cells as a matrix and as an array, if this SciPy has both."""
    return [getattr(sparse, f"{kind}_{name}")(cells) for name in ("matrix", "array")]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", FORMATS)
def test_cells_are_what_scipy_says_where_no_cell_is_stored_twice(
    kind: str, dtype: str, generator: Seeded
) -> None:
    random = generator(3)
    cells = random.integers(0, 3, (8, 6)) * (random.random((8, 6)) < 0.4)
    for matrix in held(kind, cells.astype(dtype)):
        rows = SparseRows.of(matrix)
        assert (rows.array(0, 8) == cells.astype(dtype)).all()
        assert rows.array(0, 8).dtype == rows.dtype
        assert (rows.array(2, 5) == cells[2:5].astype(dtype)).all()
        assert (rows.select([4, 0]).array(1, 7) == cells[1:7, [4, 0]].astype(dtype)).all()
        again = rows.select([4, 0, 3]).select([2, 1])
        assert (again.array(0, 8) == cells[:, [3, 0]].astype(dtype)).all()


ENTRIES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([1e16, 1.0, -1e16, 0.1, -0.0, 1e308, -1e308, math.inf, math.nan, 5e-324]),
    ),
    max_size=12,
)


@given(ENTRIES, ENTRIES, st.randoms(use_true_random=False))
def test_a_row_is_the_same_beside_any_other_and_in_any_order(
    own: list[Any], other: list[Any], random: Any
) -> None:
    alone = array([[own], []], "coo")
    random.shuffle(own)
    for kind in ("coo", "csr", "csc", "lil"):
        assert array([[own], []], kind).tobytes() == alone.tobytes()
        beside = array([[own], [other]], kind, mixed=random)
        assert beside[:1].tobytes() == alone[:1].tobytes()


def array(rows: list[Any], kind: str, mixed: Any = None) -> Any:
    """Cells of rows given as lists of entries, stored in that order or mixed up."""
    entries = [(i, *entry) for i, row in enumerate(rows) for part in row for entry in part]
    if mixed is not None:
        mixed.shuffle(entries)
    if kind == "lil":
        matrix = sparse.lil_array((2, 4))
        for i, column, value in entries:
            matrix.rows[i].append(column)
            matrix.data[i].append(value)
        return SparseRows.of(matrix).array(0, 2)
    row, column = (np.array([entry[k] for entry in entries], np.int32) for k in (0, 1))
    values = np.array([entry[2] for entry in entries])
    if kind == "coo":
        return SparseRows.of(sparse.coo_matrix((values, (row, column)), (2, 4))).array(0, 2)
    along, across, size = (row, column, 2) if kind == "csr" else (column, row, 4)
    order = np.argsort(along, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(along, minlength=size))))
    make = getattr(sparse, f"{kind}_matrix")
    return SparseRows.of(make((values[order], across[order], starts), (2, 4))).array(0, 2)


@pytest.mark.parametrize(
    ("dtype", "entries", "want"),
    [
        ("int8", [127, 127, 2], 256),
        ("int64", [2**63 - 1, 2**63 - 1], 2**63 - 1),
        ("int64", [-(2**63), -(2**63), 5], -(2**63)),
        ("int64", [2**63 - 1, -(2**63), 2], 1),
        ("uint64", [2**64 - 1, 1], 2**64 - 1),
        ("uint8", [255, 255], 510),
        ("bool", [True, True], True),
        ("bool", [False, False], False),
        ("f4", [3e38, 3e38], math.inf),
        ("f8", [1.0, 1e16, -1e16], 0.0),
    ],
)
def test_entries_of_one_cell_are_added_without_wrapping_around(
    dtype: str, entries: list[Any], want: Any
) -> None:
    for order in (entries, entries[::-1]):
        values = np.array([*order, 1], dtype)
        columns = [1] * len(order) + [0]
        matrix = sparse.csr_matrix((values, columns, [0, len(values)]), (1, 2))
        assert SparseRows.of(matrix).array(0, 1).tolist() == [[1, want]]


def broken() -> dict[str, Any]:
    """Matrices of which a program changed the insides: the second row's, or no row's."""
    made = {kind: getattr(sparse, f"{kind}_matrix")(np.eye(4)) for kind in FORMATS}
    made["coo"].row[1] = -7
    made["csr"].indices[1] = 2**31 - 1
    made["csc"].indices[1] = 2**30
    made["bsr"] = sparse.bsr_matrix(np.eye(4), blocksize=(1, 1))
    made["bsr"].indices[1] = -3
    made["lil"].rows[1], made["lil"].data[1] = ["x", 10**30, 1], [1.0, 2.0, "word"]
    made["dok"].setdefault((1, 0), "word")
    made["dok"].setdefault((-1, 9), 1.0)
    made["dok"].setdefault("key", 1.0)
    made["dia"].data[0, 1] = math.nan
    made["pointers"] = sparse.csr_matrix(np.eye(4))
    made["pointers"].indptr[2] = 10**6
    made["lists"] = sparse.lil_matrix(np.eye(4, dtype=np.int8))
    made["lists"].data[1] = [10**30]
    made["words"] = sparse.lil_matrix(np.eye(4, dtype=bool))
    made["words"].data[1] = [None]
    return made


@pytest.mark.parametrize("name", broken())
def test_a_broken_matrix_neither_raises_nor_warns(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cells = SparseRows.of(broken()[name]).array(0, 4)
    assert cells.shape == (4, 4)
    assert cells[0].tolist() == [1, 0, 0, 0]
    if name != "pointers":  # which say what the rows are
        assert cells[2:].tolist() == np.eye(4)[2:].tolist()


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.uint64, np.int16, np.int64])
def test_indices_of_any_type_are_in_order(kind: Any) -> None:
    """Of unsigned numbers no difference is below 0, so that nothing seems to be out of order."""
    table = np.array([[1, 0, 2], [0, 3, 0], [4, 5, 6], [0, 0, 7.0]])
    by_column = sparse.csc_array(table)
    by_column.indices = by_column.indices.astype(kind)
    by_column.indptr = by_column.indptr.astype(kind)
    entries = sparse.coo_matrix(table)
    entries.row, entries.col = entries.row[::-1].astype(kind), entries.col[::-1].astype(kind)
    entries.data = entries.data[::-1]
    for matrix in (by_column, entries):
        assert (SparseRows.of(matrix).array(0, 4) == table).all()
