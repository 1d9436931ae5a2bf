"""Bugs of how a table of some library or file becomes rows."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = (
    Bug(
        "sparse_rows_by_scipy",
        "SciPy adds up the entries of a sparse table's cells, in an order that one row decides",
        "curator/sources/arrays.py",
        "SparseRows.of(data)",
        "SparseRows.of(data.tocsr())",
        "tests/curator/test_sparse_tables.py::test_one_row_changes_no_other_row",
    ),
    Bug(
        "sparse_columns_by_scipy",
        "the same where a model takes some columns of a sparse table",
        "curator/model_gate.py",
        "SparseRows.of(data).select(places)",
        "SparseRows.of(data.tocsr()).select(places)",
        "tests/curator/test_sparse_tables.py::test_a_model_of_some_columns_reads_rows_alike",
    ),
    Bug(
        "entries_in_stored_order",
        "entries of one sparse cell are added up in the order in which they are stored",
        "schema/sparse_rows.py",
        "order = np.lexsort((values, keys))",
        'order = np.argsort(keys, kind="stable")',
        "tests/schema/test_sparse_rows.py::"
        "test_a_row_is_the_same_beside_any_other_and_in_any_order",
    ),
)
