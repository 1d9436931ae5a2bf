"""Inverse-Wishart: release one draw from a Bayesian posterior of the second moments.

Sheffet 2015 (arXiv 1507.00056v1), Algorithm 3: M with M⁻¹ ~ Wishart((G + ψI)⁻¹, ν).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.analyst.noise_models.matrices import InverseWishartLaw
from dplinear.arrays import Floats
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Measurement, Mechanism, Prepared
from dplinear.mechanisms.moments.least_eigenvalue import LeastEigenvalue, Variant
from dplinear.mechanisms.moments.ridged import Fixed, Ready, Ridged, Setting, Spectrum
from dplinear.noise import wishart
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours

_WHERE = "InverseWishart"
_UNPROVED = (
    "No formal guarantee: reproduction only. The number of rows enters the noise and can be read "
    "off this certificate, and it is private between tables of which one has a row more."
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
        checks.calibration(self.calibration, _WHERE)
        checks.approximate(self.guarantee, _WHERE, "an inverse-Wishart draw")
        self._variant()

    def prepare(self, shape: Shape) -> "PreparedInverse":
        """Choose the ridge, unless it waits for the number of rows."""
        asked = checks.approximate(self.guarantee, _WHERE, "an inverse-Wishart draw")
        ridged = Ridged(_WHERE, shape, self.neighbours, self.calibration, inverse=True)
        plan = _Plan(ridged, asked, self._variant())
        degrees = self._degrees(shape)
        # Without degrees, those of an empty table: what cannot be kept is refused here.
        ready = plan.ready(degrees or shape.dimension)
        if degrees is not None:
            return PreparedInverse(shape, ready.account, plan, ready)
        if self.neighbours is Neighbours.ADD_REMOVE:
            account = Account(asked, None, None, (_UNPROVED,))
        else:
            account = Account(_kept_for_any_rows(asked), asked, None)
        return PreparedInverse(shape, account, plan, None)

    def _variant(self) -> Variant | None:
        limit = calibrate.MOST_DEGREES
        most = arguments.integer(self.most_degrees, "most_degrees", _WHERE, low=1, high=limit)
        return Variant.checked(_WHERE, self.least_eigenvalue_share, self.adjust, self.ridge, most)

    def _degrees(self, shape: Shape) -> int | None:
        d = shape.dimension
        if self.degrees is not None:
            hint = "the draw has a mean from d + 2 degrees on, and a variance from d + 4 on."
            most = calibrate.MOST_DEGREES
            return arguments.integer(
                self.degrees, "degrees", _WHERE, low=d + 2, high=most, hint=hint
            )
        return None if self.calibration == "paper" else max(2 * d, d + 4)


def _kept_for_any_rows(asked: ApproxDP) -> ApproxDP:
    """Return the guarantee, if the published constant keeps it whatever n turns out to be.

    The proof is in docs/theory.md, "Releasing second moments"; for ε beyond that the theorem fails.
    """
    if asked.epsilon <= 41 * math.log(4 / asked.delta):
        return asked
    rule = "one with ε of at most 41·ln(4/δ), up to which the paper's theorem holds for every n"
    hint = 'give the number of degrees, or use calibration="exact".'
    raise arguments.rejection("guarantee", _WHERE, rule, asked, hint)


@dataclass(frozen=True)
class _Plan:
    """All that is known before the number of degrees."""

    ridged: Ridged
    asked: ApproxDP
    variant: Variant | None

    def ready(self, degrees: int) -> Ready:
        """Calibrate."""
        if self.variant is None:
            return Fixed.of(self.ridged, self.asked, degrees)
        return LeastEigenvalue.of(self.ridged, self.variant, self.asked, degrees)


@dataclass(frozen=True)
class PreparedInverse(Prepared):
    """A draw whose ridge is known, or follows from the number of rows (`ready` is None)."""

    shape: Shape
    account: Account
    plan: _Plan
    ready: Ready | None

    @property
    def needs_rows(self) -> bool:
        """Whether the statistic must say how many rows there are."""
        return self.ready is None

    def measure(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Draw the matrix."""
        checks.same_shape(statistic, self.shape, _WHERE)
        ready = self._ready(statistic.rows)
        gram = statistic.matrix()
        spectrum = Spectrum.of(gram)
        setting = ready.settle(gram, entropy)
        law = InverseWishartLaw(setting.degrees, setting.ridge)
        parameters = {
            "degrees": setting.degrees,
            "ridge": setting.ridge,
            "bound": float(self.shape.bound),
            **setting.parameters,
        }
        values = _draw(spectrum.root(setting.ridge), setting.degrees, entropy)
        return Measurement(values, law, self._account(setting), parameters)

    def _ready(self, rows: int | None) -> Ready:
        if self.ready is not None:
            return self.ready
        if rows is None:
            hint = "the paper has n + d of them: where n is not public, give a number."
            raise arguments.rejection("degrees", _WHERE, "given", None, hint)
        return self.plan.ready(rows + self.shape.dimension)

    def _account(self, setting: Setting) -> Account:
        return self.account if self.account.holds is None else setting.account


def _draw(factor: Floats, degrees: int, entropy: Entropy) -> Floats:
    """Return F·M·Fᵀ, M⁻¹ ~ Wishart(I, degrees)."""
    inner = wishart.inverse_wishart(np.eye(len(factor)), degrees, entropy=entropy)
    drawn = factor @ inner @ factor.T
    return np.asarray(np.tril(drawn) + np.tril(drawn, -1).T)
