"""The contract of a solver: one linear model of bounded rows and a guarantee in, coefficients out.

As with mechanisms, `prepare` sees public facts only; what it returns sees the rows, in `solve`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from dplinear.analyst.laws import Matrix
from dplinear.mechanisms.contract import Account, Method, Shape
from dplinear.noise.entropy import Entropy

Integers = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Design:
    """What is public about a regression before any row is read.

    Rows are integers of `shape`. `features` are the places of those that explain, the column of
    ones first if the model has an `intercept`; `target` is the place of what is explained. The
    features' cells have a squared norm of at most `feature_square`, the target's of at most
    `target_square`, in integer units. `indicators` says which features are 0 for most rows, and
    perhaps for all.
    """

    shape: Shape
    features: tuple[int, ...]
    target: int
    feature_square: int
    target_square: int
    intercept: bool
    indicators: tuple[bool, ...]

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return len(self.features)


class Sums(Protocol):
    """The exact second moments of rows. Private."""

    @property
    def integers(self) -> Integers:
        """The matrix."""


class Rows(Protocol):
    """A private table, as solvers see it: exact sums over its rows, as often as they ask."""

    def moments(self) -> Sums:
        """Return the exact second moments."""

    def bounded_moments(self, design: Design) -> Integers:
        """Return the exact second moments of a design's features and target, 0 elsewhere.

        Promises: in every row the features' squared norm is at most the design's `feature_square`
        and the target's square at most `target_square`, verified on the integers that are added.
        """

    def sums(self, statistics: Sequence[Any]) -> list[Integers]:
        """Return several exact sums over rows, in one pass."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A released model, in the cells' units, in the order of the design's features. Public.

    `noise` is the covariance of the coefficients that is due to privacy alone, `spread` that of
    noise and sampling together; either is None where the method cannot tell, and `unknown` says
    why there is no `spread`. `count` is an estimate of the number of rows, `weight` of the sum of
    the intercept's squared cells: the same, unless rows are clipped to a norm. A level
    that no row seems to hold has a coefficient of 0, and no noise.
    """

    coefficients: Matrix
    account: Account
    parameters: Mapping[str, Any]
    noise: Matrix | None = field(default=None, repr=False)
    spread: Matrix | None = field(default=None, repr=False)
    unknown: str | None = None
    count: float | None = None
    weight: float | None = None


class PreparedSolver(ABC):
    """A solver calibrated for a design, ready to solve it once.

    `account` is what it will guarantee, known before any row is read.
    """

    design: Design
    account: Account

    @abstractmethod
    def solve(self, rows: Rows, entropy: Entropy) -> Solution:
        """Return the released model of the rows."""


@dataclass(frozen=True, kw_only=True)
class Solver(Method):
    """A way of releasing one linear model. `passes`: whether it reads the rows more than once."""

    passes: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, design: Design) -> PreparedSolver:
        """Calibrate for public facts; raise if the guarantee cannot be kept."""
