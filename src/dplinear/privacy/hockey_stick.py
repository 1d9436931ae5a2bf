"""Hockey-stick integrals: the part of one distribution that e^ε copies of another do not cover.

Every exact profile of this library is δ(ε) = ∫ p(x)·(1 − e^{ε − L(x)})₊ dx with p a normal or a
gamma density and L the privacy loss, monotone in x. The textbook forms subtract two tail
probabilities; at ε = 1e-3 and a million degrees of freedom that loses every digit. Here the
integrand is kept whole: measured from the threshold where L = ε, it is a density times
−expm1(−gap), both positive, so a sum of positive terms gives nearly full relative precision.

Gamma laws are integrated over ξ = ln(z/shape), where the log-density is −shape·(e^ξ − 1 − ξ): no
endpoint singularity, mode at 0, and no difference of large numbers at a million degrees.

Every integral comes with a bound on its relative error. Its form is derived (rounding of the
exponent, and of the threshold times the log-derivative of δ); its constants leave room over the
errors seen against interval arithmetic, to which the tests hold every calibration.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from dplinear.arrays import Floats
from dplinear.privacy.rounding import ULP

# Parts of the integrand below e^-46 = 1e-20 of its peak are left out.
_DEPTH = 46.0
_NODES = 241
_SMALLEST = 1e-300


def _tanh_sinh(nodes: int) -> tuple[Floats, Floats, Floats]:
    """Return abscissae in (0, 1), their distances from 1, and weights of the tanh-sinh rule."""
    t = np.linspace(-3.4, 3.4, nodes)
    s = 0.5 * math.pi * np.sinh(t)
    weights = (t[1] - t[0]) * 0.25 * math.pi * np.cosh(t) / np.cosh(s) ** 2
    return 1 / (1 + np.exp(-2 * s)), 1 / (1 + np.exp(2 * s)), weights


_LEFT, _RIGHT, _WEIGHTS = _tanh_sinh(_NODES)


_RECIPROCALS = [0.0, *(1 / k for k in range(1, 15))]


def exp_minus_linear(x: ArrayLike) -> Floats:
    """Return e^x − 1 − x without cancellation."""
    at: Floats = np.asarray(x, dtype=np.float64)
    largest = float(np.abs(at).max(initial=0.0))
    near: Floats = at if largest <= 0.25 else np.clip(at, -0.25, 0.25)
    # As many terms as bring the series' remainder below one unit in the last place.
    terms = 14 if largest > 0.05 else 10 if largest > 0.002 else 6
    series: Floats = near * _RECIPROCALS[terms]
    for k in range(terms - 1, 2, -1):
        series += 1
        series *= near
        series *= _RECIPROCALS[k]
    series += 1
    series *= near
    series *= near
    series *= 0.5
    if near is at:
        return series
    with np.errstate(over="ignore"):
        return np.where(at == near, series, np.expm1(at) - at)


def log1p_minus_linear(x: float) -> float:
    """Return ln(1 + x) − x without cancellation."""
    if abs(x) > 0.4:
        return math.log1p(x) - x
    t = x / (2 + x)  # ln(1 + x) = 2 artanh(t), and 2t − x = −x·t
    series = 0.0
    for k in range(29, 1, -2):
        series = series * t * t + 1 / k
    return 2 * t**3 * series - x * t


class Threshold(NamedTuple):
    """The logarithm ξ of a threshold, and how many units in the last place of 1 it may be off."""

    xi: Floats
    doubt: Floats


def threshold(
    mean: Floats, plus: Floats | float, minus: Floats | float, doubt: Floats | float = 1.0
) -> Threshold:
    """Return ln(mean), by way of mean − 1 = plus − minus where that is the more precise.

    `doubt` is the relative doubt of the mean itself, in units in the last place.
    """
    near = np.abs(plus - minus) < 0.5
    inner = np.log1p(np.where(near, plus - minus, 0.0))
    outer = np.log(np.where(near, 1.0, np.maximum(mean, 1e-300)))
    return Threshold(
        np.where(near, inner, outer),
        np.where(near, (plus + minus) / np.where(near, mean, 1.0), doubt + np.abs(outer)),
    )


def _log_stirling(shape: float) -> float:
    """Return ln Γ(a) − ln(√(2π/a)·(a/e)^a), Stirling's remainder."""
    if shape < 12:
        whole = float(gammaln(shape))
        return whole - (shape - 0.5) * math.log(shape) + shape - 0.5 * math.log(2 * math.pi)
    i = 1 / shape
    j = i * i
    tail = 1 / 1680 - j * (1 / 1188 - j * 691 / 360360)
    return i * (1 / 12 - j * (1 / 360 - j * (1 / 1260 - j * tail)))


