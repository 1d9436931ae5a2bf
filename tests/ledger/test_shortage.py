"""What is said where a budget does not suffice: what still fits does, and little more would."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear
from dplinear.ledger import BudgetExceededError, Request
from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.shortage import what_fits
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP
from dplinear.privacy.guarantees import Guarantee
from dplinear.schema import Schema

ADD = Neighbours.ADD_REMOVE
ROWS = np.linspace(0, 1, 40).reshape(-1, 1)
SCHEMA = Schema(a=(0, 1))


def asked(guarantee: Guarantee, neighbours: Neighbours = ADD) -> Request:
    return Request("r", "table", guarantee, neighbours, "analyze_gauss", {})


@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_what_still_fits_is_admitted_and_a_hundredth_more_is_not(
    delta: float, tmp_path: Path
) -> None:
    ledger = dplinear.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("table", ZCDP(0.01))
    release: dict[str, Any] = {"ledger": ledger, "dataset": "table", "delta": delta}
    with pytest.raises(BudgetExceededError) as caught:
        dplinear.release_moments(ROWS, SCHEMA, epsilon=2.0, **release)
    found = re.search(rf"at δ = {delta:g}, ε up to (\S+) still fits", str(caught.value))
    assert found is not None
    epsilon = float(found[1])
    with pytest.raises(BudgetExceededError):
        dplinear.release_moments(ROWS, SCHEMA, epsilon=1.011 * epsilon, **release)
    dplinear.release_moments(ROWS, SCHEMA, epsilon=epsilon, **release)
    with pytest.raises(BudgetExceededError, match=r"post-processing|up to"):
        dplinear.release_moments(ROWS, SCHEMA, epsilon=2.0, **release)


@pytest.mark.parametrize(
    ("budget", "left", "guarantee", "fits"),
    [
        (ZCDP(1.0), Units(2 * 10**10), ZCDP(0.5), "ρ up to 0.0199 "),
        (ZCDP(1.0), Units(2 * 10**10), GDP(2.0), "μ up to 0.199 "),
        (ZCDP(1.0), Units(2 * 10**10), PureDP(2.0), "ε up to 0.199 "),
        (GDP(1.0), Units(25 * 10**10), GDP(2.0), "μ up to 0.499 "),
        (PureDP(1.0), Units(25 * 10**10), PureDP(2.0), "ε up to 0.249 "),
        (MIDP(1.0), Units(25 * 10**10), MIDP(2.0), "0.249 bits "),
        (ApproxDP(1.0, 1e-5), Units(10**11, 10**12), ApproxDP(2.0, 1e-6), "ε = 0.1, δ = 1e-06 or"),
        (ZCDP(1.0), Units(0), ZCDP(0.5), "nothing of this budget is left"),
        (PureDP(1.0), Units(1), ApproxDP(2.0, 1e-6), "ask for a smaller ε"),
    ],
)
def test_what_fits_is_told_in_the_terms_that_were_asked_for(
    budget: Guarantee, left: Units, guarantee: Guarantee, fits: str
) -> None:
    relation = Neighbours.ELEMENT if isinstance(budget, MIDP) else ADD
    held = Budget(budget, relation)
    assert fits in what_fits(held, left, asked(guarantee, relation))


def test_of_other_neighbours_nothing_exact_is_told() -> None:
    held = Budget(ZCDP(1.0), Neighbours.REPLACE)
    assert "ask for a smaller ε" in what_fits(held, Units(10**11), asked(ZCDP(0.5)))
