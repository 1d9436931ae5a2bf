"""What all descents share: which guarantees they keep, and the budget of all their steps."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from dplinear import arguments
from dplinear.adaptive.noisy_sums import Budget, NoisySums
from dplinear.descent.settings import Settings
from dplinear.descent.tails import BINS
from dplinear.descent.wide_step import EDGES
from dplinear.exact.design import Design
from dplinear.exact.rows import Rows
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.model import ModelMechanism, PreparedModel, Solution
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import ZCDP, Guarantee


def check_guarantee(guarantee: Guarantee, where: str) -> None:
    """Raise unless a chain of noisy sums can keep the guarantee."""
    rule = "an ApproxDP guarantee with ε and δ above 0, or a ZCDP one"
    if type(guarantee) in checks.GRID_HINTS:
        hint = checks.GRID_HINTS[type(guarantee)]
        raise arguments.wrong_type("guarantee", where, rule, guarantee, hint)
    if not isinstance(guarantee, ZCDP):
        checks.approximate(guarantee, where, "normal noise", rule)


@dataclass(frozen=True)
class PreparedDescent(PreparedModel):
    """A chain with a budget, ready to run once."""

    design: Design
    budget: Budget
    account: Account
    settings: Settings

    def run(self, rows: Rows, entropy: Entropy) -> Solution:
        """Release what it takes to descend, and return where that ends."""
        return self.descend(NoisySums(rows, self.budget, entropy))

    @abstractmethod
    def descend(self, sums: NoisySums) -> Solution:
        """Release what it takes, through the chain."""


@dataclass(frozen=True, kw_only=True)
class Descent(ModelMechanism):
    """A model by noisy steps over the rows, each of which depends on those before.

    Requires: integer rows within the bounds of the design; passes over them as often as it asks.
    Promises: `ApproxDP`, with the cost of the grid, or `ZCDP`, exactly, of everything it releases
    together. Numerics are exact.
    """

    settings: Settings = field(default_factory=Settings)
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True
    for_groups: ClassVar[bool] = True
    passes: ClassVar[bool] = True
    prepared: ClassVar[type[PreparedDescent]]
    matrices: ClassVar[int] = 0  # that a chain may ask for, beside the survey's and clustered ones

    def __post_init__(self) -> None:
        where = type(self).__name__
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, where))
        if not isinstance(self.settings, Settings):
            raise arguments.wrong_type("settings", where, "Settings", self.settings)
        check_guarantee(self.guarantee, where)

    def prepare(self, design: Design) -> PreparedDescent:
        """Calibrate the whole chain: a survey, and steps of a gradient and counts of residuals.

        The survey may ask for the count and for the Gram matrix twice.
        """
        p = design.dimension
        steps = max(self.settings.steps, self.settings.plain_steps)
        twice = self.settings.gram_first != self.settings.gram
        matrices = 1 + twice + self.matrices + bool(self.settings.unit_scores)
        coordinates = matrices * p * p + (steps + 1) * (p + 1 + 2 * BINS) + 8 + len(design.filled)
        coordinates += (2 * p * p + p + 2 * len(EDGES)) if self.settings.wide_most else 0
        where = type(self).__name__
        budget = Budget.of(self.guarantee, coordinates, self.neighbours, where, design.groups)
        account = checks.exact_account(self.guarantee, budget.profile)
        return self.prepared(design, budget, account, self.settings)
