"""Calibration: the least noise that keeps a guarantee, by inverting the mechanism's exact profile.

Every function returns noise on the private side: evaluated in arbitrary precision, δ(ε) ≤ δ holds
for the returned floats, and no noise smaller by a relative 1e-9 would do.
"""

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from scipy.optimize import brentq
from scipy.special import erfcx, gammainc

from dplinear import arguments
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles import gaussian as gaussian_profiles
from dplinear.privacy.profiles import sketch as sketch_profiles
from dplinear.privacy.profiles import wishart as wishart_profiles
from dplinear.privacy.profiles.gaussian import GridGaussian, gaussian_delta
from dplinear.privacy.profiles.sketch import Sketch
from dplinear.privacy.profiles.wishart import (
    AdditiveWishart,
    best_split,
    one_step_delta,
    split_delta,
)
from dplinear.privacy.roots import largest_private, smallest_private
from dplinear.privacy.rounding import ULP, down, up

if TYPE_CHECKING:
    from collections.abc import Callable

# Past a few thousand degrees more of them buy little, and G + N − kτ²I loses digits.
DEFAULT_MOST_DEGREES = 10_000
MOST_DEGREES = 10_000_000
# What sketches and Wishart noise can be calibrated for; far beyond any use, and tested throughout.
CHI_SQUARE_EPSILONS = (1e-4, 1e6)
CHI_SQUARE_DELTAS = (1e-15, 0.5)


def gaussian(guarantee: Guarantee, sensitivity: float) -> float:
    """Return the standard deviation σ of Gaussian noise for a statistic of L2 `sensitivity`.

    Requires: neighbours' statistics are at most `sensitivity` apart in L2. For `MIDP` the entry
    must move the statistic along a line, as a cell moves a linear statistic: any law on a segment
    of length Δ has variance at most Δ²/4.
    Promises: `ApproxDP`, `GDP`, `ZCDP` or `MIDP` as asked; σ is the least, rounded up.
    """
    where = "calibrate.gaussian"
    sensitivity = arguments.positive(sensitivity, "sensitivity", where)
    match guarantee:
        case GDP():
            return _above(sensitivity / guarantee.mu)
        case ZCDP():
            return up(sensitivity / math.sqrt(2 * guarantee.rho))
        case MIDP():
            return up(sensitivity / 2 / math.sqrt(math.expm1(2 * math.log(2) * guarantee.bits)), 8)
        case _:
            approximate = _approximate(guarantee, where, "Gaussian noise", "calibrate.laplace")
            return _above(sensitivity / _mu(approximate))


def laplace(guarantee: Guarantee, sensitivity: float) -> float:
    """Return the scale b of Laplace noise for a statistic of L1 `sensitivity`.

    Promises: `PureDP` or `ApproxDP` exactly, `ZCDP` through the ε that implies it; b is the least,
    rounded up.
    """
    where = "calibrate.laplace"
    sensitivity = arguments.positive(sensitivity, "sensitivity", where)
    match guarantee:
        case PureDP():
            return _above(sensitivity / guarantee.epsilon)
        case ApproxDP():
            # δ(ε) = 1 − e^{(ε − ratio)/2}, solved for the ratio and rounded down.
            ratio = guarantee.epsilon - 2 * math.log1p(-guarantee.delta)
            return up(sensitivity / ratio)
        case ZCDP():
            return up(sensitivity / _pure_loss(guarantee.rho))
        case _:
            hint = "ask for PureDP, ApproxDP or ZCDP, or use calibrate.gaussian"
            rule = "a PureDP, ApproxDP or ZCDP guarantee"
            raise arguments.wrong_type("guarantee", where, rule, guarantee, hint)


def grid_gaussian(guarantee: Guarantee, sensitivity: float, coordinates: float) -> float:
    """Return the variance σ² of discrete Gaussian noise, in grid units.

    Requires: an integer statistic; neighbours are at most `sensitivity` apart in L2 once each
    coordinate is divided by its own noise's share of σ; `coordinates` = Σ σ²/σᵢ² (their number,
    when all have the same variance).
    Promises: `ZCDP` exactly, or `ApproxDP` with the grid's own cost included; σ² ≥ 121.
    """
    where = "calibrate.grid_gaussian"
    sensitivity = arguments.positive(sensitivity, "sensitivity", where)
    coordinates = arguments.real(coordinates, "coordinates", where, low=1)
    if isinstance(guarantee, ZCDP):
        variance = up(sensitivity * sensitivity / (2 * guarantee.rho))
    else:
        hint = "calibrate.laplace"
        approximate = _approximate(guarantee, where, "discrete Gaussian noise", hint)

        def delta(mu: float) -> float:
            cost = up(coordinates * (mu / sensitivity) ** 2, 8)
            return GridGaussian(mu, cost).delta(approximate.epsilon)

        mu = largest_private(delta, approximate.delta, _mu(approximate))
        variance = up((sensitivity / mu) ** 2)
    if variance < gaussian_profiles.GRID_LEAST_VARIANCE:
        hint = "refine the grid: at a fraction of its step the same statistic is so much larger"
        rule = "at least eleven grid units of noise, for this guarantee"
        raise arguments.rejection("sensitivity", where, rule, sensitivity, hint)
    return variance


