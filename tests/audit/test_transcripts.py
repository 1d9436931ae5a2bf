"""What a chain's answers tell: against SciPy's densities, and how far apart the pairs are."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.adaptive.noisy_sums import Answer, Budget, NoisySums, Query
from dplinear.audit.catalogue import ENTRIES, subject_of
from dplinear.audit.subjects.adaptive import SUBJECTS
from dplinear.audit.subjects.transcripts import (
    ListeningRows,
    Rows,
    TranscriptSubject,
    log_likelihood_ratio,
)
from dplinear.exact.mapped_sums import MappedGram, MappedSum
from dplinear.exact.row_sums import Count
from dplinear.exact.shape import Shape
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, Neighbours

LAWS: Any = stats
SHAPE = Shape(2, 724, 10)
ROWS = np.array([[700.0, -300.0], [10.0, 500.0]])


def asked(statistic: Any, table: Any) -> Any:
    budget = Budget.of(ZCDP(0.5), 100, Neighbours.ADD_REMOVE, "a test")
    return NoisySums(table, budget, simulation.entropy(3)).ask([Query(statistic, Fraction(1, 2))])[
        0
    ]


def test_a_vector_tells_what_its_densities_do() -> None:
    table = ListeningRows((Rows(ROWS), Rows(ROWS[:, :1])), truth=0)
    statistic = MappedSum(SHAPE, np.eye(2), norm=1.0)
    answer = asked(statistic, table)
    means = [statistic.sum(rows) * float(statistic.unit) for rows in (ROWS, ROWS[:, :1])]
    logs = [LAWS.norm.logpdf(answer.values, mean, answer.sigma).sum() for mean in means]
    assert table.loss == pytest.approx(logs[0] - logs[1], rel=1e-9)
    apart = np.sum((means[0] - means[1]) ** 2) / answer.sigma**2
    assert table.square == pytest.approx(apart, rel=1e-9)


def test_a_matrix_counts_each_of_its_numbers_once() -> None:
    table = ListeningRows((Rows(ROWS), Rows(ROWS[:, :1])), truth=1)
    statistic = MappedGram(SHAPE, np.eye(2), norm=1.0)
    answer = asked(statistic, table)
    upper = np.triu_indices(2)
    sigma = np.where(upper[0] == upper[1], answer.sigma, answer.sigma / np.sqrt(2))
    logs = [
        LAWS.norm.logpdf(
            answer.values[upper],
            (statistic.sum(rows) * float(statistic.unit)).reshape(2, 2)[upper],
            sigma,
        ).sum()
        for rows in (ROWS, ROWS[:, :1])
    ]
    assert table.loss == pytest.approx(logs[0] - logs[1], rel=1e-9)


def test_what_nothing_hides_tells_everything() -> None:
    one, other = np.array([3], object), np.array([2], object)
    answer = Answer(np.array([3.0]), 0.0)
    assert log_likelihood_ratio(Count(), one, other, answer) == (np.inf, np.inf)
    assert log_likelihood_ratio(Count(), other, one, answer)[0] == -np.inf
    assert log_likelihood_ratio(Count(), one, one, answer) == (0.0, 0.0)
    tenths: Any = SimpleNamespace(unit=Fraction(1, 10))  # 3/10 is a float, and 3 · 0.1 another
    exact = Answer(np.array([0.3]), 0.0)
    assert log_likelihood_ratio(tenths, one, other, exact)[0] == np.inf
    assert log_likelihood_ratio(tenths, other, one, exact)[0] == -np.inf
    for refused in (ListeningRows((Rows(ROWS), Rows(ROWS)), truth=0).moments,):
        with pytest.raises(NotImplementedError):
            refused()


@pytest.mark.heavy
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_pair_that_is_called_exact_spends_what_is_claimed(name: str) -> None:
    """Σ Δ²/σ² of a run is never above μ², and nearly that where the subject says so."""
    entry = ENTRIES[name]
    for relation in entry.relations:
        subject = subject_of(name, entry.guarantee(1.0, None), relation, simulation.entropy(1))
        assert isinstance(subject, TranscriptSubject)
        spent = []
        for run in range(6):
            table = subject._listening(run % 2)
            subject._run(table, simulation.entropy(run))
            spent.append(table.square / subject.claim.value**2)
        assert max(spent) <= 1 + 1e-9
        assert not subject.exact or np.mean(spent) > 0.9
