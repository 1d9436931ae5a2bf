"""AdaSSP as Wang 2018 (arXiv 1803.02596v2) prints it: Algorithm 2, with ε/3 and δ/3 for each part.

Its certificate says what the three parts keep together.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats, Indices
from dplinear.exact.design import Design
from dplinear.mechanisms import checks
from dplinear.mechanisms.adassp import FAILURE, SHARES, AdaSSP, PreparedAdaSSP
from dplinear.mechanisms.adassp_distance import Distance, Parts
from dplinear.papers import accounts, constants
from dplinear.privacy.guarantees import ZCDP, ApproxDP
from dplinear.privacy.profiles.gaussian import GRID_LEAST_VARIANCE
from dplinear.privacy.rounding import ceiling

_WHERE = "PublishedAdaSSP"


@dataclass(frozen=True, kw_only=True)
class PublishedAdaSSP(AdaSSP):
    """Noise of √ln(6/δ)/(ε/3) times each part's sensitivity, and the ridge for a failure of 5%."""

    calibration: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.guarantee, ZCDP):
            rule, hint = "an ApproxDP guarantee", "the published constants are for (ε, δ)."
            raise arguments.wrong_type("guarantee", _WHERE, rule, self.guarantee, hint)
        accounts.check_delta(self._approximate_guarantee, _WHERE)
        if self.shares != SHARES:
            hint = "the paper splits ε in three."
            raise arguments.rejection("shares", _WHERE, "left out for the paper", self.shares, hint)

    @property
    def _approximate_guarantee(self) -> ApproxDP:
        return checks.approximate(self.guarantee, _WHERE, "normal noise")

    def _off_diagonal_divisor(self, design: Design) -> int:
        return 1

    def _variances(self, distance: Distance) -> Parts:
        square = Fraction(constants.adassp(self._approximate_guarantee).value) ** 2
        least = Fraction(GRID_LEAST_VARIANCE)
        return Parts(*(max(Fraction(ceiling(square * part)), least) for part in distance.single))

    def _make_prepared(self, distance: Distance, variances: Parts) -> "PreparedPublished":
        account = accounts.what_holds(self._approximate_guarantee, distance.profile(variances))
        return PreparedPublished(distance.design, distance, variances, account)


@dataclass(frozen=True)
class PreparedPublished(PreparedAdaSSP):
    """The same noisy vector, and the paper's ridge."""

    def _kept_features(self, gram: Floats) -> Indices:
        return np.arange(len(gram))

    @property
    def _reach(self) -> float:
        """What the noise takes from the least eigenvalue of XᵀX, but for `FAILURE`."""
        _, sigma, _ = self._sigmas
        d = self.design.dimension
        return sigma * math.sqrt(d * math.log(2 * d * d / FAILURE))

    def _lower(self, least: float, seen: float) -> float:
        asked = self.account.asked
        assert isinstance(asked, ApproxDP)  # noqa: S101 - the constants are for no other
        square = self.design.feature_square / self.design.shape.unit
        return least - math.log(6 / asked.delta) / (asked.epsilon / 3) * square

    def _floor(self, values: Floats) -> float:
        return float(np.abs(values).max()) * 1e-13