def grid_chain(guarantee: Guarantee, inverse_variance: float) -> Fraction:
    """Return the largest μ² = Σ Δ²/σ² that discrete Gaussian noise may come to.

    Requires: integer statistics, in a fixed list or an adaptive chain; `inverse_variance` ≥ Σ 1/σ²
    over all their coordinates, in grid units.
    Promises: `ZCDP` exactly, or `ApproxDP` with the grid's own cost included.
    """
    where = "calibrate.grid_chain"
    inverse_variance = arguments.positive(inverse_variance, "inverse_variance", where)
    if isinstance(guarantee, ZCDP):
        return 2 * Fraction(guarantee.rho)
    approximate = _approximate(guarantee, where, "discrete Gaussian noise", "calibrate.laplace")

    def delta(mu: float) -> float:
        return GridGaussian(mu, inverse_variance).delta(approximate.epsilon)

    return Fraction(largest_private(delta, approximate.delta, _mu(approximate))) ** 2


def sketch(
    guarantee: Guarantee,
    rows: float,
    bound: float,
    neighbours: str = Neighbours.ADD_REMOVE,
) -> float:
    """Return the ridge w² that makes a Gaussian sketch of `rows` rows private.

    Requires: data rows of norm at most `bound`; `rows` is public. The sketch is drawn from
    N(0, AᵀA + w²I).
    Promises: `ApproxDP` as asked; w² is the least, rounded up.
    """
    rows = arguments.integer(rows, "rows", "calibrate.sketch", low=1, high=MOST_DEGREES)
    return _ridge("calibrate.sketch", guarantee, rows, bound, neighbours)


def inverse_wishart(
    guarantee: Guarantee,
    degrees: float,
    bound: float,
    neighbours: str = Neighbours.ADD_REMOVE,
) -> float:
    """Return the ridge ψ that makes one draw M, M⁻¹ ~ Wishart((AᵀA + ψI)⁻¹, degrees), private.

    Requires: data rows of norm at most `bound`; `degrees` is public and at least the dimension.
    Promises: `ApproxDP` as asked; ψ is the least, rounded up.
    """
    where = "calibrate.inverse_wishart"
    degrees = arguments.real(degrees, "degrees", where, low=1, high=MOST_DEGREES)
    return _ridge(where, guarantee, degrees, bound, neighbours)


def additive_wishart(
    guarantee: Guarantee,
    dimension: int,
    bound: float,
    neighbours: str = Neighbours.ADD_REMOVE,
    scale: float | None = None,
    *,
    most_degrees: int = DEFAULT_MOST_DEGREES,
) -> tuple[int, float]:
    """Return (degrees k, scale τ) of the Wishart(τ²I, k) noise that makes AᵀA + N private.

    Requires: data rows of norm at most `bound`.
    Promises: `ApproxDP` as asked. With a `scale`: the least k. Without: the pair with the least
    off-diagonal noise τ²√k among k ≤ `most_degrees`, τ rounded up. Under add_remove that noise
    falls with k, so k is the cap; the replace bound may be best at fewer degrees.
    """
    where = "calibrate.additive_wishart"
    approximate = _approximate(guarantee, where, "Wishart noise", "calibrate.laplace")
    approximate = within_range(approximate, where)
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    bound = arguments.positive(bound, "bound", where)
    relation = Neighbours.parse(neighbours, where, wishart_profiles.SUPPORTED)
    if scale is not None:
        scale = arguments.positive(scale, "scale", where)
        steep, found = bound / scale, None
        if steep < MOST_DEGREES:  # beyond, no degrees suffice, and powers may be no floats
            found = _least_degrees(approximate, dimension, up(steep**2), relation)
        if found is None:
            hint = "more noise a degree needs fewer of them: raise the scale, or leave it out"
            rule = f"large enough for at most {MOST_DEGREES} degrees"
            raise arguments.rejection("scale", where, rule, scale, hint)
        return found, scale
    most_degrees = arguments.integer(
        most_degrees, "most_degrees", where, low=dimension + 2, high=MOST_DEGREES
    )
    degrees, ratio = (
        most_degrees,
        _wishart_ratio(approximate, most_degrees - dimension + 1, relation),
    )
    if relation is Neighbours.REPLACE:
        degrees, ratio = _least_noise(approximate, dimension, degrees, ratio)
    return degrees, up(bound / math.sqrt(ratio))


