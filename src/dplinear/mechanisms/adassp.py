"""AdaSSP: ridge regression on noisy sums, with a ridge that adapts to the table's own conditioning.

Wang 2018 (arXiv 1803.02596v2), Algorithm 2. Here λ_min(XᵀX), XᵀX and Xᵀy are released together, as
one vector of discrete Gaussian noise (docs/theory/adassp.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dplinear import arguments
from dplinear.analyst.filled_in import tell_sums
from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.arrays import Floats
from dplinear.exact.block_moments import moments_and_side
from dplinear.exact.design import Design
from dplinear.exact.rows import Rows
from dplinear.exact.shape import Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.adassp_distance import Distance, Parts
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.model import ModelMechanism, PreparedModel, Solution
from dplinear.mechanisms.moments.eigenvalues import UNITS, least_units
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ZCDP
from dplinear.privacy.profiles.gaussian import GRID_LEAST_VARIANCE
from dplinear.privacy.rounding import ceiling, up

_WHERE = "AdaSSP"
_LARGEST_VARIANCE = 2.0**96
FAILURE = 0.05  # of the lower bound on the least eigenvalue; the paper's ϱ
# Of μ². Thirds, as in the paper, had 1.2 to 2 times the excess risk where the noise is moderate
# (docs/theory/adassp.md).
SHARES = (0.1, 0.6, 0.3)
_DEVIATIONS = 3.0
_UNKNOWN = (
    "This method releases nothing about the residuals, so the part of the error that is due to "
    "sampling is not known, nor is what the ridge shrinks. For intervals, release moments instead: "
    "release_moments(...).regress(...)."
)


@dataclass(frozen=True, kw_only=True)
class AdaSSP(ModelMechanism):
    """Ridge regression on one noisy vector.

    Requires: a design with bounds BX of features and BY of the target. `shares` are the parts of μ²
    for the least eigenvalue, XᵀX and Xᵀy; they add up to 1.
    Promises: `ApproxDP`, with the cost of the grid, or `ZCDP`, exactly. Numerics are exact. No
    derived bound is trusted: the integers of every row are held to ‖x‖ ≤ BX and |y| ≤ BY
    (`Rows.bounded_moments`). So one row moves XᵀX by xxᵀ, of Frobenius norm ‖x‖² ≤ BX²; Xᵀy by
    x·y, of norm at most BX·BY; λ_min(XᵀX) by at most BX² (Weyl), and what is computed of it,
    a certified enclosure, by `eigenvalues.SENSITIVITY`.
    Departs from the paper: one joint calibration instead of ε/3 and δ/3 for each part; noise of
    half the variance off the diagonal; most of μ² for XᵀX; a ridge of the noise's expected norm, at
    the most, less what the noisy matrix itself shows; levels that no row seems to hold left out.
    How many rows lack a number they need is one more coordinate beside Xᵀy, where rows may do so;
    how many cells are filled in, one for each column that may have such.
    """

    shares: tuple[float, float, float] = SHARES
    name: ClassVar[str] = "adassp"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True
    for_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        object.__setattr__(self, "shares", _shares(self.shares))
        rule = "an ApproxDP guarantee with ε and δ above 0, or a ZCDP one"
        if type(self.guarantee) in checks.GRID_HINTS:
            hint = checks.GRID_HINTS[type(self.guarantee)]
            raise arguments.wrong_type("guarantee", _WHERE, rule, self.guarantee, hint)
        if not isinstance(self.guarantee, ZCDP):
            checks.approximate(self.guarantee, _WHERE, "normal noise", rule)

    def prepare(self, design: Design) -> "PreparedAdaSSP":
        """Choose the three variances, in units of the grid, and the step of the grid."""
        sums = design.of_sums()
        for step in range(0, 256, 4):
            distance = Distance(sums, self.neighbours, step, self._off_diagonal_divisor(design))
            variances = self._variances(distance)
            if variances is None or variances.least > _LARGEST_VARIANCE:
                break
            if max(variances) <= _LARGEST_VARIANCE:
                return self._make_prepared(distance, variances)
        hint = "that much noise leaves nothing of any table: ask for a larger ε or ρ."
        raise arguments.rejection("guarantee", _WHERE, "within reach", self.guarantee, hint)

    def _off_diagonal_divisor(self, design: Design) -> int:
        """Return what the variance is divided by off the diagonal."""
        return 2 if design.dimension > 1 else 1

    def _make_prepared(self, distance: Distance, variances: Parts) -> "PreparedAdaSSP":
        account = checks.exact_account(self.guarantee, distance.profile(variances))
        return PreparedAdaSSP(distance.design, distance, variances, account)

    def _variances(self, distance: Distance) -> Parts | None:
        relative = Parts(
            *(part / Fraction(s) for part, s in zip(distance.squares, self.shares, strict=True))
        )
        smallest = min(relative.least, relative.gram / distance.halved, relative.cross)
        relative = Parts(*(part / smallest for part in relative))
        variance = self._least_variance(distance, relative)
        return None if math.isinf(variance) else _scale_variances(relative, variance)

    def _least_variance(self, distance: Distance, relative: Parts) -> float:
        """Return what to multiply relative variances by, the smallest of which is 1."""
        variance = GRID_LEAST_VARIANCE
        if not self._suffices(distance, _scale_variances(relative, variance)):
            variance = max(
                calibrate.grid_gaussian(
                    self.guarantee, distance.norm(relative), float(distance.inverse(relative))
                ),
                variance,
            )
        # The profile of the rounded variances has the last word.
        while math.isfinite(variance) and not self._suffices(
            distance, _scale_variances(relative, variance)
        ):
            variance = up(variance, 8)
        return variance

    def _suffices(self, distance: Distance, variances: Parts) -> bool:
        return distance.profile(variances).keeps(self.guarantee)


def _scale_variances(relative: Parts, variance: float) -> Parts:
    """Return variances that are floats, none below its share of `variance`."""
    return Parts(*(Fraction(ceiling(part * Fraction(variance))) for part in relative))


def _shares(shares: object) -> tuple[float, float, float]:
    rule = "three numbers above 0 that add up to 1"
    if not isinstance(shares, tuple | list) or len(shares) != 3:
        raise arguments.wrong_type("shares", _WHERE, rule, shares)
    least, gram, cross = (arguments.positive(share, "shares", _WHERE) for share in shares)
    if abs(least + gram + cross - 1) > 1e-9:
        raise arguments.rejection("shares", _WHERE, rule, shares)
    return least, gram, cross


@dataclass(frozen=True, eq=False)
class Released:
    """The noisy vector, in the cells' units. Public."""

    least: float
    gram: Floats
    cross: Floats
    side: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedAdaSSP(PreparedModel):
    """Noise of known variances, in units of 2^step (XᵀX, Xᵀy) and of BX²/2^20 (the eigenvalue).

    `design` is in the units of sums.
    """

    design: Design
    distance: Distance
    variances: Parts
    account: Account

    def run(self, rows: Rows, entropy: Entropy) -> Solution:
        """Release the vector, and solve."""
        design, shape = self.design.of_rows(), self.design.shape
        if self.distance.side:
            moments, found = moments_and_side(rows, design)
            side = tuple(Fraction(each, rows.denominator) for each in found)
            statistic = Statistic(shape, moments, side=side)
        else:
            statistic = Statistic(shape, rows.bounded_moments(design))
        return self.solution(self.measure(statistic, entropy))

    def measure(self, statistic: Statistic, entropy: Entropy) -> Released:
        """Add the noise on integers; round each number once."""
        checks.same_shape(statistic, self.design.shape, _WHERE)
        # XᵀX and Xᵀy of rows within BX and BY: `solve` asks for such, verified on the integers.
        used = list(self.design.features)
        gram = statistic.integers[np.ix_(used, used)]
        cross = statistic.integers[used, self.design.target]
        d = len(used)
        upper = np.triu_indices(d, 1)
        diagonal = self._noisy(np.diag(gram), self.variances.gram, entropy)
        rest = self._noisy(gram[upper], self.variances.gram / self.distance.halved, entropy)
        matrix = np.diag(diagonal)
        matrix[upper] = rest
        matrix.T[upper] = rest
        right = self._noisy(cross, self.variances.cross, entropy)
        noise = int(discrete.gaussian(self.variances.least, 1, entropy=entropy)[0])
        units = least_units(gram, self.design.feature_square) + noise
        side = self._release_side(statistic, entropy)
        return Released(units * self._least_unit, matrix, right, side)

    def _release_side(self, statistic: Statistic, entropy: Entropy) -> dict[str, float]:
        """Release how many rows are left out, and how many cells filled in, or their weight."""
        names = self.distance.side
        if not names:
            return {}
        noise = discrete.gaussian(self.variances.cross, len(names), entropy=entropy)
        return {
            name: (math.floor(exact * scale + Fraction(1, 2)) + int(own)) / scale
            for (name, scale), exact, own in zip(names, statistic.side, noise, strict=True)
        }

    def _noisy(
        self, integers: npt.NDArray[np.object_], variance: Fraction, entropy: Entropy
    ) -> Floats:
        noise = discrete.gaussian(variance, len(integers), entropy=entropy).astype(object)
        step, unit = self.distance.step, self.design.shape.unit
        half = (1 << step) >> 1
        sums = zip(integers, noise, strict=True)
        # Python divides integers of any length with one rounding.
        cells = [(((int(sum_) + half) >> step) + int(y) << step) / unit for sum_, y in sums]
        return np.array(cells, float)

    @property
    def _least_unit(self) -> float:
        return float(Fraction(self.design.feature_square, UNITS * self.design.shape.unit))

    @property
    def _sigmas(self) -> tuple[float, float, float]:
        """The standard deviations of the three parts' noise, in cells."""
        coarse = float(Fraction(1 << self.distance.step, self.design.shape.unit))
        least, gram, cross = (math.sqrt(float(variance)) for variance in self.variances)
        return least * self._least_unit, gram * coarse, cross * coarse

    def solution(self, released: Released) -> Solution:
        """Return the model that the released vector gives: post-processing."""
        kept = self._kept_features(released.gram)
        gram = released.gram[np.ix_(kept, kept)]
        values, vectors = np.linalg.eigh(gram)
        lower = self._lower(released.least, float(values[0]))
        ridge = max(self._reach - max(lower, 0.0), 0.0)
        inverse = np.zeros_like(released.gram)
        floor = self._floor(values)
        inverse[np.ix_(kept, kept)] = (vectors / np.maximum(values + ridge, floor)) @ vectors.T
        coefficients = inverse @ released.cross
        return Solution(
            coefficients,
            self.account,
            self._parameters(lower, ridge) | self._told_side(released),
            noise=inverse @ self._noise(coefficients) @ inverse,
            unknown=_UNKNOWN,
            weight=max(float(released.gram[0, 0]), 0.0) if self.design.intercept else None,
        )

    def _kept_features(self, gram: Floats) -> npt.NDArray[np.intp]:
        """Return the places of the features, but for levels that no row seems to hold."""
        _, sigma, _ = self._sigmas
        held = np.diag(gram) > _DEVIATIONS * sigma
        kept = np.flatnonzero(held | ~np.array(self.design.indicators))
        return kept if len(kept) else np.arange(len(gram))

    def _noise(self, coefficients: Floats) -> Floats:
        """Return the covariance of the noise of Xᵀy − XᵀX·b."""
        _, gram, cross = self._sigmas
        noise_model = SymmetricGaussian(gram**2, gram**2 / self.distance.halved)
        moved = noise_model.sandwich(np.outer(coefficients, coefficients), np.empty(0))
        return np.asarray(moved + cross**2 * np.eye(len(coefficients)))

    @property
    def _reach(self) -> float:
        """What the noise takes from the least eigenvalue of XᵀX, on average.

        The expected norm of noise with σ² on and σ²/2 off the diagonal is at most σ√(2d).
        """
        _, sigma, _ = self._sigmas
        return sigma * math.sqrt(2 * self.design.dimension)

    def _lower(self, least: float, seen: float) -> float:
        """Return what the least eigenvalue is not below, but for `FAILURE`.

        `seen` is that of the noisy matrix, a bound for free: it may have lost an empty column.
        """
        sigma, _, _ = self._sigmas
        return max(least + float(ndtri(FAILURE)) * sigma, seen - self._reach)

    def _floor(self, values: Floats) -> float:
        """Return what an eigenvalue of the ridged matrix is raised to where noise ate the ridge."""
        rounding = float(np.abs(values).max()) * 1e-13
        _, sigma, _ = self._sigmas
        return max(sigma, rounding)

    def _told_side(self, released: Released) -> dict[str, float]:
        sigma = math.sqrt(float(self.variances.cross))
        scales = dict(self.distance.side)
        return tell_sums({n: (value, sigma / scales[n]) for n, value in released.side.items()})

    def _parameters(self, lower: float, ridge: float) -> dict[str, float]:
        least, gram, cross = self._sigmas
        cells = self.design.shape.steps_per_unit
        return {
            "ridge": ridge,
            "lambda_lower": lower,
            "lambda_sigma": least,
            "sigma": gram,
            "off_diagonal_sigma": gram / math.sqrt(self.distance.halved),
            "cross_sigma": cross,
            "feature_bound": math.sqrt(self.design.feature_square) / cells,
            "target_bound": math.sqrt(self.design.target_square) / cells,
            "grid_step": float(Fraction(1 << self.distance.step, self.design.shape.unit)),
        }
