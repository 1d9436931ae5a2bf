"""Linear regression by CoinPress: the scale of everything is found, and nothing is assumed known.

Ediger 2021, "CoinPress Extension: Linear Regression", on Biswas, Dong, Kamath, Ullman 2020 (arXiv
2006.06618). Here the mean of x·y is a first round only: later ones estimate what is left over, so
that noise and clips shrink to the size of the residuals (docs/theory/coinpress-regression.md).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.adaptive.noisy_sums import Budget, NoisySums
from dplinear.arrays import Floats
from dplinear.coinpress.local_frame import SHARES, STRUCTURES, LocalFrame, find_local_frame
from dplinear.coinpress.octaves import BINS
from dplinear.coinpress.rounds import RADII, Ending, run_rounds
from dplinear.descent.common import check_guarantee
from dplinear.exact.design import Design
from dplinear.exact.rows import Rows
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.model import ModelMechanism, PreparedModel, Solution
from dplinear.noise.entropy import Entropy

STEPS = 10
_MOST_STEPS = 50
_WHERE = "CoinPressRegression"
_UNCLEAR = (
    "The noise hides how the features vary together, so no standard errors are given. More rows, "
    "fewer features or a larger budget would show it."
)
_RESTLESS = (
    "The rounds had not come to rest, so the coefficients may be far from the best ones, and no "
    "standard errors are given. More steps, or a larger budget, would bring them there."
)
_SKEWED = (
    "The residuals are skewed, or few rows have much larger ones than the others, and clips moved "
    "the line by more than noise would. It was moved back as far as the budget shows, but how much "
    "is left is not known, so no standard errors are given. A larger budget would clip less."
)


@dataclass(frozen=True)
class PreparedCoinPress(PreparedModel):
    """A chain with a budget, ready to run once."""

    design: Design
    budget: Budget
    account: Account
    steps: int
    radius: str
    structure: str

    def run(self, rows: Rows, entropy: Entropy) -> Solution:
        """Look around, press, and return where the rounds end."""
        sums = NoisySums(rows, self.budget, entropy)
        around = find_local_frame(sums, self.design, self.structure)
        ending = run_rounds(sums, around, steps=self.steps, shares=SHARES, radius=self.radius)
        reason = _no_errors_reason(ending, around)
        row_count = around.row_count
        spread = ending.noise + row_count.design_effect * ending.sampling + ending.unknown
        frame = replace(around.frame, target_mean=around.frame.target_mean + ending.offset)
        noise = _covariance(around, ending.noise)
        noise[0, 0] += ending.offset_noise  # none without an intercept
        return Solution(
            frame.readout(around.matrix @ ending.theta),
            self.account,
            {
                "mu": self.budget.mu,
                "steps": self.steps,
                "spent": float(1 - sums.remaining),
                "residual_scale": ending.scale,
                "radius": ending.radius,
                **row_count.parameters,
            },
            noise=noise,
            spread=None if reason else _covariance(around, spread),
            unknown=reason,
            count=row_count.released,
        )


@dataclass(frozen=True, kw_only=True)
class CoinPressRegression(ModelMechanism):
    """The least-squares line by CoinPress, for rows whose scale and middle nobody has to know.

    Requires: integer rows within the bounds of the design, which may be a thousand times wider than
    what columns hold; passes over them. `steps`, the number of rounds. `structure`: "general";
    "covariance", features around the middle of their bounds; "mean", features that are uncorrelated
    and of one size; "identity", both. `radius`, of the clip of a row's product: "planned" for the
    least expected error, "gaussian" as in the paper, "subexponential" to clip next to nothing.
    Promises: `ApproxDP`, with the cost of the grid, or `ZCDP`, exactly, of everything together, all
    of it spent. Numerics are exact.
    Departs from the paper: residual rounds; scales are found by a histogram of octaves instead of
    steps from starting values; all of ρ is spent, where Algorithms 3, 5 and 6 leave .45, .43 and .3
    of it; any noise variance; means, covariances and intercept together; a noisy count under
    add_remove; rounds that made the loss clearly worse are taken back; a last sum with a wide clip.
    """

    steps: int = STEPS
    radius: str | None = None
    structure: str = "general"
    name: ClassVar[str] = "coinpress"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True
    for_groups: ClassVar[bool] = True
    passes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        check_guarantee(self.guarantee, _WHERE)
        arguments.integer(self.steps, "steps", _WHERE, low=1, high=_MOST_STEPS)
        arguments.choice(self.structure, "structure", _WHERE, STRUCTURES)
        if self.radius is not None:
            arguments.choice(self.radius, "radius", _WHERE, RADII)

    def prepare(self, design: Design) -> PreparedModel:
        """Calibrate the whole chain; every sum that may be asked for is counted."""
        p = design.dimension
        coordinates = 2 * p * p + (2 * BINS + 1) * (p + 1) + (self.steps + 1) * (p + 1) + 2
        coordinates += design.leaves_out + design.surveyed + len(design.filled)
        budget = Budget.of(self.guarantee, coordinates, self.neighbours, _WHERE, design.groups)
        account = checks.exact_account(self.guarantee, budget.profile)
        radius = self.radius or "planned"
        return PreparedCoinPress(design, budget, account, self.steps, radius, self.structure)


def _covariance(around: LocalFrame, variances: Floats) -> Floats:
    """Return the covariance of the coefficients in the design's own cells."""
    root = around.matrix * np.sqrt(variances)
    return around.frame.spread(root @ root.T)


def _no_errors_reason(ending: Ending, around: LocalFrame) -> str | None:
    """Return why there are no standard errors, or None."""
    if not around.clear:
        return _UNCLEAR
    if ending.skewed:
        return _SKEWED
    known = ending.noise + ending.sampling
    return _RESTLESS if bool((ending.unknown > 9 * known).any()) else None
