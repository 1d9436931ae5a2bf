"""The ways that are compared: the paper's algorithms, ours, and least squares without privacy."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dplinear.coinpress.regression import CoinPressRegression
from dplinear.mechanisms.model import PreparedModel
from dplinear.noise import simulation
from dplinear.papers.ediger.populations import BOUND, Population, Table, design
from dplinear.papers.ediger.published import SPENT, PublishedCoinPress
from dplinear.planner.simulated import SimulatedRows
from dplinear.privacy.guarantees import ZCDP
from dplinear.privacy.neighbours import Neighbours


@dataclass(frozen=True)
class Rival:
    """A way to a line. `published`: by the paper's algorithm; `whole`: made to spend all of ρ."""

    name: str
    published: bool = False
    whole: bool = False


PAPER = Rival("the paper's algorithm", published=True)
WHOLE = Rival("the same, spending all of ρ", published=True, whole=True)
OURS = Rival("ours, nothing assumed")
RIVALS = (PAPER, WHOLE, OURS)
LEAST_SQUARES = "least squares, no privacy"


def structure_of(population: Population) -> str:
    """Return which of the paper's algorithms is meant for a population."""
    if population.mean:
        return "mean"
    return "identity" if population.covariance == "identity" else "covariance"


@lru_cache(maxsize=256)
def prepare_rival(rival: Rival, population: Population, rho: float) -> PreparedModel:
    """Calibrate a rival."""
    if not rival.published:
        solver = CoinPressRegression(guarantee=ZCDP(rho), neighbours=Neighbours.REPLACE)
        return solver.prepare(design(population.size))
    structure = structure_of(population)
    spent = SPENT[structure] if rival.whole else Fraction(1)
    algorithm = PublishedCoinPress(
        guarantee=ZCDP(rho / float(spent)),
        neighbours=Neighbours.REPLACE,
        structure=structure,
        unit=1 / BOUND,
    )
    return algorithm.prepare(design(population.size, intercept=structure == "mean"))


def excess(rival: Rival, table: Table, rows: SimulatedRows, rho: float, seed: int) -> float:
    """Release a line, and return its excess loss.

    The paper throws the intercept of Algorithm 6 away, and predicts without.
    """
    ready = prepare_rival(rival, table.population, rho)
    found = ready.run(rows, simulation.entropy(seed)).coefficients
    own = found[1:] if ready.design.intercept else found
    intercept = 0.0 if rival.published else float(found[0]) * BOUND
    return table.excess(own, intercept)


def least_squares(table: Table) -> float:
    """Return the excess loss of least squares with an intercept."""
    centre, middle = table.features.mean(axis=0), float(table.target.mean())
    moved = table.features - centre
    slopes = np.linalg.solve(moved.T @ moved, moved.T @ (table.target - middle))
    return table.excess(slopes, middle - float(centre @ slopes))
