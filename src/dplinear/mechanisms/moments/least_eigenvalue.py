"""Part of the budget spent on the least eigenvalue: a well-conditioned table needs no ridge.

Sheffet 2015 (arXiv 1507.00056v1), after Theorem 3.2 and after Theorem 5.1, in words only; what is
needed for a proof is in docs/theory/sketch.md.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.exact.shape import Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.moments.eigenvalues import SENSITIVITY, UNITS, least_units
from dplinear.mechanisms.moments.ridged import Fixed, Ready, Ridged, Setting
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.profiles.sketch import Sketch
from dplinear.privacy.rounding import ULP, ceiling, down, up

ADJUST = ("ridge", "rows")
_LARGEST_SCALE = 2**60
_LARGEST_RIDGE = 1e30  # beyond any table; far beyond this, profiles are beyond floats
_FAILURE = 0.1  # of δ: the chance that the bound is wrong


@dataclass(frozen=True)
class Variant:
    """What the caller chose: the share of ε for the query, and what its answer adjusts."""

    share: float
    adjust: str
    ridge: float
    most: int

    @classmethod
    def read(
        cls, where: str, share: float | None, adjust: str, ridge: float, most: int
    ) -> "Variant | None":
        """Return the variant, or None if no share is given."""
        arguments.choice(adjust, "adjust", where, ADJUST)
        ridge = arguments.real(ridge, "ridge", where, low=0, high=_LARGEST_RIDGE)
        if ridge and adjust == "ridge":
            hint = 'a ridge of your own goes with adjust="rows"; otherwise the noise sets it.'
            raise arguments.rejection("ridge", where, "0", ridge, hint)
        if share is None:
            if adjust != "ridge":
                hint = "set least_eigenvalue_share, such as 0.1, to spend that much of ε on it."
                raise arguments.rejection("adjust", where, "'ridge' without a query", adjust, hint)
            return None
        name = "least_eigenvalue_share"
        share = arguments.real(share, name, where, low=0, high=1, open_low=True, open_high=True)
        return cls(share, adjust, ridge, most)


@dataclass(frozen=True)
class Query:
    """A private lower bound on the least eigenvalue of every neighbour's smaller table.

    Promises: `epsilon`-DP, rounding included, whatever the number of rows: the answer without noise
    is `least_units`, of which `eigenvalues.SENSITIVITY` is proved. The bound is too large with
    probability at most `failure`.
    """

    epsilon: float
    failure: float

    @property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noise, in units."""
        return Fraction(SENSITIVITY) / Fraction(self.epsilon)

    @property
    def margin(self) -> int:
        """The least m, rounded up, with P(noise > m) ≤ `failure`."""
        scale = up(float(self.scale), 2)
        # P(noise ≥ m) = e^{−m/scale}/(1 + e^{−1/scale}) for m ≥ 1.
        tail = -math.log(self.failure) - math.log1p(math.exp(-1 / scale))
        return max(math.ceil(up(scale * tail, 16)) - 1, 0)

    def ask(self, units: int, square: Fraction, entropy: Entropy) -> float:
        """Return the bound, given the `least_units` of the table itself, and B².

        They are never too many. The neighbour may have a row less, and an eigenvalue less by B².
        """
        known = units + int(discrete.laplace(self.scale, 1, entropy=entropy)[0])
        return -ceiling(-Fraction(known - self.margin - UNITS, UNITS) * square)


@dataclass(frozen=True)
class AfterQuery(Profile):
    """A release that follows a query: ε and the chance of a wrong answer add up.

    Requires: the query is `spent`-DP; unless it fails, with probability at most `failure`, what
    follows has the profile `rest`, whatever the answer.
    Promises: δ(ε) ≤ rest(ε − spent) + failure.
    """

    rest: Profile
    spent: float
    failure: float
    neighbours: Neighbours = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", self.rest.neighbours)

    @property
    def slow(self) -> bool:
        """Return what the rest says."""
        return self.rest.slow

    def directions(self, epsilon: Floats) -> Directions:
        """Return both curves; 1 where the query alone has spent more than ε."""
        left = np.maximum(np.nextafter(epsilon - self.spent, -np.inf), 0.0)
        removing, adding = (
            np.where(epsilon < self.spent, 1.0, np.minimum((curve + self.failure) * (1 + ULP), 1.0))
            for curve in self.rest.directions(left)
        )
        return Directions(removing, adding)


