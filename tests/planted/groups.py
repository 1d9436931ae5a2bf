"""Bugs of groups: rows in the wrong one, and noise for fewer than neighbours move."""

from planted.bug import Bug

_GROUPS = "tests/curator/test_groups.py::"
_MODELS = "tests/curator/test_group_models.py::"
_LISTED = "tests/curator/test_listed_groups.py::"
_REPLAYS = "tests/audit/test_group_replays.py::"

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
        "mechanisms/adassp.py",
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
)
