"""Adaptive composition: noisy sums within one budget, each made from what earlier ones released.

docs/theory/noisy-sums.md has the proof that what is spent in such a chain adds up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dplinear import arguments
from dplinear.arrays import BigIntegers as Sums
from dplinear.arrays import Floats
from dplinear.exact.row_sums import RowSum
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.compose import BudgetExceededError, Filter
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.gaussian import GridGaussian
from dplinear.privacy.rounding import ceiling, root_ceiling, root_quotient

# Sums are scaled, not noise: each is brought to a grid on which noise of this one variance costs
# its share. So tables for drawing are made once, and no grid is coarse.
VARIANCE = Fraction(2**80)
LEAST_SHARE = Fraction(1, 2**14)
_SQUARES = (Fraction(1, 2**38), Fraction(2**40))  # of μ: within them a row moves 2^14 steps or more


@dataclass(frozen=True)
class Budget:
    """What a chain may spend.

    `square` is μ²: the most that Σ Δᵢ²/σᵢ² may come to. `inverse` is the most that Σ 1/σ² may,
    over all coordinates in units of their grids. `groups` is how many chains neighbours may move,
    each of which has this budget: the weights of a unit of privacy add up to at most 1 over all of
    them, and a row that is replaced may leave one and enter another.
    """

    square: Fraction
    inverse: Fraction
    neighbours: Neighbours
    groups: int = 1

    @classmethod
    def of(
        cls,
        guarantee: Guarantee,
        coordinates: int,
        neighbours: Neighbours,
        where: str,
        groups: int = 1,
    ) -> "Budget":
        """Return the budget that keeps a guarantee, for sums of so many coordinates in all.

        Requires: an `ApproxDP` or a `ZCDP` guarantee; raises where it is out of reach.
        """
        inverse = coordinates / VARIANCE
        square = calibrate.grid_chain(guarantee, ceiling(groups * inverse))
        square -= _rounding_of_groups(groups, inverse)
        if square < _SQUARES[0]:
            hint = "that much noise leaves nothing of any table: ask for a larger ε or ρ."
            raise arguments.rejection("guarantee", where, "within reach", guarantee, hint)
        return cls(min(square, _SQUARES[1]), inverse, neighbours, groups)

    @property
    def across(self) -> bool:
        """Whether what is replaced may leave one chain's rows and enter another's."""
        return self.groups > 1 and self.neighbours is Neighbours.REPLACE

    def sensitivity_squared(self, statistic: RowSum) -> int:
        """Return the most that a sum of the chains moves by between neighbours, in squared norm.

        From one chain to another a row moves two sums, each as a row more or less does.
        """
        within = statistic.sensitivity_squared(self.neighbours)
        if not self.across:
            return within
        return max(within, 2 * statistic.sensitivity_squared(Neighbours.ADD_REMOVE))

    def rounding(self, size: int) -> int:
        """Return the steps by which rounding so many numbers may move them, and all that moves.

        Where two chains move, either has a half of μ² to move with: √2 as much for each.
        """
        entries = 2 * size if self.across else size
        return math.isqrt(entries - 1) + 1

    @cached_property
    def mu(self) -> float:
        """Return μ, rounded up."""
        return root_ceiling(self.square)

    @property
    def profile(self) -> GridGaussian:
        """Return the profile of whatever all chains within this budget release together."""
        mu = root_ceiling(self.square + _rounding_of_groups(self.groups, self.inverse))
        return GridGaussian(mu, ceiling(self.groups * self.inverse), self.neighbours)


def _rounding_of_groups(groups: int, inverse: Fraction) -> Fraction:
    """Return what rounding may add to μ² where neighbours move the sums of several groups.

    Rounding moves a sum of each group by up to r steps, r² ≤ 4·size, however small the unit's part
    there is (docs/theory/groups.md).
    """
    return 4 * (groups - 1) * inverse


@dataclass(frozen=True)
class Query:
    """A sum to release, for a share of μ² (of at least 2^−14).

    Of a symmetric matrix the upper triangle is released, with half the variance off the diagonal.
    """

    statistic: RowSum
    share: Fraction


@dataclass(frozen=True, eq=False)
class Answer:
    """A released sum in the cells' units; `sigma` is its noise's standard deviation.

    For a symmetric matrix that is the diagonal's.
    """

    values: Floats
    sigma: float


class SummableTable(Protocol):
    """A private table, as chains see it."""

    @property
    def denominator(self) -> int:
        """How many units of weight a row of weight 1 has, and so how fine the units of sums are."""

    def sums(self, statistics: Sequence[Any]) -> list[Sums]:
        """Return several exact sums over rows, in one pass."""


@runtime_checkable
class Listener(Protocol):
    """A table that hears what is released of it, as an auditor's does."""

    def hear(self, answers: Sequence[Answer]) -> None:
        """Take note of the answers to the sums that were asked for last."""


