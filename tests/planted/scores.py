"""Bugs of private scores."""

from planted.bug import Bug

_TERMS = "tests/scores/test_terms.py"

BUGS = (
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
        "        except BaseException:",
        "        except ArithmeticError:",
        f"{_TERMS}::test_a_model_that_raises_prints_or_warns_tells_nothing",
    ),
)