def _above(value: float) -> float:
    """Return the next float: one correctly rounded operation is less than that off."""
    return math.nextafter(value, math.inf)


def _approximate(guarantee: Guarantee, where: str, noise: str, pure: str) -> ApproxDP:
    """Return the guarantee as the (ε, δ), δ > 0, to which a profile is inverted."""
    rule = "an ApproxDP guarantee with δ above 0"
    if isinstance(guarantee, PureDP) or (isinstance(guarantee, ApproxDP) and guarantee.delta == 0):
        hint = f"{noise} has unbounded loss and is never pure: give a δ, or use {pure}"
        raise arguments.rejection("guarantee", where, rule, guarantee, hint)
    if not isinstance(guarantee, ApproxDP):
        hint = f"no theorem gives {noise} a guarantee of this kind: ask for ApproxDP(ε, δ)"
        raise arguments.wrong_type("guarantee", where, rule, guarantee, hint)
    return guarantee


def within_range(guarantee: ApproxDP, where: str) -> ApproxDP:
    """Return the guarantee, if chi-square profiles were tried out for its ε and δ."""
    (low, high), (least, most) = CHI_SQUARE_EPSILONS, CHI_SQUARE_DELTAS
    if low <= guarantee.epsilon <= high and least <= guarantee.delta <= most:
        return guarantee
    rule = f"within ε in [{low:g}, {high:g}] and δ in [{least:g}, {most:g}]"
    hint = "Gaussian and Laplace noise have no such limits"
    raise arguments.rejection("guarantee", where, rule, guarantee, hint)


def _pure_loss(rho: float) -> float:
    """Return the largest ε with ε·tanh(ε/2) ≤ ρ, rounded down."""
    top = rho + 2 * math.sqrt(rho) + 2
    root = float(brentq(lambda e: e * math.tanh(e / 2) - rho, 0.0, top, xtol=1e-300))
    # The search ends on either side of the root; what is returned was tested.
    while up(root * math.tanh(root / 2), 8) > rho:
        root = down(root)
    return root


def _mu(guarantee: ApproxDP) -> float:
    """Return the largest μ whose Gaussian profile keeps (ε, δ)."""
    epsilon, delta = guarantee.epsilon, guarantee.delta

    def roughly(log_mu: float) -> float:
        """Return ln δ by φ(a)·(R(a) − R(b)), R Mills' ratio: quick, but it cancels."""
        mu = math.exp(log_mu)
        a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        mills = float(erfcx(a / math.sqrt(2)) - erfcx(b / math.sqrt(2))) / 2
        return math.log(max(mills, 1e-300)) - a * a / 2 - math.log(delta)

    z = math.sqrt(2 * math.log(1 / delta))
    guess = max(2 * epsilon / (z + math.sqrt(z * z + 2 * epsilon)), delta)
    low, high = math.log(guess) - 3, math.log(guess) + 3
    if epsilon < 1e3 and roughly(low) < 0 < roughly(high):
        guess = math.exp(float(brentq(roughly, low, high, xtol=1e-11)))
    return largest_private(partial(gaussian_delta, epsilon), delta, guess, to_the_last=True)


def _ridge(where: str, guarantee: Guarantee, degrees: float, bound: Any, neighbours: Any) -> float:
    approximate = _approximate(guarantee, where, "a Gaussian sketch", "calibrate.laplace")
    approximate = within_range(approximate, where)
    bound = arguments.positive(bound, "bound", where)
    relation = Neighbours.parse(neighbours, where, sketch_profiles.SUPPORTED)
    # In the limit of many rows the pair is Gaussian, with μ² = rows·s²/2, or twice that.
    pairs = 2 if relation is Neighbours.REPLACE else 1
    guess = _mu(approximate) * math.sqrt(2 / (pairs * degrees))
    ratio = largest_private(
        lambda s: Sketch(degrees, s, relation).delta(approximate.epsilon),
        approximate.delta,
        guess,
        to_the_last=relation is Neighbours.ADD_REMOVE,
    )
    return up(bound * bound / ratio, 2)


