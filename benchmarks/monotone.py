"""Does a larger budget always give a better model? Medians of risk over ε, on real tables.

    python benchmarks/monotone.py
    python benchmarks/monotone.py --designs savings movies --mechanisms whitened_descent --tables 40

Tables are drawn from real populations (`real_populations.py`), all mechanisms of the squared loss
fit those with numbers and the logistic one those with labels. Risks are the mean squared error
beyond the population's least squares, divided by the target's variance, or the log-loss beyond its
likeliest line. Beside them stands the same of the table's own line without privacy.

A cell is flagged where some larger budget is worse than a smaller one: its risk is larger in so
many of the same tables that even chances would flag anything in one run of 50 (a sign test of
pairs, shared among all pairs of budgets in all cells), and by a tenth at least in the median table.
For all tables and mechanisms that takes 19 of 20. Noise that is as good as gone leaves the rows'
own error, which does not depend on ε, so small changes there are no fault.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import binom
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import real_populations
from benchmarks.honest_coverage import Cell, drawn, fitted, released
from benchmarks.rivals.common import Array
from dplinear.registry import MODELS

EPSILONS = (0.3, 1.0, 3.0, 10.0, 100.0)
ROWS = 8_000
ALARM = 0.02
WORSE = 1.1  # times the risk at a smaller budget
LOSSES = {"regression": "squared", "label": "logistic"}


@dataclass(frozen=True)
class Job:
    """A population and one mechanism on it."""

    name: str
    mechanism: str

    @property
    def loss(self) -> str:
        """Return the loss of the population's kind of target."""
        return LOSSES[real_populations.RECORDS[self.name].kind]


@dataclass(frozen=True)
class Rise:
    """Two budgets of which the larger is worse: by how much, and how likely by chance."""

    smaller: float
    larger: float
    ratio: float
    chance: float

    def __str__(self) -> str:
        return f"{self.smaller:g}→{self.larger:g} ×{self.ratio:.3g}"


def risks(job: Job, rows: int, repetition: int) -> Array:
    """Return the risks of one table: at every budget, then without privacy."""
    best = real_populations.load(job.name).truth
    table = drawn(Cell(job.name, rows, EPSILONS[0]), job.loss, repetition)
    found = []
    with threadpool_limits(1):
        for epsilon in EPSILONS:
            cell = Cell(job.name, rows, epsilon)
            release = released(cell, table, job.mechanism, job.loss, repetition)
            line = np.append(release.intercept, release.coefficients.values)
            found.append(best.excess(line))
        found.append(best.excess(fitted(*table, job.loss)[0]))
    return np.array(found)


def measured(job: Job, rows: int, tables: int) -> Array:
    """Return the risks of a job's tables, a line for each."""
    return np.array([risks(job, rows, repetition) for repetition in range(tables)])


def worst_rise(found: Array, tests: int) -> Rise | None:
    """Return the largest rise of risk with the budget that chance does not explain, if any.

    `found` has a line for each table and a column for each of EPSILONS; `tests` is among how many
    comparisons the chance of a false alarm is shared.
    """
    rises = []
    for first, second in combinations(range(len(EPSILONS)), 2):
        smaller, larger = found[:, first], found[:, second]
        differ = smaller != larger
        worse = int((larger > smaller).sum())
        chance = float(binom.sf(worse - 1, int(differ.sum()), 0.5))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(np.median(np.where(differ, larger / smaller, 1.0)))
        if chance < ALARM / tests and ratio > WORSE:
            rises.append(Rise(EPSILONS[first], EPSILONS[second], ratio, chance))
    return max(rises, key=lambda rise: rise.ratio, default=None)


def judged(results: Mapping[Job, Array]) -> dict[Job, Rise | None]:
    """Return the rise of every job, or None where there is none."""
    pairs = len(EPSILONS) * (len(EPSILONS) - 1) // 2
    tests = pairs * len(results)
    return {job: worst_rise(found[:, :-1], tests) for job, found in results.items()}


def shown(results: Mapping[Job, Array], rises: Mapping[Job, Rise | None], title: str) -> Table:
    """Return the table of medians."""
    table = Table(title=title)
    heads = ["table", "mechanism", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]
    for head in [*heads, "not private", "worse with more"]:
        table.add_column(head, justify="right", no_wrap=True)
    for job, found in results.items():
        medians = [f"{value:.2g}" for value in np.median(found, axis=0)]
        table.add_row(job.name, job.mechanism, *medians, str(rises[job] or ""))
    return table


def write(path: Path, results: Iterable[tuple[Job, Array]]) -> Iterator[tuple[Job, Array]]:
    """Pass results on, and write the risks of every table down as they come."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["table", "mechanism", "repetition", *EPSILONS, "not private"])
        for job, found in results:
            for repetition, each in enumerate(found):
                values = [f"{value:.6g}" for value in each]
                lines.writerow([job.name, job.mechanism, repetition, *values])
            file.flush()
            yield job, found


def jobs_of(options: argparse.Namespace) -> list[Job]:
    """Return what is asked for, as far as tables can be had."""
    return [
        job
        for name in real_populations.available(options.designs)
        for job in (
            Job(name, mechanism)
            for mechanism in MODELS[LOSSES[real_populations.RECORDS[name].kind]]
        )
        if not options.mechanisms or job.mechanism in options.mechanisms
    ]


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    known = list(real_populations.RECORDS)
    mechanisms = [name for loss in LOSSES.values() for name in MODELS[loss]]
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--designs", nargs="+", choices=known, default=known, metavar="NAME")
    parser.add_argument("--mechanisms", nargs="+", choices=mechanisms, metavar="NAME")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--csv", type=Path)
    return parser.parse_args(words)


def run_all(jobs: Sequence[Job], options: argparse.Namespace) -> Iterator[tuple[Job, Array]]:
    """Yield the risks of each job's tables, in order."""
    work = [(job, options.rows, options.tables) for job in jobs]
    if options.processes == 1:
        for one in work:
            yield one[0], measured(*one)
        return
    with ProcessPoolExecutor(options.processes) as pool:
        yield from zip(jobs, pool.map(measured, *zip(*work, strict=True)), strict=True)


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    options = arguments(words)
    jobs = jobs_of(options)
    if not jobs:
        return
    found = run_all(jobs, options)
    results = dict(write(options.csv, found) if options.csv else found)
    rises = judged(results)
    title = f"Median excess risk over {options.tables:,} tables of {options.rows:,} rows"
    Console(width=130).print(shown(results, rises, title))
    flagged = sum(rise is not None for rise in rises.values())
    print(f"In {flagged} of {len(jobs)} cells a larger budget gives a worse model.")


if __name__ == "__main__":
    main()
