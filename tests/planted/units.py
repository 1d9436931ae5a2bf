"""Bugs of units of privacy: weights, ids, scores, levels and sizes."""

from planted.bug import Bug

_REPLAY = "tests/audit/test_unit_replays.py::test_no_unit_moves_a_release_farther_than_is_declared"
_WEIGHTS = "tests/curator/test_survey_weights.py"
_ENTRIES = "tests/audit/test_unit_entries.py"

BUGS = (
    Bug(
        "weights_of_other_units",
        "the weights of a unit follow from how many rows units have on average",
        "curator/sources/unit_rows.py",
        "    counts = np.bincount(codes, minlength=len(encoded.dictionary))\n",
        "    units = len(encoded.dictionary)\n"
        "    counts = np.full(units, len(codes) // max(1, units))\n",
        f"{_REPLAY}[moments]",
    ),
    Bug(
        "cap_of_units_off_by_one",
        "a unit of more rows than it counts as counts as if it had one row less",
        "exact/weights.py",
        "    weights = _round_down(WHOLE // np.maximum(counts, rows_per_unit))\n"
        "    if (weights * counts > WHOLE).any():\n",
        "    weights = _round_down(WHOLE // np.maximum(counts - 1, rows_per_unit))\n"
        "    if (weights * (counts - 1) > WHOLE).any():\n",
        f"{_REPLAY}[mean]",
    ),
    Bug(
        "ids_by_their_hash",
        "ids are one unit where their hashes are equal",
        "curator/sources/unit_rows.py",
        "    encoded = keys.dictionary_encode()\n",
        "    import zlib\n\n"
        "    hashes = [zlib.crc32(key) for key in keys.to_pylist()]\n"
        "    encoded = pa.array(hashes).dictionary_encode()\n",
        "tests/curator/test_units.py::test_ids_whose_hashes_are_equal_are_two_units",
    ),
    Bug(
        "weights_before_the_clip",
        "a weight multiplies rows before they are clipped, and each is clipped as if it were whole",
        "exact/sums.py",
        "            self.add(self.statistic.sum(block), block.shape[1] * bound, times)\n",
        "            light = np.rint(block * (times / (1 << 24))) if times > 1 else block\n"
        "            self.add(self.statistic.sum(light), block.shape[1] * bound, 1 << 24)\n",
        f"{_REPLAY}[whitened_descent]",
    ),
    Bug(
        "rows_of_nobody_count",
        "rows without an id count as a unit",
        "curator/sources/unit_rows.py",
        "        keys = keys_of(columns[self.schema.unit])\n",
        '        keys = keys_of(columns[self.schema.unit]).fill_null(b"")\n',
        "tests/curator/test_units.py::test_rows_without_an_id_count_for_nothing",
    ),
    Bug(
        "long_ids_rounded",
        "ids of 17 digits are read as float64, which makes one unit of several",
        "schema/unit_keys.py",
        "_EXACT = 2.0**53",
        "_EXACT = math.inf",
        "tests/schema/test_unit_keys.py::test_long_ids_are_told_apart_in_every_type",
    ),
    Bug(
        "spans_without_their_unit",
        "a span of time is an id by its ticks alone, so that a second is a day's",
        "schema/unit_spans.py",
        "    return _key(tick * step * _ATTOSECONDS[unit])\n",
        "    return _key(tick * step)\n",
        "tests/schema/test_unit_spans.py"
        "::test_spans_are_one_id_where_they_are_as_long_in_every_unit",
    ),
    Bug(
        "units_of_plain_rows",
        "published moments of units have the noise of single rows, on sums 2^24 times as large",
        "papers/sheffet/release.py",
        "        passage.check_rows(built)\n"
        "        prepared = built.prepare(moments_shape(schema))\n",
        "        passage.check_rows(built)\n"
        "        prepared = built.prepare(moments_shape(schema.with_unit(None)))\n",
        "tests/papers/test_sheffet_published.py"
        "::test_moments_of_units_are_measured_in_the_units_of_weighted_sums",
    ),
    Bug(
        "a_level_more_than_a_unit_counts_for",
        "a unit counts for one level of a column more than it may",
        "curator/level_table.py",
        "    chosen = rank < most\n"
        "    if chosen.any() and int(np.bincount(group[chosen]).max()) > most:\n",
        "    chosen = rank <= most\n"
        "    if chosen.any() and int(np.bincount(group[chosen]).max()) > most + 1:\n",
        "tests/curator/test_levels_gate.py::"
        "test_one_unit_changes_as_many_counts_as_it_may_and_by_one[1]",
    ),
    Bug(
        "threshold_of_one_level",
        "the threshold is high enough for one level that a unit alone holds, and not for all",
        "mechanisms/levels.py",
        "levels_per_unit, step, threshold(step, most, failure), mu, account",
        "levels_per_unit, step, threshold(step, 1, failure), mu, account",
        "tests/mechanisms/test_levels.py::test_delta_counts_every_level_that_one_unit_alone_holds",
    ),
    Bug(
        "survey_weights_not_clamped",
        "a survey weight above its bound counts for more than a row",
        "schema/survey_weights.py",
        "np.clip(raw, float(self.low), float(self.high)) / float(self.high)",
        "np.minimum(np.maximum(raw, float(self.low)) / float(self.high), 2.0)",
        f"{_WEIGHTS}::test_a_weight_is_clamped_and_a_bad_one_is_nothing",
    ),
    Bug(
        "missing_survey_weights_count",
        "a row without a survey weight counts as a whole one",
        "exact/weights.py",
        "np.where(np.isnan(shares), 0.0, shares)",
        "np.where(np.isnan(shares), 1.0, shares)",
        f"{_WEIGHTS}::test_a_weight_is_clamped_and_a_bad_one_is_nothing",
    ),
    Bug(
        "weight_of_a_unit_not_capped",
        "a unit of many heavy rows counts for all of them",
        "exact/weights.py",
        "    held = np.maximum(_totals(weights, codes, units), rows_per_unit * WHOLE)\n",
        "    held = np.full(units, rows_per_unit * WHOLE)\n",
        "tests/audit/test_weight_replays.py"
        "::test_no_weight_moves_second_moments_farther_than_is_declared[units]",
    ),
    Bug(
        "weight_public_under_replace",
        "means take what all rows weigh for public where rows are replaced",
        "coinpress/methods.py",
        "begin(sums, table, self.scale, Count(self.count_varies))",
        "begin(sums, table, self.scale, Count())",
        f"{_WEIGHTS}::test_what_rows_weigh_is_noisy_where_they_are_replaced",
    ),
    Bug(
        "rows_told_of_weighted_means",
        "a mean of weighted rows tells their total weight as a public number of rows",
        "curator/gates/means.py",
        "    public = method.neighbours.rows_are_public and not schema.count_varies\n",
        "    public = method.neighbours.rows_are_public\n",
        f"{_WEIGHTS}::test_what_rows_weigh_is_noisy_where_they_are_replaced",
    ),
    Bug(
        "weight_told_by_models",
        "a model of weighted rows that are replaced tells what they weigh, exactly",
        "curator/gates/model.py",
        "solver.neighbours.rows_are_public and not schema.is_weighted",
        "solver.neighbours.rows_are_public and passage.unit is None",
        f"{_WEIGHTS}::test_what_rows_weigh_is_noisy_where_they_are_replaced",
    ),
    Bug(
        "survey_weights_of_the_heaviest",
        "a survey weight is a part of the largest one in the table, and not of its public bound",
        "schema/survey_weights.py",
        "np.clip(raw, float(self.low), float(self.high)) / float(self.high)",
        "np.minimum(np.abs(raw) / np.nanmax(np.abs(raw), initial=1.0), 1.0)",
        "tests/audit/test_table_replays.py"
        "::test_a_row_or_a_unit_changes_no_other_rows_integers[parquet-weights-rows]",
    ),
    Bug(
        "scores_that_turn_move_one_square",
        "a unit that becomes another moves the outer products of scores as if it only went",
        "exact/unit_scores.py",
        "    replaced: ClassVar[int] = 2\n",
        "    replaced: ClassVar[int] = 1\n",
        "tests/exact/test_unit_scores.py"
        "::test_one_unit_for_another_moves_the_sum_by_no_more_than_is_declared",
    ),
    Bug(
        "scores_in_half_steps",
        "scores of units are in half the steps that noise is made for, and not held to its bound",
        "exact/unit_scores.py",
        "        shorter = np.sign(scores) * (np.abs(scores) >> (BITS + self._shift))\n"
        "        short = bound_norms(shorter.astype(np.float64), self.bound)\n",
        "        shorter = np.sign(scores) * (np.abs(scores) >> (BITS + self._shift - 1))\n"
        "        short = shorter.astype(np.float64)\n",
        "tests/audit/test_unit_replays.py::test_scores_of_units_are_among_what_is_replayed",
    ),
    Bug(
        "levels_of_one_of_two_units",
        "a unit that becomes another moves the counts of levels as if it only went",
        "mechanisms/levels.py",
        "        moved = 2 * most if self.neighbours is Neighbours.REPLACE else most\n",
        "        moved = most\n",
        f"{_ENTRIES}::test_normal_noise_comes_near_its_claim[suggest_levels-replace]",
    ),
    Bug(
        "levels_counted_by_rows",
        "a unit counts for its levels as often as it has rows that hold them",
        "curator/level_table.py",
        "    ones = pa.array(np.ones(len(levels), np.int64))\n"
        "    return pa.table({LEVEL: levels, ROWS: ones})\n",
        "    rows = ordered.column(ROWS).filter(pa.array(chosen))\n"
        "    return pa.table({LEVEL: levels, ROWS: rows})\n",
        f"{_ENTRIES}::test_normal_noise_comes_near_its_claim[suggest_levels-add_remove]",
    ),
    Bug(
        "rows_counted_as_units",
        "a unit counts in its bin as often as it has rows",
        "exact/unit_sizes.py",
        "        np.add.at(self._sums, bins, weights)",
        "        np.add.at(self._sums, bins, WHOLE)",
        "tests/curator/test_rows_per_unit.py::test_one_unit_moves_one_count_by_at_most_one",
    ),
    Bug(
        "sizes_with_half_the_variance",
        "normal noise on the numbers of units has half the variance that ρ asks for",
        "mechanisms/unit_sizes.py",
        "        return WHOLE**2 / (2 * Fraction(guarantee.rho))\n",
        "        return WHOLE**2 / (4 * Fraction(guarantee.rho))\n",
        f"{_ENTRIES}::test_noise_of_unit_sizes_comes_near_its_claim[suggest_rows_per_unit_gaussian]",
    ),
)
