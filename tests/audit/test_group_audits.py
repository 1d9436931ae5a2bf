"""Audits of groups: what descents of two groups tell together of a row that changes its group."""

from typing import Any

import numpy as np
import pytest

from dplinear.adaptive.noisy_sums import Budget
from dplinear.audit.catalogue import ENTRIES, subject_of
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def spent(relation: Neighbours, runs: int = 4) -> list[float]:
    """Return Σ Δ²/σ² of the descents of both groups, as parts of μ²."""
    guarantee = ENTRIES["groups"].guarantee(1.0, None)
    subject: Any = subject_of("groups", guarantee, relation, simulation.entropy(2))
    found = []
    for run in range(runs):
        tables = subject._listening(run % 2)
        subject._run(tables, simulation.entropy(run))
        found.append(tables.square / subject.claim.value**2)
    return found


def test_a_row_that_comes_or_goes_spends_what_is_claimed() -> None:
    parts = spent(ADD)
    assert max(parts) <= 1 + 1e-9
    assert np.mean(parts) > 0.9


def test_a_row_that_changes_its_group_spends_no_more_in_both_together() -> None:
    """Gradients move by half of what an opposite row within a group does, in either group."""
    parts = spent(REPLACE)
    assert max(parts) <= 1
    assert min(parts) > 0.4


def test_noise_for_one_group_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "across", property(lambda _: False))
    paid = spent(REPLACE)
    monkeypatch.undo()
    assert max(paid) > max(spent(REPLACE))