class NoisySums:
    """Releases sums over the rows of one table, one pass after the other.

    Requires: queries made from public facts and from earlier answers alone. So are other views of
    the table (`rows` of a single `ask`): each of their rows is a function of one row of it.
    Promises: all answers together satisfy the budget's profile, and μ²/2-zCDP; a query that would
    pass the budget raises before any row is read. So does a sum that no replaced row moves, such as
    a public count, if rows are left out because of what they hold, or carry weights
    (`count_varies`). Numerics are exact.
    """

    def __init__(self, rows: SummableTable, budget: Budget, entropy: Entropy) -> None:
        self._rows, self._entropy = rows, entropy
        self.budget = budget
        self.filter = Filter((budget.square, budget.inverse), (Fraction(0), Fraction(0)))

    @property
    def spent(self) -> Fraction:
        """Return how much of μ² is spent."""
        return self.filter.spent[0]

    @property
    def inverse(self) -> Fraction:
        """Return what Σ 1/σ² has come to."""
        return self.filter.spent[1]

    @property
    def remaining(self) -> Fraction:
        """Return the share of μ² that is not spent."""
        return 1 - self.spent / self.budget.square

    def ask(self, queries: Sequence[Query], rows: SummableTable | None = None) -> list[Answer]:
        """Spend, pass over the rows once, or over another view of them, and release."""
        table = self._rows if rows is None else rows
        noises = [_Noise.of(query, self.budget, table.denominator) for query in queries]
        if getattr(table, "count_varies", False) and any(noise.scale is None for noise in noises):
            raise ArithmeticError("A sum that a replaced row may move is taken for public.")
        square = sum((noise.cost for noise in noises), Fraction(0))
        inverse = sum((noise.inverse for noise in noises), Fraction(0))
        refusal = "A chain of sums would spend more than its budget."
        self.filter = self.filter.after((square, inverse), refusal)
        sums = table.sums([query.statistic for query in queries])
        answers = [
            noise.release(query, exact, self._entropy)
            for noise, query, exact in zip(noises, queries, sums, strict=True)
        ]
        if isinstance(table, Listener):
            table.hear(answers)
        return answers


def growing_shares(steps: int, total: Fraction) -> list[Fraction]:
    """Return what each step may spend: later ones more, as residuals are wide at first."""
    weights = [Fraction(math.sqrt(step)) for step in range(1, steps + 1)]
    return [total * weight / sum(weights) for weight in weights]


@dataclass(frozen=True)
class _Noise:
    """The scale at which a sum meets its noise; None where no row can move the sum.

    `weights` is how many of the sum's units are one of the statistic's.
    """

    scale: Fraction | None
    cost: Fraction
    inverse: Fraction
    weights: int

    @classmethod
    def of(cls, query: Query, budget: Budget, weights: int = 1) -> "_Noise":
        """Choose the scale at which the noise costs no more than the query's share."""
        statistic = query.statistic
        square = budget.sensitivity_squared(statistic) * weights**2
        if not square:
            return cls(None, Fraction(0), Fraction(0), weights)
        enough = query.share >= LEAST_SHARE
        moved = math.isqrt(math.floor(query.share * budget.square * VARIANCE)) if enough else 0
        # Rounding what is scaled moves each of the differences by less than one step.
        rounding = budget.rounding(statistic.size)
        if moved <= rounding:
            raise BudgetExceededError("A sum cannot be released for next to nothing.")
        scale = Fraction(root_quotient(moved - rounding, Fraction(square)))
        return cls(scale, Fraction(moved) ** 2 / VARIANCE, statistic.size / VARIANCE, weights)

    def release(self, query: Query, exact: Sums, entropy: Entropy) -> Answer:
        """Add the noise on integers; round each number once."""
        unit = query.statistic.unit / self.weights
        if self.scale is None:
            return Answer(_cells(exact, unit), 0.0)
        step = unit / self.scale
        sigma = math.sqrt(VARIANCE) * float(step)
        scaled = _scale(exact, self.scale)
        if not query.statistic.symmetric:
            return Answer(_cells(scaled + _draw_noise(VARIANCE, len(scaled), entropy), step), sigma)
        d = math.isqrt(len(scaled))
        upper = np.triu_indices(d, 1)
        noise = np.zeros((d, d), object)
        noise[upper] = _draw_noise(VARIANCE / 2, len(upper[0]), entropy)
        noise += noise.T + np.diag(_draw_noise(VARIANCE, d, entropy))
        return Answer(_cells(scaled + noise.ravel(), step).reshape(d, d), sigma)


def _scale(exact: Sums, scale: Fraction) -> Sums:
    """Return integers times a scale, rounded to the nearest integers."""
    top, bottom = scale.numerator, scale.denominator
    rounded = [(2 * int(sum_) * top + bottom) // (2 * bottom) for sum_ in exact]
    return np.array(rounded, object)


def _draw_noise(variance: Fraction, size: int, entropy: Entropy) -> Sums:
    return discrete.gaussian(variance, size, entropy=entropy).astype(object)


def _cells(integers: Sums, unit: Fraction) -> Floats:
    """Return integers in the cells' units; Python divides those of any length with one rounding."""
    top, bottom = unit.numerator, unit.denominator
    return np.array([int(whole) * top / bottom for whole in integers], float)
