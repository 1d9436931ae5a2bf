"""Whitened descent: a few noisy steps towards the least-squares line, in coordinates of equal size.

A noisy Gram matrix gives the coordinates (`whitening.py`); each step releases the gradient of all
rows, their lengths and residuals clipped one by one, and moves as far as its noise deserves. Where
the budget is too small for a Gram matrix the steps are plain descent's, and where it is too small
for those the line is flat (docs/theory.md, "Whitened descent").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.analyst.laws import Matrix
from dplinear.erm.chain import Answer, Budget, Chain, Query
from dplinear.erm.clips import FAR, Clip, Clips, before, heaviness, scales_within
from dplinear.erm.frame import Frame
from dplinear.erm.mapped_sums import MappedGram, MappedNorms, MappedSum
from dplinear.erm.residual_sums import Bands, Energy, Gradient, Residuals
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
    """Parts of μ²; the steps have what the others leave. Chosen by simulation (docs/theory.md)."""

    COUNT = Fraction(20, 1000)
    FEATURE_SUMS = Fraction(12, 1000)
    TARGET_SUM = Fraction(8, 1000)
    SQUARES = Fraction(5, 1000)  # each of two
    GRAM = Fraction(200, 1000)  # at the most
    BANDS = Fraction(20, 1000)  # of all steps together
    INTERCEPT = Fraction(20, 1000)


_STEPS = {True: 12, False: 24}  # with a Gram matrix, and without
_TYPICAL = 1 / 16  # mean square of a cell, if bounds are four standard deviations from the middle
_SQUARES = (0.004, 0.25)  # what it may be, and what a row's is clipped at
_SUM_CLIP = 0.6  # clip of a row's length for the sum, in units of √d
_GRAM_FULL = 5.0  # n·μ/p^1.5 from which the Gram matrix has its whole share
_GRAM_LEAST = Fraction(1, 100)  # share below which it is not bought
_MOST_RESIDUAL = 2.0  # no two targets are farther apart
_PRIOR = 0.5  # of the target's variance, that the features are expected to explain
_LEAST_SCALE = 2.0**-20  # of residuals, in cells
_MISJUDGED = 0.1  # of a step: how far off it may be because curvatures are expected, not known
_UNKNOWN = (
    "The noise leaves too little of this table for standard errors: the coefficients were shrunk "
    "towards a flat line. More rows, fewer features or a larger ε give both."
)


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
        coordinates = p * p + (max(_STEPS.values()) + 1) * (p + 2) + 6
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
    """The number of rows: as released, and biased up, so that steps err towards small."""

    released: float
    error: float

    @property
    def rows(self) -> float:
        return max(self.released + self.error, 10.0)


@dataclass(frozen=True, eq=False)
class _Path:
    """Where a descent ended, in whitened coordinates.

    `place` is expected to be `reached` times the best place, plus noise of variance `noise` and
    sampling errors of variance `sampling`; `scale` is that of the residuals.
    """

    place: Matrix
    reached: Matrix
    noise: Matrix
    sampling: Matrix
    unknown: Matrix
    prior: Matrix
    scale: float
    clip: Clip


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
        white, share = self._whitening(frame, census, square)
        levels = self._worth_levelling(census, scale)
        kept_back = Shares.BANDS + (Shares.INTERCEPT if levels else 0)
        shares = _shares(_STEPS[share > 0], self.chain.left - kept_back)
        path = _Walk(self, frame, census, white, shares).descend(scale)
        kept = _kept(path, white.expected, census.released * self.mu)
        coefficients = white.matrix @ (path.place * kept)
        if levels:
            frame = self._levelled(frame, coefficients, census, path.scale)
        known = bool((kept == 1).all())
        wide = white.matrix * np.sqrt(path.noise)
        wider = white.matrix * np.sqrt(path.noise + path.sampling + path.unknown)
        return Solution(
            frame.readout(coefficients),
            self.account,
            self._parameters(path, white, share),
            noise=frame.spread(wide @ wide.T),
            spread=frame.spread(wider @ wider.T) if known else None,
            unknown=None if known else _UNKNOWN,
            count=census.released,
        )

    def _centred(self) -> tuple[_Census, Frame]:
        """Release the count and the means; a mean that is mostly noise is left at the middle."""
        design = self.design
        frame = Frame(design, np.zeros(self.size - design.intercept), 0.0)
        queries = [Query(Count(), Shares.COUNT)]
        if design.intercept:
            clip = _SUM_CLIP * math.sqrt(self.size - 1)
            target = frame.residual(np.zeros(self.size))[None]
            queries += [
                Query(MappedSum(self.shape, frame.features, clip), Shares.FEATURE_SUMS),
                Query(MappedSum(self.shape, target, 1.0), Shares.TARGET_SUM),
            ]
        count, *sums = self.chain.ask(queries)
        census = _Census(max(float(count.values[0]), 0.0), count.sigma)
        if not sums:
            return census, frame
        middle = _mean(sums[0], census.rows, doubt=1.5, worst=0.1)
        goal = _mean(sums[1], census.rows, doubt=4.0, worst=0.04)
        return census, replace(frame, middle=middle, goal=float(goal[0]))

    def _scales(self, frame: Frame, census: _Census) -> tuple[float, float]:
        """Release the mean square of a feature's cell, and the scale of the target."""
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

    def _whitening(
        self, frame: Frame, census: _Census, square: float
    ) -> tuple[Whitening, Fraction]:
        """Release the Gram matrix of clipped rows, if the budget can buy one worth having."""
        p, n = self.size, census.rows
        share = Shares.GRAM * Fraction(min(1.0, n * self.mu / p**1.5 / _GRAM_FULL)) ** 2
        if share < _GRAM_LEAST:
            return plain(p, n * square), Fraction(0)
        clip = p * square
        gram = MappedGram(self.shape, frame.matrix, math.sqrt(clip))
        (answer,) = self.chain.ask([Query(gram, share)])
        return whitening(answer.values, answer.sigma, n * clip, census.error * clip), share

    def _worth_levelling(self, census: _Census, scale: float) -> bool:
        """Return whether the mean of the residuals would be more than noise."""
        noise = 3 * scale / (math.sqrt(Shares.INTERCEPT) * self.mu)
        return self.design.intercept and noise < 0.02 * census.rows

    def _levelled(self, frame: Frame, coefficients: Matrix, census: _Census, scale: float) -> Frame:
        """Move the intercept to the mean of the residuals, clipped wide: errors may be skewed."""
        clip = min(3 * scale, _MOST_RESIDUAL)
        residuals = Residuals(self.shape, frame.residual(coefficients), clip)
        (answer,) = self.chain.ask([Query(residuals, Shares.INTERCEPT)])
        total, noise, n = float(answer.values[0]), answer.sigma, census.rows
        doubt = 9 * (noise**2 + n * scale**2)  # three standard deviations
        kept = 1 - doubt / total**2 if total**2 > doubt else 0.0
        return replace(frame, goal=frame.goal + kept * total / n)

    def _parameters(self, path: _Path, white: Whitening, share: Fraction) -> dict[str, float]:
        return {
            "mu": self.mu,
            "steps": _STEPS[share > 0],
            "gram_share": float(share),
            "gram_seen": white.seen,
            "spent": float(1 - self.chain.left),
            "residual_scale": path.scale,
            "residual_clip": path.clip.residual,
            "gradient_clip": path.clip.product,
        }


