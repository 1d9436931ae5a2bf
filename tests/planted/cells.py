"""Bugs of how one cell is read."""

from planted.bug import Bug

_INFERRED = (
    "tests/contracts/test_inferred_types.py"
    "::test_an_odd_cell_leaves_all_other_rows_as_they_were[half-arrow]"
)

BUGS: tuple[Bug, ...] = (
    Bug(
        "levels_by_spelling",
        'a level is found by its spelling, so one word beside "02139" renames all other rows',
        "schema/cells.py",
        "if self._by_value and rest.any():",
        "if False:",
        _INFERRED,
    ),
    Bug(
        "words_of_truth_values_lost",
        'one word beside them turns "True" from 1 into a missing number',
        "schema/canonical.py",
        "    if word in _TRUTH:\n        return _TRUTH[word]\n",
        "",
        _INFERRED,
    ),
    Bug(
        "integers_as_dates",
        '"20200101" is a date where it comes as text, and missing where it comes as an integer',
        "schema/canonical.py",
        "if dashed or math.isnan(_number_of_text(cell)) else math.nan",
        "if cell else math.nan",
        _INFERRED,
    ),
    Bug(
        "words_for_missing_cells_as_levels",
        '"NA" is a level beside words, and a missing cell beside numbers',
        "schema/columns.py",
        "        if key is None:\n",
        "        if key is None and not level:\n",
        "tests/schema/test_canonical.py"
        "::test_levels_that_libraries_may_take_for_nothing_are_refused",
    ),
    Bug(
        "levels_that_coincide",
        'a schema may tell "1" from "1.0", which a reader of numbers cannot',
        "schema/columns.py",
        "        if key in first:\n",
        "        if level in first.values():\n",
        "tests/schema/test_canonical.py::test_levels_that_libraries_cannot_tell_apart_are_refused",
    ),
    Bug(
        "years_of_one_library",
        "the year 10000 is clamped where a library makes a date of it, missing where it is text",
        "schema/cells.py",
        "return np.where((days >= FIRST_DAY) & (days <= LAST_DAY), days, np.nan)",
        "return days",
        "tests/schema/test_canonical.py::test_far_and_endless_dates_are_read_as_their_text_is",
    ),
    Bug(
        "long_integers_lost",
        "one integer of 40 digits makes every cell of its column missing, from DuckDB",
        "schema/storage.py",
        "        return pa.array(map(text_in, long), pa.large_string())\n",
        "        return pa.nulls(len(list(long)))\n",
        "tests/schema/test_canonical.py::test_long_integers_of_duckdb_are_integers",
    ),
    Bug(
        "long_integers_refused",
        "one integer of 20 digits makes a frame of Polars unreadable, which tells of it",
        "schema/frames.py",
        '_LONG = ("Int128", "UInt128")',
        "_LONG = ()",
        "tests/estimators/test_privacy.py::test_long_integers_of_polars_are_numbers",
    ),
    Bug(
        "guessed_types_refused",
        "a column that a library took for a list, as one cell was one, raises",
        "curator/sources/arrow.py",
        '    check_names(schema, _open_stream(empty).schema.names, "the stream")\n',
        "    from dplinear.curator.sources.source import check_types\n"
        '    check_types(schema, _open_stream(empty).schema, "the stream")\n',
        "tests/curator/test_bad_inputs.py::test_bad_cells_are_read_without_a_word[lists in memory]",
    ),
    Bug(
        "guessed_labels_refused",
        "labels of a frame are refused by a type that their cells chose",
        "estimators/classification.py",
        "check_kind(y, classes[1], self._where)",
        "check_kind(labels, classes[1], self._where)",
        "tests/estimators/test_classification.py::test_the_type_of_a_frames_labels_is_not_refused",
    ),
    Bug(
        "last_moments_of_9999",
        "the last moments of a year are known as text, and rounded out of it in a column",
        "schema/canonical.py",
        "    within = (microseconds >= _FIRST_MOMENT) & (microseconds < _END)\n",
        "    within = (microseconds >= _FIRST_MOMENT) & (microseconds < _END - 16)\n",
        "tests/curator/test_extreme_cells.py::test_an_odd_cell_changes_no_other_row",
    ),
    Bug(
        "datetimes_wrap_around",
        "far dates in columns of objects are converted by NumPy, which wraps around",
        "schema/canonical.py",
        "return float(days_of_datetimes(np.array([cell]))[0])",
        'return _as_days(days(cell.astype("datetime64[us]").item()))',
        "tests/curator/test_extreme_cells.py::"
        "test_datetimes_of_every_unit_mean_the_same_alone_and_in_an_array",
    ),
    Bug(
        "dictionaries_made_one",
        "Arrow makes one dictionary of several, which misreads float16 where they differ",
        "schema/storage.py",
        "    parts = [read(chunk) for chunk in cells.chunks or [pa.nulls(0, cells.type)]]\n",
        "    parts = [read(cells.combine_chunks())]\n",
        "tests/schema/test_storage.py::test_dictionaries_of_chunks_are_never_made_one",
    ),
    Bug(
        "views_with_short_offsets",
        "texts of 2^31 bytes in all wrap around within a batch, and end the process",
        "schema/storage.py",
        "    return pc.cast(sound(cells) if views else cells, pa.large_binary())\n",
        "    return pc.cast(sound(cells), pa.binary()) if views else cells\n",
        "tests/schema/test_storage.py::test_views_become_bytes_of_any_length",
    ),
    Bug(
        "views_that_lead_nowhere",
        "the view of a missing cell is followed wherever it leads, and ends the process",
        "schema/storage.py",
        "    missing = np.asarray(views.is_null()) | (found[:, 0] < 0)\n",
        "    missing = np.zeros(len(found), bool)\n",
        "tests/schema/test_storage.py::test_views_that_lead_nowhere_are_not_followed",
    ),
    Bug(
        "letters_beyond_unicode",
        "a letter of NumPy's that Python has not raises after the spend",
        "schema/cells.py",
        '    if cells.dtype.kind != "U" or not cells.dtype.itemsize:\n',
        "    if cells.dtype.kind:\n",
        "tests/schema/test_storage.py::test_letters_beyond_unicode_are_missing",
    ),
    Bug(
        "cells_that_end_the_program",
        "a cell that raises what is no Exception ends the pass in its own words",
        "schema/canonical.py",
        "                if _raises(read, cell):\n                    return nothing\n",
        "",
        "tests/schema/test_canonical.py::test_nothing_that_a_cell_raises_gets_out",
    ),
)
