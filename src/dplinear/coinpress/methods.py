"""CoinPress as methods: a guarantee and a table's bounds in, a released mean or covariance out."""

import math
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from dplinear import arguments
from dplinear.adaptive.noisy_sums import Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.coinpress import locate
from dplinear.coinpress.covariance import CovarianceEstimate, Whitener, covariance
from dplinear.coinpress.mean import Ball, MeanEstimate, mean
from dplinear.coinpress.windows import Views
from dplinear.exact.row_sums import Count
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Mechanism, Prepared
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import ZCDP

MOST_STEPS = 50
COUNT = Fraction(1, 64)  # of μ², for the number of rows where that is private
_CENTRE = Fraction(1, 8)  # of μ², for the centre of rows whose scale is public
_LAST = Fraction(3, 4)  # of what is left, for the last step
RADIUS = 0.5  # standard deviations of each column, that a histogram may be off

Estimate = TypeVar("Estimate")
_SCALES = (1e-50, 1e100)


@dataclass(frozen=True, eq=False)
class CoinPressOutcome(Generic[Estimate]):
    """A released estimate; `count` is what is known of the number of rows."""

    estimate: Estimate
    account: Account
    parameters: dict[str, Any]
    count: float


@dataclass(frozen=True, eq=False)
class Start:
    """What is known of a table before the first step: Σ is within diag(`scale`²), roughly.

    `count` is the number of rows as released. The mean is thought to be within `radius` of the
    centre, in standard deviations.
    """

    count: float
    centre: Floats
    scale: Floats
    radius: float
    looks: int

    @property
    def rows(self) -> float:
        """The number of rows to divide by."""
        return max(self.count, 1.0)


def begin(sums: NoisySums, table: Views, scale: Floats | None, counted: Count) -> Start:
    """Release the number of rows and, where no scale is public, where columns are and how wide.

    A number of rows that is public, as `counted` says, costs nothing.
    """
    (count,) = sums.ask([Query(counted, COUNT)])
    released = max(float(count.values[0]), 0.0)
    if scale is None:
        found = locate.locate(sums, table, max(released, 1.0))
        radius = RADIUS * math.sqrt(len(found.centre))
        return Start(released, found.centre, found.scale, radius, found.looks)
    middle, half = (table.low + table.high) / 2, (table.high - table.low) / 2
    return Start(released, middle, scale, float(np.linalg.norm(half / scale)), 0)


def shares(steps: int, total: Fraction) -> list[Fraction]:
    """Return what each step may spend: the paper's split for two steps, and for three."""
    if steps == 1:
        return [total]
    return [(1 - _LAST) * total / (steps - 1)] * (steps - 1) + [_LAST * total]


@dataclass(frozen=True, kw_only=True)
class LocationMethod(Mechanism, Generic[Estimate]):
    """A way of releasing a mean or a covariance, by a chain of sums over views of a table."""

    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True
    for_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        where = type(self).__name__
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, where))
        rule = "an ApproxDP guarantee with ε and δ above 0, or a ZCDP one"
        if type(self.guarantee) in checks.GRID_HINTS:
            hint = checks.GRID_HINTS[type(self.guarantee)]
            raise arguments.wrong_type("guarantee", where, rule, self.guarantee, hint)
        if not isinstance(self.guarantee, ZCDP):
            checks.approximate(self.guarantee, where, "normal noise", rule)

    @abstractmethod
    def prepare(
        self, columns: int, groups: int = 1, *, count_varies: bool = False
    ) -> Prepared[Views, CoinPressOutcome[Estimate]]:
        """Calibrate the whole chain for public facts.

        `groups` is how many such chains neighbours may move. `count_varies` says that how much all
        rows count for is private under replace, too, as rows carry weights, may be left out or
        change their group.
        """


