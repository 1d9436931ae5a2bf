"""Additive Wishart noise: χ²_m against χ²_m shifted by `ratio`, m = degrees − dimension + 1.

Sheffet 2015 (arXiv 1507.00056v1), Algorithm 2. The density ratio of G + N and G + vvᵀ + N depends
on N ~ Wishart(τ²I, k) only through vᵀN⁻¹v, and |v|²/(vᵀN⁻¹v) is τ²χ²_m. Releasing without the row
has unbounded loss where χ²_m falls below b; with the row the loss stays below b/2.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.hockey_stick import (
    Integral,
    Threshold,
    exp_minus_linear,
    gamma_lower,
    gamma_upper,
    threshold,
)
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.rounding import ULP

SUPPORTED = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)


@dataclass(frozen=True)
class AdditiveWishart(Profile):
    """A second-moment matrix plus Wishart(τ²I, `degrees`) noise.

    Requires: `ratio` ≥ B²/τ², B the bound on the rows' norm; `degrees` ≥ `dimension` + 2, so that
    the one-dimensional pair has a log-concave density and larger rows dominate smaller ones.
    Promises: add_remove: the exact δ(ε) of the worst pair, for each direction. replace: the
    two-step bound over a table with the row removed, or with both rows present, whichever is
    less. (Orthogonal rows of full norm are *not* the worst case.)
    """

    degrees: int
    dimension: int
    ratio: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        where = "profiles.AdditiveWishart"
        arguments.integer(self.dimension, "dimension", where, low=1)
        arguments.integer(self.degrees, "degrees", where, low=self.dimension + 2)
        arguments.positive(self.ratio, "ratio", where)
        relation = Neighbours.parse(self.neighbours, where, SUPPORTED)
        object.__setattr__(self, "neighbours", relation)

    @property
    def chi_square_degrees(self) -> int:
        """Return m, the degrees of freedom that one row's direction sees."""
        return self.degrees - self.dimension + 1

    @property
    def slow(self) -> bool:
        """Return True for replace, which takes milliseconds a point."""
        return self.neighbours is Neighbours.REPLACE

    def directions(self, epsilon: Floats) -> Directions:
        """Return both curves; the replace bound holds for both at once."""
        shape, shift = self.chi_square_degrees / 2, self.ratio / 2
        if self.neighbours is Neighbours.REPLACE:
            splits = (best_split(float(e), shape, shift) for e in epsilon)
            delta = np.array(
                [split_delta(s, float(e)) for s, e in zip(splits, epsilon, strict=True)]
            )
            return Directions(delta, delta)
        removing, adding = (
            _removing_step(epsilon, shape, shift),
            _adding_step(epsilon, shape, shift),
        )
        return Directions(_from_log(removing.log_delta), _from_log(adding.log_delta))


def _from_log(log_delta: Floats) -> Floats:
    """Return δ, rounded up; a δ below the smallest float is still above 0."""
    delta = np.exp(np.minimum(log_delta, 0.0)) * (1 + 8 * ULP)
    return np.where(log_delta > -np.inf, np.clip(delta, 1e-300, 1.0), 0.0)


class Step(NamedTuple):
    """ln δ of one step, and the logarithm of −dδ/dε."""

    log_delta: Floats
    log_slope: Floats


def _log_slope(integral: Integral) -> Floats:
    """Return ln(−dδ/dε); a slope that vanished beside its own δ is taken as the least float."""
    return np.log(np.maximum(integral.covered, 1e-300)) + integral.log_scale


@lru_cache(maxsize=64)
def _certain(shape: float, shift: float) -> float:
    """Return ln P(z < shift): there the loss of `_adding_step` is infinite, so all of it counts."""
    edge = np.array([math.log(shift / shape)])
    at = Threshold(edge, np.abs(edge) + 1)
    mass = gamma_lower(shape, at, lambda y, _: np.full_like(y, np.inf))
    return float(mass.log_upper()[0])


def _adding_step(epsilon: Floats, shape: float, shift: float) -> Step:
    """Return ln δ from z to z + shift, z ~ Gamma(shape): row absent → present.

    The loss (shape−1)·ln(z/(z − shift)) − shift falls with z, and is infinite below `shift`. The
    threshold is z₁ = shift/(1 − e^{−q}), q = (ε + shift)/(shape − 1).
    """
    power = shape - 1
    q = (epsilon + shift) / power
    covered = -np.expm1(-q)
    depth = np.where(q < 0.5, -np.log(covered), -np.log1p(-np.exp(-q)))
    mean = shift / power / covered  # z₁/power; −1 it is (e^{−q} − 1 + q − ε/power)/covered
    near = threshold(mean, exp_minus_linear(-q) / covered, epsilon / power / covered)
    edge = math.log(shift / shape)
    at = Threshold(
        np.where(q < 1, near.xi + math.log1p(-1 / shape), edge + depth),
        np.where(q < 1, near.doubt + 1 / shape, abs(edge) + depth + 1),
    )
    partial = gamma_lower(
        shape,
        at,
        lambda y, rest: power * np.log1p(-np.expm1(-y) / np.expm1(rest)),
        depth,
        slope=True,
    )
    log_delta = np.logaddexp(_certain(shape, shift), partial.log_upper())
    return Step(log_delta, _log_slope(partial))


