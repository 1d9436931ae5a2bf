"""What a notebook shows of an error whose sentence says all."""

import numpy as np
import pytest

import dplinear as dpl
from dplinear.analyst.releases.container import ReleaseError
from dplinear.arguments import ArgumentError
from dplinear.curator import SourceError
from dplinear.ledger import LedgerError
from dplinear.privacy.compose import BudgetExceededError
from dplinear.tracebacks import PlainError

KINDS = (ArgumentError, ReleaseError, SourceError, LedgerError, BudgetExceededError)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_with_words_of_the_library_are_plain(kind: type[Exception]) -> None:
    assert issubclass(kind, PlainError)


def test_a_notebook_shows_the_callers_line_and_the_sentence_alone() -> None:
    schema = {"age": (0, 100), "bmi": (10, 60)}
    moments = dpl.release_moments(np.zeros((9, 2)), schema, epsilon=1.0, delta=1e-6)
    with pytest.raises(ArgumentError) as caught:
        moments.regress("bmj")
    inner = [entry for entry in caught.traceback if "dplinear" in str(entry.path)]
    assert len(inner) > 2  # which the caller need not see
    shown = caught.value._render_traceback_()
    frames = [line for line in shown if line.startswith("  File")]
    assert len(frames) == 1
    assert "test_tracebacks.py" in frames[0]
    assert any('moments.regress("bmj")' in line for line in shown)
    assert "did you mean 'bmi'?" in shown[-1]