@dataclass(frozen=True, kw_only=True)
class CoinPress(LocationMethod[Estimate]):
    """An estimate in `steps` steps, each in coordinates that earlier ones released.

    Requires: `steps`, from 1 to 50; `scale`, public upper bounds for the columns' standard
    deviations (one for all, or one for each), or None: then they are found, for a part of the
    budget. Rows that can be passed over as often as it asks.
    Promises: `ApproxDP`, with the cost of the grid, or `ZCDP`, exactly, of everything it releases
    together, whatever rows hold. Numerics are exact.
    """

    steps: int = 2
    scale: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        where = type(self).__name__
        arguments.integer(self.steps, "steps", where, low=1, high=MOST_STEPS)
        if self.scale is not None:
            public = tuple(scales(self.scale, None, where).tolist())
            scale = public if np.ndim(self.scale) else public[0]
            object.__setattr__(self, "scale", scale)

    def prepare(
        self, columns: int, groups: int = 1, *, count_varies: bool = False
    ) -> "PreparedCoinPress[Estimate]":
        """Calibrate the whole chain: a count, looks at histograms, and the steps.

        Steps are one column's mean and one row of a matrix for each column; two more of them may
        find a centre.
        """
        where = type(self).__name__
        scale = None if self.scale is None else scales(self.scale, columns, where)
        most = int(locate.MOST / locate.FIRST) * sum(locate.BINS) * columns
        sums = (self.steps + 2) * (columns + 1) * columns
        budget = Budget.of(self.guarantee, 1 + most + sums, self.neighbours, where, groups)
        account = checks.exact_account(self.guarantee, budget.profile)
        return PreparedCoinPress(self, scale, budget, account, count_varies)

    @abstractmethod
    def estimate(self, sums: NoisySums, table: Views, start: Start) -> Estimate:
        """Take the steps."""


@dataclass(frozen=True, eq=False)
class PreparedCoinPress(Prepared[Views, CoinPressOutcome[Estimate]], Generic[Estimate]):
    """A chain with a budget, ready to run once; `account` is what it will guarantee."""

    method: CoinPress[Estimate]
    scale: Floats | None
    budget: Budget
    account: Account
    count_varies: bool = False

    def run(self, table: Views, entropy: Entropy) -> CoinPressOutcome[Estimate]:
        """Release what it takes, and return the estimate."""
        sums = NoisySums(table.through(table.low, table.high), self.budget, entropy)
        start = begin(sums, table, self.scale, Count(self.count_varies))
        estimate = self.method.estimate(sums, table, start)
        parameters = {
            "mu": self.budget.mu,
            "steps": self.method.steps,
            "looks": start.looks,
            "spent": float(1 - sums.remaining),
        }
        return CoinPressOutcome(estimate, self.account, parameters, start.count)


@dataclass(frozen=True, kw_only=True)
class CoinPressMean(CoinPress[MeanEstimate]):
    """The mean of each column."""

    name: ClassVar[str] = "coinpress_mean"

    def estimate(self, sums: NoisySums, table: Views, start: Start) -> MeanEstimate:
        """Take the steps, with all that is left."""
        ball = Ball(start.centre, start.radius, np.diag(1 / start.scale))
        return mean(sums, table, start.rows, ball, shares(self.steps, sums.remaining))


@dataclass(frozen=True, kw_only=True)
class CoinPressCovariance(CoinPress[CovarianceEstimate]):
    """The covariance of all columns, and their means; of columns with mean 0 if `centred`."""

    steps: int = 5
    centred: bool = False
    name: ClassVar[str] = "coinpress_covariance"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.centred, bool | np.bool_):
            raise arguments.wrong_type(
                "centred", type(self).__name__, "True or False", self.centred
            )

    def estimate(self, sums: NoisySums, table: Views, start: Start) -> CovarianceEstimate:
        """Find the centre, if only the scale is known; take the steps, with all that is left."""
        centre, root = start.centre, np.diag(1 / start.scale)
        if self.centred:
            centre = np.zeros_like(centre)
        elif self.scale is not None:
            ball = Ball(centre, start.radius, root)
            centre = mean(sums, table, start.rows, ball, shares(2, _CENTRE)).values
        first = Whitener(centre, root, known=bool(self.centred))
        return covariance(sums, table, start.rows, first, shares(self.steps, sums.remaining))


def scales(scale: Any, columns: int | None, where: str) -> Floats:
    """Return a public standard deviation for each column."""
    rule = "a number above 0, or one for each column"
    if isinstance(scale, numbers.Real):
        return np.full(columns or 1, _scale(scale, where))
    listed = scale.tolist() if isinstance(scale, np.ndarray) else scale
    if isinstance(listed, str) or not isinstance(listed, Sequence) or not listed:
        raise arguments.wrong_type("scale", where, rule, scale)
    if columns is not None and len(listed) != columns:
        raise arguments.rejection("scale", where, f"one number, or {columns}", f"{len(listed)}")
    try:
        return np.array([_scale(each, where) for each in listed])
    except arguments.ArgumentError as error:
        # Labels may stand here by mistake: no number of a list is told.
        raise arguments.rejection("scale", where, error.rule, type(scale)) from None


def _scale(value: Any, where: str) -> float:
    """Return one of them, if squares of what is divided by it are numbers."""
    low, high = _SCALES
    return arguments.real(value, "scale", where, low=low, high=high)
