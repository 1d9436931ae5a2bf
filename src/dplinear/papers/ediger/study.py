"""The figures as lists of panels, and the runs that fill them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from dplinear.arrays import Floats
from dplinear.papers.ediger.populations import Population
from dplinear.papers.ediger.rivals import LEAST_SQUARES, RIVALS, excess, least_squares

RHO = 0.5
ROWS = (500, 1000, 2000, 3000, 4000)
RHOS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
BEYOND = (1000, 10_000, 100_000, 1_000_000)
NAMES = (*(rival.name for rival in RIVALS), LEAST_SQUARES)
_FEWER = 10  # repetitions beyond the paper's numbers of rows

Watch = Callable[[Sequence[tuple["Panel", int]]], Iterable[tuple["Panel", int]]]


@dataclass(frozen=True)
class Panel:
    """One panel: a population, along numbers of `rows` or, with one number of them, along ρ."""

    population: Population
    rows: tuple[int, ...] = ROWS
    rhos: tuple[float, ...] = (RHO,)

    @property
    def points(self) -> list[tuple[int, float]]:
        """The number of rows and the ρ of each point."""
        return [(rows, rho) for rows in self.rows for rho in self.rhos]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, by its number; 12 goes beyond it."""

    number: int
    title: str
    panels: tuple[Panel, ...]


def _low(number: int, title: str, **figures: float | str) -> Figure:
    sizes = (2, 5, 10)
    panels = tuple(Panel(Population(size, **figures)) for size in sizes)  # type: ignore[arg-type]
    return Figure(number, f"{title} (ρ = {RHO})", panels)


def _budgets(number: int, title: str, sizes: Sequence[int], **figures: float | str) -> Figure:
    panels = tuple(
        Panel(Population(size, **figures), (1000,), RHOS)  # type: ignore[arg-type]
        for size in sizes
    )
    return Figure(number, f"{title} (n = 1000)", panels)


FIGURES = {
    figure.number: figure
    for figure in (
        _low(2, "Few dimensions"),
        Figure(
            3,
            f"Many dimensions (ρ = {RHO})",
            tuple(Panel(Population(size)) for size in (25, 35, 50)),
        ),
        _budgets(4, "Effects of privacy", (5, 10)),
        Figure(5, f"Error functions (d = 5, ρ = {RHO})", (Panel(Population(5)),)),
        _low(6, "Two features highly correlated", covariance="block"),
        _low(7, "A multiple of the identity", covariance="multiple"),
        _budgets(8, "Effects of privacy, correlated features", (2, 5), covariance="block"),
        _low(9, "Means of 2", mean=2.0),
        _low(10, "Means of 10", mean=10.0),
        _budgets(11, "Effects of privacy, means of 2", (2, 5), mean=2.0),
        Figure(
            12,
            f"Beyond the paper (d = 10, ρ = {RHO})",
            tuple(
                Panel(Population(10, covariance, mean), BEYOND)
                for covariance, mean in (("identity", 0.0), ("block", 0.0), ("identity", 2.0))
            ),
        ),
    )
}


@dataclass(frozen=True, eq=False)
class Study:
    """Excess losses: for each panel, an array of (ways, points, repetitions).

    Ways are in the order of `NAMES`; repetitions that were not run are NaN.
    """

    losses: dict[Panel, Floats]

    def median(self, panel: Panel, name: str) -> Floats:
        """Return the median excess loss at each point."""
        return np.asarray(np.nanmedian(self.losses[panel][NAMES.index(name)], axis=-1))

    def mean(self, panel: Panel, name: str) -> Floats:
        """Return the mean excess loss at each point, as the paper draws it."""
        return np.asarray(np.nanmean(self.losses[panel][NAMES.index(name)], axis=-1))


def run(panels: Sequence[Panel], seed: int, *, repetitions: int = 50, watch: Watch = iter) -> Study:
    """Release lines of the same tables, by the same seeds, in every way.

    Beyond the paper's numbers of rows there are ten repetitions at most.
    """
    losses: dict[Panel, Floats] = {}
    todo = [(panel, index) for panel in panels for index in range(len(panel.points))]
    with threadpool_limits(1, user_api="blas"):  # matrices this small are slower in threads
        for panel, index in watch(todo):
            shape = (len(NAMES), len(panel.points), repetitions)
            found = losses.setdefault(panel, np.full(shape, math.nan))
            rows, rho = panel.points[index]
            count = repetitions if rows <= ROWS[-1] else min(repetitions, _FEWER)
            for repetition in range(count):
                own = table_seed(seed, rows, repetition)
                found[:, index, repetition] = _losses(panel.population, rows, rho, own)
    return Study(losses)


def _losses(population: Population, rows: int, rho: float, seed: int) -> list[float]:
    table = population.draw(rows, seed)
    cells = table.rows()
    found = [excess(rival, table, cells, rho, seed) for rival in RIVALS]
    return [*found, least_squares(table)]


def table_seed(seed: int, rows: int, repetition: int) -> int:
    """Return the seed of one table and of all its releases."""
    return (seed << 24 | rows) << 16 | repetition


# Of a line whose excess loss is known, on new rows whose errors are normal with variance 1.
ERRORS: dict[str, Callable[[Floats], Floats]] = {
    "squared error": lambda loss: 1 + loss,
    "excess squared error": lambda loss: loss,
    "absolute error": lambda loss: np.asarray(np.sqrt(2 / math.pi * (1 + loss))),
    "root mean squared error": lambda loss: np.asarray(np.sqrt(1 + loss)),
}
