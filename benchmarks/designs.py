"""Simulated tables with a known best line: sizes, condition numbers, light and heavy tails.

Rows are Gaussian, or multivariate t with 4 degrees of freedom: a row that is long is long in all
directions. Errors then have such tails too. The covariance has eigenvalues from 1 down to 1/κ in a
random rotation; the best line is random with signal variance 1, and the errors' variance is 1.
Bounds are four population standard deviations, fixed before any row is drawn; cells are clamped.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from benchmarks.rivals.common import Array, Line
from dplinear.noise import simulation

LAWS = ("gaussian", "t4")
BLOCK = 20_000  # rows drawn at once
WIDTH = 4.0  # standard deviations from the middle to a bound


def seeded(*parts: object) -> simulation.Generator:
    """Return a generator that belongs to these words and numbers alone."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return simulation.generator(int.from_bytes(digest[:8], "big"))


@dataclass(frozen=True)
class Design:
    """A population from which tables are drawn."""

    law: str
    rows: int
    columns: int
    condition: float


@dataclass(frozen=True)
class Simulated:
    """A table in cells, and what is true of the population it comes from."""

    rows: Array
    target: Array
    covariance: Array  # of the columns, in their own units
    best: Array  # the best coefficients, in those units
    half_widths: Array  # a column's bounds are minus and plus this
    target_half_width: float

    def excess_risk(self, line: Line) -> float:
        """Return E(prediction − best prediction)², the best one's variance being 1.

        So the best constant has 1 and least squares about d/n.
        """
        coefficients = line.coefficients * self.target_half_width / self.half_widths
        wrong = coefficients - self.best
        with np.errstate(over="ignore", invalid="ignore"):
            found = wrong @ self.covariance @ wrong
            found += (line.intercept * self.target_half_width) ** 2
        return float(found) if np.isfinite(found) else math.inf


def tails(law: str, count: int, generator: simulation.Generator) -> Array:
    """Return a factor for each row that gives it the law's tails at variance 1."""
    if law == "gaussian":
        return np.ones(count)
    return np.asarray(np.sqrt(2 / generator.chisquare(4, count)))


@dataclass(frozen=True)
class Population:
    """Where the rows of tables come from: their law, and what is true of them."""

    law: str
    root: Array  # of the covariance: root · rootᵀ
    best: Array
    half_widths: Array
    target_half_width: float

    def block(self, count: int, generator: simulation.Generator) -> tuple[Array, Array]:
        """Return rows and their target, in cells."""
        part = generator.standard_normal((count, len(self.best))) @ self.root.T
        part *= tails(self.law, count, generator)[:, None]
        errors = generator.standard_normal(count) * tails(self.law, count, generator)
        goal = part @ self.best + errors
        cells = np.clip(part / self.half_widths, -1, 1)
        return cells, np.clip(goal / self.target_half_width, -1, 1)

    def table(self, count: int, generator: simulation.Generator) -> Simulated:
        """Return a table, drawn in blocks into one array."""
        rows, target = np.empty((count, len(self.best))), np.empty(count)
        for start in range(0, count, BLOCK):
            end = min(start + BLOCK, count)
            rows[start:end], target[start:end] = self.block(end - start, generator)
        covariance = self.root @ self.root.T
        return Simulated(
            rows, target, covariance, self.best, self.half_widths, self.target_half_width
        )


def population(design: Design, generator: simulation.Generator) -> Population:
    """Return a population of the design: a rotation and a best line."""
    d = design.columns
    spectrum = np.geomspace(1.0, 1 / design.condition, d)
    rotation = np.linalg.qr(generator.standard_normal((d, d)))[0]
    root = rotation * np.sqrt(spectrum)
    covariance = root @ root.T
    best = generator.standard_normal(d)
    best /= math.sqrt(float(best @ covariance @ best))
    half_widths = WIDTH * np.sqrt(np.diag(covariance))
    return Population(design.law, root, best, half_widths, WIDTH * math.sqrt(2))


def draw(design: Design, generator: simulation.Generator) -> Simulated:
    """Return a table of a population of its own."""
    return population(design, generator).table(design.rows, generator)
