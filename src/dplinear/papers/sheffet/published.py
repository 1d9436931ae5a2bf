"""The mechanisms of Sheffet 2015 (arXiv 1507.00056v1) with the constants that it prints.

Each is the library's own but for the amount of noise; its certificate says what that really keeps.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dplinear import arguments
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import (
    AdditiveWishart,
    AnalyzeGauss,
    GaussianSketch,
    InverseWishart,
    checks,
)
from dplinear.mechanisms.contract import Account, Measurement, MomentsMechanism, PreparedMoments
from dplinear.mechanisms.moments.additive_wishart import PreparedWishart
from dplinear.mechanisms.moments.analyze_gauss import Difference, Noise
from dplinear.mechanisms.moments.inverse_wishart import PreparedInverse
from dplinear.mechanisms.moments.ridged import Ready
from dplinear.noise.entropy import Entropy
from dplinear.papers import accounts, constants
from dplinear.papers.sheffet.ridges import PublishedRidged, published_ready
from dplinear.privacy.guarantees import ZCDP, ApproxDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.gaussian import GRID_LEAST_VARIANCE
from dplinear.privacy.rounding import ceiling

_GAUSS, _WISHART = "PublishedAnalyzeGauss", "PublishedAdditiveWishart"
_SKETCH, _INVERSE = "PublishedSketch", "PublishedInverseWishart"
_UNPROVED = (
    "No formal guarantee: reproduction only. The number of rows enters the noise and can be read "
    "off this certificate, and it is private between tables of which one has a row more."
)


@dataclass(frozen=True, kw_only=True)
class PublishedAnalyzeGauss(AnalyzeGauss):
    """Independent noise of one variance on the upper triangle, with σ of §2 (ε² where it has ε)."""

    calibration: ClassVar[str] = "paper"

    def _check_guarantee(self) -> None:
        rule = "an ApproxDP guarantee with ε and δ above 0"
        if isinstance(self.guarantee, ZCDP):
            hint = "the paper speaks of (ε, δ) only: ask for ApproxDP."
            raise arguments.wrong_type("guarantee", _GAUSS, rule, self.guarantee, hint)
        super()._check_guarantee()

    def _weight(self, shape: Shape) -> int:
        return 1

    def _noise(self, difference: Difference) -> Noise:
        guarantee = checks.approximate(self.guarantee, _GAUSS, "normal noise")
        asked = accounts.check_delta(guarantee, _GAUSS)
        bound = ceiling(difference.shape.bound)
        sigma = constants.analyze_gauss(asked, bound, self.neighbours).value
        units = Fraction(sigma) * difference.shape.unit / (1 << difference.step)
        variance = max(ceiling(units**2), GRID_LEAST_VARIANCE)
        profile = difference.profile(variance, self.neighbours)
        return Noise(variance, accounts.what_holds(asked, profile))


@dataclass(frozen=True, kw_only=True)
class PublishedAdditiveWishart(AdditiveWishart):
    """Noise of scale τ = B, with the degrees of Theorem 4.1."""

    calibration: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale is not None:
            hint = "the paper has τ = B: leave the scale out."
            raise arguments.rejection("scale", _WISHART, "None", self.scale, hint)

    def _check_guarantee(self) -> None:
        checks.approximate(self.guarantee, _WISHART, "Wishart noise")

    def prepare(self, shape: Shape) -> PreparedWishart:
        """Take the degrees of freedom as printed."""
        guarantee = checks.approximate(self.guarantee, _WISHART, "Wishart noise")
        asked = accounts.check_delta(guarantee, _WISHART)
        try:
            constant = constants.additive_wishart(asked, shape.dimension, self.neighbours)
        except ValueError:
            rule = "small enough in ε that the paper has two degrees more than the dimension"
            hint = "its theorem speaks of ε below 1."
            raise arguments.rejection("guarantee", _WISHART, rule, asked, hint) from None
        degrees, bound = int(constant.value), ceiling(shape.bound)
        notes = () if asked.epsilon < 1 else ("The paper's theorem speaks of ε below 1 only.",)
        account = accounts.what_holds(asked, self._profile(shape, degrees, bound), notes)
        return PreparedWishart(shape, degrees, bound, account)


@dataclass(frozen=True, kw_only=True)
class PublishedSketch(GaussianSketch):
    """The ridge w² of Theorem 3.1, which needs more rows than there are columns."""

    calibration: ClassVar[str] = "paper"

    def _rows(self, shape: Shape) -> int:
        rows = super()._rows(shape)
        if self.rows is not None and rows <= shape.dimension:
            rule = f"at least {shape.dimension + 1}"
            hint = "the paper's theorem needs more rows than columns."
            raise arguments.rejection("rows", _SKETCH, rule, rows, hint)
        return rows

    def _ready(self, shape: Shape, rows: int) -> Ready:
        asked = checks.approximate(self.guarantee, _SKETCH, "a Gaussian sketch")
        ridged = PublishedRidged(_SKETCH, shape, self.neighbours, inverse=False)
        return published_ready(ridged, self._variant(), asked, rows)


@dataclass(frozen=True, kw_only=True)
class PublishedInverseWishart(InverseWishart):
    """The ridge ψ of Theorem 5.1 and, unless `degrees` are given, ν = n + d.

    The statistic must then say n, and under add_remove, where n is private, nothing is proved.
    """

    calibration: ClassVar[str] = "paper"

    def prepare(self, shape: Shape) -> PreparedMoments:
        """Take the ridge, unless it waits for the number of rows."""
        if self.degrees is not None:
            return super().prepare(shape)
        asked = checks.approximate(self.guarantee, _INVERSE, "an inverse-Wishart draw")
        # The degrees of an empty table: what cannot be kept is refused here.
        self.ready_for(shape, shape.dimension)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return PreparedPosterior(shape, Account(asked, None, None, (_UNPROVED,)), self)
        return PreparedPosterior(shape, Account(_kept_for_any_rows(asked), asked, None), self)

    def _ready(self, shape: Shape, degrees: int) -> Ready:
        return self.ready_for(shape, degrees)

    def ready_for(self, shape: Shape, degrees: int) -> Ready:
        """Return what a draw of so many degrees uses."""
        asked = checks.approximate(self.guarantee, _INVERSE, "an inverse-Wishart draw")
        ridged = PublishedRidged(_INVERSE, shape, self.neighbours, inverse=True)
        return published_ready(ridged, self._variant(), asked, degrees)


def _kept_for_any_rows(asked: ApproxDP) -> ApproxDP:
    """Return the guarantee, if the published constant keeps it whatever n turns out to be.

    The proof is in docs/theory/sketch.md; for ε beyond that the theorem fails.
    """
    if asked.epsilon <= 41 * math.log(4 / asked.delta):
        return asked
    rule = "one with ε of at most 41·ln(4/δ), up to which the paper's theorem holds for every n"
    raise arguments.rejection("guarantee", _INVERSE, rule, asked, "give the number of degrees.")


@dataclass(frozen=True)
class PreparedPosterior(PreparedMoments):
    """A draw of n + d degrees, whose ridge waits for the number of rows."""

    shape: Shape
    account: Account
    mechanism: PublishedInverseWishart

    def run(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Draw the matrix."""
        if statistic.rows is None:
            hint = "the paper has n + d of them: where n is not public, give a number."
            raise arguments.rejection("degrees", _INVERSE, "given", None, hint)
        ready = self.mechanism.ready_for(self.shape, statistic.rows + self.shape.dimension)
        measured = PreparedInverse(self.shape, ready.account, ready).run(statistic, entropy)
        return measured if self.account.holds else replace(measured, account=self.account)


MECHANISMS: dict[str, type[MomentsMechanism]] = {
    kind.name: kind
    for kind in (
        PublishedAnalyzeGauss,
        PublishedAdditiveWishart,
        PublishedSketch,
        PublishedInverseWishart,
    )
}
