"""What a descent asks of a table before its first step: how many rows, where they are, how large.

Every answer is noisy and paid for; what is mostly noise is replaced by what is usual.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from dplinear.adaptive.noisy_sums import Answer, NoisySums, Query
from dplinear.analyst.design_effect import LEFT_OUT, SQUARES, released_effect
from dplinear.analyst.filled_in import FILLED, tell_sums
from dplinear.arrays import Floats, Indices
from dplinear.descent.diagonal import diagonal, expected_sizes
from dplinear.descent.frame import Frame
from dplinear.descent.settings import Settings
from dplinear.descent.whitening import Whitening, plain, whitening
from dplinear.exact.design import Design
from dplinear.exact.mapped_sums import MappedGram, MappedNorms, MappedSquares, MappedSum
from dplinear.exact.residual_sums import SumOfSquares
from dplinear.exact.row_sums import Count, FilledIn, LeftOut, RowSum, SquaredWeights

_TYPICAL = 1 / 16  # mean square of a cell, if bounds are four standard deviations from the middle
_DOUBT = 0.32  # of the typical mean square, at which noise counts as much as what is released
_FEW_BLOCKS, _FEW_NUMBERS = 16.0, 32  # categories and numbers, where most features are levels
_MANY_LEVELS = 30  # for sizes one by one; fewer were not simulated
_MATRIX_SHOWN = 3.0  # n·μ/p^1.5 from which a matrix shows all levels, if they are alike
SUM_CLIP = 0.6  # clip of a row's length for the sum, in units of √d
_DEVIATIONS = 3.0  # a level that shows no more than this of its noise is taken to have no rows
_STANDS_OUT = 16.0  # variances of the noise: the square of a mean that is no noise
_COUNT_ERROR = 0.02  # of the count, up to which a first look at it is enough
_STEEP = 12.0  # times the mean curvature: twice what steps without a matrix allow for
_PAST_EDGE = 2.0  # times d^(−2/3): of the noise's edge, how far noise alone may pass it
_SHOWN = 24.0  # n·μ/√p from which a first look may show a direction that holds most curvature
_PLENTY = 6.0  # times the noise's norm in every direction: then a first look at a matrix is enough


@dataclass(frozen=True)
class RowCount:
    """The number of rows: as released, and biased up, so that steps err towards small.

    `side` are further sums, by name: how many others lack a number that the model needs
    (`LEFT_OUT`), and the sum of squared survey weights (`SQUARES`), where they are released; and
    how many cells were filled in (`FILLED`), of as many columns as are `filled`.
    """

    released: float
    error: float
    side: Mapping[str, Answer] = field(default_factory=dict)
    filled: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, float]:
        """What a certificate says of rows that were left out, of cells filled in, of weights."""
        found: dict[str, tuple[float, float]] = {}
        for name, answer in self.side.items():
            names = self.filled if name == FILLED else (name,)
            values = map(float, answer.values)
            found |= {own: (value, answer.sigma) for own, value in zip(names, values, strict=True)}
        return tell_sums(found)

    @property
    def design_effect(self) -> float:
        """The factor of sampling variances that is due to unequal survey weights."""
        return released_effect(self.parameters, self.released)

    @property
    def rows(self) -> float:
        """The number to reckon with."""
        return max(self.released + self.error, 10.0)


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of a table before a descent.

    `scale` is the root mean square of the target's cell; `steps`, how many to take in these
    coordinates: more where no Gram matrix was bought.
    """

    row_count: RowCount
    frame: Frame
    scale: float
    white: Whitening
    steps: int


def survey(design: Design, sums: NoisySums, settings: Settings, *, target: bool = True) -> Survey:
    """Release the count, the means, the sizes of cells, and the Gram matrix if it is worth buying.

    Without `target` nothing of it is released, and its `scale` is the usual one.
    """
    row_count, frame = _release_centre(design, sums, settings, target=target)
    square, second = _squares(frame, sums, settings, row_count, target=target)
    frame = replace(frame, constant=math.sqrt(square))
    if target and _sparse(design, row_count.rows * sums.budget.mu):
        known = _release_diagonal(frame, sums, settings, row_count, square)
        return Survey(row_count, frame, math.sqrt(second), known, settings.plain_steps)
    white, steps = _release_whitening(frame, sums, settings, row_count, square), settings.steps
    if white is None:
        white, steps = plain(design.dimension, row_count.rows * square), settings.plain_steps
    return Survey(row_count, frame, math.sqrt(second), white, steps)


