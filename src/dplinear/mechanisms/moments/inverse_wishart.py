"""Inverse-Wishart: release one draw from a Bayesian posterior of the second moments.

Sheffet 2015 (arXiv 1507.00056v1), Algorithm 3: M with M⁻¹ ~ Wishart((G + ψI)⁻¹, ν).
"""

from dataclasses import dataclass
from typing import ClassVar

from dplinear import arguments
from dplinear.analyst.noise_models.matrices import InverseWishartNoise
from dplinear.exact.gaussian_draws import inverse_wishart
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Measurement, MomentsMechanism, PreparedMoments
from dplinear.mechanisms.moments.least_eigenvalue import Variant, ready
from dplinear.mechanisms.moments.ridged import Fixed, Ready, Ridged, Setting
from dplinear.mechanisms.release_grid import cells, inverse_step
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate

_WHERE = "InverseWishart"


@dataclass(frozen=True, kw_only=True)
class InverseWishart(MomentsMechanism):
    """One positive-definite draw around the second moments.

    Requires: rows of norm at most B; `degrees` (ν) is public, by default the larger of 2d and d + 4
    (from d + 4 on the draw has a variance).
    Promises: `ApproxDP` as asked. Numerics are exact: what is released is a draw of real numbers
    rounded to a public grid (`release_grid`), and rounding a release costs no privacy. The draw is
    positive definite; rounding moves no eigenvalue by more than d/2 steps, which is some 10^6/d
    times less than the least of them is likely to be; float64 rounds once more.
    Departs from the paper: ν is a public number, and ψ the least by the exact profile, rounded up
    to the grid of G.
    `least_eigenvalue_share`, `adjust`, `ridge` and `most_degrees`: as for `GaussianSketch`.
    """

    degrees: int | None = None
    least_eigenvalue_share: float | None = None
    adjust: str = "ridge"
    ridge: float = 0.0
    most_degrees: int = calibrate.MOST_DEGREES
    name: ClassVar[str] = "inverse_wishart"
    numerics: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        checks.approximate(self.guarantee, _WHERE, "an inverse-Wishart draw")
        self._variant()

    def prepare(self, shape: Shape) -> PreparedMoments:
        """Choose the ridge."""
        calibrated = self._ready(shape, self._degrees(shape))
        return PreparedInverse(shape, calibrated.account, calibrated)

    def _ready(self, shape: Shape, degrees: int) -> Ready:
        asked = checks.approximate(self.guarantee, _WHERE, "an inverse-Wishart draw")
        ridged = Ridged(_WHERE, shape, self.neighbours, inverse=True)
        return ready(ridged, self._variant(), asked, degrees)

    def _variant(self) -> Variant | None:
        limit = calibrate.MOST_DEGREES
        most = arguments.integer(self.most_degrees, "most_degrees", _WHERE, low=1, high=limit)
        return Variant.read(_WHERE, self.least_eigenvalue_share, self.adjust, self.ridge, most)

    def _degrees(self, shape: Shape) -> int:
        d, most = shape.dimension, calibrate.MOST_DEGREES
        if self.degrees is None:
            return max(2 * d, d + 4)
        hint = "the draw has a mean from d + 2 degrees on, and a variance from d + 4 on."
        return arguments.integer(self.degrees, "degrees", _WHERE, low=d + 2, high=most, hint=hint)


@dataclass(frozen=True)
class PreparedInverse(PreparedMoments):
    """A draw whose ridge is known, or waits for the least eigenvalue."""

    shape: Shape
    account: Account
    ready: Ready

    @property
    def noise_model(self) -> InverseWishartNoise | None:
        """The noise model of what will be released; None where the table settles the ridge."""
        return _noise_model(self.ready.setting) if isinstance(self.ready, Fixed) else None

    def run(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Draw the matrix."""
        checks.same_shape(statistic, self.shape, _WHERE)
        setting = self.ready.settle(statistic, entropy)
        step = inverse_step(setting.least, setting.degrees)
        factor = 1 / (self.shape.unit * step)
        drawn = inverse_wishart(setting.root(statistic), setting.degrees, factor, entropy=entropy)
        parameters = {
            "degrees": setting.degrees,
            "ridge": setting.ridge,
            "bound": float(self.shape.bound),
            "grid_step": float(step),
            **setting.parameters,
        }
        return Measurement(cells(drawn, step), _noise_model(setting), setting.account, parameters)


def _noise_model(setting: Setting) -> InverseWishartNoise:
    return InverseWishartNoise(setting.degrees, setting.ridge)
