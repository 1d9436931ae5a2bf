"""Bugs of rows that are left out for want of a number."""

from planted.bug import Bug

_CELLS = "tests/curator/test_missing_cells.py"

BUGS = (
    Bug(
        "count_of_left_rows_for_free",
        "under replace the number of rows that are left is released as if it were public",
        "exact/row_sums.py",
        "        return 1 if self.varies else super().sensitivity_squared(neighbours)\n",
        "        return super().sensitivity_squared(neighbours)\n",
        "tests/audit/test_left_out_replays.py"
        "::test_no_row_that_is_left_out_moves_a_release_too_far[coinpress-replace]",
    ),
    Bug(
        "public_counts_of_left_rows",
        "a sum that calls itself public is believed, where a replaced row may move it",
        "adaptive/noisy_sums.py",
        'if getattr(table, "count_varies", False) and any(',
        "if any(False and ",
        "tests/adaptive/test_noisy_sums.py"
        "::test_a_table_that_leaves_rows_out_tells_no_number_of_rows_for_free",
    ),
    Bug(
        "moments_tell_the_rows_left",
        "under replace a release of moments says exactly how many rows were left",
        "curator/gates/measured.py",
        "    return neighbours.rows_are_public and not schema.count_varies\n",
        "    return neighbours.rows_are_public\n",
        f"{_CELLS}::test_moments_do_not_tell_how_many_rows_are_left",
    ),
    Bug(
        "models_tell_the_rows_left",
        "under replace a model says exactly how many rows were left, and not how many there are",
        "curator/gates/model.py",
        "        self._rows = int(kept[0] + left[0])\n",
        "        self._rows = int(kept[0])\n",
        f"{_CELLS}::test_the_number_of_rows_that_are_left_is_never_told",
    ),
    Bug(
        "left_rows_of_a_unit_weigh",
        "rows of a unit that are left out have a weight, and count with numbers filled in",
        "curator/sources/unit_rows.py",
        "                room[~present, -1] *= -1\n",
        "                room[~present, -1] *= 1\n",
        f"{_CELLS}::test_rows_of_a_unit_that_are_left_out_are_none_of_its_rows",
    ),
    Bug(
        "left_rows_come_back",
        "rows that the first pass leaves out are kept for the others, which count them",
        "exact/blocks.py",
        "            self.leave(rows[:, ~present], gone)\n",
        "            self.leave(rows[:, ~present], gone)\n"
        "            if self.keep is not None:\n"
        "                self.keep.append(Kept(rows[:, ~present].astype(np.float32), gone))\n",
        f"{_CELLS}::test_fit_finds_of_a_table_with_gaps_what_it_finds_without_those_rows",
    ),
)
