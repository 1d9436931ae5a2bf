"""Bugs of files, outputs and messages."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = (
    Bug(
        "secret_by_its_digest",
        "a secret projection that is used again is told by its SHA-256, which small ones are "
        "found by",
        "ledger/fingerprint.py",
        ' if "secret" not in each.metadata',
        "",
        "tests/mechanisms/test_projected_rows.py"
        "::test_nothing_public_tells_who_guesses_a_secret_matrix",
    ),
    Bug(
        "import_after_the_spend",
        "pyarrow looks for pandas after the spend, where it drops a Ctrl-C",
        "curator/sources/__init__.py",
        "    warm(data, progress=progress)\n",
        "",
        "tests/curator/test_interrupted.py"
        "::test_nothing_is_imported_after_the_spend[parquet-release_moments]",
    ),
    Bug(
        "spent_in_silence",
        "an error after the spend does not say that the request is spent",
        "curator/passage.py",
        "                note_spent(error, self.request)\n",
        "                pass\n",
        "tests/curator/test_interrupted.py::test_an_error_after_the_spend_says_that_it_is_spent",
    ),
    Bug(
        "texts_without_measure",
        "a text that a small file repeats is spelled out however often it says",
        "analyst/rows/row_reading.py",
        "            meter.take(pc.sum(lengths).as_py() or 0)\n",
        "",
        "tests/analyst/test_inflation.py::test_dictionaries_are_read_and_largest_may_be_raised",
    ),
    Bug(
        "rows_without_measure",
        "a file may claim any number of rows",
        "analyst/rows/row_reading.py",
        "        found.meter(largest).take(number * width(head.columns))\n",
        "",
        "tests/analyst/test_inflation.py::test_compressed_arrow_files_within_the_limit_are_read",
    ),
    Bug(
        "finished_rows_thrown_away",
        "rows that are complete and paid for are removed where their name is taken meanwhile",
        "analyst/releases/outputs.py",
        "        if not self._whole:\n            self.discard()\n",
        "        self.discard()\n",
        "tests/curator/test_rows_gate.py::test_complete_rows_that_get_no_name_stay",
    ),
    Bug(
        "nameless_rows",
        "a signal between the last byte and the name leaves rows in a hidden file",
        "analyst/rows/row_files.py",
        "            self._place_after_all()\n",
        "            pass\n",
        "tests/curator/test_interrupted.py"
        "::test_a_signal_between_the_last_byte_and_the_name_loses_nothing[claim-out.csv]",
    ),
    Bug(
        "matrix_kept_too_late",
        "the file of a projection is opened only when the rows are released",
        "mechanisms/rows/projection.py",
        "        return () if self._file is None else "
        "(self._file.prepare(self.projection, _WHERE),)\n",
        "        return ()\n",
        "tests/curator/test_projected_rows.py"
        "::test_a_matrix_that_could_not_be_kept_is_found_before_the_spend",
    ),
    Bug(
        "escape_bytes_shown",
        "an error shows the name of a file with the bytes that a terminal obeys",
        "cli/main.py",
        "printable(told.sentence)",
        "told.sentence",
        "tests/cli/test_terminal.py::test_names_in_command_lines_are_harmless",
    ),
    Bug(
        "no_means_yes",
        'overwrite = "no" in a file of settings overwrites',
        "cli/settings.py",
        "if name in BOOLEANS and not isinstance(value, bool):",
        "if name in BOOLEANS and value is None:",
        "tests/cli/test_terminal.py::test_text_is_no_truth_value",
    ),
    Bug(
        "formulas_in_csv",
        "levels such as =1+1 are written so that spreadsheets run them",
        "analyst/rows/csv_cells.py",
        "    return pc.if_else(pc.match_substring_regex(column, _PATTERN), with_shield, column)\n",
        "    return column\n",
        "tests/analyst/test_rows.py::test_no_text_in_csv_is_run_by_a_spreadsheet",
    ),
    Bug(
        "download_unchecked",
        "images that are fetched are used whatever they are",
        "papers/showkatbakhsh/digits.py",
        "    if hashlib.sha256(content).hexdigest() != FILES[name]:\n",
        "    if not hashlib.sha256(content).hexdigest():\n",
        "tests/papers/test_showkatbakhsh.py::test_the_package_is_fetched_once",
    ),
)
