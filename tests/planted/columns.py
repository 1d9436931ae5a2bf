"""Bugs of what a schema makes of columns and features."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = (
    Bug(
        "lookalike_is_its_column",
        "a derived term is taken for the column that is named like it, and published with it",
        "mechanisms/cells/table_cells.py",
        "derived = [term.label for term in schema.derived_terms]",
        "derived = [t.label for t in schema.derived_terms if t.label not in schema.declared]",
        "tests/audit/test_columns.py::test_no_gate_takes_a_derived_feature_for_a_column",
    ),
    Bug(
        "norm_by_name",
        "features of one name are one column's, and count once in a norm",
        "curator/gates/one_model.py",
        "    return sum(\n        min(term.square, len(chosen.intersection(own)))",
        "    first = {term.label: term for term in reversed(schema.terms)}\n"
        "    return sum(\n        (first[term.label] is term) * min(1, len(chosen & {*own}))",
        "tests/audit/test_columns.py::test_adassp_pays_for_every_feature_of_a_lookalike",
    ),
    Bug(
        "one_name_for_two",
        "a column may have the name of a derived term, so that a target means another one",
        "schema/assembly.py",
        "    check_labels([*([Constant.label] if constant else []), *columns, *derived], built)\n",
        "",
        "tests/schema/test_terms.py::test_a_name_for_two_things_is_refused",
    ),
    Bug(
        "whole_numbers_move_as_real_ones",
        "a bounded change of a cell is taken to be as small after whole numbers are rounded",
        "mechanisms/cells/cell_moves.py",
        "moved = math.floor((moved + read) / unit + 1) * unit",
        "moved = moved + read",
        "tests/audit/test_columns.py::test_what_rounding_adds_is_paid_for_and_no_more",
    ),
    Bug(
        "rounded_rows_are_free",
        "a row that changes by little is taken to be as near after its cells are rounded",
        "mechanisms/cells/cell_moves.py",
        "steps = math.ceil(rounding(column) / feature.half_width * shape.steps_per_unit) +",
        "steps =",
        "tests/audit/test_columns.py::test_what_rounding_adds_is_paid_for_and_no_more",
    ),
    Bug(
        "gaps_are_free",
        "a cell that goes missing jumps to its constant, and nobody pays for it",
        "mechanisms/cells/cell_moves.py",
        "width = max(width, _jump(column, feature, shape))",
        "width = max(width, 0)",
        "tests/audit/test_columns.py::test_neighbours_of_a_bounded_change_are_not_told_apart",
    ),
    Bug(
        "gaps_of_rows_are_free",
        "the cells of a row go missing, and nobody pays for it",
        "mechanisms/cells/cell_moves.py",
        "steps = max(steps, _jump(column, feature, shape))",
        "steps = max(steps, 0)",
        "tests/audit/test_columns.py::test_neighbours_of_a_bounded_change_are_not_told_apart",
    ),
    Bug(
        "public_gaps_in_any_budget",
        "a budget takes a release for fewer neighbours than it is for",
        "ledger/budget.py",
        " and public <= self.missing_public:",
        ":",
        "tests/ledger/test_budget.py::"
        "test_a_release_that_lets_missing_cells_show_is_for_budgets_that_do",
    ),
    Bug(
        "derived_rows_unverified",
        "rows of derived features are taken to be as short as was derived, without a look",
        "mechanisms/cells/held_cells.py",
        "    return HeldNorm(indices, row_square)\n",
        "    return HeldNorm(indices, row_square << 20)\n",
        "tests/mechanisms/test_bounded_changes.py::"
        "test_rows_of_derived_features_are_held_to_their_bound_on_the_integers",
    ),
    Bug(
        "logarithms_of_the_machine",
        "a logarithm has the last place that the processor or the layout of the array gives it",
        "schema/logarithms.py",
        "    return np.asarray(exponents * _HIGH + ends)\n",
        "    return np.asarray(np.log(values))\n",
        "tests/schema/test_transforms.py::test_bits_are_those_of_every_machine",
    ),
    Bug(
        "knots_of_the_rows",
        "a spline's knots lie between the smallest and the largest cell of the rows at hand",
        "schema/splines.py",
        "    inner = np.array([float(knot) for knot in knots])\n",
        "    inner = np.linspace(values.min(), values.max() + 1e-9, len(knots))\n",
        "tests/schema/test_transforms.py::test_a_row_is_encoded_alike_among_any_others",
    ),
    Bug(
        "functions_of_a_set_counted_once",
        "functions of a spline are scaled up each by itself, and together counted as one of them",
        "schema/factors.py",
        "        return Fraction(0), Fraction(1)\n",
        "        return Fraction(0), Fraction(1 if self.binary else Fraction(1, 2))\n",
        "tests/schema/test_transforms.py::test_all_features_of_a_term_cost_the_norm_of_one",
    ),
    Bug(
        "bounds_of_functions_rounded_inwards",
        "the bound of a logarithm is rounded below the logarithm of the bound",
        "schema/factors.py",
        "log_bounds(high + self.shift)[1]",
        "log_bounds(high + self.shift)[0]",
        "tests/schema/test_transforms.py::test_features_have_the_bounds_of_their_columns_ends",
    ),
)