class _Walk:
    """The steps: a Kalman filter, for which each gradient is a noisy look at the way left."""

    def __init__(
        self,
        run: _Run,
        frame: Frame,
        census: _Census,
        white: Whitening,
        shares: Sequence[Fraction],
    ) -> None:
        self.run, self.frame, self.census, self.white = run, frame, census, white
        self.shares = shares
        self.length = math.sqrt(white.dimension / census.rows)
        self.clips = Clips(run.size, run.size / (census.rows * float(sum(shares)) * run.mu**2))
        self.map = white.matrix.T @ frame.matrix

    def descend(self, scale: float) -> _Path:
        """Take the steps."""
        n, expected = self.census.rows, self.white.expected
        place, reached, noise = (np.zeros(self.run.size) for _ in range(3))
        prior = np.full(self.run.size, _PRIOR * n * scale**2 / self.white.dimension)
        unknown, doubt, far, heavy = prior, 0.3**2, 0.0, before()
        for step, share in enumerate(self.shares, 1):
            clip = self.clips.best(heavy)
            gradient, bands = self._ask(place, scale, clip, share)
            far += float(bands.values[1]) / n
            heavy = heaviness(far / step, bands.sigma / n / math.sqrt(step))
            new = self._rescaled(scale, bands, doubt)
            clip, scale, doubt = replace(clip, product=clip.product * scale / new), new, 0.1**2
            response = self.clips.response(clip, heavy)
            curve = response * expected
            gain = curve * unknown / (curve**2 * unknown + gradient.sigma**2)
            gain = np.minimum(gain, 1 / (response * self.white.most))
            moved = place + gain * gradient.values
            unknown = unknown * (1 - gain * curve) + (_MISJUDGED * (moved - place)) ** 2
            reached = reached + gain * curve * (1 - reached)
            noise = noise * (1 - gain * curve) ** 2 + (gain * gradient.sigma) ** 2
            fall = float(expected @ (moved**2 - place**2)) / n / scale**2
            scale = max(scale * math.sqrt(min(max(1 - fall, 0.5), 1.0)), _LEAST_SCALE)
            place = moved
        sampling = self.clips.square(clip, heavy) * scale**2 / (response**2 * expected)
        left = prior * (1 - reached) ** 2
        return _Path(place, reached, noise, reached**2 * sampling, left, prior, scale, clip)

    def _ask(
        self, place: Matrix, scale: float, clip: Clip, share: Fraction
    ) -> tuple[Answer, Answer]:
        """Release the gradient at a place, and how many residuals are small and large there."""
        shape, weights = self.run.shape, self.frame.residual(self.white.matrix @ place)
        leverage = clip.product / clip.residual * self.length
        gradient, bands = self.run.chain.ask(
            [
                Query(Gradient(shape, self.map, weights, leverage, clip.residual * scale), share),
                Query(Bands(shape, weights, scale, FAR * scale), Shares.BANDS / len(self.shares)),
            ]
        )
        return gradient, bands

    def _rescaled(self, scale: float, bands: Answer, doubt: float) -> float:
        """Move the residuals' scale towards the one that 68% of them are within."""
        n = self.census.rows
        share = min(max(float(bands.values[0]) / n, 0.05), 0.97)
        error = (bands.sigma**2 + 0.5 * self.census.error**2) / n**2 / 0.48**2 + 0.02**2
        change = -math.log(scales_within(share)) * doubt / (doubt + error)
        return max(scale * math.exp(min(max(change, -1.0), 0.3)), _LEAST_SCALE)


