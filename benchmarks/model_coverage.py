"""How often 95% intervals of released models hold the truth, over simulated tables.

    python benchmarks/model_coverage.py
    python benchmarks/model_coverage.py --method adassp --tables 50

Each cell has one population, and tables drawn from it anew. Bounds clamp its cells, so the truth is
the best line of clamped cells: least squares over a hundred times as many rows as a table has,
whose own error takes about 0.1% off a coverage of 95%. The share that holds the line of the cells
before clamping is printed too: with heavy tails it says what the bounds do, not what the noise
does. Least squares' own intervals, without any privacy, stand beside both. Two processes with one
thread each.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.coverage import Count
from benchmarks.designs import BLOCK, LAWS, Design, Population, population, seeded
from benchmarks.rivals.common import Array
from benchmarks.truths import second_moments
from dplinear.curator import Schema, release_model
from dplinear.noise import simulation
from dplinear.registry import MODELS

DELTA = 1e-6
LEVEL = 0.95
REFERENCE = 100  # as many times the rows of a table give the truth
BATCH = 25
FEWEST = 20  # releases with intervals, for their shares to say anything
DEFAULT = next(iter(MODELS["squared"]))


@dataclass(frozen=True)
class Cell:
    """A population, a size and a budget."""

    design: Design
    epsilon: float


CELLS = tuple(
    Cell(Design(law, int(rows), 10, condition), epsilon)
    for law, rows, condition, epsilon in product(LAWS, (1e4, 1e5), (1.0, 100.0), (0.5, 1.0, 4.0))
)


@dataclass(frozen=True)
class Tally:
    """What the tables of a cell gave; arrays have the intercept first."""

    count: Count  # of intervals that hold the best line of clamped cells
    unclamped: Array  # how often they hold the line of the population
    plain: Array  # how often those of least squares hold the best line of clamped cells
    lengths: float  # of intervals, divided by those of least squares: the mean, summed over tables
    reasons: frozenset[str]  # why there were no intervals

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.count + other.count,
            self.unclamped + other.unclamped,
            self.plain + other.plain,
            self.lengths + other.lengths,
            self.reasons | other.reasons,
        )


def fixed(design: Design) -> Population:
    """Return the population of all tables of a design, whatever their number of rows."""
    return population(design, seeded("coverage", design.law, design.columns, design.condition))


def least_squares(gram: Array, moments: Array) -> Array:
    """Return the coefficients that minimise squares."""
    return np.asarray(np.linalg.solve(gram, moments))


def sums(source: Population, rows: int, generator: simulation.Generator) -> Array:
    """Return the second moments of many rows: the constant, the columns and the target."""
    starts = range(0, rows, BLOCK)
    return second_moments(
        lambda: (source.block(min(BLOCK, rows - start), generator) for start in starts)
    )


@cache
def clamped_truth(design: Design) -> Array:
    """Return the best line of clamped cells, the intercept first."""
    generator = seeded("reference", design)
    total = sums(fixed(design), REFERENCE * design.rows, generator)
    return least_squares(total[:-1, :-1], total[:-1, -1])


def unclamped_truth(source: Population) -> Array:
    """Return the population's line, in cells, the intercept first."""
    return np.append(0.0, source.best * source.half_widths / source.target_half_width)


def plain_intervals(whole: Array) -> tuple[Array, Array]:
    """Return the middle and the reach of least squares' own intervals; the target comes last."""
    wide = np.column_stack([np.ones(len(whole)), whole[:, :-1]])
    gram, target = wide.T @ wide, whole[:, -1]
    found = least_squares(gram, wide.T @ target)
    errors = target - wide @ found
    variance = errors @ errors / (len(whole) - len(found))
    reach = float(ndtri((1 + LEVEL) / 2)) * np.sqrt(variance * np.diag(np.linalg.inv(gram)))
    return found, np.asarray(reach)


