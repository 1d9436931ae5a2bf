"""The released sums that scores are made of, and one score with its errors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from scipy.special import ndtri

from dplinear.arrays import Floats

_CLEAR = 4.0  # deviations of its noise that a number of rows must be above
_NO_ROWS = "The noise hides how many rows were scored: ask for a larger ε, or score more rows."


@dataclass(frozen=True, eq=False)
class ReleasedSums:
    """Noisy sums over rows, by name, with the standard deviations of their noise. Public.

    Terms are those of the residual e in units of `clip`, of the target's deviation t from `centre`
    in units of `spread`, and of probabilities; `width` is half the target's range, in its units.
    `beyond` is about what clips took from the sums of squares, in the same units. A `histogram` has
    the counts of bins between public edges. A row, or a unit, counts as at most 1 in all of them,
    as the errors below need it; that is worth `scale` in the scale of survey weights.
    """

    sums: Mapping[str, float]
    deviations: Mapping[str, float]
    count: float
    count_deviation: float
    histogram: Floats
    histogram_deviation: float
    clip: float
    centre: float
    spread: float
    width: float
    beyond: Mapping[str, float]
    scale: float = 1.0

    @property
    def rows(self) -> float:
        """The number of rows to divide by."""
        return max(self.count, 1.0)

    def mean(self, name: str) -> float:
        """Return the mean of a term, as it was clipped."""
        return self.sums[name] / self.rows

    def beyond_mean(self, name: str) -> float:
        """Return about how much clips took from the mean of squares; it may be off by itself."""
        return self.beyond[name] / self.rows

    def noise(self, name: str) -> float:
        """Return the standard deviation of a mean that is due to the noise on its sum."""
        return self.deviations[name] / self.rows

    def noise_with_count(self, name: str) -> float:
        """Return it with the noise on the number of rows."""
        return math.hypot(self.noise(name), self.mean(name) * self.count_deviation / self.rows)

    def variance(self, name: str, square: str) -> float:
        """Return about the variance of a term, from the mean of its `square`.

        A deviation of noise too large rather than too small. Where rows of a unit count together,
        their weights add up to at most 1, so that this bounds what they add to the variance of a
        sum, however they are correlated (docs/scores.md).
        """
        return max(self.mean(square) + self.noise(square) - self.mean(name) ** 2, 0.0)


@dataclass(frozen=True)
class Score:
    """One score: its value, and its errors due to sampling and noise together, and to noise alone.

    Where the noise hides the score, all of them are NaN, and `unknown` says why.
    """

    name: str
    value: float
    standard_error: float
    privacy_error: float
    least: float = -math.inf
    most: float = math.inf
    unknown: str | None = None

    def interval(self, level: float) -> tuple[float, float]:
        """Return the normal interval, within what the score can be."""
        reach = float(ndtri((1 + level) / 2)) * self.standard_error
        return max(self.value - reach, self.least), min(self.value + reach, self.most)


def bounded(score: Score, found: ReleasedSums) -> Score:
    """Return a score within what it can be; hidden where noise hides whether there are any rows."""
    if not found.count > _CLEAR * found.count_deviation:
        return hidden(score.name, _NO_ROWS)
    return replace(score, value=min(max(score.value, score.least), score.most))


def hidden(name: str, why: str) -> Score:
    """Return a score of which nothing can be said."""
    return Score(name, math.nan, math.nan, math.nan, unknown=why)