def _shares(steps: int, total: Fraction) -> list[Fraction]:
    """Return what each step may spend: later ones more, as residuals are wide at first."""
    weights = [Fraction(math.sqrt(step)) for step in range(1, steps + 1)]
    return [total * weight / sum(weights) for weight in weights]


def _kept(path: _Path, expected: Matrix, rows: float) -> Matrix:
    """Return what to multiply the place by, so that noise is not taken for a line.

    All of it where the filter expects to have found a third of the way; otherwise what the place
    shows beyond its noise. Nothing where `rows`·μ says that there is next to nothing to see.
    """
    gap = (1 - path.reached) ** 2 * path.prior + path.noise
    found = 1 - float(expected @ gap) / float(expected @ path.prior)
    whole = path.reached**2 * path.prior
    seen = float(expected @ (path.place**2 - path.noise)) / max(float(expected @ whole), 1e-300)
    signal = min(max(seen, 0.0), 1.0)
    shrunk = signal * path.reached * path.prior / (signal * whole + path.noise + 1e-300)
    trust = min(max((found - 0.15) / 0.2, 0.0), 1.0)
    enough = min(max((rows - 14) / 6, 0.0), 1.0)
    return np.asarray(np.maximum(np.minimum(shrunk, 1.0), trust) * enough)


def _mean(total: Answer, rows: float, *, doubt: float, worst: float) -> Matrix:
    """Return a mean, shrunk to 0 by how much of it can be noise; 0 where the noise is large."""
    values, sigma = total.values, total.sigma
    length, noise = float(values @ values), doubt * len(values) * sigma**2
    if sigma >= worst * rows or length <= noise:
        return np.zeros(len(values))
    return np.asarray(np.clip(values / rows * (1 - noise / length), -1.0, 1.0))


def _mean_square(total: Answer, rows: float) -> float:
    """Return a mean square, shrunk to the typical one, and biased up by the noise."""
    error = total.sigma / rows
    weight = 1 / (1 + (error / 0.02) ** 2)
    found = weight * (float(total.values[0]) / rows + error) + (1 - weight) * _TYPICAL
    return min(max(found, _SQUARES[0]), _SQUARES[1])
