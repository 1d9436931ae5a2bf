"""Every cell of the contest, and what its figures say: who wins where, and how `auto` would do."""

import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from dplinear.papers.kasiviswanathan.contest import (
    TRIVIAL,
    Contestant,
    Ground,
    automatic,
    contestants,
    guarantee,
)
from dplinear.papers.kasiviswanathan.tables import Text

LOSSES = ("squared", "logistic", "hinge")
CLOSE = 1.1  # times the winner's excess: as good as the winner

Watch = Callable[[Sequence["Errand"]], Iterable["Errand"]]


@dataclass(frozen=True, order=True)
class Cell:
    """One question: a loss, sizes, ε, and whether the guarantee is pure."""

    loss: str
    rows: int
    features: int
    epsilon: float
    pure: bool


@dataclass(frozen=True)
class Plan:
    """Which tables are drawn, and what is asked of each.

    A table of so many (rows, features) has its values of ε and numbers of dimensions. The first is
    the one that the others are variations of.
    """

    tables: dict[tuple[int, int], tuple[tuple[float, ...], tuple[int, ...]]]
    repetitions: int = 3
    losses: tuple[str, ...] = LOSSES

    @property
    def usual(self) -> float:
        """The ε that all tables share."""
        lists = [set(epsilons) for epsilons, _ in self.tables.values()]
        return min(set.intersection(*lists))

    @property
    def base(self) -> tuple[int, int]:
        """The first table's numbers of rows and features."""
        return next(iter(self.tables))

    def cells(self) -> Iterator[Cell]:
        """Yield all cells."""
        for loss in self.losses:
            for (rows, features), (epsilons, _) in self.tables.items():
                for pure in (False, True):
                    yield from (Cell(loss, rows, features, e, pure) for e in epsilons)


FULL = Plan(
    {
        (20_000, 5_000): ((0.1, 1.0, 4.0), (25, 50, 100, 200, 400, 1000)),
        (20_000, 10_000): ((1.0,), (50, 100, 400, 1000)),
        (2_000, 5_000): ((1.0,), (50, 100, 400, 1000)),
        (100_000, 5_000): ((1.0,), (50, 100, 400)),
    }
)
QUICK = Plan(
    {
        (1_000, 200): ((1.0, 8.0), (25, 100)),
        (1_000, 400): ((8.0,), (25, 100)),
    },
    repetitions=1,
    losses=("squared",),
)


@dataclass(frozen=True)
class Errand:
    """All that is done with one table."""

    loss: str
    rows: int
    features: int
    epsilons: tuple[float, ...]
    dimensions: tuple[int, ...]
    repetition: int
    seed: int

    @property
    def own_seed(self) -> int:
        """The seed of the table."""
        return ((self.seed << 10 | self.repetition) << 2) | LOSSES.index(self.loss)


@dataclass(frozen=True)
class Table:
    """What one table gave: excesses by cell and contestant, and the facts they stand beside."""

    excess: dict[tuple[Cell, Contestant], float]
    least: dict[Cell, float]


