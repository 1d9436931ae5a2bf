"""Bugs of rows that are left out for want of a number, and of cells that are filled in."""

from planted.bug import Bug

_CELLS = "tests/curator/test_missing_cells.py"
_FILLED = "tests/curator/test_filled_in.py"

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
    Bug(
        "filled_cells_for_one_column",
        "counts of filled cells have the noise of one column, whatever their number",
        "exact/row_sums.py",
        "        return self.size\n",
        "        return 1\n",
        f"{_FILLED}::test_counts_of_several_columns_move_together",
    ),
    Bug(
        "gaps_without_weights",
        "a filled cell counts as one, however little its row weighs",
        "exact/filling.py",
        "    return np.array([weights[own].sum() for own in gaps], np.int64)\n",
        "    return np.count_nonzero(gaps, axis=1) * np.int64(1 << 24)\n",
        f"{_FILLED}::test_weights_of_rows_with_filled_cells_add_up",
    ),
    Bug(
        "gaps_of_rows_left_out",
        "cells of rows that are left out count as filled in",
        "exact/blocks.py",
        "            gaps = None if gaps is None else gaps[:, present]\n"
        "        if gaps is not None:\n"
        "            self.fill(rows, gaps, weights)\n",
        "        if gaps is not None:\n            self.fill(rows, gaps, weights)\n",
        f"{_FILLED}::test_filled_cells_are_counted_whatever_holds_the_table",
    ),
    Bug(
        "relief_of_constants",
        "rows are taken to be shorter for a gap, whatever it is filled in with",
        "exact/filling.py",
        "        shorter[: len(own)] = unit**2 - constants**2\n",
        "        shorter[: len(own)] = unit**2\n",
        "tests/curator/test_filled_in.py::test_rows_that_are_clipped_are_no_shorter_for_a_gap",
    ),
    Bug(
        "relief_of_clipped_rows",
        "rows that are clipped are taken to be shorter for a gap",
        "exact/filling.py",
        "    if schema.row_norm is None and own:\n",
        "    if own:\n",
        f"{_FILLED}::test_rows_that_are_clipped_are_no_shorter_for_a_gap",
    ),
    Bug(
        "free_counts_twice",
        "counts of filled cells are on a scale for which rows with gaps are not short enough",
        "mechanisms/moments/analyze_gauss.py",
        "        room = 2 * self.shape.sensitivity - sum(shorter)\n",
        "        room = 2 * self.shape.sensitivity + sum(shorter)\n",
        "tests/mechanisms/test_side_sums.py::test_no_row_with_gaps_moves_matrix_and_counts_too_far",
    ),
)
