"""How often intervals of released models hold the truth where errors are not normal, or data real.

    python benchmarks/honest_coverage.py --quick
    python benchmarks/honest_coverage.py --designs skew2_spread0.5 savings --tables 100
    python benchmarks/honest_coverage.py --loss logistic --csv build/labels.csv

Designs are simulated (`error_designs.py`) or real tables (`real_populations.py`) from which rows
are drawn with replacement. The truth is the best line of clamped cells: least squares, or for
--loss logistic the likeliest line, exact for real tables and from 2,000,000 rows for simulated
ones. Beside the intervals of a release stand the robust ones (HC1) of the same table without
privacy: what they miss too, the table is too small for, or too strange.

Columns: the share of slopes' intervals that were given; the coverage of the worst slope, of all
slopes and of the intercept, over those given; the same of HC1's, the worst slope and all; the mean
length of the slopes' intervals divided by HC1's; the median excess risk. A star marks a cell whose
worst slope, of all its slopes, is held so rarely that 95% intervals would have it once in 1,000
cells. Tables and noise are seeded: the same for all mechanisms, so runs are paired.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.special import expit, ndtri
from scipy.stats import binom
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import real_populations
from benchmarks.designs import seeded
from benchmarks.error_designs import DESIGNS, SHAPES, labelled, simulated_truth
from benchmarks.model_coverage import BATCH, DELTA, LEVEL
from benchmarks.rivals.common import Array
from benchmarks.truths import LOSSES, NoMaximumError, Truth, likeliest, with_ones
from dplinear.analyst.releases.model import ModelRelease
from dplinear.curator import Schema, release_model
from dplinear.noise import simulation
from dplinear.registry import MODELS

SIZES, EPSILONS = [2_000, 8_000, 32_000], [0.3, 1.0, 3.0]
REAL_SIZES, REAL_EPSILONS = [8_000, 32_000], [1.0, 3.0]
ALARM = 1e-3
Flags = npt.NDArray[np.bool_]
CORNERS = ("skew0_spread0", "skew2_spread0", "skew0_spread0.5", "skew2_spread0.5")
QUICK = (*CORNERS, *SHAPES)
QUICK_SIZE, QUICK_EPSILON = 8_000, 1.0
SHORTEST = 1e-12  # an interval that least squares has none of is no unit of length


@dataclass(frozen=True)
class Cell:
    """A population, simulated or real, by its name; a size and a budget."""

    name: str
    rows: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one table gave; arrays have the intercept first. Intervals not given are not held."""

    given: Flags
    held: Flags
    plain: Flags  # HC1's that hold the truth
    lengths: Array  # divided by HC1's; NaN where not given
    excess: float
    plain_excess: float
    reason: str | None


@dataclass(frozen=True)
class Figures:
    """One cell over all tables."""

    cell: Cell
    tables: int
    given: float
    worst: float
    mean: float
    intercept: float
    plain_worst: float
    plain_mean: float
    length: float
    excess: float
    plain_excess: float
    alarm: bool


def cell_truth(name: str, loss: str) -> Truth:
    """Return the best line of a population."""
    if name in DESIGNS:
        return simulated_truth(DESIGNS[name], loss)
    return real_populations.load(name).truth


def drawn(cell: Cell, loss: str, repetition: int) -> tuple[Array, Array]:
    """Return the cells and the target of one table; it is the same for all budgets."""
    generator = seeded("honest table", cell.name, cell.rows, repetition)
    if cell.name not in DESIGNS:
        return real_populations.load(cell.name).block(cell.rows, generator)
    made = DESIGNS[cell.name].block(cell.rows, generator)
    return labelled(*made) if loss == "logistic" else made


def robust_intervals(rows: Array, target: Array, loss: str) -> tuple[Array, Array]:
    """Return the middle and the reach of intervals without privacy, robust to uneven errors.

    Scores are residuals times rows; those of labels are of the likeliest line. A column that is
    constant in this table has a reach of 0.
    """
    wide = with_ones(rows)
    if loss == "squared":
        gram = wide.T @ wide
        inverse = np.linalg.pinv(gram, hermitian=True)
        line = inverse @ (wide.T @ target)
        wrong = target - wide @ line
    else:
        line = likeliest(lambda: iter([(rows, target)]), wide.shape[1])
        chances = expit(wide @ line)
        wrong = (target > 0) - chances
        gram = (wide * (chances * (1 - chances))[:, None]).T @ wide
        inverse = np.linalg.pinv(gram, hermitian=True)
    scores = wide * wrong[:, None]
    freedom = len(wide) / (len(wide) - wide.shape[1])
    variances = freedom * np.diag(inverse @ (scores.T @ scores) @ inverse)
    return line, float(ndtri((1 + LEVEL) / 2)) * np.sqrt(variances)


