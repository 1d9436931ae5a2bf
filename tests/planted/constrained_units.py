"""Bugs of units of privacy, and of weights, in models of a constraint set."""

from planted.bug import Bug

_REPLAY = (
    "tests/audit/test_constrained_unit_replays.py"
    "::test_no_unit_moves_a_model_in_a_set_farther_than_is_declared"
)
_REPLACED = "tests/audit/test_constrained_unit_replays.py::test_no_unit_that_becomes_another_does"
_GATE = "tests/curator/test_row_weights.py"
_EXAMPLES = "tests/convex/test_weighted_examples.py"

BUGS = (
    Bug(
        "weights_in_a_set_ignored",
        "every row of a model in a set counts as a whole one, whatever its weight",
        "convex/example_blocks.py",
        "            yield times, self._take(indices)\n",
        "            yield WHOLE, self._take(indices)\n",
        f"{_REPLAY}[noisy_gradient]",
    ),
    Bug(
        "denominator_in_a_set_forgotten",
        "noise has the size that sums without weights ask for, on sums 2^24 times as large",
        "convex/examples.py",
        "        return WHOLE if self.weighted else 1\n",
        "        return 1\n",
        f"{_REPLAY}[mirror_descent]",
    ),
    Bug(
        "scores_of_plain_rows",
        "scores of extreme points may change by what a row without weights changes them by",
        "convex/learners/frank_wolfe.py",
        "AtomScores(self.atoms, whole * kind.bound, largest)",
        "AtomScores(self.atoms, kind.bound, largest)",
        f"{_REPLAY}[frank_wolfe]",
    ),
    Bug(
        "losses_of_plain_rows",
        "the exponential mechanism counts weighted losses as if rows had no weights",
        "convex/learners/exponential.py",
        "self.rate / (losses.spread * examples.denominator)",
        "self.rate / losses.spread",
        f"{_REPLAY}[exponential]",
    ),
    Bug(
        "points_of_plain_rows",
        "points of a ball are drawn as if second moments were of rows without weights",
        "convex/learners/exponential.py",
        "self.rate / math.isqrt(examples.denominator)",
        "self.rate",
        f"{_REPLAY}[exponential ball]",
    ),
    Bug(
        "slopes_without_weights",
        "the minimum that is perturbed is that of rows without weights",
        "convex/certified_gradient.py",
        "slopes(self.problem.loss, margins, rest, self.labels) * self.weights",
        "slopes(self.problem.loss, margins, rest, self.labels)",
        f"{_REPLAY}[output_perturbation]",
    ),
    Bug(
        "exact_slopes_without_weights",
        "where slopes are exact ones, weights are left aside",
        "convex/certified_gradient.py",
        "Fraction(y), precision + 2) * Fraction(v)",
        "Fraction(y), precision + 2) * Fraction(v > 0)",
        f"{_EXAMPLES}::test_certified_gradients_are_those_of_the_weighted_sum[True-False]",
    ),
    Bug(
        "cap_in_a_set_off_by_one",
        "a unit of a model in a set is weighed as if it had one row less",
        "curator/row_weights.py",
        "            counts = np.bincount(codes, minlength=units).astype(np.int64)\n",
        "            counts = np.maximum(np.bincount(codes, minlength=units) - 1, 1)\n",
        f"{_REPLAY}[exponential]",
    ),
    Bug(
        "rows_of_nobody_count_in_a_set",
        "rows without an id count as a unit in models in a set",
        "curator/row_weights.py",
        "        encoded = keys_of(self.groups).dictionary_encode()\n",
        '        encoded = keys_of(self.groups).fill_null(b"").dictionary_encode()\n',
        f"{_GATE}::test_rows_of_nobody_weigh_nothing",
    ),
    Bug(
        "weight_of_units_is_public",
        "under replace, what all rows weigh is released without noise",
        "convex/learners/noisy_gradient.py",
        "Query(Count(self.task.weighted), COUNTED)",
        "Query(Count(), COUNTED)",
        f"{_REPLACED}[noisy_gradient]",
    ),
    Bug(
        "rows_of_units_are_public",
        "under replace, a model in a set says how many rows all units have",
        "curator/gates/constrained.py",
        "            known = self.learner.neighbours.rows_are_public and not weights.weighted\n",
        "            known = self.learner.neighbours.rows_are_public\n",
        f"{_GATE}::test_the_number_of_rows_is_not_public_with_units",
    ),
    Bug(
        "rows_of_units_choose_the_steps",
        "under replace, how many steps are taken follows from how many rows all units have",
        "curator/gates/constrained_terms.py",
        "        if rows is None and relation.rows_are_public and not weights.weighted:\n",
        "        if rows is None and relation.rows_are_public:\n",
        f"{_GATE}::test_the_number_of_rows_is_not_public_with_units",
    ),
    Bug(
        "units_perturb_the_objective",
        "objective perturbation, whose proof is about one row, takes all rows of a unit",
        "convex/learners/objective_perturbation.py",
        "    for_weights: ClassVar[bool] = True\n",
        "    for_units: ClassVar[bool] = True\n",
        f"{_GATE}::test_wrong_arguments_are_named_before_the_spend[unit-given20]",
    ),
)
