"""The tables of Ediger 2021: normal features, normal coefficients, errors of variance 1."""

from dataclasses import dataclass, replace

import numpy as np

from dplinear.arrays import Floats
from dplinear.exact.design import Design
from dplinear.noise import simulation
from dplinear.planner.simulated import SimulatedRows, plain_design

BOUND = 256.0  # of every column: public, and far wider than any of them


@dataclass(frozen=True)
class Population:
    """The law of a table: `size` features of a covariance, all of one mean.

    "block" has [[6, 2], [2, 1]] for the first two features, "multiple" is ten times the identity.
    """

    size: int
    covariance: str = "identity"
    mean: float = 0.0

    @property
    def matrix(self) -> Floats:
        """The features' covariance."""
        matrix = np.eye(self.size)
        if self.covariance == "multiple":
            return 10 * matrix
        if self.covariance == "block":
            matrix[:2, :2] = [[6.0, 2.0], [2.0, 1.0]]
        return matrix

    def draw(self, rows: int, seed: int) -> "Table":
        """Draw coefficients, then a table."""
        generator = simulation.generator(seed)
        coefficients = generator.standard_normal(self.size)
        root = np.linalg.cholesky(self.matrix)
        features = generator.standard_normal((rows, self.size)) @ root.T + self.mean
        target = features @ coefficients + generator.standard_normal(rows)
        return Table(self, coefficients, features, target)


@dataclass(frozen=True, eq=False)
class Table:
    """A simulated table, and the coefficients that made it."""

    population: Population
    coefficients: Floats
    features: Floats
    target: Floats

    def rows(self) -> SimulatedRows:
        """Return the rows of cells that a solver sees: a constant, the features, the target."""
        cells = np.column_stack((self.features, self.target)) / BOUND
        whole = np.column_stack((np.ones(len(cells)), np.clip(cells, -1.0, 1.0)))
        return SimulatedRows(design(self.population.size).shape, iter([whole]))

    def excess(self, coefficients: Floats, intercept: float) -> float:
        """Return how much larger the expected squared error on new rows is than that of β."""
        off = coefficients - self.coefficients
        shift = intercept + self.population.mean * float(off.sum())
        return float(off @ self.population.matrix @ off) + shift**2


def design(size: int, *, intercept: bool = True) -> Design:
    """Return the design of a regression on so many features, with or without the constant."""
    whole = plain_design(size)
    if intercept:
        return whole
    return replace(
        whole, features=whole.features[1:], intercept=False, indicators=whole.indicators[1:]
    )
