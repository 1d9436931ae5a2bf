"""Audits of rows that are left out: what a descent tells of one that comes, goes or has a gap."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.audit.catalogue import ENTRIES, subject_of
from dplinear.exact.row_sums import Count, FilledIn, RowSum
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours

NAME = "rows_left_out"
ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def spent(relation: Neighbours, runs: int = 4, name: str = NAME) -> list[float]:
    """Return Σ Δ²/σ² of descents on either table, as parts of μ²."""
    guarantee = ENTRIES[name].guarantee(1.0, None)
    subject: Any = subject_of(name, guarantee, relation, simulation.entropy(2))
    found = []
    for run in range(runs):
        table = subject._listening(run % 2)
        subject._run(table, simulation.entropy(run))
        found.append(table.square / subject.claim.value**2)
    return found


def test_a_whole_row_spends_what_is_claimed() -> None:
    """All but the thousandth that is for the number of rows left out, which it does not move."""
    parts = spent(ADD)
    assert max(parts) <= 0.999 + 1e-9
    assert np.mean(parts) > 0.9


def test_a_row_that_loses_a_number_spends_less() -> None:
    parts = spent(REPLACE)
    assert max(parts) < 0.5
    assert min(parts) > 0.2


def test_a_count_for_free_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Count, "sensitivity_squared", RowSum.sensitivity_squared)
    assert min(spent(REPLACE)) == np.inf


def test_a_row_with_a_filled_cell_spends_what_is_claimed() -> None:
    """All but the thousandth for rows left out: the count of filled cells is among the rest."""
    parts = spent(ADD, name="cells_filled_in")
    assert max(parts) <= 0.999 + 1e-9
    assert np.mean(parts) > 0.9


def test_a_row_whose_cell_goes_missing_spends_less() -> None:
    assert max(spent(REPLACE, name="cells_filled_in")) <= 1


def test_a_count_of_filled_cells_for_half_the_price_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise for a quarter of the squared sensitivity: the row then spends four times its share."""
    honest = spent(ADD, name="cells_filled_in")
    monkeypatch.setattr(FilledIn, "sensitivity_squared", lambda *_: Fraction(1, 4))
    assert np.mean(spent(ADD, name="cells_filled_in")) > np.mean(honest) + 0.02
