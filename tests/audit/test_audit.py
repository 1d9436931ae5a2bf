"""Audits of the mechanisms as they are, and with bugs planted in them.

Every comparison here fails by chance with probability 1e-6/100 at the most, and there are fewer
than 100 of them (false-alarm rate 1e-6); seeds are fixed.
"""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.adaptive import noisy_sums as chain
from dplinear.audit import AuditResult, audit, audit_subject, densities
from dplinear.audit.catalogue import ENTRIES, subject_of, usual_trials
from dplinear.audit.subjects.adaptive import SUBJECTS
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.audit.subjects.matrices import SHAPE, MatrixSubject
from dplinear.audit.subjects.noisy_sums import NoisySumsSubject
from dplinear.audit.subjects.weighted import WEIGHTED
from dplinear.exact import mapped_sums
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import (
    AdditiveWishart,
    AnalyzeGauss,
    GaussianSketch,
    InverseWishart,
    MomentsMechanism,
)
from dplinear.mechanisms.cells import mi_projection
from dplinear.mechanisms.moments import analyze_gauss
from dplinear.mechanisms.moments.least_eigenvalue import Query
from dplinear.mechanisms.rows import additive_noise, row_changes
from dplinear.noise import simulation
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP, calibrate
from dplinear.privacy.profiles import Sketch
from dplinear.privacy.roots import smallest_private

ALARM = 1e-6 / 100
SEEN = ApproxDP(1.0, 0.05)
ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def refuted(result: AuditResult) -> bool:
    """Whether the claim is refuted at the rate of these tests."""
    claim = Claim(result.kind, result.claimed, result.delta)
    alarm = ALARM / len(result.counts)
    return max(claim.bound(counts, alarm) for counts in result.counts) > result.claimed


def audited(subject: Subject, trials: int, seed: int = 1) -> AuditResult:
    return audit_subject(subject, trials, entropy=simulation.entropy(seed))


def named(name: str, relation: Neighbours, epsilon: float = 1.0) -> Subject:
    guarantee = ENTRIES[name].guarantee(epsilon, None)
    return subject_of(name, guarantee, relation, simulation.entropy(2))


EVERY = [(name, relation) for name, entry in ENTRIES.items() for relation in entry.relations]
# A run of these is a whole learning: a few of them for one or two, and all of them in long tests.
LONG = {*SUBJECTS, "adassp", "frank_wolfe_pure", "exponential", "objective_perturbation"}
LONG |= {"sketch_after_query", "inverse_wishart_after_query", "projection_quantile"}
LONG |= {"output_perturbation", "rows_left_out", "groups", "groups_of_units_model", *WEIGHTED}
LONG |= {"noisy_gradient_units", "exponential_units"}
QUICK = [pair for pair in EVERY if pair[0] not in LONG]
RUNS = {"mi_projection": 600, "output_perturbation_gaussian": 200, "sketch": 2500}
RUNS |= {"additive_wishart": 10_000}  # a replaced row shows half of what is claimed


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "relation"), QUICK)
def test_no_mechanism_is_refuted(name: str, relation: Neighbours) -> None:
    subject = named(name, relation, 3.0 if name != "mi_projection" else 0.5)
    result = audited(subject, RUNS.get(name, 1200))
    assert not refuted(result)
    assert result.audited > 0.3 * result.claimed
    assert result.simulated


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "relation"),
    [("noisy_gradient", REPLACE), ("coinpress_mean", ADD)],
)
def test_whole_learnings_come_near_their_claim(name: str, relation: Neighbours) -> None:
    result = audited(named(name, relation, 3.0), 100)
    assert not refuted(result)
    assert result.exact
    assert result.audited > 0.6 * result.claimed


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("name", "relation"), EVERY)
def test_an_exact_statistic_proves_nine_tenths(
    name: str, relation: Neighbours, epsilon: float
) -> None:
    subject = named(name, relation, epsilon if name != "mi_projection" else epsilon / 6)
    result = audited(subject, usual_trials(subject))
    assert not refuted(result)
    if subject.exact:
        assert result.ratio > 0.9 - 0.05  # what is proved scatters by a few hundredths


