"""What paired repetitions say: medians, the best rival of a cell, intervals, and the whole."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from benchmarks.rivals import FLOOR, MEAN, OURS, Array
from dplinear.noise import simulation

LEVEL = 0.95
RESAMPLES = 400

# The excess risks of a method in one cell, in the order of the repetitions.
Risks = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Verdict:
    """One cell: our median against the best rival's."""

    medians: Mapping[str, float]
    rival: str  # the rival of least median
    counts: bool  # some private method beats predicting the mean
    low: float  # the interval of the median over repetitions of rival's risk / ours
    high: float

    @property
    def advantage(self) -> float:
        """Return how many times the best rival's median is ours."""
        return self.medians[self.rival] / self.medians[OURS]

    @property
    def won(self) -> bool:
        """Say whether our median is at or below the best rival's."""
        return self.medians[OURS] <= self.medians[self.rival]

    @property
    def close(self) -> bool:
        """Say whether the cell counts, and the interval leaves open who is better."""
        return self.counts and self.low <= 1 <= self.high


def sign_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Return a distribution-free interval for the median, from order statistics.

    The k-th value from either end, k the largest with 2·P(Binomial(n, ½) < k) ≤ 1 − level; with too
    few values for that (5 or fewer at 95%) it is unbounded.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank = 0
    while 2 * float(binom.cdf(rank, count, 0.5)) <= 1 - level:
        rank += 1
    if rank == 0:
        return -math.inf, math.inf
    return ordered[rank - 1], ordered[count - rank]


def verdict(risks: Risks, rival: str | None = None) -> Verdict:
    """Return what the repetitions of one cell say.

    Without `rival` the best one is chosen by the same repetitions, which flatters it: chance helps
    the best of many.
    """
    medians = {name: float(np.median(found)) for name, found in risks.items()}
    if rival is None:
        rivals = [name for name in medians if name not in {OURS, MEAN, FLOOR}]
        rival = min(rivals, key=medians.__getitem__)
    pairs = zip(risks[rival], risks[OURS], strict=False)  # a slow rival may have fewer repetitions
    low, high = sign_interval([_ratio(theirs, ours) for theirs, ours in pairs])
    beaten = min(medians[OURS], medians[rival]) < medians[MEAN]
    return Verdict(medians, rival, beaten, max(low, 0.0), high)


def _ratio(theirs: float, ours: float) -> float:
    return 1.0 if theirs == ours else theirs / ours if ours else math.inf


@dataclass(frozen=True)
class Summary:
    """All cells together."""

    cells: int
    counted: int
    won: int
    clearly_won: int  # the whole interval above 1
    clearly_lost: int
    floor_won: int  # by least squares without privacy, for scale
    advantage: float  # geometric mean over the cells that count
    low: float
    high: float

    def __str__(self) -> str:
        share = self.won / self.counted if self.counted else math.nan
        return (
            f"{self.cells} cells, {self.counted} where any method beats the mean; at or below the "
            f"best rival in {self.won} ({share:.0%}), clearly in {self.clearly_won}, clearly above "
            f"in {self.clearly_lost}. (Least squares, without privacy, is at or below it in "
            f"{self.floor_won}.)\nGeometric mean of best rival / ours: {self.advantage:.2f} "
            f"[{self.low:.2f}, {self.high:.2f}]"
        )


def geometric_mean(values: Sequence[float]) -> float:
    """Return exp of the mean logarithm."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan


def summary(cells: Sequence[Risks]) -> Summary:
    """Return the whole, with a bootstrap interval over repetitions for the advantage."""
    found = [verdict(risks) for risks in cells]
    counted = [(one, risks) for one, risks in zip(found, cells, strict=True) if one.counts]
    advantages = _resampled([risks for _, risks in counted])
    ends = (
        np.quantile(advantages, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if counted else [math.nan] * 2
    )
    return Summary(
        cells=len(found),
        counted=len(counted),
        won=sum(one.won for one, _ in counted),
        clearly_won=sum(one.low > 1 for one, _ in counted),
        clearly_lost=sum(one.high < 1 for one, _ in counted),
        floor_won=sum(one.medians[FLOOR] <= one.medians[one.rival] for one, _ in counted),
        advantage=geometric_mean([one.advantage for one, _ in counted]),
        low=float(ends[0]),
        high=float(ends[1]),
    )


def _resampled(cells: Sequence[Risks]) -> Array:
    """Return the advantage over resampled repetitions, the best rival chosen afresh each time."""
    generator = simulation.generator(0)
    logs = np.zeros(RESAMPLES)
    for risks in cells:
        ours = _medians(risks[OURS], generator)
        theirs = [
            _medians(values, generator)
            for name, values in risks.items()
            if name not in {OURS, MEAN, FLOOR}
        ]
        logs += np.log(np.min(theirs, axis=0) / ours) / len(cells)
    return np.asarray(np.exp(logs))


def _medians(values: Sequence[float], generator: simulation.Generator) -> Array:
    picks = generator.integers(0, len(values), (RESAMPLES, len(values)))
    return np.asarray(np.median(np.asarray(values)[picks], axis=1))
