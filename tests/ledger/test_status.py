"""What a ledger's budgets say, in text and in a notebook."""

from pathlib import Path

import numpy as np

import dplinear as dpl


def test_budgets_show_as_a_table_in_a_notebook(tmp_path: Path) -> None:
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    assert repr(ledger.status()) == "no budget has been declared"
    for name in ("a<b", "visits"):
        ledger.declare(name, dpl.ZCDP(0.1))
    schema = {"age": (0, 100)}
    dpl.release_moments(
        np.zeros((9, 1)), schema, guarantee=dpl.ZCDP(0.04), ledger=ledger, dataset="visits"
    )
    page, text = ledger.status()._repr_html_(), repr(ledger.status())
    assert page.count("<tr>") == 3
    assert "a&lt;b" in page
    assert "a<b" not in page
    assert text.count("\n") == 1
    assert "in 1 release," in text
    assert repr(ledger.status()[1]) == text.splitlines()[1]
