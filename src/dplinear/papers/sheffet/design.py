"""The table of Sheffet 2015, §6, in public terms: its law, its bounds, and draws of its moments.

Twenty standard normal columns x, and twenty columns y = x·β + e, each with coefficients β of its
own, |β| = 3.2, and a noise e of standard deviation 0.5.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar

from dplinear.arrays import Floats
from dplinear.exact.grid import Grid
from dplinear.exact.shape import Shape, Statistic
from dplinear.noise import simulation
from dplinear.schema import Schema

COLUMNS = 20
LENGTH = 3.2
NOISE = 0.5
EXPONENTS = tuple(range(12, 28))
REDUNDANT = (0, 1, 2, 5, 10, 19)
# That one of the largest tables holds a row beyond the bound.
CLIPPED = 1e-9


@dataclass(frozen=True, eq=False)
class Design:
    """The law of the rows, and the public bounds that a curator would declare for them.

    `coefficients` has β of the i-th y in column i. `units` are the columns' public scales: what a
    column is divided by before rows are bounded. A row so divided has norm at most `bound` in all
    of the largest table, but for a chance of 1e-9, so drawing moments of unclipped rows changes the
    law of any result by no more than that.
    """

    coefficients: Floats
    units: Floats

    @classmethod
    def draw(cls, seed: int, *, standardised: bool = True) -> "Design":
        """Draw the coefficients: uniform directions, all of the paper's length.

        `standardised` divides each column by its standard deviation, which the design makes
        public; otherwise every column keeps its own unit.
        """
        normal = simulation.generator(seed).standard_normal((COLUMNS, COLUMNS))
        coefficients = LENGTH * normal / np.linalg.norm(normal, axis=0)
        spread = math.hypot(LENGTH, NOISE) if standardised else 1.0
        units = np.concatenate([np.ones(COLUMNS), np.full(COLUMNS, spread)])
        return cls(coefficients, units)

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return len(self.units)

    @cached_property
    def covariance(self) -> Floats:
        """The second moments of a row, in the columns' own units."""
        b = self.coefficients
        own = b.T @ b + NOISE**2 * np.eye(COLUMNS)
        return np.block([[np.eye(COLUMNS), b], [b.T, own]])

    @cached_property
    def bound(self) -> float:
        """The norm that rows, each column divided by its unit, stay below; three digits."""
        scaled = self.covariance / np.outer(self.units, self.units)
        probability = CLIPPED / 2 ** EXPONENTS[-1]
        weights = np.asarray(np.linalg.eigvalsh(scaled), np.float64)
        square = quadratic_quantile(weights, probability)
        return math.ceil(math.sqrt(square) * 10) / 10

    @property
    def cells(self) -> Floats:
        """The second moments of a row of cells: of norm at most 1."""
        return np.asarray(self.covariance / np.outer(self.units, self.units) / self.bound**2)

    @cached_property
    def schema(self) -> Schema:
        """The columns within ±bound units, and rows of cells of norm at most 1."""
        width = self.bound * self.units
        columns = {name: (-w, w) for name, w in zip(self.names, width.tolist(), strict=True)}
        return Schema(columns, intercept=False, row_norm=1)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns: x1 … x20, y1 … y20."""
        return tuple(f"{letter}{i + 1}" for letter in "xy" for i in range(COLUMNS))

    @cached_property
    def shape(self) -> Shape:
        """What mechanisms are told before they see a table."""
        grid = Grid.of(self.schema)
        return Shape(self.dimension, grid.steps_per_unit, grid.exponent)

    def indices(self, redundant: int) -> list[int]:
        """Return the features (all x, the first y's) and, last, the target (the last y)."""
        return [*range(COLUMNS + redundant), self.dimension - 1]

    def truth(self, redundant: int) -> Floats:
        """Return the coefficients of the target: zero for the redundant features."""
        return np.concatenate([self.coefficients[:, -1], np.zeros(redundant)])

    def readout(self, redundant: int) -> Floats:
        """Return what turns coefficients of cells into those of the columns' own units."""
        units = self.units[self.indices(redundant)]
        return np.asarray(units[-1] / units[:-1])

    def moments(self, rows: int, generator: simulation.Generator) -> Statistic:
        """Draw the moments of `rows` rows at once, as the Wishart matrix that they are.

        The cost does not depend on the number of rows. Entries are rounded to the grid once, where
        a pass over rows rounds each cell.
        """
        half = np.linalg.cholesky(self.cells) @ _bartlett(self.dimension, rows, generator)
        integers = np.rint(np.tril(half @ half.T) * self.shape.unit)
        exact = np.array([int(entry) for entry in integers.ravel()], object)
        lower = exact.reshape(integers.shape)
        return Statistic(self.shape, lower + np.tril(lower, -1).T, rows)


def quadratic_quantile(weights: Floats, probability: float) -> float:
    """Return t with P(Σ wᵢgᵢ² > t) ≤ chance, for independent standard normal gᵢ.

    Chernoff's bound: t = (ln(1/chance) − ½Σ ln(1 − 2swᵢ))/s holds for any 0 < s < 1/(2·max w);
    this is the t of the best s.
    """
    largest = float(weights.max())

    def threshold(share: float) -> float:
        s = share / (2 * largest)
        growth = -0.5 * float(np.log1p(-2 * s * weights).sum())
        return (growth - math.log(probability)) / s

    found = minimize_scalar(threshold, bounds=(1e-6, 1 - 1e-9), method="bounded")
    return threshold(float(found.x))


def _bartlett(dimension: int, degrees: int, generator: simulation.Generator) -> Floats:
    """Draw the lower triangle A with A Aᵀ ~ Wishart(I, degrees)."""
    triangle = np.tril(generator.standard_normal((dimension, dimension)), -1)
    squares = generator.chisquare(degrees - np.arange(dimension))
    return np.asarray(triangle + np.diag(np.sqrt(squares)))
