"""A last step with clips so wide that hardly a row is clipped: what intervals rest on.

The clips of a descent are close, which costs little noise; where errors are skewed and their spread
changes, or rows are long and the line does not fit, they move its minimum away from least squares.
At the end of a descent a histogram of the lengths of scores says how wide clips must be. One
gradient with those, and one Gram matrix, are a Newton step to the least-squares line itself; the
outer products of scores give the variance of its sampling error, whatever the variances of the
errors are (docs/theory/whitened-descent.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dplinear.adaptive.noisy_sums import Answer, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.descent.settings import Settings
from dplinear.descent.steps import MOST_RESIDUAL, Ending, Steps
from dplinear.exact.mapped_sums import InnerGram, MappedGram
from dplinear.exact.residual_sums import Gradient
from dplinear.exact.score_sums import LengthHistogram, ScoreGram, ScoreHistogram
from dplinear.exact.unit_scores import UnitScores

# Where bands of the histogram begin, in mean lengths times scales: half octaves.
EDGES = tuple(2.0 ** (half / 2 - 1) for half in range(21))
_PARTS = {  # of the share of all of this
    "tail": Fraction(15, 100),
    "lengths": Fraction(5, 100),
    "gram": Fraction(20, 100),
    "scores": Fraction(12, 100),
    "gradient": Fraction(48, 100),
}
_COST = 0.03  # of all of a line's variance, that the spending of a wide step may add to it
_USUAL_NOISE = 2.5  # times p/(n·μ²): the noise's variance over that of sampling errors, in a line
_CLEAR = 3.3  # deviations of noise, of two bands together, that say that there are rows
_LIKELY = 2.5  # the same, of three bands beyond those
_FEW = 2e-4  # of the rows: bands of fewer do not matter
_FALL = (0.05, 0.6)  # from band to band, the least and the most that is expected of a tail
_FASTER = 1.2  # the logarithm of that, from each half octave to the next: √2 in exponential tails
_BIAS = 0.25  # of the noise: what a clip may take off the gradient, if all of it went one way
_CLOSEST = 3.0  # mean lengths times scales: the closest clip, which clips few normal rows
# Of a squared scale, that the noise of the outer products may be: of rows, of units, which may
# count for less than a row each.
_SCORE_NOISE = (0.15, 0.01)
_GRAM_NOISE = 0.15  # of the curvature, that its noise may be for rows longer than are seen
_LEAST_LEVEL = 0.5  # of the expected curvature, that the mean of all directions is
_LEAST_PART = 0.3  # of the mean of all directions, that each has of curvature and of scores
_LONGEST = 10.0  # standard errors, that a step may be
_SEEN = 3.0  # deviations of the noise of a direction, that the mean of the units' scores must be
# Sampling deviations, and parts of the curvature, of noise beyond which a step says nothing of a
# line.
_MOST_NOISE, _MOST_BLUR = 25.0, 3.0


def wide_share(settings: Settings, size: int, rows: float, mu: float) -> Fraction:
    """Return the part of μ² that a wide step may spend, from public facts and released ones.

    What it spends makes the line itself noisier, in proportion to the part that noise has in the
    line's error. Where that is small beside the sampling error, the step can have much.
    """
    noise = _USUAL_NOISE * size / (rows * mu**2)
    share = min(float(settings.wide_most), _COST * (1 + 1 / noise))
    return Fraction(math.floor(share * 1000), 1000)


@dataclass(frozen=True, eq=False)
class WideStep:
    """Where a wide step leads, in whitened coordinates.

    `step` is the way from the end of the descent to the estimate of the least-squares line.
    `noise` and `spread` are roots of that estimate's covariances: of the noise alone, of noise and
    sampling. `width` is how many sampling deviations the noise of the gradient is; `blur`, what
    part of the curvature that of the Gram matrix is; `parameters`, what a certificate says of all
    this.
    """

    step: Floats
    noise: Floats
    spread: Floats
    width: float
    blur: float
    parameters: Mapping[str, float]

    @property
    def hidden(self) -> bool:
        """Whether the noise of clips so wide hides the line."""
        return self.width > _MOST_NOISE or self.blur > _MOST_BLUR

    @property
    def restless(self) -> bool:
        """Whether the step is so long that what it takes for curvature must be wrong."""
        covariance = self.spread @ self.spread.T
        return bool((np.abs(self.step) > _LONGEST * np.sqrt(np.diag(covariance))).any())

    def move(self, before: Floats) -> Floats:
        """Return how far to move the line itself, which had noise of the variances `before`.

        James and Stein's part of the step: what it shows beyond its own noise and that of the line,
        and three deviations more, so that lines which no clip has moved stay where they are.
        """
        size = len(self.step)
        expected = float(before.sum() + (self.noise**2).sum())
        doubt = expected * (1 + 3 * math.sqrt(2 / size))
        square = float(self.step @ self.step)
        return self.step * (1 - doubt / square if square > doubt else 0.0)


@dataclass(frozen=True)
class _Sums:
    """The sums that a wide step asks for where the descent ended, each with its share.

    Lengths are in mean lengths of a whitened row, scores in those times the residuals' scale.
    """

    steps: Steps
    scale: float
    mu: float
    shares: Mapping[str, Fraction]

    @property
    def unit(self) -> float:
        """A mean length times a scale, in the cells' units."""
        return self.steps.length * self.scale

    @property
    def by_unit(self) -> bool:
        """Whether the outer products are of units' scores, not of rows'."""
        return self.steps.settings.unit_scores > 0

    @property
    def residual(self) -> float:
        """Where the loss itself clips residuals: nowhere, or where Huber's does."""
        clip = self.steps.settings.residual_clip
        return MOST_RESIDUAL if clip is None else clip * self.scale

    def noise(self, name: str) -> float:
        """Return the noise of a sum that one row moves by 1."""
        return 1 / (self.mu * math.sqrt(self.shares[name]))

    def histograms(self) -> list[Query]:
        """Return the numbers of rows by the lengths of their scores, and by their own."""
        shape, map_, weights = self.steps.frame.design.shape, self.steps.map, self._weights
        lengths, scores = (
            tuple(edge * unit for edge in EDGES) for unit in (self.steps.length, self.unit)
        )
        return [
            Query(ScoreHistogram(shape, map_, weights, self.residual, scores), self.shares["tail"]),
            Query(LengthHistogram(shape, map_, lengths), self.shares["lengths"]),
        ]

    def gram(self, length: float) -> Query:
        """Return the curvature, of rows clipped at a length."""
        shape, map_, norm = (
            self.steps.frame.design.shape,
            self.steps.map,
            length * self.steps.length,
        )
        rows = MappedGram(shape, map_, norm)
        if self.residual < MOST_RESIDUAL:
            rows = InnerGram(shape, map_, norm, self._weights, self.residual)
        return Query(rows, self.shares["gram"])

    def gradient(self, clip: float) -> Query:
        """Return the gradient with scores clipped at so many units."""
        return Query(self._gradient(clip), self.shares["gradient"])

    def scores(self, clip: float) -> Query:
        """Return the outer products of scores, of rows or of units."""
        gradient = self._gradient(clip)
        outer = UnitScores(gradient) if self.by_unit else ScoreGram(gradient)
        return Query(outer, self.shares["scores"])

    def score_clip(self, clip: float) -> float:
        """Return where to clip scores for their outer products, to leave those little noise."""
        square = _SCORE_NOISE[self.by_unit] / self.noise("scores")
        return min(clip, math.sqrt(square) / self.steps.length)

    def most_length(self, seen: float) -> float:
        """Return the longest clip of rows: as rows are seen to be, or to leave little noise."""
        return max(seen, math.sqrt(_GRAM_NOISE / self.noise("gram")) / self.steps.length, 1.0)

    @property
    def _weights(self) -> Floats:
        return self.steps.residual_weights()

    def _gradient(self, clip: float) -> Gradient:
        leverage, shape = clip * self.unit / self.residual, self.steps.frame.design.shape
        return Gradient(shape, self.steps.map, self._weights, leverage, self.residual)


