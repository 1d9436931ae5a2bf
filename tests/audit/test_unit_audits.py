"""Audits of units of privacy: what releases tell of whether all rows of one unit were there.

The tables differ by a unit of many rows at the bounds, and go through the reader that weighs them.
It moves every sum by all that is paid for, so that an audit comes near the claim.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.audit.audit import AuditResult, audit_subject
from dplinear.audit.catalogue import ENTRIES, NORMAL_DELTA, WHOLE_DELTA, subject_of
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.audit.subjects.matrices import MatrixSubject
from dplinear.audit.subjects.transcripts import TranscriptSubject, overheard
from dplinear.curator import row_weights
from dplinear.curator.gates.one_model import design_of
from dplinear.curator.passes import open_table
from dplinear.curator.sources import second_moments, unit_rows
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact.grid import moments_shape
from dplinear.exact.shape import Shape, Statistic
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms import AnalyzeGauss
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, Neighbours
from dplinear.schema import Schema

SCHEMA = Schema({"x": (-1, 1), "y": (-1, 1)}, intercept=False, unit="id")
EPSILON = 1.0
COPIES = 12  # of the same pair in one release, each in columns of its own
ROWS, K = 64, 3  # of the unit, and that it counts as


def tables(*, others: int) -> tuple[pa.Table, pa.Table]:
    """Return a table with the unit "new" and without it; others have rows of no length."""
    ids = [f"p{row % 4}" for row in range(others)]
    none = np.zeros(others)
    rest = pa.table({"x": none, "y": none, "id": pa.array(ids, "string")})
    unit = pa.table({"x": [1.0] * ROWS, "y": [1.0] * ROWS, "id": ["new"] * ROWS})
    return pa.concat_tables([unit, rest]), rest


class UnitMoments(MatrixSubject):
    """Second moments of two tables that differ by a unit, as the reader adds them up."""

    def __init__(self, delta: float = WHOLE_DELTA) -> None:
        method = AnalyzeGauss(guarantee=ApproxDP(EPSILON, delta), neighbours=Neighbours.ADD_REMOVE)
        self.name, self.neighbours = method.name, method.neighbours
        self.guarantee = method.guarantee
        self.claim = Claim.of(self.guarantee, normal=True)
        shape = moments_shape(SCHEMA)
        wide = Shape(shape.dimension * COPIES, shape.steps_per_unit, shape.exponent)
        prepared: Any = method.prepare(shape)
        self._prepared, self._copies = replace(prepared, shape=wide), COPIES
        exact = [
            second_moments(table, SCHEMA, rows_per_unit=K).integers for table in tables(others=20)
        ]
        whole = [np.kron(np.eye(COPIES, dtype=int).astype(object), one) for one in exact]
        self._tables = [Statistic(wide, integers) for integers in whole]
        self._grams = [Statistic(shape, integers).matrix() for integers in exact]


def whitened() -> TranscriptSubject:
    """A descent on two tables that differ by a unit of rows of full length."""
    guarantee = ApproxDP(EPSILON, WHOLE_DELTA)
    usual = WhitenedDescent(guarantee=guarantee, neighbours=Neighbours.ADD_REMOVE)
    method = replace(usual, settings=replace(usual.settings, steps=3, plain_steps=3))
    prepared = method.prepare(design_of(SCHEMA, (0,), 1))
    pair = [open_table(table, SCHEMA, rows_per_unit=K, threads=1) for table in tables(others=0)]
    return TranscriptSubject(method, prepared.run, overheard(*pair), exact=True)


def audited(subject: Subject, trials: int) -> AuditResult:
    return audit_subject(subject, trials, entropy=simulation.entropy(1))


def spent(runs: int) -> list[float]:
    """Return Σ Δ²/σ² of descents, as parts of μ²."""
    subject, found = whitened(), []
    for run in range(runs):
        table: Any = subject._listening(run % 2)
        subject._run(table, simulation.entropy(run))
        found.append(table.square / subject.claim.value**2)
    return found


def test_an_audit_of_moments_comes_near_the_claim() -> None:
    found = audited(UnitMoments(), 3_000)
    assert not found.broken
    assert found.ratio > 0.9


def test_a_unit_that_is_called_exact_spends_what_is_claimed() -> None:
    parts = spent(6)
    assert max(parts) <= 1 + 1e-9
    assert np.mean(parts) > 0.9


# Models in a constraint set, whose rows are weighed elsewhere


def spent_in_a_set(relation: Neighbours, runs: int = 4) -> list[float]:
    """Return Σ Δ²/σ² of learnings, as parts of μ²."""
    name, found = "noisy_gradient_units", []
    guarantee = ENTRIES[name].guarantee(EPSILON, None)
    subject: Any = subject_of(name, guarantee, relation, simulation.entropy(1))
    for run in range(runs):
        table: Any = subject._listening(run % 2)
        subject._run(table, simulation.entropy(run))
        found.append(table.square / subject.claim.value**2)
    return found


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_a_unit_in_a_set_spends_what_is_claimed(relation: Neighbours) -> None:
    parts = spent_in_a_set(relation)
    assert max(parts) <= 1 + 1e-9
    assert np.mean(parts) > 0.9


def test_a_unit_in_a_set_without_a_cap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_weights, "shared_weights", uncapped)
    assert min(spent_in_a_set(Neighbours.ADD_REMOVE, 2)) > 10


def uncapped(counts: Any, rows_per_unit: int) -> Any:
    """Weights of rows that are no unit's."""
    return np.full(len(counts), WHOLE // rows_per_unit)


def test_a_unit_without_a_cap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_rows, "shared_weights", uncapped)
    assert audited(UnitMoments(), 1_000).broken
    assert min(spent(2)) > (ROWS / K) ** 2 / 2


@pytest.mark.long
def test_a_long_audit_of_moments_proves_nine_tenths() -> None:
    found = audited(UnitMoments(NORMAL_DELTA), 200_000)
    assert not found.broken
    assert found.ratio > 0.9


@pytest.mark.long
def test_a_long_audit_of_a_descent_proves_nine_tenths() -> None:
    found = audited(whitened(), 1_500)
    assert not found.broken
    assert found.ratio > 0.9