def _release_centre(
    design: Design, noisy_sums: NoisySums, settings: Settings, *, target: bool
) -> tuple[RowCount, Frame]:
    """Release the count and the means; a mean that is mostly noise is left at the middle."""
    size = design.dimension - design.intercept
    frame = Frame(design, np.zeros(size), 0.0)
    queries = [Query(Count(design.count_varies), settings.count_first)]
    if design.intercept:
        clip = min(SUM_CLIP * math.sqrt(size), math.sqrt(_row_square(design)))
        features = MappedSum(design.shape, frame.features, clip)
        queries.append(Query(features, settings.feature_sums))
        if target:
            whole = MappedSum(design.shape, frame.residual(np.zeros(size + 1))[None], 1.0)
            queries.append(Query(whole, settings.target_sum))
    asked = side_queries(design, settings)
    count, *sums = noisy_sums.ask([*queries, *asked.values()])
    side = dict(zip(asked, sums[len(sums) - len(asked) :], strict=True))
    sums = sums[: len(sums) - len(asked)]
    if count.sigma > _COUNT_ERROR * float(count.values[0]):
        count = again(
            noisy_sums, Count(design.count_varies), count, settings.count_first, settings.count
        )
    row_count = RowCount(max(float(count.values[0]), 0.0), count.sigma, side, design.filled)
    if not sums:
        return row_count, frame
    middle = _mean(sums[0], row_count.rows, doubt=1.5, worst=0.1)
    target_mean = float(_mean(sums[1], row_count.rows, doubt=4.0, worst=0.04)[0]) if target else 0.0
    return row_count, replace(frame, middle=middle, target_mean=target_mean)


class SideShares(Protocol):
    """The parts of μ² of sums beside the number of rows."""

    @property
    def left_out(self) -> Fraction:
        """For the number of rows that are left out."""

    @property
    def filled_in(self) -> Fraction:
        """For all counts of cells that are filled in."""

    @property
    def squared_weights(self) -> Fraction:
        """For the sum of squared survey weights."""


def side_queries(design: Design, shares: SideShares) -> dict[str, Query]:
    """Return what is asked for beside the number of rows, by name, each for its share."""
    queries = {LEFT_OUT: Query(LeftOut(), shares.left_out)} if design.leaves_out else {}
    if design.surveyed:
        queries[SQUARES] = Query(SquaredWeights(), shares.squared_weights)
    if design.filled:
        queries[FILLED] = Query(FilledIn(len(design.filled)), shares.filled_in)
    return queries


def _row_square(design: Design) -> float:
    """Return the most that the squared cells of a row's features add up to: a public number."""
    most = design.feature_square / design.shape.unit
    return most - 1 if design.intercept and most > 1 else most


def _squares(
    frame: Frame, sums: NoisySums, settings: Settings, row_count: RowCount, *, target: bool
) -> Sequence[float]:
    """Release the mean square of a feature's cell, and of the target's."""
    shape, size = frame.design.shape, len(frame.features)
    features = frame.features / math.sqrt(size)
    # Levels of a category exclude each other: the mean square of many is small in every row.
    ranges = [_Range().within(_row_square(frame.design) / size)]
    queries = [Query(MappedNorms(shape, features, ranges[0].most), settings.squares)]
    if target:
        ranges.append(_Range())
        weights = frame.residual(np.zeros(frame.design.dimension))
        clip = math.sqrt(ranges[1].most)
        queries.append(Query(SumOfSquares(shape, weights, clip), settings.squares))
    answers = zip(sums.ask(queries), ranges, strict=True)
    found = [_mean_square(answer, row_count.rows, its) for answer, its in answers]
    return found if target else [*found, _TYPICAL]


def _sparse(design: Design, visible: float) -> bool:
    """Return whether most features are levels, too many of them for a matrix at so many rows·μ."""
    levels, size = sum(design.indicators), design.dimension
    few = size - levels <= _FEW_NUMBERS and _blocks(design) <= _FEW_BLOCKS
    many = levels >= _MANY_LEVELS and 2 * levels > size
    return few and many and visible < _MATRIX_SHOWN * size**1.5


def _blocks(design: Design) -> float:
    """Return how many parts of a row are not 0: a level of each category, and all numbers."""
    numbers = design.dimension - sum(design.indicators) - design.intercept
    return max(_row_square(design) - numbers, 1.0) + 1


def _release_diagonal(
    frame: Frame, sums: NoisySums, settings: Settings, row_count: RowCount, square: float
) -> Whitening:
    """Release what each level holds, and the Gram matrix of the other features, which are few."""
    design, shape = frame.design, frame.design.shape
    among = np.array(design.indicators)
    levels = MappedSquares(shape, frame.matrix[among], _blocks(design) - 1)
    queries = [Query(levels, settings.gram_first)]
    numbers = int((~among).sum()) - design.intercept
    others = Answer(np.full((int(design.intercept),) * 2, row_count.rows * square), 0.0)
    if numbers:
        norm = math.sqrt(numbers * _Range().most + design.intercept * square)
        queries.append(Query(MappedGram(shape, frame.matrix[~among], norm), settings.gram_first))
    held, *gram = sums.ask(queries)
    sizes = expected_sizes(held.values, held.sigma)
    return diagonal(sizes, gram[0] if gram else others, among, _blocks(design))