def test_normal_noise_is_audited_through_mu() -> None:
    result = audited(named("projection_gaussian", Neighbours.ELEMENT, 1.0), 150_000)
    assert result.kind == "mu"
    assert 0.9 < result.ratio < 1
    assert result.claimed_epsilon == pytest.approx(1.0)
    assert result.audited_epsilon is not None
    assert 0.85 < result.audited_epsilon < 1
    concentrated = NoisySumsSubject(ZCDP(0.5), ADD)
    assert concentrated.claim == Claim("mu", 1.0)
    result = audited(concentrated, 4000)
    assert not refuted(result)
    assert result.ratio > 0.85
    assert result.claimed_epsilon is None


def test_a_mechanism_as_it_was_made() -> None:
    entropy = simulation.entropy(5)
    made = GaussianSketch(guarantee=SEEN, rows=6, release="sketch")
    result = audit(made, trials=1000, entropy=entropy)
    assert not refuted(result)
    assert result.counts == audit(made, trials=1000, entropy=simulation.entropy(5)).counts
    with pytest.raises(ValueError, match="left out where a mechanism is given"):
        audit(made, SEEN)
    with pytest.raises(TypeError, match="a guarantee"):
        audit("laplace")
    with pytest.raises(ValueError, match="one of 'add_remove'"):
        audit("laplace", PureDP(1.0), "replace")
    assert not audit("laplace", PureDP(1.0), trials=100).simulated


@pytest.mark.heavy
def test_several_runs_at_once_have_the_law_of_one() -> None:
    """Blocks of a wide table against tables of their own: the same events, as often."""
    for kind, options in CURVES:
        wide = MatrixSubject(kind(guarantee=SEEN, **options))
        assert wide._copies > 1
        narrow = MatrixSubject(kind(guarantee=SEEN, **options))
        narrow._prepared, narrow._copies = kind(guarantee=SEEN, **options).prepare(SHAPE), 1
        narrow._tables = [Statistic(SHAPE, table.integers[:2, :2], 1) for table in narrow._tables]
        entropy = simulation.entropy(7)
        many = wide.numbers(3000, entropy, other=False)
        few = narrow.numbers(400, entropy, other=False)
        # Kolmogorov and Smirnov's largest difference, D: above it with 2·exp(−2·size·D²) at most.
        at = np.sort(np.concatenate((many, few)))
        gap = np.abs(
            np.searchsorted(np.sort(many), at, "right") / len(many)
            - np.searchsorted(np.sort(few), at, "right") / len(few)
        ).max()
        size = len(many) * len(few) / (len(many) + len(few))
        assert gap < np.sqrt(np.log(2 / ALARM) / (2 * size))


CURVES: list[tuple[Any, dict[str, Any]]] = [
    (AnalyzeGauss, {}),
    (AdditiveWishart, {"most_degrees": 30}),
    (GaussianSketch, {"rows": 20}),
    (InverseWishart, {"degrees": 20}),
]


def test_claims_are_numbers_that_runs_can_refute() -> None:
    assert Claim.of(GDP(0.7), normal=False) == Claim("mu", 0.7)
    assert Claim.of(MIDP(0.2), normal=True) == Claim("bits", 0.2)
    assert Claim.of(ApproxDP(1.0, 0.0), normal=True) == Claim("epsilon", 1.0)
    assert Claim("bits", 0.2).epsilon(0.1) is None
    assert Claim("epsilon", 0.2).epsilon(0.1) == 0.1


def test_a_release_of_unknown_density_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(densities, "BY_NOISE_MODEL", {})
    with pytest.raises(ValueError, match="known density"):
        audit(GaussianSketch(guarantee=SEEN), trials=100)


