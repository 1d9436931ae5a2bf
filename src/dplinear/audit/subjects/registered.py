"""Audits of any registered mechanism for moments or models, of whose worst pair nothing is known.

A row at all bounds moves every entry of a matrix, and every coefficient of a model. Releases are
scored by the logarithm of the ratio of their likelihoods where the noise model tells it, and
otherwise by a logistic score that pilot runs fit.
"""

from abc import abstractmethod

import numpy as np

from dplinear.arguments import ArgumentError
from dplinear.arrays import Floats
from dplinear.audit import worst_pairs
from dplinear.audit.classifier import fit_score
from dplinear.audit.subjects.adaptive import design_of
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.audit.subjects.matrices import SHAPE
from dplinear.exact.shape import Shape
from dplinear.mechanisms.checks import RELATIONS
from dplinear.mechanisms.contract import Measurement, Mechanism, MomentsMechanism
from dplinear.mechanisms.model import ModelMechanism
from dplinear.noise.entropy import Entropy
from dplinear.planner.simulated import SimulatedRows
from dplinear.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours

_PILOT = 1_000
_FEATURES = 2


class RegisteredSubject(Subject):
    """A mechanism on a pair of tables, told apart by a score that pilot runs fit."""

    exact = False
    chosen = True
    runs = 20_000

    def __init__(self, mechanism: Mechanism, entropy: Entropy) -> None:
        self.name = mechanism.name
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        self.claim = Claim.of(self.guarantee, normal=False)
        pilot = [
            np.stack([self.release(entropy, other=other) for _ in range(_PILOT)])
            for other in (False, True)
        ]
        self._score = fit_score(pilot)

    @abstractmethod
    def release(self, entropy: Entropy, *, other: bool) -> Floats:
        """Release one of the tables, as one row of numbers."""

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Release so many times, and score."""
        return self._score(np.stack([self.release(entropy, other=other) for _ in range(count)]))


class RegisteredMoments(RegisteredSubject):
    """Second moments: a row along a diagonal comes or goes, or turns by a right angle."""

    def __init__(self, mechanism: MomentsMechanism, entropy: Entropy, shape: Shape = SHAPE) -> None:
        self._prepared = mechanism.prepare(shape)
        pair = worst_pairs.matrix_pair(shape, mechanism.neighbours, oblique=True)
        self._tables = [worst_pairs.moments(shape, rows, 1) for rows in pair]
        self._grams = [table.matrix() for table in self._tables]
        super().__init__(mechanism, entropy)

    def release(self, entropy: Entropy, *, other: bool) -> Floats:
        """Return the likelihoods' ratio if it is known, or the entries of the matrix."""
        measured: Measurement = self._prepared.run(self._tables[other], entropy)
        ratio = measured.noise_model.log_ratio(measured.values[None], *self._grams)
        if ratio is not None:
            return ratio
        return np.asarray(measured.values[np.triu_indices_from(measured.values)])


class RegisteredModel(RegisteredSubject):
    """One model: a row at all bounds comes or goes, or its target turns round."""

    runs = 4_000

    def __init__(self, mechanism: ModelMechanism, entropy: Entropy) -> None:
        design = design_of(_FEATURES)
        self._prepared = mechanism.prepare(design)
        row = np.ones((1, _FEATURES + 1))
        rest = row[:0]
        if mechanism.neighbours is Neighbours.REPLACE:
            rest = row * np.append(np.ones(_FEATURES), -1.0)
        self._tables = [SimulatedRows(design.shape, iter([rows])) for rows in (row, rest)]
        super().__init__(mechanism, entropy)

    def release(self, entropy: Entropy, *, other: bool) -> Floats:
        """Return the coefficients."""
        return self._prepared.run(self._tables[other], entropy).coefficients


def relations_of(kind: type[Mechanism], guarantee: Guarantee) -> tuple[Neighbours, ...]:
    """Return the relations that a mechanism knows under a guarantee, by asking it."""
    return tuple(relation for relation in RELATIONS if _accepts(kind, guarantee, relation))


def usual_delta(kind: type[Mechanism], visible: float) -> float | str | None:
    """Return the kind of guarantee to audit at, the strictest that a mechanism knows.

    None stands for pure ε, "rho" for ρ-zCDP, and a number is a δ.
    """
    asked: list[tuple[Guarantee, float | str | None]] = [
        (PureDP(1.0), None),
        (ApproxDP(1.0, visible), visible),
        (ZCDP(0.5), "rho"),
    ]
    return next((told for guarantee, told in asked if relations_of(kind, guarantee)), visible)


def _accepts(kind: type[Mechanism], guarantee: Guarantee, relation: Neighbours) -> bool:
    try:
        kind(guarantee=guarantee, neighbours=relation)
    except ArgumentError:
        return False
    return True