def _removing_step(epsilon: Floats, shape: float, shift: float) -> Step:
    """Return ln δ from z + shift to z, z ~ Gamma(shape): row present → absent.

    The loss shift − (shape−1)·ln((z + shift)/z) rises with z towards `shift`. The threshold is
    z₂ = shift/(e^q − 1), q = (shift − ε)/(shape − 1).
    """
    power = shape - 1
    reachable = epsilon < shift
    q = np.where(reachable, (shift - epsilon) / power, 1.0)
    low = np.minimum(q, 1.0)
    odds = np.expm1(low)
    mean = shift / power / odds  # z₂/power; −1 it is (ε/power − (e^q − 1 − q))/(e^q − 1)
    drift = np.where(reachable, epsilon, 0.0) / power
    near = threshold(mean, drift / odds, exp_minus_linear(low) / odds)
    far = math.log(shift / shape) - q - np.log(-np.expm1(-q))
    at = Threshold(
        np.where(q < 1, near.xi + math.log1p(-1 / shape), far),
        np.where(q < 1, near.doubt + 1 / shape, 2 * q + np.abs(far) + 1),
    )
    share = (np.exp(-q) / -np.expm1(-q))[:, None]  # z₂/shift = 1/(e^q − 1)
    integral = gamma_upper(
        shape, at, lambda y, _: power * np.log1p(-np.expm1(-y) / (np.exp(-y) + share)), slope=True
    )
    return Step(
        np.where(reachable, integral.log_upper(), -np.inf),
        np.where(reachable, _log_slope(integral), -np.inf),
    )


class Split(NamedTuple):
    """A bound on a replacement, and how much of the loss it allows the removal."""

    log_delta: float
    fraction: float


def _two_steps(fraction: float, epsilon: float, shape: float, shift: float) -> tuple[Split, float]:
    """Return a bound on a replacement, and which way its split should move.

    First the new row is added, then the old one removed; the removal may lose t, a `fraction` of
    the most it can use: P ≤ e^{ε−t}·M + U(ε−t) and M ≤ e^t·Q + S(t), so δ ≤ U(ε−t) + e^{ε−t}·S(t).
    The first term rises with t, the second falls. The second result is the logarithm of the ratio
    of their slopes: 0 where the bound is least. (The other order is a sound bound too, but was
    never the lesser one: tests/privacy/test_profiles.py.)
    """
    t = np.array([fraction * min(epsilon, shift)])
    # Rounded down, so that the two steps together never lose more than ε.
    rest = np.maximum(np.nextafter(epsilon - t, -np.inf), 0.0)
    add, remove = _adding_step(rest, shape, shift), _removing_step(t, shape, shift)
    log_delta = np.logaddexp(add.log_delta, remove.log_delta + (epsilon - t))
    falling = np.logaddexp(remove.log_slope, remove.log_delta) + (epsilon - t)
    # Where nothing is left to fall, the removal has more than it can use.
    balance = float((add.log_slope - falling)[0]) if falling[0] > -np.inf else math.inf
    return Split(float(log_delta[0]), fraction), min(max(balance, -1e4), 1e4)


def best_split(epsilon: float, shape: float, shift: float, near: float | None = None) -> Split:
    """Return the split of the least two-step bound, looked for `near` a fraction if given.

    Any split is sound, so the search may be as rough as its result is tight. The bound has a sharp
    corner at large ε; the balance of its slopes is smooth and monotone, so its root is sought.
    """
    seen: dict[float, tuple[Split, float]] = {}

    def balance(fraction: float) -> float:
        if fraction not in seen:
            seen[fraction] = _two_steps(fraction, epsilon, shape, shift)
        return seen[fraction][1]

    low, high = 0.0, 1.0
    if near is not None:
        low, high, reach = near, near, 1e-3
        while low > 0 and balance(low) > 0:
            low, reach = max(low - reach, 0.0), 8 * reach
        while high < 1 and balance(high) < 0:
            high, reach = min(high + reach, 1.0), 8 * reach
    if balance(low) < 0 < balance(high):
        brentq(balance, low, high, xtol=1e-12, rtol=1e-11)
    return min(split for split, _ in seen.values())


def one_step_delta(epsilon: float, shape: float, shift: float) -> float:
    """Return δ(ε) for one row more or less, the larger of both directions, rounded up."""
    at = np.array([epsilon])
    removing, adding = _removing_step(at, shape, shift), _adding_step(at, shape, shift)
    return float(_from_log(np.maximum(removing.log_delta, adding.log_delta))[0])


def split_delta(split: Split, epsilon: float) -> float:
    """Return the two-step bound of a split as δ, rounded up."""
    # Adding ε to a logarithm rounds it by up to half a unit in the last place of ε.
    slack = 4 * ULP * (epsilon + abs(split.log_delta))
    return float(_from_log(np.array([split.log_delta + slack]))[0])