# Planted bugs


def spoilt(kind: Any, change: Callable[[Any], Any], **options: Any) -> MomentsMechanism:
    """Return a mechanism that promises the same, and whose calibration is changed."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Spoilt(kind):  # type: ignore[misc]  # any mechanism
        def prepare(self, shape: Shape) -> Any:
            return change(super().prepare(shape))

    made: MomentsMechanism = Spoilt(guarantee=SEEN, **options)
    return made


def lesser_ridge(prepared: Any) -> Any:
    setting = prepared.ready.setting
    smaller = dataclasses.replace(setting, units=setting.units // 3)
    return dataclasses.replace(prepared, ready=dataclasses.replace(prepared.ready, setting=smaller))


def caught(subject: Subject, trials: int) -> bool:
    result = audited(subject, trials)
    assert result.verdict == "broken" or not refuted(result)
    return refuted(result)


@pytest.mark.heavy
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_noise_of_half_the_variance_is_caught(relation: Neighbours) -> None:
    careless = spoilt(
        AnalyzeGauss,
        lambda prepared: dataclasses.replace(prepared, variance=prepared.variance / 2),
        neighbours=relation,
    )
    assert caught(MatrixSubject(careless), 3000)


@pytest.mark.heavy
def test_a_sensitivity_off_by_the_root_of_two_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = analyze_gauss.Difference.of

    def careless(shape: Shape, step: int, relation: Neighbours, weight: int, *others: Any) -> Any:
        del relation
        return honest(shape, step, ADD, weight, *others)

    monkeypatch.setattr(analyze_gauss.Difference, "of", careless)
    assert caught(MatrixSubject(AnalyzeGauss(guarantee=SEEN, neighbours=REPLACE)), 3000)


@pytest.mark.heavy
def test_too_little_noise_off_the_diagonal_is_caught() -> None:
    careless = spoilt(AnalyzeGauss, lambda prepared: dataclasses.replace(prepared, weight=6))
    assert caught(MatrixSubject(careless, oblique=True), 3000)


@pytest.mark.heavy
def test_off_diagonal_entries_that_count_twice_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = analyze_gauss.PreparedGauss.run

    def careless(self: Any, statistic: Statistic, entropy: Any) -> Any:
        doubled = 2 * statistic.integers
        np.fill_diagonal(doubled, np.diag(statistic.integers))
        return honest(self, Statistic(statistic.shape, doubled), entropy)

    monkeypatch.setattr(analyze_gauss.PreparedGauss, "run", careless)
    oblique = MatrixSubject(AnalyzeGauss(guarantee=SEEN), oblique=True)
    assert caught(oblique, 3000)


@pytest.mark.heavy
@pytest.mark.parametrize("change", ["scale", "degrees"])
def test_too_little_wishart_noise_is_caught(change: str) -> None:
    def less(prepared: Any) -> Any:
        if change == "scale":
            return dataclasses.replace(prepared, scale=prepared.scale / 2)
        return dataclasses.replace(prepared, degrees=prepared.degrees // 3)

    assert caught(MatrixSubject(spoilt(AdditiveWishart, less, most_degrees=100)), 4000)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("kind", "options"), [(GaussianSketch, {"rows": 40}), (InverseWishart, {"degrees": 40})]
)
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_third_of_the_ridge_is_caught(
    kind: type[MomentsMechanism], options: dict[str, Any], relation: Neighbours
) -> None:
    careless = spoilt(kind, lesser_ridge, neighbours=relation, **options)
    assert caught(MatrixSubject(careless), 2400)


@pytest.mark.heavy
def test_a_ridge_for_the_wrong_direction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The side of δ that is kept is the other one: adding a row instead of removing it."""

    def careless(guarantee: ApproxDP, degrees: int, bound: float, _: Neighbours) -> float:
        def adding(ridge: float) -> float:
            profile = Sketch(degrees, bound**2 / ridge)
            return float(profile.directions(np.array([guarantee.epsilon])).adding[0])

        return smallest_private(adding, guarantee.delta, bound**2)

    monkeypatch.setattr(calibrate, "sketch", careless)
    assert caught(MatrixSubject(GaussianSketch(guarantee=ApproxDP(3.0, 0.05), rows=4)), 8000)


