"""The mechanisms by name, each with the claim that it is audited at."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from scipy.special import ndtr

from dplinear import arguments
from dplinear.audit.audit import CONFIDENCE, AuditResult, audit_subject
from dplinear.audit.densities import BY_NOISE_MODEL
from dplinear.audit.subjects.adaptive import SUBJECTS
from dplinear.audit.subjects.contract import Subject
from dplinear.audit.subjects.grouped_units import GROUPS
from dplinear.audit.subjects.groups import groups_of_rows
from dplinear.audit.subjects.learner_units import DrawsOfUnits, gradients_of_units
from dplinear.audit.subjects.learners import LearnerSubject, OutputSubject
from dplinear.audit.subjects.left_out import cells_filled_in, rows_left_out
from dplinear.audit.subjects.levels import LevelsSubject
from dplinear.audit.subjects.matrices import SHAPE, MatrixSubject
from dplinear.audit.subjects.noisy_sums import LaplaceSubject, NoisySumsSubject
from dplinear.audit.subjects.queries import AdaSSPSubject, EigenvalueSubject
from dplinear.audit.subjects.registered import (
    RegisteredModel,
    RegisteredMoments,
    relations_of,
    usual_delta,
)
from dplinear.audit.subjects.released_rows import PUBLIC, CellSketch, NoisyCells, Projected
from dplinear.audit.subjects.row_kinds import Labelled, Perturbed, Quantile
from dplinear.audit.subjects.unit_sizes import UnitSizesSubject
from dplinear.audit.subjects.weighted import WEIGHTED
from dplinear.convex.learners.exponential import Exponential
from dplinear.convex.learners.frank_wolfe import FrankWolfe
from dplinear.convex.learners.objective_perturbation import ObjectivePerturbation
from dplinear.convex.learners.output_perturbation import OutputPerturbation
from dplinear.mechanisms import (
    AdditiveNoise,
    AdditiveWishart,
    AnalyzeGauss,
    GaussianSketch,
    InverseWishart,
    MIProjection,
    MomentsMechanism,
    ProjectedRows,
)
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.mechanisms.contract import Mechanism
from dplinear.noise.entropy import Entropy, system
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MODELS, MOMENTS, Registered

_ROWS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
_ADDED = (Neighbours.ADD_REMOVE,)
_CELLS = (Neighbours.ELEMENT,)
_PARTS = (Neighbours.ELEMENT, Neighbours.ROW_L1, Neighbours.ROW_L2)
_CHANGE = 0.5  # of a row, where neighbours are a distance apart
# Direct events at a δ of 1e-6 would take 1e8 runs: curves are audited where δ can be seen.
VISIBLE_DELTA = 0.05
NORMAL_DELTA = 1e-4
# A run of a whole method takes milliseconds; a large δ means a large μ, which takes few of them.
WHOLE_DELTA = 0.4

Make = Callable[[Any, Neighbours, Entropy], Subject]


def _matrix(kind: type[MomentsMechanism], **options: Any) -> Make:
    def make(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
        return MatrixSubject(kind(guarantee=guarantee, neighbours=neighbours, **options))

    return make


def _cells(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:
    return NoisyCells(AdditiveNoise(guarantee=guarantee, neighbours=neighbours), entropy)


def _change(bounded: object) -> dict[str, Any]:
    """Return the options of a bounded change of numbers that are all there."""
    return {"change": _CHANGE, "missing_public": True} if bounded else {}


def _projected_subject(noise: str) -> Make:
    def make(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:
        # Of whole rows, normal noise hides a ball around them, which none of them fills.
        bounded = neighbours is Neighbours.ROW_L1 or (
            neighbours is Neighbours.ROW_L2 and noise == "gaussian"
        )
        mechanism = ProjectedRows(
            guarantee=guarantee, neighbours=neighbours, k=2, noise=noise, **_change(bounded)
        )
        return Projected(mechanism, entropy)

    return make


def _sketch(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    mechanism = MIProjection(
        guarantee=guarantee, neighbours=neighbours, rows=16, target=PUBLIC, y_public=True
    )
    return CellSketch(mechanism)


def _noisy_sums(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    return NoisySumsSubject(guarantee, neighbours)


def _laplace(guarantee: PureDP, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    return LaplaceSubject(guarantee, neighbours)


def _pair(subject: Callable[[Any, Neighbours], Subject]) -> Make:
    """Return how to make a subject of which nothing is drawn before it runs."""

    def make(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
        return subject(guarantee, neighbours)

    return make


def _output(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    learner = OutputPerturbation(
        guarantee=guarantee, neighbours=neighbours, regularisation=50.0, slope=0.5
    )
    return OutputSubject(learner)


def _objective(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    learner = ObjectivePerturbation(guarantee=guarantee, neighbours=neighbours, slope=0.5)
    return LearnerSubject(learner, radius=100.0, rows=0)


def _subject_of_draws(kind: type[Exponential | FrankWolfe], **options: Any) -> Make:
    def make(guarantee: PureDP, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
        # So many rows that what the last one speaks against is rare, but is seen.
        return LearnerSubject(
            kind(guarantee=guarantee, neighbours=neighbours, **options),
            rows=math.ceil(2 / guarantee.epsilon),
            ends=True,
        )

    return make


def _gradients_of_units(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    return gradients_of_units(guarantee, neighbours)


def _draws_of_units(guarantee: PureDP, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    learner = Exponential(guarantee=guarantee, neighbours=neighbours)
    return DrawsOfUnits(learner, math.ceil(2 / guarantee.epsilon))


def _asking(kind: type[GaussianSketch | InverseWishart], **options: Any) -> Make:
    def make(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
        made = kind(
            guarantee=guarantee, neighbours=neighbours, least_eigenvalue_share=0.5, **options
        )
        return EigenvalueSubject(made)

    return make


def _adassp(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    return AdaSSPSubject(AdaSSP(guarantee=guarantee, neighbours=neighbours))


def _perturbed_subject(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:
    mechanism = ProjectedRows(
        guarantee=guarantee,
        neighbours=neighbours,
        k=3,
        projection="orthonormal",
        noise="perturbed",
        **_change(neighbours is not Neighbours.ELEMENT),
    )
    return Perturbed(mechanism, entropy)


def _quantile(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
    bounded = _change(neighbours is Neighbours.ROW_L1)
    return Quantile(
        ProjectedRows(guarantee=guarantee, neighbours=neighbours, k=2, noise="quantile", **bounded)
    )


def _label(kind: str) -> Make:
    def make(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:  # noqa: ARG001
        return Labelled(guarantee, kind, entropy)

    return make


class Entry:
    """How a mechanism is audited: for which relations, and at which kind of guarantee.

    `delta` None stands for pure ε; "bits" for a promise in bits, of which ε is then the number;
    "rho" for ρ-zCDP, ρ = ε²/2.
    """

    def __init__(
        self, make: Make, relations: tuple[Neighbours, ...], delta: float | str | None
    ) -> None:
        self.make, self.relations, self.delta = make, relations, delta

    def guarantee(self, epsilon: float, delta: float | None) -> Guarantee:
        """Return the guarantee that is asked for."""
        if self.delta == "bits":
            return MIDP(epsilon)
        if self.delta == "rho":
            return ZCDP(epsilon**2 / 2)
        if self.delta is None:
            return PureDP(epsilon)
        assert not isinstance(self.delta, str)  # noqa: S101 - there are two words
        return ApproxDP(epsilon, self.delta if delta is None else delta)


ENTRIES: dict[str, Entry] = {
    "analyze_gauss": Entry(_matrix(AnalyzeGauss), _ROWS, NORMAL_DELTA),
    "additive_wishart": Entry(_matrix(AdditiveWishart), _ROWS, VISIBLE_DELTA),
    "sketch": Entry(_matrix(GaussianSketch, rows=40), _ROWS, VISIBLE_DELTA),
    "inverse_wishart": Entry(_matrix(InverseWishart, degrees=40), _ROWS, VISIBLE_DELTA),
    "mi_projection": Entry(_sketch, _CELLS, "bits"),
    "additive_noise": Entry(_cells, _CELLS, NORMAL_DELTA),
    "projection": Entry(_projected_subject("laplace"), _PARTS, None),
    "projection_gaussian": Entry(_projected_subject("gaussian"), _PARTS, NORMAL_DELTA),
    "chain": Entry(_noisy_sums, _ROWS, NORMAL_DELTA),
    "laplace": Entry(_laplace, (Neighbours.ADD_REMOVE,), None),
    "adassp": Entry(_adassp, _ROWS, WHOLE_DELTA),
    "sketch_after_query": Entry(_asking(GaussianSketch, rows=40), _ROWS, VISIBLE_DELTA),
    "inverse_wishart_after_query": Entry(_asking(InverseWishart, degrees=40), _ROWS, VISIBLE_DELTA),
    **{name: Entry(_pair(make), _ROWS, WHOLE_DELTA) for name, make in SUBJECTS.items()},
    "rows_left_out": Entry(_pair(rows_left_out), _ROWS, WHOLE_DELTA),
    "cells_filled_in": Entry(_pair(cells_filled_in), _ROWS, WHOLE_DELTA),
    "groups": Entry(_pair(groups_of_rows), _ROWS, WHOLE_DELTA),
    "units": Entry(_pair(WEIGHTED["units"]), _ROWS, WHOLE_DELTA),
    "clustered": Entry(_pair(WEIGHTED["clustered"]), _ROWS, WHOLE_DELTA),
    "survey_weights": Entry(_pair(WEIGHTED["survey_weights"]), _ADDED, WHOLE_DELTA),
    "survey_weights_of_units": Entry(
        _pair(WEIGHTED["survey_weights_of_units"]), _ADDED, WHOLE_DELTA
    ),
    "groups_of_units": Entry(_pair(GROUPS["groups_of_units"]), _ROWS, NORMAL_DELTA),
    "groups_of_units_model": Entry(_pair(GROUPS["groups_of_units_model"]), _ADDED, WHOLE_DELTA),
    "suggest_levels": Entry(_pair(LevelsSubject), _ROWS, NORMAL_DELTA),
    "suggest_levels_rare": Entry(_pair(partial(LevelsSubject, rare=True)), _ROWS, VISIBLE_DELTA),
    "suggest_rows_per_unit": Entry(_pair(UnitSizesSubject), _ADDED, None),
    "suggest_rows_per_unit_gaussian": Entry(_pair(UnitSizesSubject), _ADDED, "rho"),
    "frank_wolfe_pure": Entry(_subject_of_draws(FrankWolfe, steps=1, stride=1.0), _ROWS, None),
    "exponential": Entry(_subject_of_draws(Exponential), _ROWS, None),
    "noisy_gradient_units": Entry(_gradients_of_units, _ROWS, WHOLE_DELTA),
    "exponential_units": Entry(_draws_of_units, _ROWS, None),
    "output_perturbation": Entry(_output, _ROWS, None),
    "output_perturbation_gaussian": Entry(_output, _ROWS, WHOLE_DELTA),
    "objective_perturbation": Entry(_objective, _ROWS, VISIBLE_DELTA),
    "projection_perturbed": Entry(_perturbed_subject, _PARTS, None),
    "projection_perturbed_gaussian": Entry(_perturbed_subject, _PARTS, "rho"),
    "projection_quantile": Entry(_quantile, _PARTS, VISIBLE_DELTA),
    "label_level": Entry(_label("levels"), _CELLS, None),
    "label_number": Entry(_label("number"), _CELLS, None),
}


def entries() -> dict[str, Entry]:
    """Return all that can be audited by name, with what other packages registered."""
    found = dict(ENTRIES)
    ways: list[tuple[Registered[Any], Callable[[Any, Entropy], Subject]]] = [
        (MOMENTS, moments_subject),
        *((models, RegisteredModel) for models in MODELS.values()),
    ]
    for known, subject in ways:
        for name, kind in known.items():
            if name not in known.own:
                found[name] = _registered_entry(kind, subject)
    return found


def _registered_entry(kind: type[Mechanism], subject: Callable[[Any, Entropy], Subject]) -> Entry:
    delta = usual_delta(kind, VISIBLE_DELTA)

    def make(guarantee: Guarantee, neighbours: Neighbours, entropy: Entropy) -> Subject:
        return subject(kind(guarantee=guarantee, neighbours=neighbours), entropy)

    entry = Entry(make, (), delta)
    entry.relations = relations_of(kind, entry.guarantee(1.0, None))
    return entry


def moments_subject(mechanism: MomentsMechanism, entropy: Entropy) -> Subject:
    """Return how a mechanism for second moments is audited: by its density, or by a score."""
    known = type(mechanism.prepare(SHAPE).noise_model) in BY_NOISE_MODEL
    return MatrixSubject(mechanism) if known else RegisteredMoments(mechanism, entropy)


def subject_of(
    mechanism: str, guarantee: Guarantee, neighbours: Neighbours | str | None, entropy: Entropy
) -> Subject:
    """Return the named mechanism, calibrated, with its worst pair for a relation it supports."""
    known = entries()
    entry = known[arguments.choice(mechanism, "mechanism", "audit", known)]
    if not isinstance(guarantee, PureDP | ApproxDP | ZCDP | GDP | MIDP):
        raise arguments.wrong_type("guarantee", "audit", "a guarantee", guarantee)
    chosen = entry.relations[0] if neighbours is None else neighbours
    relation = Neighbours.parse(chosen, "audit", entry.relations)
    return entry.make(guarantee, relation, entropy)


def usual_trials(subject: Subject) -> int:
    """Return how many runs an audit takes that is to prove nine tenths of an exact claim.

    For normal noise the bound is 2.9/√n below μ, give or take 1.8/√n, and a little more where μ is
    large; whole learnings have more runs, as their rows move some sums by a little less than is
    paid for. Curves were tried out.
    """
    claim = subject.claim
    if subject.runs is not None:
        return subject.runs
    if claim.kind == "mu" and (subject.slow or subject.exact):
        clear, least = (9.0 if subject.exact else 4.3, 100) if subject.slow else (7.2, 10_000)
        right = float(ndtr(claim.value / 2))
        wide = right * (1 - right) * 4 * math.exp(claim.value**2 / 4)  # 1 where μ is small
        return max(math.ceil(wide * (clear / (0.1 * claim.value)) ** 2), least)
    if subject.slow:
        return math.ceil(25_000 * max(claim.value**-2, 1.0))
    if not subject.exact:
        return 20_000
    if claim.delta == 0:
        return 100_000
    return 250_000 if claim.value < 0.75 else 150_000


def audit(
    mechanism: str | MomentsMechanism,
    guarantee: Guarantee | None = None,
    neighbours: Neighbours | str | None = None,
    trials: int | None = None,
    *,
    entropy: Entropy | None = None,
    confidence: float = CONFIDENCE,
) -> AuditResult:
    """Audit a mechanism by its name, or a second-moment mechanism as it was made.

    Requires: for a name, a guarantee and one of the relations it supports (by default the first).
    A mechanism that was made has both, and neither is given.
    Promises: the real mechanism is run, `trials` times on each table (by default, often enough to
    prove nine tenths of an exact claim), with the system's entropy unless another is given.
    """
    bits = entropy or system()
    if isinstance(mechanism, MomentsMechanism):
        if guarantee is not None or neighbours is not None:
            rule = "left out where a mechanism is given, which has its own"
            raise arguments.rejection("guarantee", "audit", rule, guarantee or neighbours)
        subject = moments_subject(mechanism, bits)
    else:
        subject = subject_of(mechanism, guarantee, neighbours, bits)  # type: ignore[arg-type]  # checked
    count = usual_trials(subject) if trials is None else trials
    return audit_subject(subject, count, entropy=bits, confidence=confidence)