def released(
    cell: Cell, table: tuple[Array, Array], mechanism: str, loss: str, repetition: int
) -> ModelRelease:
    """Release the model of one table."""
    whole = np.column_stack(table)
    names = [*(f"x{index}" for index in range(whole.shape[1] - 1)), "y"]
    schema = Schema(dict.fromkeys(names, (-1, 1)))
    noise = seeded("honest noise", cell, repetition)
    with simulation.door(int(noise.integers(2**32))):
        return release_model(
            whole,
            schema,
            "y",
            epsilon=cell.epsilon,
            delta=DELTA,
            loss=loss,
            mechanism=mechanism,
            threads=1,
        )


def fitted(rows: Array, target: Array, loss: str) -> tuple[Array, Array]:
    """Return robust intervals, and none that hold anything where labels are parted."""
    try:
        return robust_intervals(rows, target, loss)
    except NoMaximumError:
        nothing = np.full(rows.shape[1] + 1, np.nan)
        return nothing, nothing


def measured(cell: Cell, mechanism: str, loss: str, repetition: int) -> Outcome:
    """Release the model of one table, and see what its intervals hold."""
    table = drawn(cell, loss, repetition)
    best = cell_truth(cell.name, loss)
    release = released(cell, table, mechanism, loss, repetition)
    found = release.intervals(LEVEL)
    middle, reach = fitted(*table, loss)
    given = np.isfinite(found.low) & np.isfinite(found.high)
    units = np.where(reach > SHORTEST, 2 * reach, np.nan)
    return Outcome(
        given=given,
        held=given & (found.low <= best.line) & (best.line <= found.high),
        plain=np.abs(middle - best.line) <= reach,
        lengths=(found.high - found.low) / units,
        excess=best.excess(np.append(release.intercept, release.coefficients.values)),
        plain_excess=best.excess(middle),
        reason=found.swamped,
    )


def batch(cell: Cell, mechanism: str, loss: str, repetitions: Sequence[int]) -> list[Outcome]:
    """Measure some tables of a cell."""
    with threadpool_limits(1):
        return [measured(cell, mechanism, loss, repetition) for repetition in repetitions]


def figures(cell: Cell, outcomes: Sequence[Outcome]) -> Figures:
    """Return the figures of a cell; coverages are NaN where no interval was given."""
    given, held, plain, lengths = (
        np.array([getattr(one, name) for one in outcomes], float)
        for name in ("given", "held", "plain", "lengths")
    )
    answers, covered = given.sum(0), held.sum(0)
    share = np.divide(covered, answers, out=np.full(len(covered), np.nan), where=answers > 0)
    slopes = share[1:][answers[1:] > 0]
    chance = binom.cdf(covered[1:], answers[1:], LEVEL)
    finite = lengths[:, 1:][np.isfinite(lengths[:, 1:])]
    return Figures(
        cell=cell,
        tables=len(outcomes),
        given=float(given[:, 1:].mean()),
        worst=float(slopes.min()) if len(slopes) else np.nan,
        mean=float(covered[1:].sum() / answers[1:].sum()) if len(slopes) else np.nan,
        intercept=float(share[0]),
        plain_worst=float(plain[:, 1:].mean(0).min()),
        plain_mean=float(plain[:, 1:].mean()),
        length=float(finite.mean()) if len(finite) else np.nan,
        excess=float(np.median([one.excess for one in outcomes])),
        plain_excess=float(np.median([one.plain_excess for one in outcomes])),
        alarm=bool((chance < ALARM / len(chance)).any()),
    )


HEADS = {
    "given": "given",
    "worst": "worst slope",
    "mean": "slopes",
    "intercept": "intercept",
    "plain_worst": "HC1 worst",
    "plain_mean": "HC1 slopes",
    "length": "length / HC1's",
    "excess": "excess risk",
    "plain_excess": "HC1's",
}
SHARES = ("given", "worst", "mean", "intercept", "plain_worst", "plain_mean")


