"""Inverse-Wishart: release one draw from a Bayesian posterior of the second moments.

Sheffet 2015 (arXiv 1507.00056v1), Algorithm 3: M with M⁻¹ ~ Wishart((G + ψI)⁻¹, ν).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.analyst.noise_models.matrices import InverseWishartNoise
from dplinear.arrays import Floats
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Measurement, MomentsMechanism, PreparedMoments
from dplinear.mechanisms.moments.least_eigenvalue import Variant, ready
from dplinear.mechanisms.moments.ridged import Fixed, Ready, Ridged, Setting, Spectrum
from dplinear.noise import wishart
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate

_WHERE = "InverseWishart"


@dataclass(frozen=True, kw_only=True)
class InverseWishart(MomentsMechanism):
    """One positive-definite draw around the second moments.

    Requires: rows of norm at most B; `degrees` (ν) is public, by default the larger of 2d and d + 4
    (from d + 4 on the draw has a variance).
    Promises: `ApproxDP` as asked; the released matrix is positive definite. Numerics are idealised.
    Departs from the paper: ν is a public number, and ψ the least by the exact profile.
    `least_eigenvalue_share`, `adjust`, `ridge` and `most_degrees`: as for `GaussianSketch`.
    """

    degrees: int | None = None
    least_eigenvalue_share: float | None = None
    adjust: str = "ridge"
    ridge: float = 0.0
    most_degrees: int = calibrate.MOST_DEGREES
    name: ClassVar[str] = "inverse_wishart"
    numerics: ClassVar[str] = "idealised"

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
        gram = statistic.matrix()
        spectrum = Spectrum.of(gram)
        setting = self.ready.settle(gram, entropy)
        law = _noise_model(setting)
        parameters = {
            "degrees": setting.degrees,
            "ridge": setting.ridge,
            "bound": float(self.shape.bound),
            **setting.parameters,
        }
        values = _draw(spectrum.root(setting.ridge), setting.degrees, entropy)
        return Measurement(values, law, setting.account, parameters)


def _draw(factor: Floats, degrees: int, entropy: Entropy) -> Floats:
    """Return F·M·Fᵀ, M⁻¹ ~ Wishart(I, degrees)."""
    inner = wishart.inverse_wishart(np.eye(len(factor)), degrees, entropy=entropy)
    drawn = factor @ inner @ factor.T
    return np.asarray(np.tril(drawn) + np.tril(drawn, -1).T)


def _noise_model(setting: Setting) -> InverseWishartNoise:
    return InverseWishartNoise(setting.degrees, setting.ridge)