def log_gamma_scale(shape: float) -> float:
    """Return the log-density of ln(z/shape) at its mode 0, z ~ Gamma(shape)."""
    return 0.5 * math.log(shape / (2 * math.pi)) - _log_stirling(shape)


class Integral(NamedTuple):
    """A hockey-stick integral value·e^log_scale, and a bound on its relative error.

    Kept in two parts, because e^ε times a tail far below the smallest float may still matter.
    `covered` is the rest of the same tail, −dδ/dε, on the same scale, where it was asked for.
    """

    value: Floats
    log_scale: Floats
    error: Floats
    covered: Floats

    def upper(self) -> Floats:
        """Return a float that is not below the exact integral, and not above 1."""
        with np.errstate(under="ignore"):
            whole = self.value * np.exp(self.log_scale) * (1 + self.error)
        # What is no number (of ε beyond 1e150) proves nothing, so it counts as 1.
        known = np.where(np.isnan(whole), 1.0, np.clip(whole, _SMALLEST, 1.0))
        return np.where(self.value <= 0, 0.0, known)

    def log_upper(self) -> Floats:
        """Return the logarithm of a number that is not below the exact integral."""
        with np.errstate(divide="ignore"):
            log = np.log(self.value) + self.log_scale
        return log + self.error + 4 * ULP * np.abs(self.log_scale)


# A loss gap: how far the loss exceeds ε at the distances `y` from the threshold. The second
# argument is the distance that remains to the `depth` of the integral, where it has one.
Gap = Callable[[Floats, Floats], Floats]


def _quotient(numerator: Floats, denominator: float) -> tuple[Floats, Floats]:
    """Return a/b as a float and what is missing from it (Dekker's exact product)."""

    def halves(x: Floats) -> tuple[Floats, Floats]:
        high = x * 134217729.0
        high = high - (high - x)
        return high, x - high

    quotient = numerator / denominator
    q1, q2 = halves(quotient)
    d1, d2 = halves(np.array(denominator))
    product = quotient * denominator
    below = ((q1 * d1 - product) + q1 * d2 + q2 * d1) + q2 * d2
    return quotient, ((numerator - product) - below) / denominator


def normal_tail(epsilon: Floats, mu: float) -> Integral:
    """Return ∫ over y ≥ 0 of φ(ε/μ − μ/2 + y)·(1 − e^{−μy}), the profile of N(0,1) and N(μ,1).

    The threshold is carried in two floats: its rounding alone would cost more than all the rest.
    """
    far, missing = _quotient(epsilon, mu)
    near = mu / 2
    threshold = far - near
    shadow = threshold - far
    missing = missing + ((far - (threshold - shadow)) - (near + shadow))
    base = np.maximum(threshold, 0.0)
    start = np.maximum(threshold, -math.sqrt(2 * _DEPTH))
    width = base + 2 * _DEPTH / (base + np.sqrt(base * base + 2 * _DEPTH)) - start
    y = width[:, None] * _LEFT
    x = start[:, None] + y
    gap = mu * (y + (start - threshold)[:, None])
    integrand = np.exp(-0.5 * x * x - x * missing[:, None]) * -np.expm1(-gap)
    value = integrand @ _WEIGHTS * width / math.sqrt(2 * math.pi)
    unused = np.zeros_like(value)
    return Integral(value, unused, ULP * (12 + base * base), unused)


def _reach_up(shape: float, xi: Floats) -> Floats:
    """Return w such that the gamma log-density falls by at least 46 from ξ ≥ 0 to ξ + w."""
    fall = _DEPTH / shape
    slope, rate = np.expm1(xi), np.exp(xi)
    quadratic = 2 * fall / (slope + np.sqrt(slope * slope + 2 * rate * fall))
    return np.minimum(quadratic, np.log(2 * (fall / rate + 1)))


def _reach_down(shape: float, xi: Floats) -> Floats:
    """Return w such that the gamma log-density falls by at least 46 from ξ ≤ 0 to ξ − w.

    Uses e^{−w} ≥ (2 − w)/(2 + w).
    """
    fall = _DEPTH / shape
    linear = fall + 2 * np.expm1(xi)
    root = np.sqrt(linear * linear + 8 * fall)
    return np.where(linear > 0, 0.5 * (linear + root), 4 * fall / (root - np.minimum(linear, 0)))


