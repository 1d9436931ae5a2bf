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
        "curator/gates/model.py",
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
    Bug(
        "carriage_return_ends_a_row",
        "a carriage return in a CSV file's cell ends the row, and makes more rows of it",
        "curator/sources/records.py",
        "        if (following != ord(_END)).any():\n            return False\n",
        "        del following\n",
        "tests/curator/test_delimited.py::"
        "test_rows_without_end_in_an_undeclared_column_are_one_row",
    ),
    Bug(
        "any_quotation_mark_opens_quotes",
        "a quotation mark within a CSV file's cell swallows the rows that follow",
        "curator/sources/records.py",
        "    if regular.all():\n        return every\n    return _quotes_one_by_one(data, mark)",
        "    return every",
        "tests/curator/test_delimited.py::test_rows_are_what_the_grammar_says",
    ),
    Bug(
        "long_record_ends_early",
        "a record too long to be held is cut off, and the rest of it makes more rows",
        "curator/sources/records.py",
        "            held, cut = _state(held, quotes, mark), True\n",
        '            yield broken\n            held = b""\n',
        "tests/curator/test_delimited.py::test_a_record_too_long_to_be_held_is_a_row",
    ),
    Bug(
        "logged_tables_as_folders",
        "a folder of a Delta Lake table is read file by file, with the rows that were deleted",
        "curator/sources/paths.py",
        "    _check_tables(found)\n",
        "",
        "tests/curator/test_paths.py::test_a_table_with_a_log_of_its_own_is_refused",
    ),
    Bug(
        "pipes_as_files",
        "a named pipe is opened like a file, and never ends",
        "curator/sources/paths.py",
        "if not stat.S_ISREG(found.st_mode):",
        "if stat.S_ISDIR(found.st_mode):",
        "tests/curator/test_paths.py::test_what_is_no_regular_file_is_refused_before_it_is_opened"
        "[server-.csv]",
    ),
    Bug(
        "files_counted_twice",
        "a file that is named twice is read twice, so that one of its rows is two",
        "curator/sources/paths.py",
        "if (found.st_dev, found.st_ino) in seen:",
        "if file in seen:",
        "tests/curator/test_paths.py::test_a_file_named_twice_is_refused",
    ),
    Bug(
        "dask_makes_text_of_objects",
        "Dask makes text of a frame's objects, and raises over a cell that is none",
        "curator/sources/dask.py",
        "list(_as_given(data)[list(schema.columns)].to_delayed())",
        "list(data[list(schema.columns)].to_delayed())",
        "tests/curator/test_engine_words.py::test_dask_reads_every_cell_of_a_pandas_frame",
    ),
    Bug(
        "workers_log_cells",
        "a plan that fails on Dask is logged, with a message that quotes a cell",
        "curator/sources/quiet.py",
        "                logger.disabled = True\n",
        "                logger.disabled = False\n",
        "tests/curator/test_engine_words.py::test_a_plan_that_fails_on_dask_says_nothing",
    ),
)
