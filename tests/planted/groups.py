"""Bugs of groups: rows in the wrong one, and noise for fewer than neighbours move."""

from planted.bug import Bug

_GROUPS = "tests/curator/test_groups.py::"
_MODELS = "tests/curator/test_group_models.py::"

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
)
