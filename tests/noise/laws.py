"""Exact laws, a reference sampler in plain Python and chi-square tests, for all tests of noise."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dplinear.noise.entropy import Entropy

# Every statistical test of this folder may fail by chance with at most this probability; together
# they hold fewer than 400 comparisons (`False alarm` in docs/noise.md), so 1e-6 over all of them.
FALSE_ALARM = 1e-6 / 400

Bins = list[tuple[int, int]]  # inclusive ends


def _rational(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def laplace_tail(scale: Fraction) -> Callable[[int], mpmath.mpf]:
    """Return m -> P(y ≥ m) for m ≥ 1."""
    rate = 1 / _rational(scale)
    return lambda m: mpmath.exp(-m * rate) / (1 + mpmath.exp(-rate))


def gaussian_tail(variance: Fraction) -> Callable[[int], mpmath.mpf]:
    """Return m -> P(y ≥ m) for m ≥ 1, by summation or, for wide laws, by Euler and Maclaurin."""
    v = _rational(variance)
    sigma = mpmath.sqrt(v)

    def f(y: int) -> mpmath.mpf:
        return mpmath.exp(-(mpmath.mpf(y) ** 2) / (2 * v))

    if sigma < 2000:
        top = int(14 * sigma) + 3
        sums = [mpmath.mpf(0)]
        for y in range(top, 0, -1):
            sums.append(sums[-1] + f(y))
        total = 2 * sums[-1] + 1
        return lambda m: sums[max(0, top + 1 - m)] / total
    normaliser = sigma * mpmath.sqrt(2 * mpmath.pi)  # up to exp(-2π²σ²)

    def tail(m: int) -> mpmath.mpf:
        integral = normaliser / 2 * mpmath.erfc(m / (sigma * mpmath.sqrt(2)))
        # Σ_{y≥m} f = ∫ + f(m)/2 - f'(m)/12 + O(f''' / 720), and f''' is of order σ^-3
        return (integral + f(m) / 2 + f(m) * m / v / 12) / normaliser

    return tail


def bins(tail: Callable[[int], mpmath.mpf], draws: int, most: int = 60) -> tuple[Bins, list[float]]:
    """Return symmetric bins with at least 40 expected draws each, and their exact probabilities."""
    least = max(40.0 / draws, 0.5 / most)
    starts = []
    start = 1
    while tail(start) >= least:
        starts.append(start)
        stop, step = start + 1, 1
        while tail(start) - tail(stop) < least:
            stop, step = stop + step, 2 * step
        low, high = max(start + 1, stop - step), stop
        while low < high:
            middle = (low + high) // 2
            if tail(start) - tail(middle) < least:
                low = middle + 1
            else:
                high = middle
        start = low
    if not starts:
        return [(-(10**400), 10**400)], [1.0]
    upper = [(a, b - 1) for a, b in zip(starts, [*starts[1:], 10**400], strict=True)]
    masses = [tail(a) - (tail(b + 1) if b < 10**399 else 0) for a, b in upper]
    edges = [(-b, -a) for a, b in reversed(upper)] + [(1 - starts[0], starts[0] - 1)] + upper
    inner = 1 - 2 * sum(masses)
    return edges, [float(p) for p in [*reversed(masses), inner, *masses]]


def counts(drawn: NDArray[np.int64] | NDArray[np.object_], edges: Bins) -> NDArray[np.int64]:
    """Return how many draws fall in each bin."""
    inner = [low for low, _ in edges[1:]]
    if drawn.dtype == np.object_:
        places = np.array([np.sum([y >= low for low in inner]) for y in drawn], np.intp)
    else:
        places = np.searchsorted(np.array(inner, np.int64), drawn, side="right")
    return np.bincount(places, minlength=len(edges))


def misfit(observed: Sequence[int] | NDArray[np.int64], masses: Sequence[float]) -> float:
    """Return the p-value of Pearson's test of counts against probabilities."""
    if len(masses) == 1:
        return 1.0
    seen = np.asarray(observed, float)
    expected = seen.sum() * np.asarray(masses)
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1))


def difference(one: NDArray[np.int64], other: NDArray[np.int64], most: int = 40) -> float:
    """Return the p-value of the two-sample chi-square test, on bins of their pooled quantiles."""
    pooled = np.concatenate([one, other])
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, most + 1)[1:-1], method="nearest"))
    first = np.bincount(np.searchsorted(cuts, one, side="right"), minlength=len(cuts) + 1)
    second = np.bincount(np.searchsorted(cuts, other, side="right"), minlength=len(cuts) + 1)
    used = first + second > 0
    table = np.array([first[used], second[used]])
    return float(stats.chi2_contingency(table, correction=False).pvalue)


class Reference:
    """Canonne, Kamath and Steinke 2020, Algorithms 1 to 3, with Fractions and coins of any bias."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def _below(self, n: int) -> int:
        while (drawn := self._entropy.bits(max(1, n.bit_length()))) >= n:
            pass
        return drawn

    def _coin(self, p: Fraction) -> bool:
        return self._below(p.denominator) < p.numerator

    def _exponential_coin(self, gamma: Fraction) -> bool:
        while gamma > 1:
            if not self._exponential_coin(Fraction(1)):
                return False
            gamma -= 1
        k = 1
        while self._coin(gamma / k):
            k += 1
        return k % 2 == 1

    def laplace(self, scale: Fraction) -> int:
        """Draw from the discrete Laplace law."""
        s, t = scale.denominator, scale.numerator
        while True:
            u = self._below(t)
            if not self._exponential_coin(Fraction(u, t)):
                continue
            v = 0
            while self._exponential_coin(Fraction(1)):
                v += 1
            y = (u + t * v) // s
            minus = self._below(2)
            if minus and y == 0:
                continue
            return -y if minus else y

    def gaussian(self, variance: Fraction) -> int:
        """Draw from the discrete Gaussian law."""
        t = 1
        while t * t <= variance:
            t += 1
        while True:
            y = self.laplace(Fraction(t))
            gamma = (abs(y) - variance / t) ** 2 / (2 * variance)
            if self._exponential_coin(gamma):
                return y
