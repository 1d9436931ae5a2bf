"""Bugs of groups: rows in the wrong one, and noise for fewer than neighbours move."""

from planted.bug import Bug

_SPLIT = "tests/audit/test_split_replays.py"
_GROUPS = "tests/curator/test_groups.py::"
_MODELS = "tests/curator/test_group_models.py::"
_LISTED = "tests/curator/test_listed_groups.py::"
_REPLAYS = "tests/audit/test_group_replays.py::"
_WEIGHTS = "tests/curator/test_group_weights.py::"
_WEIGHT_REPLAYS = "tests/audit/test_group_weight_replays.py::"

BUGS = (
    Bug(
        "one_number_of_two_groups",
        "under replace, matrices of one number have the noise of one, though two of them move",
        "mechanisms/moments/analyze_gauss.py",
        "        apart = shape.dimension > 1 or moved > 1\n",
        "        apart = shape.dimension > 1\n",
        f"{_GROUPS}test_a_matrix_of_one_number_moves_twice_where_a_row_changes_its_group",
    ),
    Bug(
        "coarse_rounding_of_one_group",
        "on a coarser grid, a unit's rounding is that of one matrix, though all of them move",
        "mechanisms/moments/analyze_gauss.py",
        "            norm = up(norm + math.sqrt(moved * (d + weight * d * (d - 1) // 2)))\n",
        "            norm = up(norm + math.sqrt(d + weight * d * (d - 1) // 2))\n",
        f"{_GROUPS}test_rounding_to_a_coarser_grid_counts_in_every_group_that_moves",
    ),
    Bug(
        "weights_of_other_rows",
        "the rows of a group have the weights of the first rows of the block",
        "exact/groups.py",
        "            self._groups[group].add_weighted(own, weights[chosen], some)\n",
        "            self._groups[group].add_weighted(own, weights[: own.shape[1]], some)\n",
        f"{_GROUPS}test_units_are_weighed_over_all_groups",
    ),
    Bug(
        "side_sums_of_one_end",
        "a row that changes its group has the noise of one side sum, though two of them move",
        "mechanisms/moments/analyze_gauss.py",
        "        ends = 2 if neighbours is Neighbours.REPLACE and moved > 1 else 1\n",
        "        ends = 1\n",
        f"{_WEIGHT_REPLAYS}test_nobody_moves_moments_of_groups_and_their_side_sums_farther[rows-replace]",
    ),
    Bug(
        "side_sums_rounded_in_one_group",
        "side sums are rounded in every group that moves, and the noise is for one rounding",
        "mechanisms/moments/analyze_gauss.py",
        "        each = self.ends * (scale + 1) ** 2 + self.moved - self.ends\n",
        "        each = self.ends * (scale + 1) ** 2\n",
        "tests/mechanisms/test_side_sums.py"
        "::test_sums_of_groups_are_no_farther_apart_than_their_noise_is_for[1-5-add_remove]",
    ),
    Bug(
        "survey_weights_of_other_rows",
        "rows of a group have the survey weights of the first rows of the block",
        "exact/groups.py",
        "            some = None if weights is None else weights[chosen]\n"
        "            self._groups[group].add_present(own, None, some)\n",
        "            some = None if weights is None else weights[: own.shape[1]]\n"
        "            self._groups[group].add_present(own, None, some)\n",
        f"{_WEIGHTS}test_sums_of_groups_are_those_of_the_definition",
    ),
    Bug(
        "survey_weights_of_left_out_rows",
        "rows of a group that are left out have the weights of the first rows of the block",
        "exact/groups.py",
        "self.leave(rows[:, ~present], None if weights is None else weights[~present])",
        "self.leave(rows[:, ~present], None if weights is None else weights)",
        f"{_WEIGHTS}test_sums_of_groups_are_those_of_the_definition",
    ),
    Bug(
        "kept_rows_lose_their_weights",
        "the blocks of a group that wait for the next pass all have the weights of the first",
        "exact/groups.py",
        "            own = None if weights is None else weights[start : start + BLOCK_ROWS]\n",
        "            own = None if weights is None else weights[: some.shape[1]][::-1]\n",
        f"{_WEIGHTS}test_later_passes_find_the_weights_that_the_first_one_kept",
    ),
    Bug(
        "rows_of_no_group_weigh",
        "a row in no group takes a part of its unit's weight",
        "curator/sources/unit_rows.py",
        "            if self.schema.by:\n",
        "            if self.schema.by and weights is None:\n",
        f"{_WEIGHTS}test_a_row_in_no_group_weighs_nothing_of_its_unit",
    ),
    Bug(
        "joined_side_sums_of_one_group",
        "a joined release counts the side sums of one group alone",
        "analyst/releases/joined_certificate.py",
        "    moved = [math.sqrt(ends) * (1 / noise + step / sigma) for noise in side]\n",
        "    moved = [1 / noise + step / sigma for noise in side]\n",
        f"{_WEIGHTS}test_a_joined_profile_counts_the_side_sums_of_all_groups",
    ),
    Bug(
        "pooled_side_sums_with_wide_noise",
        "pooled groups tell the noise of a sum, from which a joined release finds too little loss",
        "analyst/releases/joined_certificate.py",
        "    return [noise / added for noise in found if isinstance(noise, float) and noise > 0]\n",
        "    return [noise for noise in found if isinstance(noise, float) and noise > 0]\n",
        f"{_WEIGHTS}test_a_joined_profile_counts_the_side_sums_of_all_groups",
    ),
    Bug(
        "rounding_of_one_group",
        "chains of groups are calibrated as if a unit's rounding were that of one of them",
        "adaptive/noisy_sums.py",
        "    return 4 * (groups - 1) * inverse\n",
        "    return 0 * inverse\n",
        f"{_MODELS}test_a_chain_of_groups_counts_the_rounding_of_each",
    ),
    Bug(
        "groups_of_any_mechanism",
        "mechanisms that are proved for one group take units that may be in several",
        "curator/gates/groups.py",
        "            return passage.unit is None or kind.for_groups\n",
        "            return True\n",
        f"{_MODELS}test_what_has_no_proof_is_refused_before_anything_is_spent",
    ),
    Bug(
        "rows_of_no_group_in_the_first",
        "a row that is in no group counts in the first one",
        "schema/groups.py",
        "    constant = -1.0\n",
        "    constant = 0.0\n",
        f"{_GROUPS}test_a_missing_truth_value_is_where_the_schema_says",
    ),
    Bug(
        "replaced_within_one_group",
        "a sum of groups is paid for as if a replaced row stayed in its group",
        "adaptive/noisy_sums.py",
        "        return max(within, 2 * statistic.sensitivity_squared(Neighbours.ADD_REMOVE))\n",
        "        return within\n",
        f"{_REPLAYS}test_sums_that_are_paid_for_as_within_one_group_are_caught",
    ),
    Bug(
        "rounding_of_one_chain",
        "rounding is paid for in one of the two groups that a replaced row moves",
        "adaptive/noisy_sums.py",
        "        entries = 2 * size if self.across else size\n",
        "        entries = size\n",
        f"{_REPLAYS}test_rounding_is_paid_for_in_both_groups_that_move",
    ),
    Bug(
        "public_rows_of_a_group",
        "under replace, the number of rows of one listed group is taken for public",
        "curator/gates/means.py",
        "    prepared = PreparedGroups(method.prepare(columns, moved, count_varies=True))\n",
        "    prepared = PreparedGroups(method.prepare(columns, moved))\n",
        f"{_REPLAYS}test_one_listed_group_may_be_left_under_replace",
    ),
    Bug(
        "eigenvalue_of_one_group",
        "AdaSSP's least eigenvalues have the noise of one group, though a unit moves several",
        "mechanisms/adassp_distance.py",
        "        moved, own = self.design.groups, rounding + 1\n",
        "        moved, own = 1, rounding + 1\n",
        f"{_REPLAYS}test_adassp_counts_each_group_that_moves",
    ),
    Bug(
        "unlisted_rows_in_a_listed_group",
        "a row of no listed combination counts in the next one",
        "schema/groups.py",
        "    return np.where(listed[places] == codes, places.astype(np.float64), -1.0)\n",
        "    return np.where(codes >= 0, places.astype(np.float64), -1.0)\n",
        f"{_LISTED}test_where_a_row_is_depends_on_it_alone",
    ),
    Bug(
        "groups_listed_twice",
        "a combination may be listed twice, so that a row is in two groups",
        "schema/groups.py",
        "    if len(set(codes)) < len(codes):\n",
        "    if len(set(codes)) < 0:\n",
        f"{_LISTED}test_wrong_lists_are_refused_before_anything_is_spent",
    ),
    Bug(
        "any_list_is_the_same_request",
        "a request for other groups of the same columns gets the release of the first ones",
        "curator/gates/groups.py",
        "        if split.listed is not None:  # however it was written\n",
        "        if split.listed == ():\n",
        f"{_LISTED}test_another_list_is_another_request",
    ),
    Bug(
        "scores_of_all_groups",
        "a unit's score in a group is that of its rows in all groups",
        "curator/sources/unit_rows.py",
        "slice(None) if group == _ALL else np.flatnonzero(cells[:, size] == group)\n",
        "slice(None)\n",
        "tests/curator/test_clustered_groups.py::"
        "test_scores_of_groups_are_those_of_each_units_rows_in_them",
    ),
    Bug(
        "units_weighed_in_every_group",
        "the weights of a unit add up to 1 in each group, and not over all of them",
        "curator/sources/unit_rows.py",
        "    every, _ = capped_weights(np.abs(signed), codes, units, rows_per_unit)\n",
        "    if schema.by:\n"
        "        groups = np.concatenate([cells[:, -2] for cells, _ in rows]).astype(np.int64)\n"
        "        codes, units = codes * 1_001 + groups + 1, units * 1_001\n"
        "    every, _ = capped_weights(np.abs(signed), codes, units, rows_per_unit)\n",
        f"{_SPLIT}::test_a_unit_in_all_groups_counts_once",
    ),
    Bug(
        "units_in_one_group",
        "noise is made as if a unit were in one group, though it may be in all of them",
        "curator/gates/groups.py",
        "            return len(self.levels)\n",
        "            return 1\n",
        f"{_SPLIT}::test_nobody_moves_all_groups_farther_than_is_declared"
        "[whitened_descent-units-add_remove]",
    ),
)