@dataclass(frozen=True)
class Promised(Profile):
    """The worst that (ε, δ)-DP allows: a tell-tale with probability δ, else randomised response.

    Kairouz, Oh and Viswanath 2015 (arXiv 1311.0776v4), Theorem 3.4 and around it.
    """

    guarantee: ApproxDP
    neighbours: Neighbours

    def directions(self, epsilon: Floats) -> Directions:
        """Return the same curve twice."""
        loss, delta = self.guarantee.epsilon, self.guarantee.delta
        short = -np.expm1(np.minimum(epsilon - loss, 0.0)) / (1 + np.exp(-loss))
        curve = np.where(epsilon < loss, (delta + (1 - delta) * short) * (1 + 16 * ULP), delta)
        return Directions(np.minimum(curve, 1.0), np.minimum(curve, 1.0))


@dataclass(frozen=True)
class LeastEigenvalue(Ready):
    """A ridge, or a number of rows, that waits for the least eigenvalue.

    `floor` is what the least eigenvalue of G + ridge·I must be for `degrees` degrees of freedom and
    the guarantee `rest`.
    """

    ridged: Ridged
    variant: Variant
    query: Query
    rest: ApproxDP
    degrees: int
    floor: float
    account: Account

    @classmethod
    def of(cls, ridged: Ridged, variant: Variant, asked: ApproxDP, degrees: int) -> Self:
        """Split the budget, and calibrate for what the query leaves."""
        query = Query(asked.epsilon * variant.share, asked.delta * _FAILURE)
        if query.scale > _LARGEST_SCALE:
            rule, name = "large enough for noise below 2^60 units", "least_eigenvalue_share"
            raise arguments.rejection(name, ridged.where, rule, variant.share)
        left = math.nextafter(asked.epsilon - query.epsilon, 0.0)
        rest = ApproxDP(left, down(asked.delta - query.failure, 8))
        floor = ridged.floor(rest, degrees)
        inner = ridged.profile(degrees, floor)
        account = cls._account(asked, query, rest, inner, variant.adjust)
        return cls(ridged, variant, query, rest, degrees, floor, account)

    @staticmethod
    def _account(
        asked: ApproxDP, query: Query, rest: ApproxDP, inner: Sketch, adjust: str
    ) -> Account:
        """Return what query and draw keep together; the profile of both has the last word."""
        # Rows vary with the answer, so only what all of them keep can be promised.
        drawn = inner if adjust == "ridge" else Promised(rest, inner.neighbours)
        profile = AfterQuery(drawn, query.epsilon, query.failure)
        if profile.delta(asked.epsilon) > asked.delta:
            rule = "one that the query and what it leaves keep together"
            raise arguments.rejection("guarantee", "LeastEigenvalue", rule, asked)
        return checks.exact_account(asked, profile)

    def settle(self, statistic: Statistic, entropy: Entropy) -> Setting:
        """Ask for the least eigenvalue, and adjust the ridge or the rows."""
        shape = self.ridged.shape
        units = least_units(statistic.integers, shape.sensitivity)
        lower = self.query.ask(units, shape.bound**2, entropy)
        known = max(lower, 0.0)
        degrees, ridge = self.degrees, self.variant.ridge
        fallback = self.floor > down(ridge + known, 1)  # rounded down: a proof that it suffices
        if self.variant.adjust == "rows" and not fallback:
            degrees = self._most_degrees(down(ridge + known, 2))
        else:
            ridge = max(ridge, up(self.floor - known)) if fallback else ridge
        parameters = self._parameters(lower, fallback=fallback)
        return self.ridged.setting(degrees, ridge, ridge + known, self.account, **parameters)

    def _most_degrees(self, floor: float) -> int:
        """Return the most degrees of freedom that are private where H is nowhere below `floor`.

        To a thousandth; a sound number in any case.
        """
        low, high = self.degrees, self.variant.most
        while high - low > low >> 10:
            middle = max(low + 1, math.isqrt(low * high))
            low, high = (middle, high) if self._private(middle, floor) else (low, middle - 1)
        return low

    def _private(self, degrees: int, floor: float) -> bool:
        if degrees <= self.degrees:
            return False
        try:
            return self.ridged.profile(degrees, floor).delta(self.rest.epsilon) <= self.rest.delta
        except ArithmeticError:  # beyond floats: not known to be private
            return False

    def _parameters(self, lower: float, *, fallback: bool) -> dict[str, float | str | bool]:
        return {
            "lambda_lower": lower,
            "least_eigenvalue_share": self.variant.share,
            "least_eigenvalue_epsilon": self.query.epsilon,
            "failure": self.query.failure,
            "adjust": "ridge" if fallback else self.variant.adjust,
        }


def ready(ridged: Ridged, variant: Variant | None, asked: ApproxDP, degrees: int) -> Ready:
    """Calibrate: a ridge for any table, or one that waits for the least eigenvalue."""
    if variant is None:
        return Fixed.of(ridged, asked, degrees)
    return LeastEigenvalue.of(ridged, variant, asked, degrees)
