"""Whitened descent: a few noisy steps towards the least-squares line, in coordinates of equal size.

A noisy Gram matrix gives the coordinates (`whitening.py`); each step releases the gradient of all
rows, their lengths and residuals clipped one by one, and moves as far as its noise deserves. Where
the budget is too small for a Gram matrix the steps are plain descent's, and where it is too small
for those the line is flat (docs/theory.md, "Whitened descent").
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.analyst.laws import Matrix
from dplinear.erm import residual_clip
from dplinear.erm.chain import Answer, Budget, Chain, Query
from dplinear.erm.frame import Frame
from dplinear.erm.mapped_sums import Leverages, MappedGram, MappedNorms, MappedSum
from dplinear.erm.residual_sums import Energy, Gradient, Residuals, Within
from dplinear.erm.row_sums import Count
from dplinear.erm.whitening import Whitening, plain, whitening
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.solver import Design, PreparedSolver, Rows, Solution, Solver
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP

_WHERE = "WhitenedDescent"
_HINTS = {
    GDP: "noise on a grid is ρ-zCDP with ρ = μ²/2 but not μ-GDP: ask for ZCDP(μ²/2), or ApproxDP.",
    MIDP: "bits are counted for single cells, and a row has many: ask for ZCDP or ApproxDP.",
}


class Shares:
    """Parts of μ²; the steps have what the others leave."""

    COUNT = Fraction(5, 100)
    FEATURE_SUMS = Fraction(18, 1000)
    TARGET_SUM = Fraction(12, 1000)
    SQUARES = Fraction(75, 10_000)  # each of two
    GRAM = Fraction(20, 100)
    LEVERAGE = Fraction(1, 100)
    SCALE = Fraction(2, 100)  # of all steps together
    INTERCEPT = Fraction(2, 100)


_STEPS = {True: 12, False: 20}  # with a Gram matrix, and without
_TYPICAL = 1 / 16  # mean square of a cell, if bounds are four standard deviations from the middle
_SQUARES = (0.004, 0.25)  # what it may be, and what a row's is clipped at
_LEVERAGE = 0.85  # clip of a row's length, in typical lengths
_SUM_CLIP = 0.6  # clip of a row's length for the sum, in units of √d
_GRAM_FULL = 2.6  # n·μ/p^1.5 from which the Gram matrix has its whole share
_GRAM_LEAST = Fraction(1, 100)  # share below which it is not bought
_MOST_RESIDUAL = 2.0  # no two targets are farther apart
_PRIOR = 0.5  # of the target's variance, that the features are expected to explain


@dataclass(frozen=True, kw_only=True)
class WhitenedDescent(Solver):
    """The least-squares line by noisy descent in whitened coordinates.

    Requires: integer rows within the bounds of the design; passes over them as often as it asks.
    Promises: `ApproxDP`, with the cost of the grid, or `ZCDP`, exactly, of everything it releases
    together. Numerics are exact.
    """

    name: ClassVar[str] = "whitened_descent"
    numerics: ClassVar[str] = "exact"
    passes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        arguments.choice(self.calibration, "calibration", _WHERE, ("exact",))
        rule = "an ApproxDP guarantee with ε and δ above 0, or a ZCDP one"
        if type(self.guarantee) in _HINTS:
            hint = _HINTS[type(self.guarantee)]
            raise arguments.mistyped("guarantee", _WHERE, rule, self.guarantee, hint)
        if not isinstance(self.guarantee, ZCDP):
            checks.approximate(self.guarantee, _WHERE, "normal noise", rule)

    def prepare(self, design: Design) -> "PreparedDescent":
        """Calibrate the whole chain."""
        p = design.dimension
        coordinates = p * p + (max(_STEPS.values()) + 1) * (p + 1) + 6
        budget = Budget.of(self.guarantee, coordinates, self.neighbours, _WHERE)
        return PreparedDescent(design, budget, checks.kept(self.guarantee, budget.profile))


@dataclass(frozen=True)
class PreparedDescent(PreparedSolver):
    """A chain with a budget, ready to run once."""

    design: Design
    budget: Budget
    account: Account

    def solve(self, rows: Rows, entropy: Entropy) -> Solution:
        """Release what it takes to descend, and return where that ends."""
        return _Run(self.design, Chain(rows, self.budget, entropy), self.account).solution()


@dataclass(frozen=True)
class _Census:
    """The number of rows: as released, biased up by `error` so that steps err towards small."""

    released: float
    error: float

    @property
    def rows(self) -> float:
        return max(self.released + self.error, 10.0)


class _Run:
    """One descent."""

    def __init__(self, design: Design, chain: Chain, account: Account) -> None:
        self.design, self.chain, self.account = design, chain, account
        self.mu = chain.budget.mu
        self.shape = design.shape
        self.size = design.dimension

    def solution(self) -> Solution:
        """Release everything in turn."""
        census, frame = self._centred()
        square, scale = self._scales(frame, census)
        frame = replace(frame, constant=math.sqrt(square))
        white = self._whitening(frame, census, square)
        walk = _Walk(self, frame, census, white, scale)
        coefficients = white.matrix @ walk.descend()
        frame = self._levelled(frame, coefficients, census, walk.scale)
        return Solution(frame.readout(coefficients), self.account, {}, count=census.released)

    def _centred(self) -> tuple[_Census, Frame]:
        """Release the count and the means; a mean that is mostly noise is left at the middle."""
        design = self.design
        frame = Frame(design, np.zeros(self.size - design.intercept), 0.0)
        queries = [Query(Count(), Shares.COUNT)]
        if design.intercept:
            clip = _SUM_CLIP * math.sqrt(self.size - 1)
            goal = frame.residual(np.zeros(self.size))[None]
            queries += [
                Query(MappedSum(self.shape, frame.features, clip), Shares.FEATURE_SUMS),
                Query(MappedSum(self.shape, goal, 1.0), Shares.TARGET_SUM),
            ]
        count, *sums = self.chain.ask(queries)
        census = _Census(max(float(count.values[0]), 0.0), count.sigma)
        if not sums:
            return census, frame
        middle = _mean(sums[0], census.rows, 1.5, 0.1)
        goal = _mean(sums[1], census.rows, 4.0, 0.04)
        return census, replace(frame, middle=middle, goal=float(goal[0]))

    def _scales(self, frame: Frame, census: _Census) -> tuple[float, float]:
        """Release the mean square of a feature's cell and of the target's."""
        target = frame.residual(np.zeros(self.size))
        features = frame.features / math.sqrt(len(frame.features))
        most = _SQUARES[1]
        answers = self.chain.ask(
            [
                Query(MappedNorms(self.shape, features, most), Shares.SQUARES),
                Query(Energy(self.shape, target, math.sqrt(most)), Shares.SQUARES),
            ]
        )
        first, second = (_mean_square(answer, census.rows) for answer in answers)
        return first, math.sqrt(second)

    def _whitening(self, frame: Frame, census: _Census, square: float) -> Whitening:
        """Release the Gram matrix of clipped rows, if the budget can buy one worth having."""
        p, n = self.size, census.rows
        share = Shares.GRAM * Fraction(min(1.0, n * self.mu / p**1.5 / _GRAM_FULL)) ** 2
        if share < _GRAM_LEAST:
            return plain(p, n * square)
        clip = p * square
        gram = MappedGram(self.shape, frame.matrix, math.sqrt(clip))
        (answer,) = self.chain.ask([Query(gram, share, symmetric=True)])
        return whitening(answer.values, answer.sigma, n * clip, census.error * clip)

    def _levelled(self, frame: Frame, coefficients: Matrix, census: _Census, scale: float) -> Frame:
        """Move the intercept to the mean of the residuals, clipped wide: errors may be skewed."""
        if not self.design.intercept:
            return frame
        clip = min(3 * scale, _MOST_RESIDUAL)
        residuals = Residuals(self.shape, frame.residual(coefficients), clip)
        (answer,) = self.chain.ask([Query(residuals, Shares.INTERCEPT)])
        total, noise, n = float(answer.values[0]), answer.sigma, census.rows
        if noise >= 0.02 * n or not total:
            return frame
        kept = max(0.0, 1 - 4 * (noise**2 + n * scale**2) / total**2)
        return replace(frame, goal=frame.goal + kept * total / n)


class _Walk:
    """The steps."""

    def __init__(
        self, run: _Run, frame: Frame, census: _Census, white: Whitening, scale: float
    ) -> None:
        self.run, self.frame, self.white = run, frame, white
        self.rows, self.count_error, self.released = census.rows, census.error, census.released
        self.scale = scale
        self.steps = _STEPS[white.seen > 0]
        self.clip = _LEVERAGE * math.sqrt(white.dimension / self.rows)
        self.map = white.matrix.T @ frame.matrix

    def descend(self) -> Matrix:
        chain, n, a, p = self.run.chain, self.rows, self.white.expected, self.run.size
        kept = self._kept()
        spare = Shares.SCALE + (Shares.INTERCEPT if self.run.design.intercept else 0)
        left = chain.left - spare
        t = residual_clip.best(1.5 * p / (n * float(left) * self.run.mu**2))
        place = np.zeros(p)
        prior = np.full(p, _PRIOR * n * self.scale**2 / self.white.dimension)
        spread, uncertain = prior, 0.3**2
        for _ in range(self.steps):
            clip = min(t * self.scale, _MOST_RESIDUAL)
            weights = self.frame.residual(self.white.matrix @ place)
            gradient, within = chain.ask(
                [
                    Query(
                        Gradient(self.run.shape, self.map, weights, self.clip, clip),
                        left / self.steps,
                    ),
                    Query(Within(self.run.shape, weights, self.scale), Shares.SCALE / self.steps),
                ]
            )
            self._rescale(within, uncertain)
            uncertain = 0.1**2
            flat = kept * float(residual_clip.inside(clip / self.scale))
            curve = flat * a
            gain = curve * spread / (curve**2 * spread + gradient.sigma**2)
            gain = np.minimum(gain, 1 / (flat * self.white.most))
            moved = place + gain * gradient.values
            spread = spread * (1 - gain * curve)
            fall = float(a @ (moved**2 - place**2)) / n / self.scale**2
            self.scale *= math.sqrt(min(max(1 - fall, 0.5), 1.0))
            place = moved
        recovered = 1 - float(a @ spread) / float(a @ prior)
        enough = min(1.0, max(0.0, (self.released * self.run.mu - 14) / 6))
        return np.asarray(place * min(1.0, max(0.0, (recovered - 0.15) / 0.2)) * enough)

    def _kept(self) -> float:
        """Release what the clip of the rows' lengths leaves of the curvature."""
        leverages = Leverages(self.run.shape, self.map, self.clip)
        (answer,) = self.run.chain.ask([Query(leverages, Shares.LEVERAGE)])
        worth = self.clip**2 / self.white.dimension
        found, error = float(answer.values[0]) * worth, answer.sigma * worth
        weight = error**2 / (error**2 + 0.08**2)
        return min(max(weight * 0.87 + (1 - weight) * found, 0.4), 1.2)

    def _rescale(self, within: Answer, uncertain: float) -> None:
        """Move the residuals' scale towards the one at which 68% of them lie within it."""
        n = self.rows
        share = min(max(float(within.values[0]) / n, 0.05), 0.97)
        error = (within.sigma**2 + 0.5 * self.count_error**2) / n**2 / 0.48**2 + 0.02**2
        change = -math.log(residual_clip.scale_of(share)) * uncertain / (uncertain + error)
        self.scale *= math.exp(min(max(change, -1.0), 0.3))


def _mean(total: Answer, rows: float, doubt: float, worst: float) -> Matrix:
    """Return a mean, shrunk to 0 by how much of it can be noise; 0 where the noise is large."""
    values, sigma = total.values, total.sigma
    length = float(values @ values)
    if sigma >= worst * rows or not length:
        return np.zeros(len(values))
    kept = max(0.0, 1 - doubt * len(values) * sigma**2 / length)
    return np.asarray(np.clip(values / rows * kept, -1.0, 1.0))


def _mean_square(total: Answer, rows: float) -> float:
    """Return a mean square, shrunk to the typical one, and biased up by the noise."""
    error = total.sigma / rows
    weight = 1 / (1 + (error / 0.02) ** 2)
    found = weight * (float(total.values[0]) / rows + error) + (1 - weight) * _TYPICAL
    return min(max(found, _SQUARES[0]), _SQUARES[1])
