"""The schemes of Showkatbakhsh, Karakus and Diggavi 2018 (ISIT) with the noise that it prints.

Additive noise is exact for one number in [−1, 1], and too little for one with an indicator of
missing ones. The noise of random projections is computed from the table and protects no cell:
nothing is promised of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.analyst.noise_models.matrices import ProjectionNoise
from dplinear.arrays import Floats
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import AdditiveNoise, MIProjection, checks
from dplinear.mechanisms.cells.mi_projection import PreparedProjection
from dplinear.mechanisms.contract import Account, Measurement
from dplinear.mechanisms.rows.additive_noise import Noised, bits_of
from dplinear.noise.entropy import Entropy
from dplinear.papers import float_noise
from dplinear.papers.accounts import NOT_KEPT
from dplinear.papers.showkatbakhsh.peaks import PeakStatistic
from dplinear.privacy.bits import variance_for
from dplinear.privacy.guarantees import MIDP
from dplinear.privacy.rounding import up
from dplinear.schema import Schema

_NOISE, _PROJECTION = "PublishedAdditiveNoise", "PublishedProjection"
_UNPROVED = "no formal guarantee: reproduction only"


@dataclass(frozen=True, kw_only=True)
class PublishedAdditiveNoise(AdditiveNoise):
    """Variance 1/(2^{2·bits} − 1) on every feature (Lemma 1); a target is published as it is."""

    calibration: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "y_public", self.target is not None)

    def _check_guarantee(self) -> None:
        if not isinstance(self.guarantee, MIDP):
            hint = "the paper speaks of bits only: ask for MIDP."
            raise arguments.wrong_type(
                "guarantee", _NOISE, "an MIDP guarantee", self.guarantee, hint
            )

    @property
    def _bits(self) -> float:
        assert isinstance(self.guarantee, MIDP)  # noqa: S101 - checked when it was made
        return self.guarantee.bits

    def _variance(self, cell: Noised, cost: float) -> float:
        return up(variance_for(self._bits) * cell.unit)

    def _account(
        self, noised: Sequence[Noised], variances: Sequence[float], public: str | None
    ) -> Account:
        kept = super()._account(noised, variances, public)
        holds, notes = MIDP(bits_of(noised, variances)), kept.notes
        if holds.bits > self._bits * (1 + 1e-6):
            notes = (*notes, NOT_KEPT)
        return Account(self.guarantee, holds, kept.profile, notes)


@dataclass(frozen=True, kw_only=True)
class PublishedProjection(MIProjection):
    """The noise of equation (13) on the columns other than the target, and no guarantee.

    That noise is private, and is not told; so its draws are in floating point, with no public grid.
    """

    calibration: ClassVar[str] = "paper"
    numerics: ClassVar[str] = "idealised"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "y_public", True)

    def _check_bounds(self, bits: float) -> None:
        super()._check_bounds(bits)
        for name in ("least_eigenvalue_bits", "lower_bound"):
            given = getattr(self, name)
            if given is not None:
                rule = "left out where the paper's noise is used"
                raise arguments.rejection(name, _PROJECTION, rule, given)

    def prepare(self, schema: Schema, shape: Shape) -> "PreparedPublished":
        """Check the schema; the noise waits for the table."""
        made = super().prepare(schema, shape)
        account = Account(self.guarantee, None, None, (_UNPROVED, *made.account.notes))
        return PreparedPublished(shape, account, self, made.cells, made.variances, None)


@dataclass(frozen=True)
class PreparedPublished(PreparedProjection):
    """A projection whose noise follows from the table."""

    def run(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Draw the rows. Requires: a statistic with the largest square of each column."""
        checks.same_shape(statistic, self.shape, _PROJECTION)
        assert isinstance(statistic, PeakStatistic)  # noqa: S101 - as `release_sketch` reads it
        assert statistic.rows is not None  # noqa: S101 - public under element
        rows = self._rows(statistic.rows)
        covariance = statistic.matrix() + np.diag(self._printed_variances(statistic, rows))
        factor = float_noise.square_root(covariance)
        drawn = float_noise.standard_normal((rows, len(factor)), entropy=entropy) @ factor.T
        return Measurement(drawn, ProjectionNoise(rows, None), self.account, {"rows": rows})

    def _printed_variances(self, statistic: PeakStatistic, rows: int) -> Floats:
        """Return (n'/(2^{2ε} − 1) − f²)₊ on the columns other than the target, equation (13).

        f² is the least sum of squares of a column without its largest. Private.
        """
        assert isinstance(self.account.asked, MIDP)  # noqa: S101 - as checked
        indices = [index for cell in self.cells for index in cell.indices]
        sums = [int(statistic.integers[i, i]) - int(statistic.peaks[i]) for i in indices]
        left = min(sums) / self.shape.unit
        ridges = np.zeros(self.shape.dimension)
        ridges[indices] = max(rows * variance_for(self.account.asked.bits) - left, 0.0)
        return ridges
