"""The local frame of a regression by CoinPress: middles, sizes and directions, found first."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dplinear.adaptive.noisy_sums import NoisySums, Query
from dplinear.arrays import Floats
from dplinear.coinpress import radii
from dplinear.coinpress.octaves import Boxes, Octaves, boxes
from dplinear.descent.frame import Frame
from dplinear.descent.survey import RowCount, again, side_queries
from dplinear.exact.design import Design
from dplinear.exact.mapped_sums import MappedGram, MappedNorms, MappedSum
from dplinear.exact.row_sums import Count
from dplinear.privacy.neighbours import Neighbours

STRUCTURES = ("identity", "covariance", "mean", "general")
_BETA = 0.1  # how often a normal row may be clipped
_RIDGE = 0.5  # of the noise's spectral norm
_WIDE = 1.5  # times what normal rows reach: where rows are clipped for their means
_MOST_SQUARE = 4.0  # of a feature, in boxes, that a row's mean is clipped at
_LEAST_SQUARE = 1 / 64
_NOISY = 0.5  # of a scale: means with more noise are left where they were
_FEWEST = 10.0
_CHEAP = 0.05  # of a whitened variance: the noise for which rows may be as long as they are
_DEVIATIONS = 3.0  # of noise: a level that shows no more is taken to have no rows
_SINGULAR = 1e-9
_UNEQUAL = 2.0  # times their common size, that features of "one size" may be


@dataclass(frozen=True)
class Shares:
    """Parts of μ², all public; the rounds have what the others leave."""

    count: Fraction = Fraction(20, 1000)
    octaves: Fraction = Fraction(50, 1000)
    more_octaves: Fraction = Fraction(100, 1000)  # only where columns were not found
    means: Fraction = Fraction(30, 1000)
    norms: Fraction = Fraction(20, 1000)
    first_gram: Fraction = Fraction(50, 1000)
    gram: Fraction = Fraction(170, 1000)
    squares: Fraction = Fraction(50, 1000)
    wide_clips: Fraction = Fraction(20, 1000)
    left_out: Fraction = Fraction(1, 1000)  # only where rows may be left out
    filled_in: Fraction = Fraction(8, 1000)  # only where cells may be filled in
    squared_weights: Fraction = Fraction(4, 1000)  # only of rows with survey weights


SHARES = Shares()


@dataclass(frozen=True, eq=False)
class LocalFrame:
    """Coordinates in which features are about uncorrelated and of equal size.

    `matrix` takes whitened coefficients to those of the frame. In whitened coordinates the
    features' second moments are about diagonal with entries `curvature`, and not above `most`;
    `clear` says whether noise leaves them well known, `assumed` whether the structure says so and
    nothing was released of it. `rows` is the released number of rows to
    reckon with, `row_count` the number itself; `target_scale` is about the target's deviation.
    """

    frame: Frame
    matrix: Floats
    curvature: Floats
    most: Floats
    clear: bool
    assumed: bool
    rows: float
    row_count: RowCount
    target_scale: float

    @property
    def map(self) -> Floats:
        """The map from a row's cells to its whitened features."""
        return np.asarray(self.matrix.T @ self.frame.matrix)

    def residual(self, theta: Floats) -> Floats:
        """Return the weights of a row's cells that give its residual."""
        return self.frame.residual(self.matrix @ theta)


def find_local_frame(sums: NoisySums, design: Design, structure: str) -> LocalFrame:
    """Release what the structure leaves open.

    Promises: a count, where it is private; octaves; means, unless they are taken to be 0; then the
    second moments of features in two steps, or their size alone where they are taken to be
    uncorrelated. Every sum is clipped by public numbers and earlier answers.
    """
    moving = design.intercept and structure in {"mean", "general"}
    columns = _numeric(design)
    octaves = Octaves(design.shape, [*columns, design.target])
    asked = side_queries(design, SHARES)
    counted, seen, *others = sums.ask(
        [
            Query(Count(design.count_varies), SHARES.count),
            Query(octaves, SHARES.octaves),
            *asked.values(),
        ]
    )
    count = max(float(counted.values[0]), 0.0)
    side = dict(zip(asked, others, strict=True))
    row_count = RowCount(count, counted.sigma, side, design.filled)
    rows = max(count, _FEWEST)
    found = boxes(seen.values, seen.sigma, rows, centred=not moving)
    if not found.found.all():
        seen = again(sums, octaves, seen, SHARES.octaves, SHARES.octaves + SHARES.more_octaves)
        found = boxes(seen.values, seen.sigma, rows, centred=not moving)
    frame, sizes = _initial_frame(design, found)
    if moving:
        frame = _release_centre(sums, frame, found, sizes, rows)
    assumed = structure in {"identity", "mean"}
    if assumed:
        matrix, curvature, most, clear = _release_scale(sums, frame, sizes, rows)
    else:
        matrix, curvature, most, clear = _release_whitening(sums, frame, sizes, rows)
    scale = float(found.scales[-1])
    return LocalFrame(frame, matrix, curvature, most, clear, assumed, rows, row_count, scale)


def _numeric(design: Design) -> list[int]:
    """Return the indices of features that are neither the constant nor indicators."""
    own = list(zip(design.features, design.indicators, strict=True))[int(design.intercept) :]
    return [index for index, indicator in own if not indicator]


