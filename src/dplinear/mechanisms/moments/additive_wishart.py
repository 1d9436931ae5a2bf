"""Additive Wishart noise: release G + N with N a Wishart matrix, on the integer grid of G.

Sheffet 2015 (arXiv 1507.00056v1), Algorithm 2. The paper fixes the scale at B and bounds the
degrees of freedom; both are calibrated on the exact profile here (docs/theory/additive-wishart.md).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dplinear import arguments
from dplinear.analyst.noise_models.matrices import WishartNoise
from dplinear.exact.gaussian_draws import wishart_integers
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Measurement, MomentsMechanism, PreparedMoments
from dplinear.mechanisms.release_grid import cells
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate, profiles
from dplinear.privacy.rounding import ceiling

_WHERE = "AdditiveWishart"


@dataclass(frozen=True, kw_only=True)
class AdditiveWishart(MomentsMechanism):
    """Positive-definite noise for a second-moment matrix.

    Requires: rows of norm at most B. `scale` is τ, by default the one with the least noise among
    at most `most_degrees` degrees of freedom (by default 400·ε, or 10,000 if that is more); a
    larger cap comes closer to Gaussian noise.
    Promises: `ApproxDP` as asked. Numerics are exact: what is released is G + N of real numbers,
    rounded to G's own grid, and rounding a release costs no privacy. (Noise on a coarser grid would
    show G modulo its step.) Positive definite but for that rounding, which moves no eigenvalue by
    more than d/2 units of the grid (1/`shape.unit`), and that of float64, of 2^−53 of an entry.
    Departs from the paper: exact degrees of freedom (883 for its 42,605 at ε=0.1, δ=1e-6, d=40) and
    a free scale.
    """

    scale: float | None = None
    most_degrees: int | None = None
    name: ClassVar[str] = "additive_wishart"
    numerics: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        self._check_guarantee()
        if self.most_degrees is not None:
            most = calibrate.MOST_DEGREES
            arguments.integer(self.most_degrees, "most_degrees", _WHERE, low=3, high=most)
        if self.scale is not None:
            # Its square is the noise's variance, which must be a float.
            arguments.real(self.scale, "scale", _WHERE, low=0, high=1e100, open_low=True)

    def _check_guarantee(self) -> None:
        asked = checks.approximate(self.guarantee, _WHERE, "Wishart noise")
        calibrate.within_range(asked, _WHERE)

    def prepare(self, shape: Shape) -> "PreparedWishart":
        """Choose the degrees of freedom and the scale."""
        d, bound = shape.dimension, ceiling(shape.bound)
        most = arguments.integer(self.cap, "most_degrees", _WHERE, low=d + 2)
        try:
            degrees, scale = calibrate.additive_wishart(
                self.guarantee, d, bound, self.neighbours, self.scale, most_degrees=most
            )
        except ValueError:
            rule = f"large enough for at most {calibrate.MOST_DEGREES} degrees"
            hint = "more noise a degree needs fewer of them: raise the scale, or leave it out"
            raise arguments.rejection("scale", _WHERE, rule, self.scale, hint) from None
        profile = self._profile(shape, degrees, scale)
        return PreparedWishart(shape, degrees, scale, checks.exact_account(self.guarantee, profile))

    @property
    def cap(self) -> int:
        """The most degrees of freedom: as given, or far more than ε."""
        if self.most_degrees is not None:
            return self.most_degrees
        # Far more degrees than ε bring the noise next to that of a Gaussian; below a few thousand
        # they cost nothing.
        guarantee = checks.approximate(self.guarantee, _WHERE, "Wishart noise")
        wanted = math.ceil(min(400 * guarantee.epsilon, calibrate.MOST_DEGREES))
        return max(calibrate.DEFAULT_MOST_DEGREES, wanted)

    def _profile(self, shape: Shape, degrees: int, scale: float) -> profiles.AdditiveWishart:
        ratio = ceiling((shape.bound / Fraction(scale)) ** 2)
        return profiles.AdditiveWishart(degrees, shape.dimension, ratio, self.neighbours)


@dataclass(frozen=True)
class PreparedWishart(PreparedMoments):
    """Wishart(scale²·I, degrees) noise, ready to be added."""

    shape: Shape
    degrees: int
    scale: float
    account: Account

    @property
    def noise_model(self) -> WishartNoise:
        """The noise model of what will be released."""
        return WishartNoise(self.degrees, self.scale**2)

    def run(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Add the noise on integers; round each entry once."""
        checks.same_shape(statistic, self.shape, _WHERE)
        d, unit = self.shape.dimension, self.shape.unit
        factor = Fraction(self.scale) ** 2 * unit
        noise = wishart_integers(d, self.degrees, factor, entropy=entropy)
        parameters = {
            "degrees": self.degrees,
            "scale": self.scale,
            "bound": float(self.shape.bound),
            "grid_step": 1 / unit,
        }
        values = cells(statistic.integers + noise, Fraction(1, unit))
        return Measurement(values, self.noise_model, self.account, parameters)