def _wishart_ratio(guarantee: ApproxDP, m: int, relation: Neighbours) -> float:
    """Return the largest B²/τ² that is private with m chi-square degrees."""
    epsilon, shape = guarantee.epsilon, m / 2
    guess = min(_mu(guarantee) * math.sqrt(2 * m), m)
    if relation is Neighbours.ADD_REMOVE:
        return largest_private(
            lambda b: one_step_delta(epsilon, shape, b / 2), guarantee.delta, guess
        )
    search = _TwoSteps(epsilon)
    ratio = largest_private(lambda b: search.delta(shape, b / 2), guarantee.delta, guess / 2)
    # The profile, which looks for its split from scratch, has the last word.
    hair = ULP
    while AdditiveWishart(m, 1, ratio, relation).delta(epsilon) > guarantee.delta:
        ratio *= 1 - hair
        hair *= 4
    return ratio


class _TwoSteps:
    """The two-step bound along a search: each split is looked for near the last one."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon
        self.near: float | None = None

    def delta(self, shape: float, shift: float) -> float:
        """Return δ of a replacement, rounded up."""
        split = best_split(self.epsilon, shape, shift, self.near)
        self.near = split.fraction if split.log_delta < 0 else None
        return split_delta(split, self.epsilon)


def _least_noise(guarantee: ApproxDP, dimension: int, cap: int, ratio: float) -> tuple[int, float]:
    """Return the degrees up to `cap`, and their ratio, with the least √k/ratio under replace.

    That noise falls with k, or falls and then rises (tests/privacy/test_calibrate.py): then the
    degrees where it turns are found by bisection, to within a thousandth.
    """

    def falling(k: int, ratio: float) -> bool:
        """Return whether fewer degrees, at the same noise, would not be private.

        Slightly fewer; half, where so many of them hardly differ.
        """
        fewer = max(math.floor(k * (0.99 if k < 5000 else 0.5)), dimension + 2)
        same_noise = ratio * math.sqrt(fewer / k)
        profile = AdditiveWishart(fewer, dimension, same_noise, Neighbours.REPLACE)
        return fewer == k or profile.delta(guarantee.epsilon) > guarantee.delta

    if falling(cap, ratio):
        return cap, ratio
    low, high = dimension + 2, cap
    best = (cap, ratio)
    while high - low > max(1, high // 1000):
        middle = max(math.isqrt(low * high), low + 1)
        ratio = _wishart_ratio(guarantee, middle - dimension + 1, Neighbours.REPLACE)
        best = min(best, (middle, ratio), key=lambda pair: math.sqrt(pair[0]) / pair[1])
        low, high = (middle, high) if falling(middle, ratio) else (low, middle)
    return best


def _least_degrees(
    guarantee: ApproxDP, dimension: int, ratio: float, relation: Neighbours
) -> int | None:
    """Return the least k ≥ dimension + 2 that is private; None where it is beyond all that we try.

    The profile is defined for real degrees and falls with them, so a real root comes first; the
    integers beside it are then tested themselves.
    """
    epsilon, shift, mu = guarantee.epsilon, ratio / 2, _mu(guarantee)
    # In the limit of many degrees the pair is Gaussian, with μ² = ratio²/(2m); a replacement
    # is about twice as far apart.
    delta: Callable[[float, float], float]
    if relation is Neighbours.REPLACE:
        delta, guess = _TwoSteps(epsilon).delta, (ratio / mu) ** 2 + ratio
    else:
        delta, guess = partial(one_step_delta, epsilon), (ratio / mu) ** 2 / 4 + ratio
    # Below the ratio the row shows for certain: fewest degrees need P(χ²₃ < ratio) ≤ δ at least.
    if gammainc(1.5, shift) <= guarantee.delta and delta(1.5, shift) <= guarantee.delta:
        return dimension + 2
    if guess > 100 * MOST_DEGREES:  # far beyond where profiles were tried out
        return None
    # To about a tenth of a degree.
    shape = 1.5 + smallest_private(
        lambda x: delta(1.5 + x, shift), guarantee.delta, guess, within=0.05 / (guess + 1)
    )
    m = math.ceil(2 * shape)
    if m > MOST_DEGREES:
        return None
    while m > 3 and delta((m - 1) / 2, shift) <= guarantee.delta:
        m -= 1
    # The profile has the last word.
    while AdditiveWishart(m, 1, ratio, relation).delta(epsilon) > guarantee.delta:
        m += 1
    return m + dimension - 1
