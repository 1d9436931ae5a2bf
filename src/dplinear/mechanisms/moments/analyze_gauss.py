"""Symmetric Gaussian noise on a second-moment matrix, drawn exactly on its own integer grid.

Sheffet 2015 (arXiv 1507.00056v1), §2 and §6, after Dwork, Talwar, Thakurta and Zhang 2014, "Analyze
Gauss". docs/theory/analyze-gauss.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear import arguments
from dplinear.analyst.filled_in import COLUMNS, SENSITIVITY, is_count_of_cells, tell_sums
from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.arrays import Floats
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Measurement, MomentsMechanism, PreparedMoments
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ZCDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.gaussian import GRID_LEAST_VARIANCE, GridGaussian
from dplinear.privacy.rounding import ceiling, root_ceiling, up

_WHERE = "AnalyzeGauss"
# Wider noise is drawn on a coarser grid, so the sampler's own limit of 2^100 is never met.
_LARGEST_VARIANCE = 2.0**96
_SIDE = 256  # the squared sensitivity of the matrix over that of all side sums together
_FILLED = 128  # the same of counts of cells that rows are no shorter for
_SHORTER = 8  # the part of a cell's square by which a row is shorter, from which counts are free


@dataclass(frozen=True, kw_only=True)
class AnalyzeGauss(MomentsMechanism):
    """Normal noise on every entry: the least noise of all, but not always positive definite.

    Requires: an integer matrix, the sum of outer products of rows of norm at most 2^exponent.
    Promises: `ApproxDP`, with the cost of the grid, or `ZCDP`, exactly. Numerics are exact.
    Departs from the paper: off-diagonal variance is half of the diagonal's, as each such entry
    stands for two of the Frobenius norm; σ is the least by the exact profile. Further sums that a
    row moves by at most 1, such as the number of rows that are left out, may be released with the
    matrix, as further coordinates of the same noise; they make it .2% wider. Counts of cells that
    were filled in make it no wider where rows with such cells are shorter, and .4% where not.
    """

    name: ClassVar[str] = "analyze_gauss"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True
    for_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        self._check_guarantee()

    def _check_guarantee(self) -> None:
        if isinstance(self.guarantee, ZCDP):
            return
        rule = "an ApproxDP guarantee with ε and δ above 0, or a ZCDP guarantee"
        hint = checks.GRID_HINTS.get(type(self.guarantee), "")
        if hint:
            raise arguments.wrong_type("guarantee", _WHERE, rule, self.guarantee, hint)
        checks.approximate(self.guarantee, _WHERE, "normal noise", rule)

    def prepare(self, shape: Shape) -> "PreparedGauss":
        """Choose the variances, in units of the grid, and the step of the grid."""
        return self._prepare(shape, 1, ())

    def prepare_with(
        self, shape: Shape, side: tuple[str, ...], relief: Sequence[int] = ()
    ) -> "PreparedGauss":
        """Do so for the matrix and further sums: `side` names them.

        Neighbours move each of them by at most 1. The last of them, as many as there are `relief`,
        are counts of cells: what a row that counts there adds to the matrix has a norm that is less
        by so many integers for each of them.
        """
        return self._prepare(shape, 1, side, relief)

    def prepare_groups(
        self, shape: Shape, moved: int, side: tuple[str, ...] = ()
    ) -> "PreparedGauss":
        """Choose them for matrices of which neighbours move at most so many.

        With each of them the sums that `side` names are released: numbers that are never negative,
        and that a row, or all rows of a unit, move by at most 1 in all groups together.
        """
        return replace(self._prepare(shape, moved, side), of_groups=True)

    def _prepare(
        self, shape: Shape, moved: int, side: tuple[str, ...], relief: Sequence[int] = ()
    ) -> "PreparedGauss":
        weight = self._weight(shape)
        for step in range(0, 256, 4):
            alone = Difference.of(shape, step, self.neighbours, weight, moved)
            apart = alone.with_side(len(side) - len(relief)).with_filled(relief)
            noise = self._noise(apart)
            if noise.variance <= _LARGEST_VARIANCE:
                scales = apart.side_scale, apart.filled_scales, apart.norm
                return PreparedGauss(
                    shape, step, noise.variance, weight, noise.account, side, *scales
                )
        hint = "that much noise leaves nothing of any table: ask for a larger ε or ρ."
        raise arguments.rejection("guarantee", _WHERE, "within reach", self.guarantee, hint)

    def _weight(self, shape: Shape) -> int:
        """Return what the variance is divided by off the diagonal."""
        return 2 if shape.dimension > 1 else 1

    def _noise(self, difference: "Difference") -> "Noise":
        least = GRID_LEAST_VARIANCE * difference.weight
        variance = least
        profile = difference.profile(least, self.neighbours)
        if not profile.keeps(self.guarantee):
            variance = calibrate.grid_gaussian(
                self.guarantee, difference.norm, difference.coordinates
            )
            variance = max(variance, least)
            if variance > _LARGEST_VARIANCE:  # perhaps infinite; drawn on a coarser grid
                return Noise(variance, checks.exact_account(self.guarantee, profile))
            profile = difference.profile(variance, self.neighbours)
        return Noise(variance, checks.exact_account(self.guarantee, profile))


@dataclass(frozen=True)
class Noise:
    """The variance on the diagonal, in units of the grid, and what it promises."""

    variance: float
    account: Account


@dataclass(frozen=True)
class Difference:
    """How far apart neighbours are, on a grid of 2^`step` units, off-diagonals `weight` times.

    A matrix vvᵀ has Frobenius norm |v|², and uuᵀ − vvᵀ at most √2 times the larger (in one
    dimension: at most the larger, unless they are in two of the matrices that are `moved`, which
    are √2 apart together). Rounding to the coarser grid moves the difference of two entries by less
    than 1, in each of those matrices. `side` further sums are released with each matrix, in units
    of 1/`side_scale`. In all matrices together each moves by at most so many, `ends` times (a row
    that changes its group is less in one and more in another), and by one more in each for its
    rounding; the squares of all that moves add up (docs/theory/groups.md). Counts of cells that
    were filled in have scales of their own (`with_filled`).
    """

    shape: Shape
    step: int
    weight: int
    norm: float
    moved: int = 1
    side: int = 0
    side_scale: int = 1
    ends: int = 1
    filled_scales: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, shape: Shape, step: int, neighbours: Neighbours, weight: int, moved: int = 1
    ) -> "Difference":
        """Return how far apart neighbours of this kind are, in so many matrices together."""
        apart = shape.dimension > 1 or moved > 1
        twice = 2 if neighbours is Neighbours.REPLACE and apart else 1
        norm = root_ceiling(Fraction(twice * shape.sensitivity**2, 1 << 2 * step))
        if step:
            d = shape.dimension
            norm = up(norm + math.sqrt(moved * (d + weight * d * (d - 1) // 2)))
        ends = 2 if neighbours is Neighbours.REPLACE and moved > 1 else 1
        return cls(shape, step, weight, norm, moved, ends=ends)

    def with_side(self, count: int) -> "Difference":
        """Return the same of a matrix with so many further sums, on a scale that costs little."""
        if not count:
            return self
        scale = max(1, math.floor(self.norm / math.sqrt(_SIDE * count * self.ends)))
        # Σ(t·d + 1)² over groups, with 0 ≤ d ≤ 1 and Σd ≤ ends, so that Σd² ≤ ends.
        each = self.ends * (scale + 1) ** 2 + self.moved - self.ends
        norm = root_ceiling(Fraction(self.norm) ** 2 + count * each)
        return replace(self, norm=norm, side=count, side_scale=scale)

    def with_filled(self, relief: Sequence[int]) -> "Difference":
        """Return the same of a matrix with counts of cells that were filled in, one a column.

        A row that lacks the cells J adds a matrix of norm at most Δ − Σ rⱼ, r the `relief`. So with
        R = Σ r over all columns and scales t² ≤ r·(2Δ − R) it moves the matrix and the counts by no
        more than Δ together: (Δ − Σ rⱼ)² + Σ rⱼ·(2Δ − R) ≤ Δ² (docs/theory/missing-cells.md).
        Counts of columns with next to no relief are paid for, as other sums are.
        """
        if not relief:
            return self
        # In one dimension replaced rows are Δ apart and not √2·Δ: no room for more.
        apart = self.shape.dimension > 1 and self.moved == 1
        least = self.shape.unit / _SHORTER if apart else math.inf
        shorter = [each if each >= least else 0 for each in relief]
        room = 2 * self.shape.sensitivity - sum(shorter)
        scales = [math.isqrt(each * room) >> self.step for each in shorter]
        paid = scales.count(0)
        scale = max(1, math.floor(self.norm / math.sqrt(_FILLED * max(paid, 1))))
        norm = root_ceiling(Fraction(self.norm) ** 2 + paid * (scale + 1) ** 2)
        norm = up(norm + math.sqrt(len(scales) - paid))  # rounding moves each by less than 1
        filled = tuple(each or scale for each in scales)
        return replace(self, norm=norm, side=self.side + len(filled), filled_scales=filled)

    @property
    def coordinates(self) -> int:
        """The entries of the triangles, each counted by the weight of its noise, and side sums."""
        d = self.shape.dimension
        return self.moved * (d + self.weight * (d * (d - 1) // 2) + self.side)

    def profile(self, variance: float, neighbours: Neighbours) -> GridGaussian:
        """Return the profile of noise of this variance on the diagonal."""
        mu = root_ceiling(Fraction(self.norm) ** 2 / Fraction(variance))
        inverse = ceiling(Fraction(self.coordinates) / Fraction(variance))
        return GridGaussian(mu, inverse, neighbours)


@dataclass(frozen=True)
class PreparedGauss(PreparedMoments):
    """Noise of `variance` on the diagonal, a `weight`th of it elsewhere, in 2^`step` grid units."""

    shape: Shape
    step: int
    variance: float
    weight: int
    account: Account
    side: tuple[str, ...] = ()
    side_scale: int = 1
    filled_scales: tuple[int, ...] = ()
    norm: float = 0.0
    of_groups: bool = False

    def run(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Add the noise on integers; round each entry once."""
        checks.same_shape(statistic, self.shape, _WHERE)
        d = self.shape.dimension
        variance = Fraction(self.variance)
        rounded = _coarser(statistic.integers, self.step)
        values = np.empty((d, d))
        where = np.diag_indices(d)
        noise = discrete.gaussian(variance, d, entropy=entropy)
        values[where] = self._cells(rounded[where] + noise.astype(object))
        upper = np.triu_indices(d, 1)
        noise = discrete.gaussian(variance / self.weight, len(upper[0]), entropy=entropy)
        values[upper] = self._cells(rounded[upper] + noise.astype(object))
        values.T[upper] = values[upper]
        said = self._parameters() | self._release_side(statistic, entropy)
        return Measurement(values, self.noise_model, self.account, said)

    def _release_side(self, statistic: Statistic, entropy: Entropy) -> dict[str, float]:
        """Release the further sums, by name, each with the deviation of its noise.

        None is negative. Those of groups may come out so: cut off at 0, they would not add up.
        """
        if not self.side:
            return {}
        if len(statistic.side) != len(self.side):
            raise ValueError("A statistic has other sums beside its matrix than were asked for.")
        noise = discrete.gaussian(Fraction(self.variance), len(self.side), entropy=entropy)
        first = (self.side_scale,) * (len(self.side) - len(self.filled_scales))
        sums = zip(self.side, statistic.side, (*first, *self.filled_scales), noise, strict=True)
        found = {
            name: ((math.floor(exact * scale + Fraction(1, 2)) + int(own)) / scale, scale)
            for name, exact, scale, own in sums
        }
        sigma, least = math.sqrt(self.variance), -math.inf if self.of_groups else 0.0
        said = tell_sums({name: (value, sigma / t) for name, (value, t) in found.items()}, least)
        return said | self._told_distance()

    def _told_distance(self) -> dict[str, float]:
        """Tell how far apart neighbours are, which the noise of counts of cells does not tell."""
        counts = sum(map(is_count_of_cells, self.side))
        if not counts:
            return {}
        whole = ceiling(Fraction(self.norm) * (1 << self.step) / self.shape.unit)
        return {SENSITIVITY: whole, COLUMNS: counts}

    def _cells(self, integers: npt.NDArray[np.object_]) -> Floats:
        # Python divides integers of any length with one rounding.
        return np.array([(int(entry) << self.step) / self.shape.unit for entry in integers], float)

    @property
    def noise_model(self) -> SymmetricGaussian:
        """The noise model of what will be released."""
        unit = Fraction(self.shape.unit, 1 << self.step)
        diagonal = Fraction(self.variance) / unit**2
        return SymmetricGaussian(float(diagonal), float(diagonal / self.weight))

    def _parameters(self) -> dict[str, float]:
        noise_model = self.noise_model
        return {
            "sigma": math.sqrt(noise_model.diagonal),
            "off_diagonal_sigma": math.sqrt(noise_model.off_diagonal),
            "bound": float(self.shape.bound),
            "grid_step": (1 << self.step) / self.shape.unit,
        }


def _coarser(integers: npt.NDArray[np.object_], step: int) -> npt.NDArray[np.object_]:
    """Return the integers divided by 2^step, to the nearest."""
    if step == 0:
        return integers
    return np.asarray((integers + (1 << (step - 1))) >> step)
