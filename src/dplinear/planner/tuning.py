"""How the descent's settings stand against their neighbours: paired simulations.

    python -m dplinear.planner.tuning --tables 10

Each alternative differs from the defaults in one field, and fits the same tables with noise of the
same seeds. What is printed is the geometric mean of its excess risk over the defaults', with a 95%
interval for the draw of tables; populations and budgets are fixed, and count the same. The tables
have no survey weights and no units, so shares for those have no alternatives here.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

from dplinear.arrays import Floats
from dplinear.descent.common import PreparedDescent
from dplinear.descent.settings import Settings
from dplinear.descent.whitened import WhitenedDescent
from dplinear.noise import simulation
from dplinear.planner.populations import Kind, Population, seed_of
from dplinear.planner.simulated import plain_design
from dplinear.privacy.guarantees import ApproxDP

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 4.0)
SIZES: tuple[tuple[int, Kind], ...] = (
    (1_000, Kind(10)),
    (1_000, Kind(20, condition=100.0)),
    (3_000, Kind(10, tails="heavy")),
    (10_000, Kind(10, explained=0.2)),
    (10_000, Kind(5, condition=1e4, tails="heavy")),
    (10_000, Kind(20, explained=0.9)),
    (10_000, Kind(40, condition=100.0)),
    (30_000, Kind(10, condition=100.0, width=8.0)),
)
_SHARES = (
    "count",
    "count_first",
    "left_out",
    "feature_sums",
    "target_sum",
    "squares",
    "gram",
    "gram_first",
    "bands",
    "intercept",
)
_OTHERS: Mapping[str, tuple[float, float]] = {
    "steps": (8, 16),
    "plain_steps": (12, 48),
    "gram_from": (9.0, 36.0),
    "prior": (0.25, 0.75),
}


@dataclass(frozen=True)
class Job:
    """One table at one budget, for all settings: `size` is a place in `SIZES`."""

    size: int
    epsilon: float
    table: int
    seed: int


@dataclass(frozen=True)
class Ratio:
    """The geometric mean of a ratio of risks, and its 95% interval."""

    mean: float
    low: float
    high: float


def alternatives() -> dict[str, Settings]:
    """Return the settings to compare with the defaults, by what differs."""
    default = Settings()
    changes: list[tuple[str, dict[str, Any]]] = []
    for name in _SHARES:
        share = getattr(default, name)
        changes += [(f"{name} halved", {name: share / 2}), (f"{name} doubled", {name: share * 2})]
    for name, values in _OTHERS.items():
        changes += [(f"{name} {value:g}", {name: value}) for value in values]
    return {words: replace(default, **change) for words, change in changes}


@cache
def _prepare_descents(columns: int, epsilon: float) -> tuple[PreparedDescent, ...]:
    """Return the descents to compare, the default one first."""
    guarantee, design = ApproxDP(epsilon, DELTA), plain_design(columns)
    return tuple(
        WhitenedDescent(guarantee=guarantee, settings=settings).prepare(design)
        for settings in (Settings(), *alternatives().values())
    )


def log_risks(job: Job) -> Floats:
    """Return the logarithm of the excess risk of each descent on one table."""
    rows, kind = SIZES[job.size]
    generator = simulation.generator(seed_of("tuning", job.seed, job.size, job.table))
    with threadpool_limits(1, "blas"):
        population = Population.draw(kind, generator)
        table = population.table(rows, generator)
        noise = seed_of("noise", job)
        solutions = (
            prepared.run(table, simulation.entropy(noise))
            for prepared in _prepare_descents(kind.columns, job.epsilon)
        )
        risks = [population.excess(solution.coefficients) for solution in solutions]
    return np.log(risks)


def ratio(differences: Floats) -> Ratio:
    """Return the ratio that logarithms differ by, shape (cells, tables).

    Cells are fixed and tables random, so the error of the mean is that of each cell's own mean.
    """
    cells, tables = differences.shape
    mean = float(differences.mean())
    error = math.sqrt(float(differences.var(axis=1, ddof=1).sum()) / tables) / cells
    return Ratio(*(math.exp(mean + z * error) for z in (0.0, -1.96, 1.96)))


def jobs(tables: int, seed: int) -> list[Job]:
    """Return the work, cell by cell."""
    cells = product(range(len(SIZES)), EPSILONS)
    return [Job(size, epsilon, table, seed) for size, epsilon in cells for table in range(tables)]


def compare(found: Mapping[Job, Floats], tables: int) -> dict[str, Ratio]:
    """Return the ratio of each alternative to the defaults."""
    ordered = np.array([found[job] for job in sorted(found, key=_order)])
    differences = (ordered[:, 1:] - ordered[:, :1]).T
    return {
        name: ratio(values.reshape(-1, tables))
        for name, values in zip(alternatives(), differences, strict=True)
    }


def _order(job: Job) -> tuple[int, float, int]:
    return job.size, job.epsilon, job.table


def _run_all(work: Sequence[Job], processes: int) -> Iterator[tuple[Job, Floats]]:
    """Yield results as they come, the longest jobs begun first; one process is this one."""
    longest = sorted(work, key=lambda job: -SIZES[job.size][0] * SIZES[job.size][1].columns)
    if processes == 1:
        yield from ((job, log_risks(job)) for job in longest)
        return
    with ProcessPoolExecutor(processes) as pool:
        futures = {pool.submit(log_risks, job): job for job in longest}
        for future in as_completed(futures):
            yield futures[future], future.result()


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Run the comparison as the command line asks."""
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.planner.tuning",
        description="Compare the settings of whitened descent with their neighbours.",
    )
    parser.add_argument("--tables", type=int, default=10, help="for each population and budget")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    if chosen.tables < 2:
        parser.error("--tables must be at least 2, for an interval")
    console = console or Console()
    work = jobs(chosen.tables, chosen.seed)
    done = _run_all(work, chosen.processes)
    found = dict(track(done, "Simulating", total=len(work), console=console, transient=True))
    budgets = ", ".join(f"{epsilon:g}" for epsilon in EPSILONS)
    console.print(
        f"Excess risk over the defaults': {len(SIZES)} populations, ε = {budgets}, "
        f"δ = {DELTA:g}, {chosen.tables} tables each. Above 1, the default is better."
    )
    console.print(comparison_table(compare(found, chosen.tables)))


def comparison_table(ratios: Mapping[str, Ratio]) -> Table:
    """Return the comparison as a table to print."""
    table = Table("setting", "ratio", "95% interval")
    for name, found in ratios.items():
        table.add_row(name, f"{found.mean:.3f}", f"{found.low:.3f} to {found.high:.3f}")
    return table


if __name__ == "__main__":
    main()
