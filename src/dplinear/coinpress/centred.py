"""The covariance of rows around a centre that is found privately, where bounds fit the columns.

Second moments about the middle of bounds cost what their longest row could add. Rows that are away
from the middle, but near each other, are short as seen from their own mean: so a little of the
budget buys that mean and their lengths, and the rest second moments of clipped differences.
docs/theory/centred-covariance.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.adaptive.noisy_sums import Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.coinpress.covariance import positive
from dplinear.coinpress.methods import CoinPressOutcome, LocationMethod
from dplinear.coinpress.windows import View, Views, placement_matrix
from dplinear.exact.mapped_sums import MappedGram, MappedNorms, MappedSum
from dplinear.exact.row_sums import Count
from dplinear.exact.score_sums import LengthHistogram
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Prepared
from dplinear.noise.entropy import Entropy
from dplinear.privacy.neighbours import Neighbours

COUNT = Fraction(1, 64)  # of μ², for the number of rows where that is private
MEAN = Fraction(1, 8)  # for the centre
LENGTHS = Fraction(1, 32)  # for how far rows are from it
SQUARES = Fraction(1, 32)  # for what clipping them took; the rest is the second moments'
METRICS = ("bounds", "euclidean")
_BANDS = 48  # of lengths, four to an octave
_BAND = 0.25
_CLIPPED = 6.0  # rows that are clipped, in deviations of the noise's norm for each
_MOST_CLIPPED = 0.8  # of all rows
_DOUBT = 2.0  # deviations of the counts' own noise
_LESS = 2.0  # times as long: where squared lengths are clipped that tell how much was lost
_SLACK = 1 + 2.0**-20  # so that rounding makes no corner of the bounds too long


@dataclass(frozen=True, eq=False)
class CentredEstimate:
    """A released covariance in the columns' own units, about a released `mean`.

    `errors` are the standard deviations of its entries that are due to the last sum's noise.
    `norm` is what differences were clipped to, in units of the metric.
    """

    mean: Floats
    values: Floats
    errors: Floats
    norm: float


@dataclass(frozen=True, kw_only=True)
class CentredCovariance(LocationMethod[CentredEstimate]):
    """Second moments around a released mean, of rows that are clipped to a released length.

    Requires: rows that can be passed over three times. `metric`: "bounds" measures columns by the
    widths of their bounds, which is fair to all; "euclidean" in their own units, which is how
    principal components weigh them (no column less than 1/(4√d) of the widest).
    Promises: `ApproxDP`, with the cost of the grid, or `ZCDP`, exactly, of everything it releases
    together, whatever rows hold: a count, a sum of rows, a histogram of their distances from the
    centre that these make; then, of differences clipped to a length that these make, the Gram
    matrix, and of differences clipped to twice that the sum of squares
    (docs/theory/centred-covariance.md). Numerics are exact. With noise that goes to 0 it is the
    covariance of the rows.
    """

    metric: str = "bounds"
    name: ClassVar[str] = "centred_covariance"

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.choice(self.metric, "metric", type(self).__name__, METRICS)

    def prepare(
        self, columns: int, groups: int = 1, *, count_varies: bool = False
    ) -> "PreparedCentred":
        """Calibrate the whole chain: a count, a sum, a histogram, a matrix, a sum of squares.

        `groups` and `count_varies` are as for CoinPress.
        """
        coordinates = 2 + columns + _BANDS + columns**2
        where = type(self).__name__
        budget = Budget.of(self.guarantee, coordinates, self.neighbours, where, groups)
        account = checks.exact_account(self.guarantee, budget.profile)
        return PreparedCentred(self, budget, account, Count(count_varies))


@dataclass(frozen=True, eq=False)
class PreparedCentred(Prepared[Views, CoinPressOutcome[CentredEstimate]]):
    """A chain with a budget, ready to run once; `account` is what it will guarantee."""

    method: CentredCovariance
    budget: Budget
    account: Account
    counted: Count

    def run(self, table: Views, entropy: Entropy) -> CoinPressOutcome[CentredEstimate]:
        """Release what it takes, and return the estimate."""
        view = table.through(table.low, table.high)
        sums = NoisySums(view, self.budget, entropy)
        root = _root(view, self.method.metric)
        found = _find_centre(sums, view, root, self.counted)
        estimate = _second_moments(sums, view, found)
        parameters = {
            "mu": self.budget.mu,
            "metric": self.method.metric,
            "clip": estimate.norm,
            "spent": float(1 - sums.remaining),
        }
        return CoinPressOutcome(estimate, self.account, parameters, found.count)


def _root(view: View, metric: str) -> Floats:
    """Return what each column is multiplied by, so that the widest has half a width of 1."""
    half = view.half
    if metric == "bounds":
        return np.asarray(1 / half)
    # Columns of next to no width would be lost in rounding, and cost next to nothing.
    widest = float(half.max())
    return np.asarray(np.maximum(1 / widest, 1 / (4 * math.sqrt(len(half)) * half)))


@dataclass(frozen=True, eq=False)
class _Centre:
    """A released number of rows, and a released centre of theirs, in the columns' own units.

    Columns are measured times `root`; there the centre's noise has the variance `variance` in each.
    """

    count: float
    point: Floats
    root: Floats
    variance: float

    @property
    def rows(self) -> float:
        """The number of rows to divide by."""
        return max(self.count, 1.0)

    def matrix(self, view: View) -> Floats:
        """Return what makes differences from the centre of cells."""
        return placement_matrix(view, np.diag(self.root), self.point)


def _find_centre(sums: NoisySums, view: View, root: Floats, counted: Count) -> _Centre:
    """Release how many rows there are, and their sum, about the middle of the bounds.

    The mean is shrunk to the middle by as much of its length as noise is expected to have added
    (James and Stein 1961), so that a budget that shows no mean leaves the centre where it was.
    """
    reach = root * view.half
    norm = float(np.linalg.norm(reach)) * _SLACK
    around = placement_matrix(view, np.diag(root), view.middle)
    total = MappedSum(view.shape, around, norm)
    count, sum_ = sums.ask([Query(counted, COUNT), Query(total, MEAN)])
    released = max(float(count.values[0]), 0.0)
    rows = max(released, 1.0)
    offset, error = sum_.values / rows, sum_.sigma / rows
    square = float(offset @ offset)
    kept = max(1 - len(root) * error**2 / square, 0.0) if square else 0.0
    point = view.middle + np.clip(kept * offset, -reach, reach) / root
    return _Centre(released, point, root, (kept * error) ** 2)


def _second_moments(sums: NoisySums, view: View, found: _Centre) -> CentredEstimate:
    """Release lengths and then, with all that is left, second moments of what is clipped."""
    lengths = _release_lengths(sums, view, found)
    norm = lengths.clip(_wanted(sums, len(found.root)), found.rows)
    gram = MappedGram(view.shape, found.matrix(view), norm)
    squares = MappedNorms(view.shape, found.matrix(view), (_LESS * norm) ** 2)
    answer, longer = sums.ask([Query(gram, sums.remaining - SQUARES), Query(squares, SQUARES)])
    size = len(found.root)
    whole = view.denominator == 1  # of rows with weights, no degree of freedom is a row
    divisor = max(found.rows - whole, 1.0)
    # The centre's error adds its square to every row's.
    image = positive(answer.values / divisor - found.variance * np.eye(size))
    clipped = _clipped(float(np.trace(answer.values)), float(longer.values[0]))
    back = np.outer(1 / found.root, 1 / found.root)
    # Half of the diagonal's variance off it.
    errors = clipped * answer.sigma / divisor * np.sqrt((1 + np.eye(size)) / 2)
    return CentredEstimate(found.point, clipped * image * back, errors * back, norm)


def _clipped(trace: float, squares: float) -> float:
    """Return what squares that are clipped less are of those that the matrix adds up.

    Without noise it is between 1, where nothing was clipped, and the square of how much less.
    """
    if squares <= trace:
        return 1.0
    return min(squares / trace, _LESS**2) if trace > 0 else _LESS**2


@dataclass(frozen=True, eq=False)
class _Lengths:
    """Noisy numbers of rows that are longer than each of `edges`, the widest of them first.

    They are counts of `bands`: rows longer than an edge, but not than the one before, or than
    `longest`, which no row is.
    """

    longest: float
    edges: Floats
    bands: Floats
    sigma: float

    def clip(self, wanted: float, rows: float) -> float:
        """Return the least edge that about so many rows are longer than, and never nearly all."""
        doubt = _DOUBT * self.sigma * np.sqrt(np.arange(1, len(self.edges) + 1))
        most = np.minimum(wanted + doubt, _MOST_CLIPPED * rows)
        many = np.flatnonzero(np.cumsum(self.bands) > most)
        wide = [self.longest, *self.edges.tolist()]
        return float(wide[int(many[0])] if len(many) else wide[-1])


def _release_lengths(sums: NoisySums, view: View, found: _Centre) -> _Lengths:
    """Release how many rows are how far from the centre, at most as far as bounds allow."""
    far = found.root * (np.abs(found.point - view.middle) + view.half)
    longest = float(np.linalg.norm(far)) * _SLACK  # no row within the bounds is longer
    edges = longest * 2.0 ** (-_BAND * np.arange(1, _BANDS + 1))
    ascending = tuple(edges[::-1].tolist())
    statistic = LengthHistogram(view.shape, found.matrix(view), ascending)
    (counts,) = sums.ask([Query(statistic, LENGTHS)])
    return _Lengths(longest, np.asarray(edges), counts.values[::-1], counts.sigma)


def _wanted(sums: NoisySums, size: int) -> float:
    """Return how many rows are best clipped, for all that a chain has left.

    Clipping c rows a little closer loses c of their squared lengths, and saves noise of the norm
    √(2d)·ν, ν the noise for rows of length 1: both weigh the same at c = √(2d)·ν. But what is lost
    is mostly length, and hardly direction, so more are clipped.
    """
    moved = MappedGram.replaced if sums.budget.neighbours is Neighbours.REPLACE else 1
    noise = math.sqrt(moved / float((sums.remaining - SQUARES) * sums.budget.square))
    return _CLIPPED * math.sqrt(2 * size) * noise
