"""Levels that nobody can list: counts with noise, of which only those far above one are told.

A stability histogram with Gaussian noise (Wilkins, Kifer, Zhang and Karrer 2024, "Exact privacy
analysis of the Gaussian sparse histogram mechanism", bound their δ; ours is a simpler bound, with a
proof of its own in docs/theory/levels.md).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from dplinear import arguments
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Mechanism, Prepared
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.gaussian import GridGaussian
from dplinear.privacy.profiles.joined import WithFailure
from dplinear.privacy.rounding import ceiling, root_ceiling

_WHERE = "Levels"
_BITS = 30
# Counts are scaled, not noise: one count is so many steps of a grid on which noise has this
# variance. So no grid is coarse, and tables for drawing are made once.
VARIANCE = Fraction(4**_BITS)
_LEAST_STEP, _LARGEST_SQUARE = 2**8, Fraction(2**20)
_LARGE = 2**62
_MARGIN = 1e-9  # far more than float64 is off by in a quantile
Found = tuple[int, str, float]  # the index of a column, a level, and about how many hold it


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """How many units hold each of some levels: exact, and private. Every count is above 0."""

    columns: npt.NDArray[np.int64]
    levels: list[str]
    counts: npt.NDArray[np.int64]


class LevelTable(Protocol):
    """A private table, as this mechanism sees it."""

    def buckets(self) -> Iterable[LevelCounts]:
        """Return all levels that a row holds, each once, in an order that they alone decide."""


@dataclass(frozen=True, eq=False)
class LevelsOutcome:
    """Released levels with their noisy counts, and what they promise. Public."""

    found: list[Found]
    account: Account
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Levels(Mechanism):
    """The levels of several columns that many units hold, with noisy counts.

    Requires: counts in which a unit (or a row, where there is no unit) is 1 for at most so many
    levels of a column, and 0 for all others.
    Promises: `ApproxDP` of everything together. With m = columns times levels, a unit moves the
    counts of known levels by √m at the most (another unit in its place: √(2m)), and brings in
    at most m levels that nobody else holds, each with the count 1. Half of δ is for these: the
    threshold is so high that one of them is released with that probability at the most. Numerics
    are exact.
    """

    name: ClassVar[str] = "suggest_levels"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        self._asked()

    def _asked(self) -> ApproxDP:
        return checks.approximate(self.guarantee, _WHERE, "a threshold for noisy counts")

    def prepare(self, columns: int, levels_per_unit: int) -> "PreparedLevels":
        """Choose the step of the grid, and the threshold."""
        asked, most = self._asked(), columns * levels_per_unit
        moved = 2 * most if self.neighbours is Neighbours.REPLACE else most
        failure = asked.delta / 2
        inverse = ceiling(moved / VARIANCE)
        square = calibrate.grid_chain(ApproxDP(asked.epsilon, asked.delta - failure), inverse)
        square = min(square, _LARGEST_SQUARE)
        step = math.isqrt(int(square * VARIANCE / moved))
        if step < _LEAST_STEP:
            hint = "that much noise leaves nothing of any table: ask for a larger ε."
            raise arguments.rejection("guarantee", _WHERE, "within reach", asked, hint)
        mu = root_ceiling(moved * step**2 / VARIANCE)
        profile = WithFailure(GridGaussian(mu, inverse, self.neighbours), failure)
        account = checks.exact_account(self.guarantee, profile)
        return PreparedLevels(levels_per_unit, step, threshold(step, most, failure), mu, account)


def threshold(step: int, most: int, failure: float) -> int:
    """Return what a noisy count must reach, in steps of the grid.

    Promises: `most` counts of 1, with noise, reach it with probability at most η/(1+η), η being
    `failure`. P(Z ≥ t) of discrete Gaussian noise is at most that of a normal number to be t − 1 or
    more, as the density falls and the sum over the grid is at least the integral; and a normal
    number is above x deviations with probability at most φ(x)/x.
    """
    deviations = _deviations(math.log(failure / (1 + failure) / most))
    return step + 1 + math.ceil(math.ldexp(deviations, _BITS))


def _deviations(log_probability: float) -> float:
    """Return x ≥ 1 with φ(x)/x at most the probability whose logarithm is given."""

    def excess(x: float) -> float:
        return -x * x / 2 - math.log(x * math.sqrt(2 * math.pi)) - log_probability

    low, high = 1.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high * (1 + _MARGIN)


@dataclass(frozen=True)
class PreparedLevels(Prepared[LevelTable, LevelsOutcome]):
    """Noise and a threshold, ready for one table. A count is `step` steps of the grid."""

    levels_per_unit: int
    step: int
    threshold: int
    mu: float
    account: Account

    def run(self, table: LevelTable, entropy: Entropy) -> LevelsOutcome:
        """Add noise to every count, and return those that reach the threshold."""
        found: list[Found] = []
        for bucket in table.buckets():
            found += self._release(bucket, entropy)
        sigma = (1 << _BITS) / self.step
        parameters = {
            "mu": self.mu,
            "sigma": sigma,
            "threshold": self.threshold / self.step,
            "levels_per_unit": self.levels_per_unit,
        }
        return LevelsOutcome(found, self.account, parameters)

    def _release(self, bucket: LevelCounts, entropy: Entropy) -> list[Found]:
        noise = discrete.gaussian(VARIANCE, len(bucket.counts), entropy=entropy)
        counts: npt.NDArray[Any] = bucket.counts
        if int(counts.max(initial=0)) * self.step >= _LARGE:
            counts = counts.astype(object)
        noisy = counts * self.step + noise
        told = np.flatnonzero(noisy >= self.threshold)
        return [
            (int(bucket.columns[index]), bucket.levels[index], int(noisy[index]) / self.step)
            for index in told.tolist()
        ]
