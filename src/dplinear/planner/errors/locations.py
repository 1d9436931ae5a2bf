"""The error of means and covariances: CoinPress in closed form, beside releases of moments.

CoinPress's noise is known once its radii are: they are computed here step by step as it computes
them, for normal rows whose scale its histograms have found.
"""

import math
from typing import ClassVar

from dplinear.coinpress import radii
from dplinear.coinpress.covariance import CENTRING
from dplinear.coinpress.locate import FIRST
from dplinear.coinpress.mean import BETA
from dplinear.coinpress.methods import COUNT, RADIUS, CoinPressCovariance, CoinPressMean, shares
from dplinear.planner.errors.matrix_errors import correlation_error, mean_error, why_refused
from dplinear.planner.facts import Facts
from dplinear.planner.questions import (
    Prediction,
    Question,
    Refusal,
    absolute,
    refusal_reason,
    terms,
)
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MOMENTS

_LOOKS = 2  # at histograms, as a rule
_FEW = 150.0  # rows·μ below which histograms may miss a column
_MISSED = "so few rows that CoinPress may not find a column: then it is as wrong as the bounds"


def last_shares(facts: Facts, steps: int) -> list[float]:
    """Return what the steps may spend of μ², once rows are counted and columns are found."""
    public = facts.neighbours.rows_are_public and facts.units is None
    counted = 0 if public else COUNT
    return [float(share) for share in shares(steps, 1 - counted - _LOOKS * FIRST)]


def coinpress_mean(facts: Facts) -> float:
    """Return the standard deviation of the noise on a mean, in that of the column."""
    moved = 2.0 if facts.neighbours is Neighbours.REPLACE else 1.0
    size, radius, sigma = facts.columns, RADIUS * math.sqrt(facts.columns), math.inf
    for share in last_shares(facts, CoinPressMean.steps):
        clip = radii.reach(radius, radii.tail(size, BETA))
        sigma = moved * clip / (facts.mu * math.sqrt(share) * facts.counted)
        radius = radii.ball(facts.counted, sigma, size, BETA)
    return sigma


def coinpress_covariance(facts: Facts) -> float:
    """Return the standard deviation of the noise on a correlation."""
    moved = math.sqrt(2) if facts.neighbours is Neighbours.REPLACE else 1.0
    share = last_shares(facts, CoinPressCovariance.steps)[-1] * float(1 - CENTRING)
    noise = moved / (facts.counted * facts.mu * math.sqrt(share))
    return noise * radii.length(facts.columns, noise) ** 2 / math.sqrt(2)


class _Location(Question):
    """What CoinPress and releases of moments both answer."""

    method: ClassVar[type[CoinPressMean] | type[CoinPressCovariance]]
    gate: ClassVar[str]
    reader: ClassVar[str]
    adds_squares: ClassVar[bool] = True

    @property
    def ways(self) -> tuple[str, ...]:
        """CoinPress, and every mechanism for second moments."""
        return self.method.name, *MOMENTS

    def floor(self, facts: Facts) -> float:
        """Return the sampling error."""
        return 1 / math.sqrt(facts.sample)

    def predict(self, way: str, facts: Facts) -> Prediction:
        """Return the noise's standard deviation beside that of sampling."""
        error = math.hypot(self.noise(way, facts), self.floor(facts))
        few = way == self.method.name and facts.counted * facts.mu < _FEW
        return absolute(error, _MISSED if few else "")

    def noise(self, way: str, facts: Facts) -> float:
        """Return the standard deviation of what privacy adds."""
        raise NotImplementedError

    def call(self, way: str, facts: Facts) -> str:
        """Return the release, and what is read off it."""
        if way == self.method.name:
            return f"dpl.{self.gate}(data, schema, {terms(facts)})"
        asked = f'{terms(facts)}, mechanism="{way}"'
        return f"dpl.release_moments(data, schema, {asked}).{self.reader}()"

    def refusal(self, way: str, facts: Facts) -> Refusal | None:
        """Return the way's own sentence."""
        if way == self.method.name:
            return refusal_reason(self.method, facts)
        return why_refused(way, facts)


class Mean(_Location):
    """The mean of each column."""

    name: ClassVar[str] = "mean"
    measure: ClassVar[str] = (
        "root mean square error of a mean, in standard deviations of its column, sampling included"
    )
    method: ClassVar[type[CoinPressMean] | type[CoinPressCovariance]] = CoinPressMean
    gate: ClassVar[str] = "release_mean"
    reader: ClassVar[str] = "mean"

    def noise(self, way: str, facts: Facts) -> float:
        """Return the standard deviation of what privacy adds to a mean."""
        return coinpress_mean(facts) if way == CoinPressMean.name else mean_error(way, facts)


class Covariance(_Location):
    """The covariance of all columns."""

    name: ClassVar[str] = "covariance"
    measure: ClassVar[str] = (
        "root mean square error of a correlation of two uncorrelated columns, sampling included"
    )
    trivial: ClassVar[float | None] = 1.0
    method: ClassVar[type[CoinPressMean] | type[CoinPressCovariance]] = CoinPressCovariance
    gate: ClassVar[str] = "release_covariance"
    reader: ClassVar[str] = "covariance"

    def noise(self, way: str, facts: Facts) -> float:
        """Return the standard deviation of what privacy adds to a correlation."""
        if way == CoinPressCovariance.name:
            return coinpress_covariance(facts)
        return correlation_error(way, facts)
