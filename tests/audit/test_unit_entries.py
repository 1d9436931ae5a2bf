"""Audits of units, survey weights, clustered errors, groups, levels and unit sizes, by name.

The subjects move every sum by (nearly) all that is paid for, and bugs planted in what weighs and
counts rows are seen. Comparisons of counts fail by chance with probability 1e-8 at the most, and
there are fewer than 100 of them (false-alarm rate 1e-6); seeds are fixed.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.audit.audit import AuditResult, audit_subject
from dplinear.audit.catalogue import ENTRIES, subject_of
from dplinear.audit.subjects.contract import Claim
from dplinear.curator import level_table
from dplinear.curator.sources import unit_rows
from dplinear.exact import unit_sizes
from dplinear.exact.row_sums import RowSum
from dplinear.exact.unit_scores import UnitScores
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms import levels
from dplinear.mechanisms.moments.analyze_gauss import Difference
from dplinear.mechanisms.unit_sizes import PreparedHistogram
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import survey_weights

ALARM = 1e-8
ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
WHOLE_METHODS = [
    "units",
    "clustered",
    "survey_weights",
    "survey_weights_of_units",
    "groups_of_units_model",
]


def named(name: str, relation: Neighbours = ADD, epsilon: float = 3.0) -> Any:
    guarantee = ENTRIES[name].guarantee(epsilon, None)
    return subject_of(name, guarantee, relation, simulation.entropy(2))


def spent(name: str, relation: Neighbours = ADD, runs: int = 4) -> list[float]:
    """Return Σ Δ²/σ² of descents on either table, as parts of μ²."""
    subject, found = named(name, relation), []
    for run in range(runs):
        table = subject._listening(run % 2)
        subject._run(table, simulation.entropy(run))
        found.append(table.square / subject.claim.value**2)
    return found


def refuted(result: AuditResult) -> bool:
    claim = Claim(result.kind, result.claimed, result.delta)
    alarm = ALARM / len(result.counts)
    return max(claim.bound(counts, alarm) for counts in result.counts) > result.claimed


def audited(name: str, relation: Neighbours = ADD, trials: int = 4_000) -> AuditResult:
    return audit_subject(named(name, relation), trials, entropy=simulation.entropy(1))


@pytest.mark.parametrize("name", WHOLE_METHODS)
def test_a_pair_that_is_called_exact_spends_what_is_claimed(name: str) -> None:
    parts = spent(name)
    assert max(parts) <= 1 + 1e-9
    assert min(parts) > 0.9


@pytest.mark.parametrize(("name", "least"), [("units", 0.7), ("clustered", 0.2)])
def test_a_unit_that_turns_round_spends_less(name: str, least: float) -> None:
    parts = spent(name, REPLACE)
    assert max(parts) <= 1 + 1e-9
    assert min(parts) > least


def test_half_of_what_is_asked_for_clustered_errors_is_of_units() -> None:
    """So that an audit that reaches nine tenths of μ has seen the scores move."""
    asked: list[RowSum] = []
    subject = named("clustered")
    table = subject._listening(0)
    sums = table.sums

    def listen(statistics: Any) -> Any:
        asked.extend(statistics)
        return sums(statistics)

    table.sums = listen
    subject._run(table, simulation.entropy(1))
    assert [isinstance(each, UnitScores) for each in asked].count(True) == 1
    assert subject._run.__self__.settings.unit_scores == Fraction(1, 2)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("name", ["groups_of_units", "suggest_levels"])
def test_normal_noise_comes_near_its_claim(name: str, relation: Neighbours) -> None:
    found = audited(name, relation)
    assert not refuted(found)
    assert found.ratio > 0.9


@pytest.mark.parametrize("name", ["suggest_rows_per_unit", "suggest_rows_per_unit_gaussian"])
def test_noise_of_unit_sizes_comes_near_its_claim(name: str) -> None:
    found = audited(name, trials=10_000)
    assert not refuted(found)
    assert found.ratio > 0.9


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_level_that_one_unit_holds_tells_less_than_is_claimed(relation: Neighbours) -> None:
    found = audited("suggest_levels_rare", relation, 20_000)
    assert not refuted(found)
    assert not found.exact
    assert 0.4 < found.ratio < 1


@pytest.mark.long
@pytest.mark.parametrize("name", WHOLE_METHODS)
def test_a_long_audit_of_a_whole_method_proves_nine_tenths(name: str) -> None:
    found = audited(name, ADD, 2_000)
    assert not refuted(found)
    assert found.ratio > 0.9


# Planted bugs


def uncapped(weights: Any, codes: Any, units: int, rows_per_unit: int) -> Any:
    """Weights of rows that are no unit's."""
    del codes, units
    return weights // rows_per_unit, np.full(len(weights), WHOLE)


