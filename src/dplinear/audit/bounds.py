"""From counts to what they prove: lower bounds on ε, μ and bits that hold with a stated confidence.

An event that is P likely on one table and Q on its neighbour shows ε ≥ ln((P − δ)/Q) at δ,
μ ≥ 2Φ⁻¹((1 + P − Q)/2), and that a fair coin's side is worth so many bits. P and Q are bounded by
Clopper and Pearson 1934, exactly, so whatever the mechanism is, a bound above the truth is as rare
as stated. The event must not depend on the trials it is counted on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainccinv, betaincinv, log_ndtr, ndtr, ndtri

from dplinear.arrays import Floats


@dataclass(frozen=True)
class Counts:
    """How often an event was seen in `trials` runs on one table, and in as many on the other."""

    one: int
    other: int
    trials: int

    def likely(self, alarm: float) -> float:
        """Return a lower bound on P, wrong with probability `alarm` at the most."""
        if self.one == 0:
            return 0.0
        return float(betaincinv(self.one, self.trials - self.one + 1, alarm))

    def unlikely(self, alarm: float) -> float:
        """Return an upper bound on Q, wrong with probability `alarm` at the most."""
        if self.other == self.trials:
            return 1.0
        return float(betainccinv(self.other + 1, self.trials - self.other, alarm))


def epsilon_bound(counts: Counts, delta: float, alarm: float) -> float:
    """Return what the counts prove of ε at this δ: P ≤ e^ε·Q + δ. At least 0."""
    excess = counts.likely(alarm / 2) - delta
    return max(math.log(excess / counts.unlikely(alarm / 2)), 0.0) if excess > 0 else 0.0


def mu_bound(counts: Counts, alarm: float) -> float:
    """Return what the counts prove of μ: no guess of the table is right more often than Φ(μ/2).

    Requires: an alarm of at most 1/4. Right guesses on both tables are added up; their sum is less
    spread than a binomial number of the same mean (Hoeffding 1956, Theorem 4), so that Clopper and
    Pearson's bound holds for it. It is closer to μ than bounds on both chances apart. At least 0.
    """
    right = counts.one + counts.trials - counts.other
    least = Counts(right, 0, 2 * counts.trials).likely(alarm)
    return 2 * float(ndtri(least)) if least > 0.5 else 0.0


def bits_bound(counts: Counts, alarm: float) -> float:
    """Return the bits that the event tells, at the least, of a fair coin that chose the table.

    Above P = Q they rise with P and fall with Q.
    """
    likely, unlikely = counts.likely(alarm / 2), counts.unlikely(alarm / 2)
    if likely <= unlikely:
        return 0.0
    uncertain = (_entropy(likely) + _entropy(unlikely)) / 2
    return max(_entropy((likely + unlikely) / 2) - uncertain, 0.0)


def _entropy(p: float) -> float:
    return -sum(q * math.log2(q) for q in (p, 1 - p) if q > 0)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return δ(ε) of two normal laws μ standard deviations apart (Balle and Wang 2018)."""
    if mu == 0:
        return 0.0
    low, high = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return float(ndtr(low) - math.exp(epsilon + float(log_ndtr(high))))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the ε of that pair at a δ above 0."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(high, mu) > delta:
        high *= 2
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, high))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ that an ε and a δ above 0 allow."""
    high = 1.0
    while gaussian_delta(epsilon, high) < delta:
        high *= 2
    return float(brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, 1e-9, high))


@dataclass(frozen=True)
class Event:
    """A number above the threshold on one table, against the other; `back`: below it, on the other.

    Ties with the threshold belong to neither.
    """

    threshold: float
    back: bool = False

    def count(self, one: Floats, other: Floats) -> Counts:
        """Count the event on as many trials of each table."""
        if self.back:
            one, other = -other, -one
        at = -self.threshold if self.back else self.threshold
        seen = [int(np.count_nonzero(part > at)) for part in (one, other)]
        return Counts(seen[0], seen[1], len(one))


Bound = Callable[[Counts], float]


def best_event(one: Floats, other: Floats, bound: Bound, candidates: int = 64) -> Event:
    """Return the event on these trials that proves most, if its bound is taken at its word.

    It must then be counted on other trials.
    """
    seen = np.concatenate((one, other))
    seen = seen[np.isfinite(seen)]
    if len(seen) == 0:
        return Event(0.0)
    parts = np.linspace(0, 1, candidates)
    ends = np.unique(np.quantile(seen, parts, method="inverted_cdf"))
    # Between two values that were seen, so that values with mass of their own are on one side.
    middles = (ends[1:] + ends[:-1]) / 2
    events = [Event(float(at), back) for at in (*middles, *ends) for back in (False, True)]
    return max(events, key=lambda event: bound(event.count(one, other)))