def _initial_frame(design: Design, found: Boxes) -> tuple[Frame, Floats]:
    """Return rows around the middles of their boxes, and each coordinate's size.

    Indicators keep their zeros and their size.
    """
    own = list(design.indicators)[int(design.intercept) :]
    middles, sizes = np.zeros(len(own)), np.full(len(own), 0.5)
    numeric = np.flatnonzero(~np.array(own, bool)) if own else np.empty(0, int)
    middles[numeric], sizes[numeric] = found.middles[:-1], found.scales[:-1]
    ones = [1.0] if design.intercept else []
    return Frame(design, middles, float(found.middles[-1])), np.concatenate((ones, sizes))


def _release_centre(
    sums: NoisySums, frame: Frame, found: Boxes, sizes: Floats, rows: float
) -> Frame:
    """Release the means of features and target together; keep those that are not mostly noise."""
    target_mean = frame.residual(np.zeros(frame.design.dimension)) / found.scales[-1]
    stacked = np.vstack((frame.features / sizes[1:, None], target_mean))
    clip = _WIDE * radii.tail(len(stacked), _BETA)
    (answer,) = sums.ask([Query(MappedSum(frame.design.shape, stacked, clip), SHARES.means)])
    if answer.sigma > _NOISY * rows:
        return frame
    moved = answer.values / rows
    middle = np.clip(frame.middle + moved[:-1] * sizes[1:], -1.0, 1.0)
    target = frame.target_mean + float(moved[-1]) * float(found.scales[-1])
    return replace(frame, middle=middle, target_mean=min(max(target, -1.0), 1.0))


def _release_scale(
    sums: NoisySums, frame: Frame, sizes: Floats, rows: float
) -> tuple[Floats, Floats, Floats, bool]:
    """Release the mean square of all features together; their own sizes are taken to be equal."""
    first = int(frame.design.intercept)
    own = sizes[first:]
    if not len(own):
        return np.eye(1), np.ones(1), np.ones(1), True
    common = float(np.median(own))  # a column that was not found has a guess
    matrix = frame.features / (common * math.sqrt(len(own)))
    norms = MappedNorms(frame.design.shape, matrix, _MOST_SQUARE)
    (answer,) = sums.ask([Query(norms, SHARES.norms)])
    error = answer.sigma / rows
    square = min(max(float(answer.values[0]) / rows, _LEAST_SQUARE), _MOST_SQUARE)
    ones = [1.0] * first
    scale = np.concatenate((ones, np.full(len(own), common * math.sqrt(square))))
    one = np.ones(len(scale))
    return np.diag(1 / scale), one, _UNEQUAL * one, error < square / 4


def _release_whitening(
    sums: NoisySums, frame: Frame, sizes: Floats, rows: float
) -> tuple[Floats, Floats, Floats, bool]:
    """Release second moments in two steps, the second in the coordinates that the first gives.

    A level that no row seems to hold takes no part after the first.
    """
    root = np.diag(1 / sizes)
    indicators = np.array(frame.design.indicators)
    values, vectors, noise = _moments(sums, frame, root, rows, SHARES.first_gram)
    shown = np.einsum("ij,j,ij->i", vectors, values, vectors)
    kept = (shown > _DEVIATIONS * noise) | ~indicators
    kept = kept if kept.any() else ~kept
    root = root[kept]
    matrix = ((vectors * np.maximum(values, 0.0)) @ vectors.T)[np.ix_(kept, kept)]
    values, vectors = np.linalg.eigh(matrix)
    ridge = radii.sampling(len(root), rows) + _RIDGE * radii.noise_norm(noise, len(root))
    root = (vectors / np.sqrt(np.maximum(values, 0.0) + ridge)).T @ root
    values, vectors, noise = _moments(sums, frame, root, rows, SHARES.gram)
    values, norm = np.maximum(values, 0.0), radii.noise_norm(noise, len(root))
    ridge = max(_RIDGE * norm, _SINGULAR * float(values.max()), _SINGULAR)
    ridged = values + ridge
    whitening = root.T @ (vectors / np.sqrt(ridged))
    most = np.maximum((values + norm) / ridged, 1.0)
    return whitening, np.maximum(values, ridge) / ridged, most, bool(values.min() > 2 * norm)


def _moments(
    sums: NoisySums, frame: Frame, root: Floats, rows: float, share: Fraction
) -> tuple[Floats, Floats, float]:
    """Release the mean of clipped second moments: its eigenvalues and vectors, and its noise."""
    matrix = root @ frame.matrix
    clip = _moments_clip(sums, matrix, rows, share)
    gram = MappedGram(frame.design.shape, matrix, clip)
    (answer,) = sums.ask([Query(gram, share)])
    values, vectors = np.linalg.eigh(answer.values / rows)
    return values, vectors, answer.sigma / rows


def _moments_clip(sums: NoisySums, matrix: Floats, rows: float, share: Fraction) -> float:
    """Return how long whitened rows may be: as normal rows are, and longer where that is cheap.

    What a clip takes from few, long rows is curvature that the rounds do not expect. So it is as
    wide as a little noise allows, and no wider than any row is.
    """
    size = len(matrix)
    replaced = sums.budget.neighbours is Neighbours.REPLACE
    moved = math.sqrt(MappedGram.replaced if replaced else 1)
    noise = radii.noise_norm(moved / (rows * sums.budget.mu * math.sqrt(share)), size)
    longest = float(np.sqrt((matrix**2).sum(axis=0)).sum())
    return max(radii.tail(size, _BETA), min(math.sqrt(_CHEAP / noise), longest))