def _release_whitening(
    frame: Frame, sums: NoisySums, settings: Settings, row_count: RowCount, square: float
) -> Whitening | None:
    """Release the Gram matrix of clipped rows; leave out levels that no row seems to hold.

    A part of its share is spent first. The rest goes to the steps where that shows no direction
    from another, or all of them well; but any level that may have no rows is worth the rest.
    None where the matrix would be mostly noise; but if a steep direction would show even so, which
    steps without a matrix would overshoot, a first look makes sure that there is none.
    """
    design, n = frame.design, row_count.rows
    size, clip = design.dimension, design.dimension * square
    signal = n * sums.budget.mu / size
    hidden = signal < settings.gram_from
    if hidden and not _may_show_steepness(signal, size, settings):
        return None
    gram = MappedGram(design.shape, frame.matrix, math.sqrt(clip))
    (answer,) = sums.ask([Query(gram, settings.gram_first)])
    if hidden:
        steepest = float(np.linalg.eigvalsh(answer.values)[-1])
        if steepest < steepness_shown(n * square, answer.sigma, size):
            return None

    def clean(answer: Answer) -> Whitening:
        kept = _nonempty(answer, design)
        kept = kept if len(kept) and not hidden else np.arange(design.dimension)
        matrix = answer.values[np.ix_(kept, kept)]
        white = whitening(matrix, answer.sigma, n * clip, row_count.error * clip)
        return white.among(kept, design.dimension)

    white = clean(answer)
    plenty = (white.seen == 0 and not hidden) or white.least > _PLENTY
    if plenty and len(_nonempty(answer, design)) == design.dimension:
        return white
    return clean(again(sums, gram, answer, settings.gram_first, settings.gram))


def _may_show_steepness(signal: float, size: int, settings: Settings) -> bool:
    """Return whether a small part of a matrix that is mostly noise may show a steep direction."""
    small = settings.gram_first < settings.gram
    return small and size > 2 * _STEEP and signal * math.sqrt(size) >= _SHOWN


def steepness_shown(mean: float, sigma: float, size: int) -> float:
    """Return the eigenvalue of a noisy matrix from which a steep direction stands out of it.

    Requires: symmetric Gaussian noise of standard deviation `sigma` on the diagonal; the other
    directions hold about `mean` each.
    Noise whose eigenvalues end at the edge E = σ√(2d) moves one that is x > E/2 above the others to
    x + E²/(4x) above them, and shows none that is less (Baik, Ben Arous and Péché's transition).
    Noise alone passes its edge by E·d^(−2/3)/2 times a variable of Tracy and Widom, which is above
    4 once in ten thousand matrices.
    """
    edge = sigma * math.sqrt(2 * size)
    above = max((_STEEP - 1) * mean, edge / 2)
    shown = above + edge**2 / (4 * above)
    return mean + max(shown, edge * (1 + _PAST_EDGE * math.pow(size, -2 / 3)))


def _nonempty(answer: Answer, design: Design) -> Indices:
    """Return the coordinates that a noisy Gram matrix does not show to be a level of no rows."""
    seen = np.diag(answer.values) > _DEVIATIONS * answer.sigma
    return np.flatnonzero(seen | ~np.array(design.indicators))


def again(sums: NoisySums, sum_: RowSum, first: Answer, spent: Fraction, share: Fraction) -> Answer:
    """Release a sum once more, for what is left of its share; return the mean by precision.

    Its noise is that of one release for the whole share.
    """
    if spent == share:
        return first
    (second,) = sums.ask([Query(sum_, share - spent)])
    weight = float(spent / share)
    values = weight * first.values + (1 - weight) * second.values
    return Answer(values, first.sigma * math.sqrt(weight))


def _mean(total: Answer, rows: float, *, doubt: float, worst: float) -> Floats:
    """Return a mean, shrunk to 0 by how much of it can be noise.

    0 where the noise is large, unless the mean stands out from it.
    """
    values, variance = total.values, len(total.values) * total.sigma**2
    length = float(values @ values)
    least = doubt if total.sigma < worst * rows else max(doubt, _STANDS_OUT)
    if length <= least * variance:
        return np.zeros(len(values))
    return np.asarray(np.clip(values / rows * (1 - doubt * variance / length), -1.0, 1.0))


@dataclass(frozen=True)
class _Range:
    """What a mean square may be, what it usually is, and what a row's is clipped at."""

    least: float = 0.004
    typical: float = _TYPICAL
    most: float = 0.25

    def within(self, most: float) -> "_Range":
        """Return the same range, in proportion, of squares that are never larger than `most`."""
        factor = min(most / self.most, 1.0)
        return _Range(factor * self.least, factor * self.typical, factor * self.most)


def _mean_square(total: Answer, rows: float, range_: _Range) -> float:
    """Return a mean square, shrunk to the typical one, and biased up by the noise."""
    error, typical = total.sigma / rows, range_.typical
    weight = 1 / (1 + (error / (_DOUBT * typical)) ** 2)
    found = weight * (float(total.values[0]) / rows + error) + (1 - weight) * typical
    return min(max(found, range_.least), range_.most)
