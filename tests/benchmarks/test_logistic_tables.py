"""The benchmark of logistic regression on real tables: its designs, and a tiny run."""

import numpy as np
import pytest

from benchmarks import logistic_tables
from benchmarks.label_tables import JUDGES, TUNED, LabelTable, breast_cancer

pytestmark = pytest.mark.heavy


def test_levels_are_columns_of_zeros_and_ones() -> None:
    import pandas as pd

    frame = pd.DataFrame({"age": [20.0, 200.0], "home": ["own", "rent"], "label": [0.0, 1.0]})
    table = LabelTable("two rows", frame, {"age": (0.0, 100.0), "home": ["own", "rent"]})
    np.testing.assert_allclose(table.design, [[-0.6, 0.0], [1.0, 1.0]])
    assert table.indicators == [False, True]
    assert np.linalg.norm(table.design, axis=1).max() == table.longest
    assert table.schema["label"] == (0, 1)


def test_no_judge_was_tuned_on() -> None:
    assert not set(TUNED) & set(JUDGES)


def test_a_table_is_measured_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    logistic_tables.main(["breast_cancer", "--fits", "2", "--rival-fits", "1", "--epsilons", "10"])
    shown = capsys.readouterr().out
    assert all(
        word in shown for word in ("569 rows", "ε=10", "DP-Newton", "scikit-learn", "base rate")
    )
    found, _ = logistic_tables.private(breast_cancer(), 10.0, 0)
    assert found.loss < 0.2 < logistic_tables.base_rate(breast_cancer()).loss
    assert found.area > 0.98
