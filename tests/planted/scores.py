"""Bugs of private scores."""

from planted.bug import Bug

_TERMS = "tests/scores/test_terms.py"

BUGS = (
    Bug(
        "scores_beyond_their_clip",
        "terms of a score are as large as a model's errors, whatever was said of their clip",
        "scores/terms.py",
        "np.rint(np.clip([values[name] for name in self.names], lows, 1.0) * steps)",
        "np.rint(np.array([values[name] for name in self.names]) * np.maximum(steps, lows))",
        f"{_TERMS}::test_no_row_moves_a_sum_farther_than_is_declared",
    ),
    Bug(
        "scores_of_likely_labels_alone",
        "the bound on terms of labels forgets the rows whose label a model finds unlikely",
        "scores/terms.py",
        '        {"right": Fraction(0)},\n',
        "",
        f"{_TERMS}::test_no_row_moves_a_sum_farther_than_is_declared",
    ),
    Bug(
        "scores_in_blocks",
        "a prediction of another's model depends on the rows beside it",
        "scores/predictions.py",
        "        cells = rows / self.steps_per_unit\n",
        "        cells = rows / self.steps_per_unit - rows.mean() * 1e-9\n",
        f"{_TERMS}::test_a_row_adds_the_same_whatever_stands_beside_it",
    ),
    Bug(
        "scores_tell_of_errors",
        "a model that raises for a row ends the release",
        "scores/predictions.py",
        "        except Exception:",
        "        except ArithmeticError:",
        f"{_TERMS}::test_a_model_that_raises_prints_or_warns_tells_nothing",
    ),
)
