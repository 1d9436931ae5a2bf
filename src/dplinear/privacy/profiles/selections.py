"""Exponential mechanisms one after the other, each of which may depend on those before.

A step's log-likelihood ratios lie within ε₀ of each other. Given what the other steps can still do,
the worst such step takes two values only (Dong, Durfee and Rogers 2020, arXiv 1909.13830), so the
worst chain is found by one recursion, here on a grid, each step widened to the ends of its cell.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.profiles.concentrated import Concentrated
from dplinear.privacy.rounding import ceiling, up

_MOST_STEPS = 100  # beyond which the recursion would take seconds, and gains little
_CELLS = (30, 600)  # of ε₀, at least and at most
_WORK = 2000
_MOST_EACH = 50.0  # beyond which a step says nearly all there is to say


@dataclass(frozen=True)
class Selections(Profile):
    """A chain of `count` choices, each of which is `each`-DP with losses in an interval that long.

    Requires: `each`·(range of the qualities' change) as exponents; `count` and `each` fixed
    beforehand. `anchor` is the ε at which the bound is sharpest.
    Promises: an upper bound on δ(ε), the same in both directions: the least of that of the
    recursion, of count·each²/8-zCDP, and of the pure loss count·each.

    The recursion. Let h_j(ε) be δ(ε) of the worst j steps; h₀(ε) = (1 − e^ε)₊. From a step's
    likelihood ratio z = e^L the other j steps make at most E_Q[z·h_j(ε − ln z)]. The integrand is
    convex in z (it is a largest z·P(S) − e^ε·Q(S)), and z has mean 1, so if L lies in [b, a] the
    mean is largest for a law on the two ends: p·h_j(ε − a) + (1 − p)·h_j(ε − b), with p·e^−a +
    (1 − p)·e^−b = 1. With ε₀ = T·g and the largest loss in [i·g, (i + 1)·g], L lies in
    [(i − T)·g, (i + 1)·g]; so h_{j+1} is at most the largest of these over i = 0, ..., T − 1, and
    any larger h_j gives a larger bound. All of it stays on a grid of step g.
    """

    each: Fraction
    count: int
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    anchor: float = 1.0

    def __post_init__(self) -> None:
        where = "profiles.Selections"
        object.__setattr__(self, "each", arguments.rational(self.each, "each", where))
        arguments.integer(self.count, "count", where, low=1)
        arguments.real(self.anchor, "anchor", where, low=0)
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours, where))

    @property
    def loss(self) -> float:
        """The most that the losses add up to."""
        return ceiling(self.count * self.each)

    @cached_property
    def _plain(self) -> Concentrated:
        rho = ceiling(self.count * self.each**2 / 8)
        return Concentrated(rho, self.loss, self.neighbours)

    @cached_property
    def _table(self) -> tuple[int, float, Floats]:
        """Return the recursion's δ on a grid: the anchor's place, the step, the values."""
        cells = min(max(_WORK // self.count, _CELLS[0]), _CELLS[1])
        step = up(float(self.each) / cells)
        place = math.ceil((self.loss + self.anchor) / step)
        size = place + math.ceil((self.loss - self.anchor) / step) + 2
        bound = -np.expm1(np.minimum(self.anchor + step * (np.arange(size) - place), 0.0))
        highs = np.arange(1, cells + 1)
        lows = (highs - 1 - cells) * step
        chances = np.expm1(lows) / np.expm1(lows - highs * step)
        for _ in range(self.count):
            # Below the grid δ counts as 1, above it as at its end.
            wide = np.concatenate((np.ones(cells), bound, np.full(cells, bound[-1])))
            bound = np.zeros(size)
            for high, chance in zip(highs, chances, strict=True):
                after = wide[cells - high : cells - high + size]
                other = wide[2 * cells - high + 1 : 2 * cells - high + 1 + size]
                np.maximum(bound, chance * after + (1 - chance) * other, out=bound)
        # A step rounds a sum of two positive terms a few times.
        return place, step, np.minimum(bound * (1 + 1e-14 * (self.count + 1)), 1.0)

    def directions(self, epsilon: Floats) -> Directions:
        """Return the same bound twice: neither table is known to be the worse."""
        delta = self._plain.directions(epsilon).removing
        if self.count <= _MOST_STEPS and self.each <= _MOST_EACH and self.anchor < self.loss:
            place, step, bound = self._table
            away = (np.asarray(epsilon) - self.anchor) / step
            # Rounded down, for certain: δ falls with ε.
            places = place + np.floor(away - 1e-9 * np.abs(away)).astype(np.intp)
            delta = np.minimum(delta, bound[np.clip(places, 0, len(bound) - 1)])
        return Directions(delta, delta)

    def _pure_epsilon(self) -> float:
        return self.loss
