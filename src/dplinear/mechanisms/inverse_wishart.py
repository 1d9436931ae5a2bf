"""Inverse-Wishart: release one draw from a Bayesian posterior of the second moments.

Sheffet 2015 (arXiv 1507.00056v1), Algorithm 3: M with M⁻¹ ~ Wishart((G + ψI)⁻¹, ν).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.analyst.laws import InverseWishartLaw, Matrix
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import (
    Account,
    Measurement,
    Mechanism,
    Prepared,
    Shape,
    Statistic,
)
from dplinear.mechanisms.ridged import Ridged, Setting, Spectrum
from dplinear.noise import wishart
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ApproxDP, Guarantee
from dplinear.privacy.neighbours import Neighbours

_WHERE = "InverseWishart"
_UNPROVED = (
    "No formal guarantee: reproduction only. The number of rows enters the noise, and it is "
    "private between tables of which one has a row more."
)


@dataclass(frozen=True, kw_only=True)
class InverseWishart(Mechanism):
    """One positive-definite draw around the second moments.

    Requires: rows of norm at most B; `degrees` (ν) is public, by default the larger of 2d and d + 4
    (from d + 4 on the draw has a variance).
    Promises: `ApproxDP` as asked; the released matrix is positive definite. Numerics are idealised.
    Departs from the paper: ν is a public number, and ψ the least by the exact profile.
    `calibration="paper"` has ψ of Theorem 5.1 and, unless `degrees` are given, ν = n + d: the
    statistic must then say n, and under add_remove, where n is private, nothing is proved.
    """

    guarantee: Guarantee
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    calibration: str = "exact"
    degrees: int | None = None
    name: ClassVar[str] = "inverse_wishart"
    numerics: ClassVar[str] = "idealised"

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        checks.calibration(self.calibration, _WHERE)
        checks.approximate(self.guarantee, _WHERE, "an inverse-Wishart draw")

    def prepare(self, shape: Shape) -> "PreparedInverse":
        """Choose the ridge, unless it waits for the number of rows."""
        asked = checks.approximate(self.guarantee, _WHERE, "an inverse-Wishart draw")
        ridged = Ridged(_WHERE, shape, self.neighbours, self.calibration, inverse=True)
        degrees = self._degrees(shape)
        ridged.floor(asked, degrees or shape.dimension)  # refuses what cannot be kept
        return PreparedInverse(ridged, asked, degrees)

    def _degrees(self, shape: Shape) -> int | None:
        d = shape.dimension
        if self.degrees is not None:
            hint = "the draw has a mean from d + 2 degrees on, and a variance from d + 4 on."
            most = calibrate.MOST_DEGREES
            return arguments.integer(
                self.degrees, "degrees", _WHERE, low=d + 2, high=most, hint=hint
            )
        return None if self.calibration == "paper" else max(2 * d, d + 4)


@dataclass(frozen=True)
class PreparedInverse(Prepared):
    """A draw whose ridge is known, or follows from the number of rows (`degrees` None)."""

    ridged: Ridged
    asked: ApproxDP
    degrees: int | None

    @property
    def needs_rows(self) -> bool:
        """Whether the statistic must say how many rows there are."""
        return self.degrees is None

    def measure(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Draw the matrix."""
        checks.same_shape(statistic, self.ridged.shape, _WHERE)
        setting = self._setting(statistic)
        factor = Spectrum.of(statistic.matrix()).root(setting.ridge)
        law = InverseWishartLaw(setting.degrees, setting.ridge)
        parameters = {
            "degrees": setting.degrees,
            "ridge": setting.ridge,
            "bound": float(self.ridged.shape.bound),
            **setting.parameters,
        }
        values = _draw(factor, setting.degrees, entropy)
        return Measurement(values, law, setting.account, parameters)

    def _setting(self, statistic: Statistic) -> Setting:
        degrees = self.degrees
        if degrees is None:
            if statistic.rows is None:
                hint = "the paper has n + d of them: under add_remove give a public number."
                raise arguments.rejection("degrees", _WHERE, "given", None, hint)
            degrees = statistic.rows + self.ridged.shape.dimension
        floor = self.ridged.floor(self.asked, degrees)
        account = self.ridged.account(self.asked, degrees, floor)
        if self.degrees is None and self.ridged.neighbours is Neighbours.ADD_REMOVE:
            account = Account(self.asked, None, None, (_UNPROVED,))
        return Setting(degrees, floor, account, {})


def _draw(factor: Matrix, degrees: int, entropy: Entropy) -> Matrix:
    """Return F·M·Fᵀ, M⁻¹ ~ Wishart(I, degrees)."""
    inner = wishart.inverse_wishart(np.eye(len(factor)), degrees, entropy=entropy)
    drawn = factor @ inner @ factor.T
    return np.asarray(np.tril(drawn) + np.tril(drawn, -1).T)