def measured(cell: Cell, method: str, repetition: int) -> Tally:
    """Release the model of one table, and see what its intervals hold."""
    design, source = cell.design, fixed(cell.design)
    made = source.table(design.rows, seeded("table", design, repetition))
    whole = np.column_stack([made.rows, made.target])
    names = [*(f"x{place}" for place in range(design.columns)), "y"]
    schema = Schema(dict.fromkeys(names, (-1, 1)))
    noise = seeded("noise", design, repetition, cell.epsilon, method)
    with simulation.door(int(noise.integers(2**32))):
        release = release_model(
            whole, schema, "y", epsilon=cell.epsilon, delta=DELTA, mechanism=method, threads=1
        )
    found, truth = release.intervals(LEVEL), clamped_truth(design)
    nothing = np.zeros(len(truth))
    middle, reach = plain_intervals(whole)
    plain = (np.abs(middle - truth) <= reach).astype(np.float64)
    if found.swamped is not None:
        none = Count(1, 0, nothing.astype(np.int64))
        return Tally(none, nothing, plain, 0.0, frozenset([found.swamped]))
    line = unclamped_truth(source)
    held = ((found.low <= truth) & (truth <= found.high)).astype(np.int64)
    return Tally(
        count=Count(1, 1, held),
        unclamped=((found.low <= line) & (line <= found.high)).astype(np.float64),
        plain=plain,
        lengths=float(np.mean((found.high - found.low) / (2 * reach))),
        reasons=frozenset(),
    )


def batch(cell: Cell, method: str, repetitions: Sequence[int]) -> Tally:
    """Measure some tables of a cell."""
    with threadpool_limits(1):
        first, *rest = (measured(cell, method, repetition) for repetition in repetitions)
    return sum(rest, first)


def row(cell: Cell, tally: Tally) -> list[str]:
    """Return a line of the table."""
    design, count = cell.design, tally.count
    facts = [design.law, f"{design.rows:,}", f"{design.condition:g}", f"{cell.epsilon:g}"]
    facts += [f"{tally.plain.mean() / count.tables:.1%}", f"{count.tables - count.answered}"]
    if count.answered < FEWEST:
        return [*facts, "", "", "", "", ""]
    share = count.covered / count.answered
    error = 1.96 * np.sqrt(LEVEL * (1 - LEVEL) / count.answered)
    shown = [f"{share.min():.1%}", f"{share.mean():.1%}", f"{share.max():.1%} ± {error:.1%}"]
    unclamped = f"{tally.unclamped.mean() / count.answered:.1%}"
    return [*facts, *shown, unclamped, f"{tally.lengths / count.answered:.2f}"]


def shown(method: str, results: dict[Cell, Tally], tables: int) -> Table:
    """Return the table of all cells."""
    table = Table(title=f"{method}: coverage over {tables:,} tables, {LEVEL:.0%} intervals")
    heads = ["rows", "n", "κ", "ε", "least squares", "no intervals", "least", "mean", "most"]
    for head in [*heads, "before clamping", "length / least squares'"]:
        table.add_column(head, justify="right")
    for cell, tally in results.items():
        table.add_row(*row(cell, tally))
    return table


def silence(method: str, results: dict[Cell, Tally]) -> str:
    """Say how many releases gave no standard errors, and why; say it if none gave any."""
    tables = sum(tally.count.tables for tally in results.values())
    silent = tables - sum(tally.count.answered for tally in results.values())
    if not silent:
        return f"All {tables:,} releases of {method} gave standard errors."
    words = f"{silent:,} of {tables:,} releases of {method} gave no standard errors"
    if silent == tables:
        words = f"{method} gave no standard errors in any of {tables:,} releases: no coverage"
    reasons = sorted(frozenset[str]().union(*(tally.reasons for tally in results.values())))
    return "\n  ".join([f"{words}. It says:", *reasons])


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description="Coverage of released models' intervals.")
    parser.add_argument("--method", choices=list(MODELS["squared"]), default=DEFAULT)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    options = arguments(words)
    parts = [range(options.tables)[i : i + BATCH] for i in range(0, options.tables, BATCH)]
    work = [(cell, options.method, part) for cell in CELLS for part in parts]
    if options.processes == 1:
        tallies = [batch(*one) for one in work]
    else:
        with ProcessPoolExecutor(options.processes) as pool:
            tallies = list(pool.map(batch, *zip(*work, strict=True)))
    results: dict[Cell, Tally] = {}
    for (cell, _, _), tally in zip(work, tallies, strict=True):
        results[cell] = results[cell] + tally if cell in results else tally
    Console(width=130).print(shown(options.method, results, options.tables))
    print(silence(options.method, results))


if __name__ == "__main__":
    main()