@dataclass(frozen=True, eq=False)
class Study:
    """Excess risks of every contestant in every cell, a number for each repetition."""

    plan: Plan
    excess: dict[tuple[Cell, Contestant], list[float]]
    least: dict[Cell, list[float]]

    def field(self, cell: Cell) -> list[Contestant]:
        """Return who took part in a cell."""
        return [who for here, who in self.excess if here == cell]

    def mean(self, cell: Cell, who: Contestant) -> float:
        """Return the mean excess."""
        return float(np.mean(self.excess[cell, who]))

    def relative(self, cell: Cell, who: Contestant) -> float:
        """Return the mean excess, where the trivial model's is 1."""
        return self.mean(cell, who) / self.mean(cell, Contestant(TRIVIAL))

    def winner(self, cell: Cell, among: Callable[[Contestant], bool] = bool) -> Contestant:
        """Return who has the least mean excess, of all or of some."""
        chosen = [who for who in self.field(cell) if among(who)]
        return min(chosen, key=lambda who: self.mean(cell, who))

    def best_compressed(self, cell: Cell) -> Contestant:
        """Return the best that sees projected rows only."""
        return self.winner(cell, lambda who: who.dimension > 0)

    def risk(self, cell: Cell, who: Contestant) -> float:
        """Return the mean risk: the least one of the set, and the excess."""
        return float(np.mean(self.least[cell])) + self.mean(cell, who)

    def automatic(self, cell: Cell) -> Contestant:
        """Return what the planner chooses in a cell."""
        asked = guarantee(cell.epsilon, pure=cell.pure)
        return automatic(cell.loss, cell.rows, cell.features, asked)

    def behind(self, cell: Cell) -> float:
        """Return the planner's choice's excess, divided by the winner's."""
        best = self.mean(cell, self.winner(cell))
        return self.mean(cell, self.automatic(cell)) / max(best, 1e-12)

    def close(self, cells: Sequence[Cell]) -> float:
        """Return the share of cells in which the planner's choice is as good as the winner."""
        return sum(self.behind(cell) <= CLOSE for cell in cells) / len(cells)

    def doubling(self, loss: str, *, pure: bool = False) -> tuple[float, float]:
        """Return how risk and excess of the best compressed learner change with twice the features.

        In parts of what they were.
        """
        rows, features = self.plan.base
        epsilon = self.plan.usual
        cells = [Cell(loss, rows, each, epsilon, pure) for each in (features, 2 * features)]
        pair = [(cell, self.best_compressed(cell)) for cell in cells]
        risks = [self.risk(*each) for each in pair]
        excesses = [self.relative(*each) for each in pair]
        return risks[1] / risks[0] - 1, excesses[1] / excesses[0] - 1


def run(plan: Plan, seed: int, *, processes: int = 1, watch: Watch = iter) -> Study:
    """Draw all tables and let everyone learn from them.

    `processes` share the errands, largest first. `watch` wraps the loop over them.
    """
    errands = [
        Errand(loss, rows, features, epsilons, dimensions, repetition, seed)
        for (rows, features), (epsilons, dimensions) in plan.tables.items()
        for repetition in range(plan.repetitions)
        for loss in plan.losses
    ]
    errands.sort(key=lambda errand: -errand.rows * errand.features * len(errand.epsilons))
    found: dict[Errand, Table] = {}
    if processes == 1:
        for errand in watch(errands):
            found[errand] = run_errand(errand)
    else:
        # Threads of BLAS do not survive a fork.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            waiting = {pool.submit(run_errand, errand): errand for errand in errands}
            ended = as_completed(waiting)
            for _ in watch(errands):
                future = next(ended)
                found[waiting[future]] = future.result()
    excess: dict[tuple[Cell, Contestant], list[float]] = {}
    least: dict[Cell, list[float]] = {}
    for errand in sorted(found, key=lambda each: each.repetition):
        for key, value in found[errand].excess.items():
            excess.setdefault(key, []).append(value)
        for cell, value in found[errand].least.items():
            least.setdefault(cell, []).append(value)
    return Study(plan, excess, least)


def run_errand(errand: Errand) -> Table:
    """Let everyone learn from one table."""
    excess: dict[tuple[Cell, Contestant], float] = {}
    least: dict[Cell, float] = {}
    # Two processes share two cores.
    with threadpool_limits(1, user_api="blas"):
        text = Text.draw(errand.loss, errand.rows, errand.features, errand.own_seed)
        for dimension in (0, *errand.dimensions):
            ground = Ground(text, dimension, errand.own_seed)
            for cell in _list_cells(errand):
                asked = guarantee(cell.epsilon, pure=cell.pure)
                least[cell] = text.least
                for who in contestants(cell.loss, errand.dimensions, pure=cell.pure):
                    if who.dimension == dimension:
                        model = ground.model(who, asked, errand.own_seed)
                        excess[cell, who] = text.excess(model)
    return Table(excess, least)


def _list_cells(errand: Errand) -> Iterator[Cell]:
    for epsilon in errand.epsilons:
        for pure in (False, True):
            yield Cell(errand.loss, errand.rows, errand.features, epsilon, pure)


def ratio(value: float) -> str:
    """Return a relative excess as text."""
    return f"{value:.3f}" if math.isfinite(value) and value < 10 else ">10"