def take_wide_step(
    noisy_sums: NoisySums, steps: Steps, ending: Ending, share: Fraction, effect: float
) -> WideStep:
    """Release two histograms, then Gram matrix, gradient and scores, and step.

    Requires: `share`, the part of μ² for all of it, but for the share of units' scores in the
    settings; `effect`, the factor of sampling variances that is due to survey weights.
    """
    shares = {name: fraction * share for name, fraction in _PARTS.items()}
    shares["scores"] += steps.settings.unit_scores
    sums = _Sums(steps, ending.scale, noisy_sums.budget.mu, shares)
    tail, lengths = noisy_sums.ask(sums.histograms())
    rows = steps.row_count.rows
    clip = max(_reach(tail, rows, sums.noise("gradient"), 1), _CLOSEST)
    wanted = _reach(lengths, rows, sums.noise("gram"), 2)
    longest = min(wanted, sums.most_length(_end(lengths, rows)))
    own = sums.score_clip(clip)
    first = [sums.gram(longest), sums.gradient(clip)]
    if sums.by_unit:  # another pass, over units
        gram, gradient = noisy_sums.ask(first)
        (scores,) = noisy_sums.ask([sums.scores(own)])
    else:
        gram, gradient, scores = noisy_sums.ask([*first, sums.scores(own)])
    curvature, left = _denoise(gram, steps.white.expected, _LEAST_LEVEL)
    inverse = np.linalg.inv(curvature)
    step, one = inverse @ gradient.values, np.eye(len(gradient.values))
    covariance = _score_covariance(scores, _lost_square(tail, clip, own) * sums.unit**2)
    said = {"score_clip": clip, "length_clip": longest}
    if sums.by_unit:
        seen = float(np.trace(scores.values)) > _SEEN * scores.sigma * len(step) ** 1.5
        said |= {"clustered_errors": float(seen), "unit_scores_noise": scores.sigma}
        covariance = covariance if seen else ending.scale**2 * curvature  # the bound
    # What is left of the noise E of the Gram matrix moves the step by H⁻¹·E·step.
    misjudged = gram.sigma**2 / 2 * left * (float(step @ step) * one + np.outer(step, step))
    middle = effect * covariance + gradient.sigma**2 * one + misjudged
    return WideStep(
        step=step,
        noise=np.asarray(gradient.sigma * inverse),
        spread=inverse @ np.linalg.cholesky(middle),
        width=gradient.sigma / ending.scale,
        blur=gram.sigma * math.sqrt(len(step)) * len(step) / float(np.trace(curvature)),
        parameters=said,
    )


