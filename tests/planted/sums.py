"""Bugs of sensitivities that are derived and not verified."""

from planted.bug import Bug

_CENTRED = "tests/coinpress/test_centred.py"

BUGS = (
    Bug(
        "products_overflow",
        "a product that overflows on the way makes numbers of levels that a row does not hold",
        "schema/factor_values.py",
        "return None if safe else tuple(shifts)",
        "return None",
        "tests/schema/test_products.py::test_a_level_that_a_row_does_not_hold_is_zero_whatever_overflows",
    ),
    Bug(
        "features_not_verified",
        "AdaSSP believes the bound of its features, which a schema's reasoning may get wrong",
        "exact/block_moments.py",
        "            cells[own] = bound_norms(cells[own], self.feature_square)\n",
        "",
        "tests/curator/test_verified_bounds.py::test_adassp_keeps_its_promise_where_a_bound_is_wrong",
    ),
    Bug(
        "target_not_verified",
        "AdaSSP believes the bound of its target",
        "exact/block_moments.py",
        "            np.clip(cells[target], -largest, largest, out=cells[target])\n",
        "",
        "tests/exact/test_verified_sensitivities.py::test_blocks_hold_features_and_target_each_to_its_own",
    ),
    Bug(
        "whole_rows_not_verified",
        "a matrix of rows that need no clip is not held to their norm",
        "exact/row_sums.py",
        "        if len(over):\n",
        "        if len(over) and self.bound < self.shape.sensitivity:\n",
        "tests/exact/test_verified_sensitivities.py::test_one_row_is_within_the_bound_whatever_is_planted",
    ),
    Bug(
        "histograms_beyond_their_ends",
        "a cell beyond the last bin counts in the next column's first",
        "exact/histograms.py",
        "if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < self.bins:\n",
        "if not indices.size:\n",
        "tests/exact/test_verified_sensitivities.py::test_one_row_is_within_the_bound_whatever_is_planted",
    ),
    Bug(
        "examples_not_verified",
        "examples are as long as they come, and so are the minima and gradients that they move",
        "convex/examples.py",
        "self._blocks = [held_block(block, frame.norm) for block in blocks]",
        "self._blocks = list(blocks)",
        "tests/exact/test_verified_sensitivities.py::test_examples_are_held_to_their_norm_and_labels_to_1",
    ),
    Bug(
        "released_cells_not_verified",
        "rows meet their noise with cells outside of the sets that it is made for",
        "mechanisms/rows/additive_noise.py",
        "        rows = self._held.hold(rows)\n",
        "",
        "tests/mechanisms/test_held_cells.py::test_released_rows_are_of_held_cells",
    ),
    Bug(
        "projected_cells_not_verified",
        "rows are projected with cells outside of the sets that the noise is made for",
        "mechanisms/rows/projection.py",
        "        rows = self._held.hold(rows)\n",
        "",
        "tests/mechanisms/test_held_cells.py::test_released_rows_are_of_held_cells",
    ),
    Bug(
        "eigensolver_believed",
        "what an eigensolver says of the least eigenvalue is released unchecked",
        "mechanisms/moments/eigenvalues.py",
        "    low, _ = least_eigenvalue(matrix, width=Fraction(square, UNITS))\n",
        "    from scipy import linalg\n\n"
        "    low = Fraction(float(linalg.eigh(matrix.astype(float))[0][0]))\n",
        "tests/mechanisms/test_eigenvalues.py::test_an_eigensolver_that_is_wrong_is_not_believed",
    ),
    Bug(
        "noise_on_a_coarser_grid",
        "Wishart noise is rounded to a grid coarser than the table's, which shows it modulo a step",
        "mechanisms/moments/additive_wishart.py",
        "        noise = wishart_integers(d, self.degrees, factor, entropy=entropy)\n",
        "        noise = 256 * wishart_integers(d, self.degrees, factor / 256, entropy=entropy)\n",
        "tests/audit/test_precision.py::"
        "test_noise_on_a_coarser_grid_would_show_the_table_modulo_its_step",
    ),
    Bug(
        "ridge_of_another_matrix",
        "a sketch is drawn with a ridge that its certificate does not say",
        "mechanisms/moments/ridged.py",
        "shifted[np.diag_indices(len(shifted))] += self.units",
        "shifted[np.diag_indices(len(shifted))] += self.units + 1",
        "tests/mechanisms/test_exact_releases.py::test_the_matrix_of_a_sketch_is_the_ideal_draw",
    ),
    Bug(
        "error_of_slopes_forgotten",
        "the certified norm of a gradient leaves out how far its slopes may be off",
        "convex/certified_gradient.py",
        "(norm + error) * (1 + 2.0**-40), error)",
        "norm * (1 - 2.0**-40), error)",
        "tests/convex/test_minimiser.py::test_a_certified_norm_is_no_less_than_the_exact_one",
    ),
    Bug(
        "minimum_rounded_down",
        "a minimum is rounded down to the lattice, up to twice as far as is paid for",
        "convex/certified_gradient.py",
        "return Point((self.integers + (1 << -shift - 1)) >> -shift, exponent)",
        "return Point(self.integers >> -shift, exponent)",
        "tests/convex/test_minimiser.py::test_points_are_rounded_to_the_nearest_of_a_lattice",
    ),
    Bug(
        "centred_true_count",
        "second moments around a centre are divided by the true number of rows, which is private",
        "coinpress/centred.py",
        "released = max(float(count.values[0]), 0.0)",
        "released = float(view.sums([counted])[0][0])",
        f"{_CENTRED}::test_a_number_of_rows_that_is_private_is_never_exact",
    ),
    Bug(
        "centred_clip_of_the_rows",
        "differences from the centre are clipped to a length that the rows themselves say",
        "coinpress/centred.py",
        "return _Lengths(longest, np.asarray(edges), counts.values[::-1], counts.sigma)",
        "return _Lengths(longest, edges, view.sums([statistic])[0][::-1].astype(float), 1e-9)",
        f"{_CENTRED}::test_queries_depend_on_earlier_answers_alone",
    ),
    Bug(
        "centred_weight_public",
        "what all rows weigh is taken for public, in second moments around a centre",
        "coinpress/centred.py",
        "return PreparedCentred(self, budget, account, Count(count_varies))",
        "return PreparedCentred(self, budget, account, Count())",
        "tests/curator/test_survey_weights.py"
        "::test_what_rows_weigh_is_noisy_where_they_are_replaced",
    ),
)