def line(found: Figures) -> list[str]:
    """Return a line of the table."""
    cell = found.cell
    words = [cell.name, f"{cell.rows:,}", f"{cell.epsilon:g}"]
    for name in HEADS:
        value = getattr(found, name)
        shown = f"{value:.0%}" if name in SHARES else f"{value:.2g}"
        words.append("" if np.isnan(value) else shown)
    return [*words, "*" if found.alarm else ""]


def shown(title: str, results: Sequence[Figures]) -> Table:
    """Return the table of all cells."""
    table = Table(title=title)
    for head in ["table", "n", "ε", *HEADS.values(), ""]:
        table.add_column(head.replace(" ", "\n", 1), justify="right", no_wrap=True)
    for found in results:
        table.add_row(*line(found))
    return table


def write(path: Path, mechanism: str, results: Sequence[Figures]) -> None:
    """Write the figures down."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["mechanism", "table", "rows", "epsilon", "tables", *HEADS, "alarm"])
        for found in results:
            cell = found.cell
            facts = [mechanism, cell.name, cell.rows, cell.epsilon, found.tables]
            values = [f"{getattr(found, name):.6g}" for name in HEADS]
            lines.writerow([*facts, *values, int(found.alarm)])


def names_for(loss: str) -> list[str]:
    """Return the populations that a loss is for: simulated ones, then real ones."""
    kind = "label" if loss == "logistic" else "regression"
    records = real_populations.RECORDS.values()
    return [*DESIGNS, *(one.name for one in records if one.kind == kind)]


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """Return the cells that are asked for, as far as their tables can be had."""
    wanted = options.designs or names_for(options.loss)
    if options.quick and not options.designs:
        wanted = [name for name in wanted if name not in DESIGNS or name in QUICK]
    real = set(real_populations.available([name for name in wanted if name not in DESIGNS]))
    made = []
    for name in wanted:
        if name not in DESIGNS and name not in real:
            continue
        sizes, epsilons = (REAL_SIZES, REAL_EPSILONS) if name in real else (SIZES, EPSILONS)
        if options.quick:
            sizes, epsilons = [QUICK_SIZE], [QUICK_EPSILON]
        chosen = product(options.rows or sizes, options.epsilons or epsilons)
        made += [Cell(name, rows, epsilon) for rows, epsilon in chosen]
    return made


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--loss", choices=LOSSES, default="squared")
    parser.add_argument("--mechanism", help="the loss's first one unless told")
    parser.add_argument("--designs", nargs="+", metavar="NAME", help="all of them unless told")
    parser.add_argument("--rows", nargs="+", type=int)
    parser.add_argument("--epsilons", nargs="+", type=float)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="8,000 rows, ε = 1, fewer designs")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(words)
    options.mechanism = options.mechanism or next(iter(MODELS[options.loss]))
    if options.mechanism not in MODELS[options.loss]:
        parser.error(f"--mechanism is one of {', '.join(MODELS[options.loss])}")
    unknown = sorted(set(options.designs or ()) - set(names_for(options.loss)))
    if unknown:
        parser.error(f"--designs are of {', '.join(names_for(options.loss))}; not {unknown[0]}")
    return options


def run(cells: Sequence[Cell], options: argparse.Namespace) -> list[list[Outcome]]:
    """Return the outcomes of each cell."""
    repetitions = range(options.tables)
    parts = [repetitions[i : i + BATCH] for i in range(0, options.tables, BATCH)]
    work = [(cell, options.mechanism, options.loss, part) for cell in cells for part in parts]
    if options.processes == 1:
        done = [batch(*one) for one in work]
    else:
        with ProcessPoolExecutor(options.processes) as pool:
            done = list(pool.map(batch, *zip(*work, strict=True)))
    return [
        [one for found in done[i : i + len(parts)] for one in found]
        for i in range(0, len(done), len(parts))
    ]


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    options = arguments(words)
    cells = cells_of(options)
    if not cells:
        return
    outcomes = run(cells, options)
    results = [figures(cell, found) for cell, found in zip(cells, outcomes, strict=True)]
    title = f"{options.mechanism}: {LEVEL:.0%} intervals over {options.tables:,} tables"
    Console(width=130).print(shown(title, results))
    reasons = {one.reason for found in outcomes for one in found if one.reason is not None}
    if reasons:
        print("\n  ".join(["Where no intervals were given, releases say:", *sorted(reasons)]))
    if options.csv:
        write(options.csv, options.mechanism, results)


if __name__ == "__main__":
    main()