def uncapped_counts(counts: Any, rows_per_unit: int) -> Any:
    return np.full(len(counts), WHOLE // rows_per_unit)


@pytest.mark.parametrize(
    "name",
    ["units", "survey_weights_of_units", "groups_of_units_model", "groups_of_units", "clustered"],
)
def test_a_unit_without_a_cap_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_rows, "capped_weights", uncapped)
    monkeypatch.setattr(unit_rows, "shared_weights", uncapped_counts)
    if name == "clustered":  # which refuses units that weigh more than 1
        with pytest.raises(ArithmeticError):
            spent(name, runs=1)
    elif name == "groups_of_units":
        assert refuted(audited(name, trials=1_000))
    else:
        assert min(spent(name, runs=2)) > 100


def test_a_weight_beyond_its_bound_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a row that weighs as much as may be: bounds that are half of what is declared."""
    honest = survey_weights.SurveyWeight.shares

    def careless(self: Any, cells: Any) -> Any:
        return 2 * honest(replace(self, high=self.high / 2), cells)

    monkeypatch.setattr(survey_weights.SurveyWeight, "shares", careless)
    with pytest.raises(ArithmeticError):  # verified on the integers
        spent("survey_weights", runs=1)


def test_scores_of_too_small_a_bound_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for the length of a score, where its square is added up."""
    honest = RowSum.sensitivity_squared

    def careless(self: Any, neighbours: Neighbours) -> int:
        found = honest(self, neighbours)
        return found // 4 if isinstance(self, UnitScores) else found

    monkeypatch.setattr(RowSum, "sensitivity_squared", careless)
    assert min(spent("clustered", runs=2)) > 2


def test_groups_with_the_noise_of_none_that_moves_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under replace: as if a unit that leaves a group came to no other."""
    honest = Difference.of

    def careless(shape: Any, step: int, _: Neighbours, weight: int, moved: int = 1) -> Difference:
        return honest(shape, step, ADD, weight, moved)

    monkeypatch.setattr(Difference, "of", careless)
    assert refuted(audited("groups_of_units", REPLACE, 6_000))


def test_a_level_more_than_a_unit_counts_for_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = level_table.count_units
    monkeypatch.setattr(level_table, "count_units", lambda records, most: honest(records, 2 * most))
    assert refuted(audited("suggest_levels", ADD, 6_000))


def test_a_threshold_for_none_but_known_levels_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "threshold", lambda step, *_: step)
    assert refuted(audited("suggest_levels_rare", ADD, 4_000))


def test_a_count_for_every_row_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units that count as often as they have rows."""

    def careless(self: Any, rows: Any, weights: Any, totals: Any = None) -> None:
        del rows, totals
        bins = np.searchsorted(-self._ends, -weights)
        np.add.at(self._sums, bins, WHOLE)

    monkeypatch.setattr(unit_sizes.UnitSizeAccumulator, "add_weighted", careless)
    assert refuted(audited("suggest_rows_per_unit"))
    assert refuted(audited("suggest_rows_per_unit_gaussian"))


def test_half_the_noise_of_sizes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = PreparedHistogram.run
    monkeypatch.setattr(
        PreparedHistogram,
        "run",
        lambda self, *given: honest(replace(self, noise=self.noise / 4), *given),
    )
    assert refuted(audited("suggest_rows_per_unit", trials=20_000))
    assert refuted(audited("suggest_rows_per_unit_gaussian", trials=20_000))