@pytest.mark.long
def test_a_lower_bound_that_is_used_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    options: Any = {"rows": 1_000_000, "least_eigenvalue_share": 0.1}
    made = GaussianSketch(guarantee=SEEN, **options)
    ready: Any = made.prepare(SHAPE).ready
    square = float(SHAPE.bound**2)
    base = int(ready.floor / square / 2) + 60
    assert not caught(MatrixSubject(made, base=base), 1000)
    honest = Query.ask
    monkeypatch.setattr(Query, "ask", lambda *given: 2 * honest(*given))
    assert caught(MatrixSubject(made, base=base), 3000)


def test_a_missing_clip_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not caught(NoisySumsSubject(SEEN, ADD, clip=0.5), 3000)
    monkeypatch.setattr(mapped_sums, "shorten", lambda rows, _: rows)
    assert caught(NoisySumsSubject(SEEN, ADD, clip=0.5), 3000)


def test_a_chain_that_forgets_what_it_has_spent_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not caught(NoisySumsSubject(SEEN, REPLACE, steps=3), 3000)
    honest = chain._Noise.of

    def careless(query: chain.Query, budget: chain.Budget, weights: int) -> Any:
        noise = honest(dataclasses.replace(query, share=Fraction(1)), budget, weights)
        return dataclasses.replace(noise, cost=Fraction(0))

    monkeypatch.setattr(chain._Noise, "of", careless)
    assert caught(NoisySumsSubject(SEEN, REPLACE, steps=3), 3000)


def test_a_row_that_turns_round_moves_twice_as_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_sums.MappedSum, "replaced", 1)
    assert caught(NoisySumsSubject(SEEN, REPLACE), 3000)


def test_half_a_cells_range_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = additive_noise.Noised.of

    def careless(cell: Any, cells: int) -> Any:
        made = honest(cell, cells)
        return dataclasses.replace(made, diameter=made.diameter / 2)

    monkeypatch.setattr(additive_noise.Noised, "of", careless)
    assert caught(named("additive_noise", Neighbours.ELEMENT), 5000)


@pytest.mark.parametrize("relation", [Neighbours.ELEMENT, Neighbours.ROW_L1])
def test_an_average_instead_of_the_largest_image_is_caught(
    monkeypatch: pytest.MonkeyPatch, relation: Neighbours
) -> None:
    kind = row_changes.CellChanges if relation is Neighbours.ELEMENT else row_changes.RowChanges
    honest = kind.image_l1
    monkeypatch.setattr(kind, "image_l1", lambda self, integers: 0.6 * honest(self, integers))
    assert caught(named("projection", relation, 3.0), 20_000)


def test_half_the_laplace_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = calibrate.laplace
    monkeypatch.setattr(calibrate, "laplace", lambda *given: honest(*given) / 2)
    assert caught(named("laplace", ADD), 20_000)


def test_noise_that_forgets_the_rows_of_a_sketch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = mi_projection._variance
    monkeypatch.setattr(mi_projection, "_variance", lambda *given: honest(*given) / 16)
    assert caught(named("mi_projection", Neighbours.ELEMENT, 0.3), 500)


@pytest.mark.long
def test_a_quarter_of_the_noise_of_a_learner_is_caught() -> None:
    subject: Any = named("output_perturbation", ADD, 1.0)
    assert not caught(subject, 1500)
    prepared = subject._prepared
    subject._prepared = dataclasses.replace(prepared, scale=prepared.scale / 4)
    assert caught(subject, 4000)
