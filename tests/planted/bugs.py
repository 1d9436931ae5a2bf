"""Privacy bugs that this library could have, each with the one test that must see it.

`good` stands exactly once in its file; the bug is `bad` in its place. Most of them are bugs that
some library or paper has had; all would change what is promised and nothing that a user sees.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """A bug: what is wrong in words, where, and the test that fails because of it."""

    name: str
    wrong: str
    file: str
    good: str
    bad: str
    test: str


_REFUND = """        except Exception as error:
            if not isinstance(error, _ReplayError):
                from dplinear.ledger.budget import Units
                from dplinear.ledger.chain import entry
                with ledger.writing() as lines:
                    last = lines.last("spend", request=line._request)
                    back = entry(lines.last(), "spend", {}, dataset=last.dataset,
                                 request=last.request + " refund",
                                 spent=last.spent.minus(last.cost),
                                 cost=Units(-last.cost.main, -last.cost.delta))
                    lines.append(back)
                raise
            found = error
"""

BUGS = (
    # Sensitivities
    Bug(
        "root_of_two_lost",
        "a replaced row moves a matrix √2 times as far as one that comes or goes; not here",
        "mechanisms/analyze_gauss.py",
        "twice = 2 if neighbours is Neighbours.REPLACE and shape.dimension > 1 else 1",
        "twice = 1",
        "tests/mechanisms/test_calibration.py::test_sigma_of_analyze_gauss",
    ),
    Bug(
        "replacement_counted_once",
        "sums of rows forget that a replaced row is one less and one more",
        "erm/row_sums.py",
        "return self.bound**2 * (self.replaced if relation is Neighbours.REPLACE else 1)",
        "return self.bound**2",
        "tests/erm/test_chain.py::test_neighbours_are_no_farther_apart_than_is_paid_for",
    ),
    Bug(
        "missing_row_clip",
        "rows longer than the bound are left as long as they are",
        "curator/grid.py",
        "    if len(over):\n"
        "        rows[:, over] = shrunk(rows[:, over], squares[over], grid.sensitivity)\n",
        "",
        "tests/curator/test_gram.py::test_integer_norms_never_pass_the_bound",
    ),
    Bug(
        "missing_cell_clip",
        "cells beyond a column's bounds are left there",
        "curator/grid.py",
        "    np.clip(rows, -largest, largest, out=rows)\n",
        "",
        "tests/contracts/test_sources.py::test_nan_and_infinity_change_their_own_cell",
    ),
    Bug(
        "nan_not_neutralised",
        "a cell without a number spreads: its row makes sums NaN, which anyone sees",
        "curator/grid.py",
        "    if rows.size and np.isnan(rows.min()):\n",
        "    if rows.size and np.isnan(rows[0, 0]):\n",
        "tests/contracts/test_sources.py::test_nan_and_infinity_change_their_own_cell",
    ),
    Bug(
        "clip_after_the_sum",
        "the sum of a block is clipped, instead of each row before it is added",
        "erm/mapped_sums.py",
        "return np.asarray(self._clipped(rows).sum(axis=1), np.int64)",
        "return np.asarray(shortened(product(self.integers * self._step, rows).sum(axis=1, "
        "keepdims=True), self._longest)[:, 0], np.int64)",
        "tests/erm/test_mapped_sums.py::test_no_map_and_no_row_breaks_a_promise",
    ),
    Bug(
        "unclipped_slope",
        "the slope of a loss is not clipped, so a far label pulls as hard as it likes",
        "erm/examples.py",
        "np.rint(np.clip(slopes * self._step, -self.steepest, self.steepest))",
        "np.rint(slopes * self._step)",
        "tests/erm/test_examples.py::test_gradients_are_exact",
    ),
    Bug(
        "row_norm_not_enforced",
        "rows for constraint sets keep their length, whatever row_norm says",
        "curator/examples.py",
        "rows = shortened(clamped(steps), self._norm, ordered_squares)",
        "rows = np.rint(clamped(steps))",
        "tests/curator/test_examples.py::test_rows_are_rounded_or_clipped",
    ),
    Bug(
        "projected_rows_not_clipped",
        "a projection may lengthen a row, and nothing shortens it again",
        "erm/projections.py",
        'return shortened(np.multiply(self.products(rows), self.worth, order="C"), norm)',
        'return np.rint(np.multiply(self.products(rows), self.worth, order="C"))',
        "tests/erm/test_projections.py::test_projected_rows_are_bounded_and_each_by_itself",
    ),
    Bug(
        "norm_at_the_wrong_projection",
        "noise is scaled by a matrix that was drawn beside the one that is used",
        "mechanisms/projected_rows.py",
        "setting = Setting(share.rows, self.neighbours, changes, rows)\n            noise",
        "setting = Setting(share.rows, self.neighbours, changes, trial or rows)\n            noise",
        "tests/mechanisms/test_projected_rows.py::test_every_scale_is_the_one_of_its_formula",
    ),
    Bug(
        "half_a_range",
        "a cell is thought to move by half of its column's range",
        "mechanisms/additive_noise.py",
        "root_ceiling(cell.diameter_squared * unit)\n",
        "root_ceiling(cell.diameter_squared * unit / 4)\n",
        "tests/mechanisms/test_additive_noise.py::test_the_widest_change_of_a_cell_is_hidden_by_its_noise",
    ),
    # Noise
    Bug(
        "noise_not_scaled",
        "Laplace noise for projected rows has the scale of a sensitivity of 1",
        "mechanisms/row_noise.py",
        "scale = calibrate.laplace(PureDP(epsilon), reach)",
        "scale = calibrate.laplace(PureDP(epsilon), 1.0)",
        "tests/mechanisms/test_projected_rows.py::test_every_scale_is_the_one_of_its_formula",
    ),
    Bug(
        "off_diagonals_doubled",
        "entries off the diagonal are counted twice, as a matrix of both halves has them",
        "mechanisms/analyze_gauss.py",
        "values[upper] = self._cells(rounded[upper] + noise.astype(object))",
        "values[upper] = self._cells(2 * rounded[upper] + noise.astype(object))",
        "tests/mechanisms/test_replay.py::test_oblique_rows_are_as_far_apart_for_halved_noise",
    ),
    Bug(
        "off_diagonal_noise_halved_again",
        "noise off the diagonal has a quarter of the variance, instead of half",
        "mechanisms/analyze_gauss.py",
        "noise = discrete.gaussian(variance / self.weight, len(upper[0]), entropy=entropy)",
        "noise = discrete.gaussian(variance / self.weight**2, len(upper[0]), entropy=entropy)",
        "tests/mechanisms/test_calibration.py::test_releases_follow_the_law_they_state",
    ),
    Bug(
        "float_noise",
        "Laplace noise is a float that is added to a float, so low bits tell what was added to",
        "mechanisms/row_labels.py",
        "noise = discrete.laplace(Fraction(self.scale), rows.shape[1], entropy=entropy)\n"
        "        sums = (rows[self.place].astype(np.int64) + noise).astype(np.float64)\n",
        "from dplinear.noise.spherical import spherical_laplace\n"
        "        noise = np.array([spherical_laplace(self.scale, 1, entropy=entropy)[0] for _ in "
        "rows[self.place]])\n"
        "        sums = rows[self.place] + noise\n",
        "tests/mechanisms/test_row_labels.py::test_a_released_number_is_a_function_of_whole_steps",
    ),
    Bug(
        "wishart_degree_lost",
        "Wishart noise is drawn with a degree of freedom less than was calibrated",
        "noise/wishart.py",
        "_chi_square(degrees - np.arange(dimension, dtype=np.float64), entropy)",
        "_chi_square(degrees - np.arange(1, dimension + 1, dtype=np.float64), entropy)",
        "tests/noise/test_wishart.py::test_wishart_entries_have_the_right_mean_and_variance",
    ),
    Bug(
        "label_noise_forgotten",
        "a level beside projected rows is told as it is",
        "mechanisms/row_labels.py",
        "answers = self.response.draw(codes, entropy)",
        "answers = codes",
        "tests/mechanisms/test_row_labels.py::test_levels_are_told_as_often_as_epsilon_allows",
    ),
    Bug(
        "response_rounded_to_the_truth",
        "randomised response rounds the chance of the truth up",
        "noise/response.py",
        "high = exponential(Fraction(self.epsilon), bits)[1]\n"
        "        return (_ALL << bits) // ((1 << bits) + (self.levels - 1) * high)",
        "high = exponential(Fraction(self.epsilon), bits)[1]\n"
        "        return -(-(_ALL << bits) // ((1 << bits) + (self.levels - 1) * high))",
        "tests/noise/test_response.py::test_odds_never_exceed_and_reach_what_epsilon_allows",
    ),
    Bug(
        "fork_reuses_entropy",
        "a forked worker goes on with its parent's keystream, and draws the same noise",
        "noise/entropy.py",
        "    if stream is None or _local.token != token:\n",
        "    if stream is None:\n",
        "tests/noise/test_entropy.py::test_32_forked_workers_never_share_a_draw",
    ),
    Bug(
        "seeded_gate",
        "releases draw their noise from a fixed seed",
        "curator/gate.py",
        "self.entropy = simulation.entropy_for_release()",
        "self.entropy = simulation.entropy(3)",
        "tests/curator/test_gate.py::test_seeded_noise_repeats_itself_and_taints_the_certificate",
    ),
    Bug(
        "zero_counted_twice",
        "discrete noise lets minus zero through, so 0 is twice as likely as it should be",
        "noise/discrete.py",
        "    refused |= (magnitude == 0) & (bits.minus == 1)  # zero must not count twice\n",
        "",
        "tests/noise/test_discrete.py::test_laplace_has_the_exact_law",
    ),
    # Calibration
    Bug(
        "root_on_the_wrong_side",
        "a root finder's answer is taken as it is, though δ is a little above the target there",
        "privacy/roots.py",
        "    while delta(root) > target:\n        root *= 1 - sign * hair",
        "    while delta(root) > 1.001 * target:\n        root *= 1 - sign * hair",
        "tests/privacy/test_calibrate.py::test_gaussian_never_overshoots",
    ),
    Bug(
        "delta_side_flipped",
        "a profile is taken in the easier of its two directions",
        "privacy/profiles/base.py",
        "return np.maximum(removing, adding)",
        "return np.minimum(removing, adding)",
        "tests/privacy/test_calibrate.py::test_sketch_oracle_values",
    ),
    Bug(
        "exponential_factor_two",
        "the exponential mechanism takes all of ε where a replaced row needs half",
        "erm/learners/exponential.py",
        "steps = 2 if self.neighbours is Neighbours.REPLACE else 1",
        "steps = 1",
        "tests/erm/test_exponential.py::test_no_row_changes_a_corners_chance_by_more_than_epsilon",
    ),
    Bug(
        "epsilon_not_divided",
        "each step of Frank-Wolfe spends all of ε",
        "privacy/selections.py",
        "return Fraction(epsilon) / count",
        "return Fraction(epsilon)",
        "tests/erm/test_frank_wolfe.py::test_no_path_is_likelier_by_more_than_epsilon",
    ),
    Bug(
        "jacobian_forgotten",
        "objective perturbation forgets that a row bends the sum",
        "privacy/profiles/objective.py",
        "bent = math.log1p(self.ratio) * _ROUNDED\n        left",
        "bent = 0.0\n        left",
        "tests/privacy/test_objective.py::test_the_floats_are_the_formula_rounded_up",
    ),
    Bug(
        "tolerance_not_counted",
        "output perturbation forgets that minima are found only nearly",
        "erm/learners/output_perturbation.py",
        "moved = up(steps * one.gradient + 2 * tolerance)",
        "moved = up(steps * one.gradient)",
        "tests/erm/test_perturbation.py::test_the_sensitivity_is_reached",
    ),
    # Queries about the table
    Bug(
        "lower_bound_used_twice",
        "a lower bound on the least eigenvalue is taken off the ridge twice",
        "mechanisms/least_eigenvalue.py",
        "ridge = max(ridge, up(self.floor - known)) if fallback else ridge",
        "ridge = max(ridge, up(self.floor - 2 * known)) if fallback else ridge",
        "tests/mechanisms/test_replay.py::test_the_adjusted_ridge_meets_the_bound_that_was_found",
    ),
    Bug(
        "neighbours_eigenvalue_forgotten",
        "a lower bound holds for the table itself, not for the neighbour that lacks a row",
        "mechanisms/least_eigenvalue.py",
        "Fraction(units + noise - self.margin - _UNITS, _UNITS)",
        "Fraction(units + noise - self.margin, _UNITS)",
        "tests/mechanisms/test_replay.py::test_the_bound_on_the_least_eigenvalue_fails_as_rarely_as_promised",
    ),
    Bug(
        "true_count_instead_of_the_noisy_one",
        "a descent reckons with the exact number of rows, which is private",
        "erm/survey.py",
        "census = Census(max(float(count.values[0]), 0.0), count.sigma)",
        "census = Census(float(chain._rows.sums([Count()])[0][0]), count.sigma)",
        "tests/erm/test_descent_replay.py::test_queries_depend_on_earlier_answers_alone",
    ),
    Bug(
        "share_spent_twice",
        "a chain books nothing, so that its shares can be spent again",
        "erm/chain.py",
        "self.spent, self.inverse = spent, inverse",
        "self.inverse = inverse",
        "tests/erm/test_chain.py::test_overspending_raises_and_reads_nothing",
    ),
    Bug(
        "rounding_forgotten",
        "a scaled sum is rounded, and the noise does not count what that moves",
        "erm/chain.py",
        "down(float((moved - rounding) / root_ceiling(Fraction(square))))",
        "down(float(moved / root_ceiling(Fraction(square))))",
        "tests/erm/test_chain.py::test_rounding_is_inside_what_is_paid_for",
    ),
    # Gates
    Bug(
        "spend_after_read",
        "rows are read before they are paid for, so a refused spend has looked at them",
        "curator/gate.py",
        "self.spend(mechanism, prepared.account, own)\n"
        "        return self.measured(mechanism, prepared, read(), curve)",
        "moments = read()\n        self.spend(mechanism, prepared.account, own)\n"
        "        return self.measured(mechanism, prepared, moments, curve)",
        "tests/curator/test_gate.py::test_a_refused_spend_reads_nothing",
    ),
    Bug(
        "category_fallback_that_reveals",
        "a level that was not declared raises, and the message quotes it",
        "schema/cells.py",
        "np.fromiter((index.get(text_in(cell), -1) for cell in cells)",
        "np.fromiter((index[text_in(cell)] for cell in cells)",
        "tests/curator/test_bad_inputs.py::test_what_no_category_holds_is_no_level",
    ),
    Bug(
        "secret_matrix_in_the_open",
        "a kept projection is written beside its own ciphertext",
        "mechanisms/kept_projection.py",
        "open_file.write(_MAGIC + nonce + sealed)",
        "open_file.write(_MAGIC + nonce + sealed + plain)",
        "tests/mechanisms/test_projected_rows.py::test_a_kept_matrix_can_be_read_with_its_key_alone",
    ),
    Bug(
        "secret_matrix_in_the_release",
        "every release says its matrix, though it was not to be public",
        "mechanisms/projected_rows.py",
        "matrix=rows.facts() if asked.public_projection else None,",
        "matrix=rows.facts(),",
        "tests/mechanisms/test_projected_rows.py::test_the_matrix_is_released_only_where_asked",
    ),
    # Ledger
    Bug(
        "refund_on_error",
        "a ledger forgets a spend whose release failed",
        "curator/recorded.py",
        "        except _ReplayError as found:\n",
        _REFUND,
        "tests/contracts/test_ledgers.py::test_a_gate_that_fails_after_the_spend_has_spent",
    ),
    Bug(
        "ledger_rounds_down",
        "costs are rounded down, so that many small spends cost nothing",
        "ledger/budget.py",
        "return Units(math.ceil(main * UNIT), math.ceil(delta * DELTA_UNIT))",
        "return Units(math.floor(main * UNIT), math.floor(delta * DELTA_UNIT))",
        "tests/contracts/test_ledgers.py::test_costs_are_rounded_up_and_only_by_theorems",
    ),
    Bug(
        "digest_without_parameters",
        "the same request with other arguments is taken for the same",
        "ledger/ledger.py",
        "[request.dataset, request.mechanism, str(request.neighbours), request.guarantee, said]",
        "[request.dataset, request.mechanism, str(request.neighbours), request.guarantee]",
        "tests/contracts/test_ledgers.py::test_the_same_request_gets_the_same_bytes_and_spends_once",
    ),
    Bug(
        "anchor_not_checked",
        "an older copy of the ledger is taken for the newest",
        "ledger/sqlite.py",
        "            check_age(lines, side.latest())\n",
        "",
        "tests/ledger/test_sqlite.py::test_an_older_copy_is_refused",
    ),
    Bug(
        "group_privacy_forgotten",
        "a budget for replaced rows charges a release for added ones as one step, not two",
        "ledger/budget.py",
        "return 1 if neighbours is Neighbours.REPLACE else 2",
        "return 1",
        "tests/contracts/test_ledgers.py::test_costs_are_rounded_up_and_only_by_theorems",
    ),
    Bug(
        "filter_admits_too_much",
        "a budget is checked before a cost is added, so that the last spend may pass it",
        "ledger/ledger.py",
        "if not after.within(budget.limit):",
        "if not spent.within(budget.limit):",
        "tests/contracts/test_ledgers.py::test_what_is_written_as_the_budget_is_admitted_and_no_more",
    ),
)
