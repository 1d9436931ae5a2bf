"""Whitened descent: a few noisy steps towards the least-squares line, in coordinates of equal size.

A noisy Gram matrix gives the coordinates (`whitening.py`); each step releases the gradient of all
rows, their lengths and residuals clipped one by one, and moves as far as its noise deserves. Where
the budget is too small for a Gram matrix the steps are plain descent's, and where it is too small
for those the line is flat (docs/theory/whitened-descent.md).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear.adaptive.noisy_sums import NoisySums, Query, growing_shares
from dplinear.arguments import choice, rejection
from dplinear.arrays import Floats
from dplinear.descent.common import Descent, PreparedDescent
from dplinear.descent.frame import Frame
from dplinear.descent.settings import Settings
from dplinear.descent.shrinkage import kept_share, sampling_factor
from dplinear.descent.steps import MOST_RESIDUAL, Ending, Steps
from dplinear.descent.survey import RowCount, Survey, survey
from dplinear.descent.wide_step import take_wide_step, wide_share
from dplinear.exact.design import Design
from dplinear.exact.residual_sums import Residuals
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.model import Solution

BOUND, CLUSTERED = "bound", "clustered"
_SCORES = Fraction(1, 10)  # of the budget, for the scores of units
_CLIPPED = 0.28  # root mean square of clipped targets: what is above may be any width
_UNKNOWN = (
    "The noise hides too much of this table for standard errors: how the features vary together, "
    "or whether there is a line at all. More rows, fewer features, tighter bounds or a larger ε "
    "would show it."
)
_HIDDEN = (
    "Some rows are so far from the line that clips which hold them would need noise that hides it, "
    "so no standard errors are given. More rows, fewer features, tighter bounds or a larger ε "
    "would show it."
)
_RESTLESS = (
    "The steps had not come to rest, as when few rows lie far from all others, so the coefficients "
    "may be far from the best ones, and no standard errors are given."
)


class PreparedWhitened(PreparedDescent):
    """Whitened descent with a budget, ready to run once."""

    def descend(self, sums: NoisySums) -> Solution:
        """Return where the steps end."""
        return _Run(self.design, sums, self.account, self.settings).solution()


@dataclass(frozen=True, kw_only=True)
class WhitenedDescent(Descent):
    """The least-squares line by noisy descent in whitened coordinates.

    `errors`, for rows that belong to units: "bound" gives standard errors that are upper bounds,
    whatever the correlation between rows of a unit; "clustered", for a tenth of the budget, those
    that the units' scores show.
    """

    errors: str = BOUND
    name: ClassVar[str] = "whitened_descent"
    prepared: ClassVar[type[PreparedDescent]] = PreparedWhitened

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self.errors, "errors", "WhitenedDescent", (BOUND, CLUSTERED))
        if self.errors == CLUSTERED and not self.by_unit:
            object.__setattr__(self, "settings", replace(self.settings, unit_scores=_SCORES))

    @property
    def by_unit(self) -> bool:
        """Whether sums over units are asked for, not over rows alone."""
        return self.settings.unit_scores > 0

    def prepare(self, design: Design) -> PreparedDescent:
        """Calibrate the whole chain."""
        if self.by_unit and (design.survey_alone or not design.weighted):
            hint = 'clustered errors are for rows that belong to units: name one, unit="patient".'
            raise rejection("errors", "WhitenedDescent", "left out without a unit", CLUSTERED, hint)
        return super().prepare(design)


class _Run:
    """One descent."""

    def __init__(
        self, design: Design, sums: NoisySums, account: Account, settings: Settings
    ) -> None:
        self.design, self.sums, self.account = design, sums, account
        self.settings = settings
        self.mu = sums.budget.mu
        self.shape = design.shape

    def solution(self) -> Solution:
        """Release everything in turn."""
        known = survey(self.design, self.sums, self.settings)
        row_count, white = known.row_count, known.white
        centred = self._sees_mean_residual(row_count, known.scale)
        wide = self._wide_share(known)
        kept_back = self.settings.bands + (self.settings.intercept if centred else 0)
        kept_back += self.settings.unit_scores + wide
        shares = growing_shares(known.steps, self.sums.remaining - kept_back)
        steps = Steps(self.sums, self.settings, known, shares)
        ending = steps.run()
        kept, step = self._shrinkage(ending, known), None
        reason = None if wide and (kept == 1).all() else _UNKNOWN
        if reason is not None and wide:  # no interval would be told, so the line has its share
            ending = steps.run_further(wide)
            kept = self._shrinkage(ending, known)
        theta, noise = ending.estimate.theta, ending.estimate.noise
        if reason is None:
            step = take_wide_step(self.sums, steps, ending, wide, row_count.design_effect)
            reason = _HIDDEN if step.hidden else _RESTLESS if step.restless else None
        moved = theta * kept if step is None else theta + step.move(noise)
        frame, coefficients, extra = known.frame, white.matrix @ moved, 0.0
        if centred:
            frame, extra = self._centre_residuals(frame, coefficients, row_count, ending.scale)
        said = self._no_scores if step is None else dict(step.parameters)
        solution = Solution(
            frame.readout(coefficients),
            self.account,
            self._parameters(ending, known) | said,
            noise=self._covariance(frame, white.matrix * (kept * np.sqrt(noise)), extra),
            unknown=reason,
            count=row_count.released,
        )
        if step is None or reason is not None:
            return solution
        return replace(
            solution,
            centre=known.frame.readout(white.matrix @ (theta + step.step)),
            noise=self._covariance(known.frame, white.matrix @ step.noise),
            spread=self._covariance(known.frame, white.matrix @ step.spread),
        )

    @property
    def _no_scores(self) -> dict[str, float]:
        """What a certificate says where clustered errors are asked for, and there are none."""
        return {"clustered_errors": 0.0} if self.settings.unit_scores else {}

    def _wide_share(self, known: Survey) -> Fraction:
        """Return what to keep back for a wide step: nothing where no standard errors can be."""
        if not known.white.clear:
            return Fraction(0)
        size = len(known.white.expected)
        return wide_share(self.settings, size, known.row_count.rows, self.mu)

    def _shrinkage(self, ending: Ending, known: Survey) -> Floats:
        """Return what to multiply the iterate by: see `shrinkage.py`."""
        estimate, curvature = ending.estimate, known.white.expected
        visible = known.row_count.released * self.mu
        kept = kept_share(estimate, ending.prior, curvature, visible)
        if ending.scale > _widest(known.scale):
            kept = 0.0 * kept
        if not known.white.clear:  # so that with little noise the line is that of least squares
            kept = kept * sampling_factor(estimate.theta, ending.sampling, curvature)
        return kept

    @staticmethod
    def _covariance(frame: Frame, root: Floats, extra: float = 0.0) -> Floats:
        """Return the covariance of the coefficients.

        `root` is a root of the covariance in the frame, `extra` a variance of the intercept alone.
        """
        covariance = frame.spread(root @ root.T)
        covariance[0, 0] += extra
        return covariance

    def _sees_mean_residual(self, row_count: RowCount, scale: float) -> bool:
        """Return whether the mean of the residuals would be more than noise."""
        if not self.settings.intercept:
            return False
        noise = 3 * scale / (math.sqrt(self.settings.intercept) * self.mu)
        return self.design.intercept and noise < 0.02 * row_count.rows

    def _centre_residuals(
        self, frame: Frame, coefficients: Floats, row_count: RowCount, scale: float
    ) -> tuple[Frame, float]:
        """Move the intercept to the mean of the residuals, clipped wide: errors may be skewed.

        The clip is so wide that its noise is what sampling errors are; returns its variance, too.
        """
        share = float(self.settings.intercept)
        wide = max(3.0, math.sqrt(share * row_count.rows) * self.mu)
        clip = min(wide * scale, MOST_RESIDUAL)
        residuals = Residuals(self.shape, frame.residual(coefficients), clip)
        (answer,) = self.sums.ask([Query(residuals, self.settings.intercept)])
        total, noise, n = float(answer.values[0]), answer.sigma, row_count.rows
        doubt = 9 * (noise**2 + n * scale**2)  # three standard deviations
        kept = 1 - doubt / total**2 if total**2 > doubt else 0.0
        return replace(frame, target_mean=frame.target_mean + kept * total / n), (
            kept * noise / n
        ) ** 2

    def _parameters(self, ending: Ending, known: Survey) -> dict[str, float]:
        return {
            "mu": self.mu,
            "steps": known.steps,
            "gram_seen": known.white.seen,
            "spent": float(1 - self.sums.remaining),
            "residual_scale": ending.scale,
            "residual_clip": ending.clip.residual,
            "gradient_clip": ending.clip.product,
        } | known.row_count.parameters


def _widest(scale: float) -> float:
    """Return how wide the residuals of no line may be; a line that has wider ones is worse.

    68% of them are within no more than their root mean square over √.32. That of the targets is
    clipped at ½, so where it is large enough for as many to be clipped it says nothing.
    """
    return scale / math.sqrt(0.32) if scale < _CLIPPED else MOST_RESIDUAL