def _gamma_integral(  # noqa: PLR0917 - a density, two ends, an integrand and its direction
    shape: float,
    at: Threshold,
    base: Floats,
    ends: tuple[Floats, Floats, Floats],
    gap: Gap,
    sign: int,
    *,
    slope: bool,
) -> Integral:
    """Integrate between two distances from the threshold ξ, upwards (1) or downwards (−1).

    `base` is the densest point of the integral. Moving the threshold changes ln δ at a rate of at
    most shape·|e^base − 1| + 2√shape + 2; that and the rounding of the exponent make the error.
    """
    near, far, beyond = ends
    width = np.maximum(far - near, 0.0)[:, None]
    y = near[:, None] + width * _LEFT
    rest = beyond[:, None] + width * _RIGHT
    exponent = shape * exp_minus_linear(base)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        fall = shape * exp_minus_linear(at.xi[:, None] + sign * y) - exponent[:, None]
        weighted = np.where(width > 0, np.exp(-fall), 0.0) * _WEIGHTS
        loss = np.where(width > 0, gap(y, rest), 0.0)
        value = np.einsum("ij,ij->i", weighted, -np.expm1(-loss))
        covered = np.einsum("ij,ij->i", weighted, np.exp(-loss)) if slope else np.zeros_like(value)
    scale = width[:, 0] * math.exp(log_gamma_scale(shape))
    steepness = shape * np.abs(np.expm1(base)) + 2 * math.sqrt(shape) + 2
    error = ULP * (24 + 4 * exponent + 2 * steepness * at.doubt)
    return Integral(value * scale, -exponent, error, covered * scale)


def gamma_upper(shape: float, at: Threshold, gap: Gap, *, slope: bool = False) -> Integral:
    """Return the hockey-stick integral of a gamma law above the threshold shape·e^ξ."""
    xi = at.xi
    base = np.maximum(xi, 0.0)
    start = np.maximum(xi, -_reach_down(shape, np.zeros_like(xi)))
    far = base + _reach_up(shape, base) - xi
    ends = (start - xi, far, np.zeros_like(xi))
    return _gamma_integral(shape, at, base, ends, gap, 1, slope=slope)


def gamma_lower(
    shape: float, at: Threshold, gap: Gap, depth: Floats | None = None, *, slope: bool = False
) -> Integral:
    """Return the hockey-stick integral of a gamma law below the threshold shape·e^ξ.

    With `depth` the integral ends at that distance below the threshold, else at zero.
    """
    xi = at.xi
    base = np.minimum(xi, 0.0)
    start = np.minimum(xi, _reach_up(shape, np.zeros_like(xi)))
    far = xi - (base - _reach_down(shape, base))
    beyond = np.zeros_like(xi)
    if depth is not None:
        beyond = np.maximum(depth - far, 0.0)
        far = np.minimum(far, depth)
    return _gamma_integral(shape, at, base, (xi - start, far, beyond), gap, -1, slope=slope)


def essential_rule(
    exponent: Callable[[Floats], Floats], lowest: float, step: float
) -> tuple[Floats, Floats]:
    """Return points and weights that integrate over all of e^{−exponent} that matters.

    Requires: a convex `exponent` with its least value between `lowest` and 0.
    """
    low, high = lowest, 0.0
    for _ in range(4):
        trial = np.linspace(low, high, 33)
        best = int(np.argmin(exponent(trial)))
        low, high = trial[max(best - 1, 0)], trial[min(best + 1, 32)]
    centre = 0.5 * (low + high)
    floor = float(exponent(np.array([centre]))[0]) + _DEPTH
    ends = []
    for sign in (-1, 1):
        # Doubling steps, no further than where e^ζ is still a float.
        reach = np.clip(centre + sign * step * 2.0 ** np.arange(1, 24), -1e6, 600.0)
        beyond = reach[exponent(reach) >= floor]
        trial = np.linspace(centre, beyond[0] if beyond.size else reach[-1], 33)
        ends.append(trial[int(np.argmax(exponent(trial) >= floor))])
    count = math.ceil((ends[1] - ends[0]) / step)
    if count > 120:  # a long, one-sided tail: the rule that crowds the ends is the shorter one
        points, weights = ends[0] + (ends[1] - ends[0]) * _LEFT, (ends[1] - ends[0]) * _WEIGHTS
        share = np.log(weights) - exponent(points)
        heavy = share > share.max() - _DEPTH
        return points[heavy], weights[heavy]
    points = np.linspace(ends[0], ends[1], max(count, 8) + 1)
    return points, np.full_like(points, points[1] - points[0])