def _reach(histogram: Answer, rows: float, noise: float, power: int) -> float:
    """Return a clip that takes less off a sum than its noise hides, as far as can be seen.

    The sum is one of vectors as long as what the histogram counts, or of outer products of them, as
    `power` says; `noise` is that of such a sum whose clip is 1. Beyond the last band that clearly
    has rows their number is taken to fall a little faster from each half octave to the next, as it
    does in tails that are heavier than exponential ones.
    """
    counts, last = histogram.values, _last(histogram, rows)
    held = max(float(counts[last]), 0.0) + histogram.sigma
    before = max(float(counts[last - 1]), held) if last else held
    fall = min(max(held / before, _FALL[0]), _FALL[1])
    beyond = np.arange(1, len(EDGES))  # bands after the last
    tail = held * fall ** np.cumsum(_FASTER**beyond)
    middles = EDGES[0] * 2.0 ** ((last + beyond + 0.5) / 2)
    clips = EDGES[0] * 2.0 ** ((last + beyond) / 2)
    lost = [float(tail @ np.maximum(middles**power - clip**power, 0.0)) for clip in clips]
    enough = np.flatnonzero(np.array(lost) <= _BIAS * noise * clips**power)
    return float(clips[enough[0]] if len(enough) else middles[-1])


def _last(histogram: Answer, rows: float) -> int:
    """Return the last band that clearly has rows, or the first.

    Two bands together must clearly have some; then further ones, as long as the next three together
    are likely to have some: so a long thin tail is followed, and far bands of noise are not.
    """
    counts = np.append(histogram.values, np.zeros(3))
    pairs = counts[:-3] + counts[1:-2]
    clear = pairs > max(_CLEAR * math.sqrt(2) * histogram.sigma, _FEW * rows)
    last = int(np.flatnonzero(clear)[-1]) if clear.any() else 0
    likely = max(_LIKELY * math.sqrt(3) * histogram.sigma, _FEW * rows)
    while last < len(EDGES) - 1 and float(counts[last + 1 : last + 4].sum()) > likely:
        last += 1
    return last


def _end(histogram: Answer, rows: float) -> float:
    """Return where the last band ends that clearly has rows."""
    return float(EDGES[0] * 2.0 ** ((_last(histogram, rows) + 1) / 2))


def _lost_square(histogram: Answer, reach: float, clip: float) -> float:
    """Return what scores up to a reach hold beyond the square of a clip, by their histogram."""
    middles = np.array(EDGES) * 2**0.25
    counts = np.where(middles < reach, histogram.values, 0.0)  # no band's noise is cut off at 0
    return max(float(counts @ np.maximum(middles**2 - clip**2, 0.0)), 0.0)


def _denoise(matrix: Answer, usual: Floats, least: float) -> tuple[Floats, float]:
    """Return a positive matrix from a noisy one, and which part of the noise is left in it.

    What it shows beside a multiple of the `usual` diagonal is kept as far as it stands out from
    noise; the multiple is at least `least`, and no direction has less than a part of it.
    """
    size = len(usual)
    shape = np.diag(usual * (size / float(usual.sum())))
    level = max(float(np.trace(matrix.values)) / size, least)
    beside = matrix.values - level * shape
    noise = matrix.sigma**2 / 2 * size * (size + 1)
    seen = max(1 - noise / max(float((beside**2).sum()), 1e-300), 0.0)
    values, vectors = np.linalg.eigh(level * shape + seen * beside)
    found = (vectors * np.maximum(values, _LEAST_PART * level)) @ vectors.T
    return np.asarray(found), min(seen + 1 / size, 1.0)


def _score_covariance(scores: Answer, lost: float) -> Floats:
    """Return the outer products of scores as if they had not been clipped.

    What the clip took off them is put back where there is most: along the square of the matrix.
    """
    size = len(scores.values)
    found, _ = _denoise(scores, np.ones(size), scores.sigma / math.sqrt(size))
    square = found @ found
    return np.asarray(found + lost / float(np.trace(square)) * square)
