"""Simulated populations whose errors or columns are not what simple standard errors suppose.

Five columns. Errors are skewed (a standardised gamma variable; 0 is normal) and their spread
changes with the first column as exp(h·x₁), at a variance of 1 over all rows. Other shapes have
normal errors of one spread, and one thing that real tables have: a curved relation with a skewed
column, a column that is mostly 0, a rare column of 0 and 1, or rows and errors with the tails of t
with 4 degrees of freedom. Bounds are constants: 4 standard deviations of the columns, 8 of the
target, which the longest errors still go beyond.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from benchmarks.designs import BLOCK, WIDTH, seeded, tails
from benchmarks.rivals.common import Array
from benchmarks.truths import Truth, truth
from dplinear.noise import simulation

COLUMNS = 5
REFERENCE = 2_000_000  # rows that give the truth
TARGET_WIDTH = 8 * math.sqrt(2)  # of a signal and errors of variance 1 each
SLOPES = np.array([0.6, -0.5, 0.4, -0.4, 0.25])
SLOPES /= math.sqrt(float(SLOPES @ SLOPES))
SKEWS = (0.0, 1.0, 2.0)
SPREADS = (0.0, 0.25, 0.5)
CURVATURE = 0.3  # of the squared first column
SKEWED_WIDTH = 8.0  # a bound of a column with a long side, in standard deviations
MOSTLY_ZERO, RARE = 0.2, 0.02  # shares of the rows that have something there


@dataclass(frozen=True)
class ErrorDesign:
    """A population: a shape ("errors", or one of `SHAPES`), the errors' skewness and their h."""

    shape: str = "errors"
    skew: float = 0.0
    spread: float = 0.0

    @property
    def name(self) -> str:
        """Return what it is called in tables and options."""
        if self.shape == "errors":
            return f"skew{self.skew:g}_spread{self.spread:g}"
        return self.shape

    def block(self, count: int, generator: simulation.Generator) -> tuple[Array, Array]:
        """Return rows with their target, in cells."""
        rows, cells = self._columns(count, generator)
        errors = self._errors(rows[:, 0], count, generator)
        goal = rows @ SLOPES + errors
        if self.shape == "curved":
            goal += CURVATURE * (rows[:, 0] ** 2 - 1)
        return cells, np.clip(goal / TARGET_WIDTH, -1, 1)

    def _columns(self, count: int, generator: simulation.Generator) -> tuple[Array, Array]:
        """Return the columns at variance 1 (rare ones as they are), and as cells."""
        rows = generator.standard_normal((count, COLUMNS))
        if self.shape == "long_rows":
            rows *= tails("t4", count, generator)[:, None]
        cells = rows / WIDTH
        if self.shape == "curved":
            rows[:, 0] = generator.standard_exponential(count) - 1
            cells[:, 0] = 2 * (rows[:, 0] + 1) / SKEWED_WIDTH - 1
        elif self.shape == "mostly_zero":
            amount = generator.standard_exponential(count)
            rows[:, 0] = amount * (generator.random(count) < MOSTLY_ZERO)
            cells[:, 0] = 2 * rows[:, 0] / SKEWED_WIDTH - 1
        elif self.shape == "rare":
            rows[:, 0] = generator.random(count) < RARE
            cells[:, 0] = 2 * rows[:, 0] - 1
        return rows, np.clip(cells, -1, 1)

    def _errors(self, first: Array, count: int, generator: simulation.Generator) -> Array:
        if self.skew:
            power = 4 / self.skew**2
            errors = (generator.standard_gamma(power, count) - power) / math.sqrt(power)
        else:
            errors = generator.standard_normal(count)
        if self.shape == "long_rows":
            errors = errors * tails("t4", count, generator)
        # E exp(2h·x) = exp(2h²) for a normal column.
        return np.asarray(errors * np.exp(self.spread * first - self.spread**2))


def labelled(cells: Array, target: Array) -> tuple[Array, Array]:
    """Return labels in place of a target: 1 above the middle of its bounds, else -1."""
    return cells, np.where(target > 0, 1.0, -1.0)


@cache
def simulated_truth(design: ErrorDesign, loss: str) -> Truth:
    """Return the best line of a population's clamped cells, from very many rows."""

    def blocks() -> Iterator[tuple[Array, Array]]:
        generator = seeded("reference", design)
        for start in range(0, REFERENCE, BLOCK):
            made = design.block(min(BLOCK, REFERENCE - start), generator)
            yield labelled(*made) if loss == "logistic" else made

    return truth(blocks, loss)


SHAPES = ("curved", "mostly_zero", "rare", "long_rows")
DESIGNS = {
    design.name: design
    for design in (
        *(ErrorDesign("errors", *pair) for pair in product(SKEWS, SPREADS)),
        *(ErrorDesign(shape) for shape in SHAPES),
    )
}
