"""Private logistic regression beside descents, DP-Newton, the likeliest model and the base rate.

    python benchmarks/logistic.py
    python benchmarks/logistic.py --tables 40

Rows are normal, cells have bounds at four standard deviations, and log-odds have variance 3 around
the start of a cell. Printed is the excess log-loss: the mean Kullback-Leibler distance of a model's
chances from the true ones over 20,000 fresh rows, as the median of all tables. The rivals: plain
full-batch gradient descent with normal noise and averaged steps; the same on rows drawn by chance
(DP-SGD, `benchmarks/rivals/noisy_sgd.py`; it needs dp-accounting); and DP-Newton
(`benchmarks/rivals/double_noise.py`). The descents are told the largest eigenvalue, and all have
their settings picked after the fact, which is generous. The base rate is the best constant, without
any noise. Neighbours are add_remove, δ is 1e-6.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.designs import WIDTH, Design, population, seeded
from benchmarks.rivals import double_noise, noisy_sgd
from benchmarks.rivals.common import Array, Line, clipped, line, mu_of, with_constant
from dplinear.estimators import PrivateLogisticRegression
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP

DELTA = 1e-6
VARIANCE = 3.0
FRESH = 20_000
SETTINGS = ((15, 1.0), (15, 4.0), (60, 1.0), (60, 4.0))  # of the noisy descent: steps, their length
METHODS = OURS, DESCENT, SGD, NEWTON, LIKELIEST, BASE = (
    "PrivateLogisticRegression",
    "noisy descent",
    "DP-SGD",
    "DP-Newton",
    "scikit-learn, not private",
    "base rate, not private",
)


@dataclass(frozen=True)
class Cell:
    """A size, a condition number of the columns, where log-odds start, and a budget."""

    rows: int
    columns: int
    condition: float
    start: float
    epsilon: float

    def __str__(self) -> str:
        shape = f"n={self.rows:,} d={self.columns} κ={self.condition:g}"
        return f"{shape} start={self.start:g} ε={self.epsilon:g}"


CELLS = (
    Cell(1000, 5, 1.0, 0.5, 0.5),
    Cell(1000, 20, 1.0, 0.5, 1.0),
    Cell(1000, 20, 1.0, -4.0, 0.5),
    Cell(10_000, 20, 1.0, 0.5, 1.0),
    Cell(10_000, 20, 100.0, 0.5, 1.0),
    Cell(100_000, 5, 100.0, 0.5, 1.0),
)


@dataclass(frozen=True)
class Labelled:
    """A table in cells, its labels, and fresh rows with their true log-odds."""

    rows: Array
    labels: Array
    fresh: Array
    odds: Array

    def excess(self, model: Line) -> float:
        """Return the mean distance of the model's chances from the true ones."""
        found = model.intercept + self.fresh @ model.coefficients
        gap = np.logaddexp(0, found) - np.logaddexp(0, self.odds)
        return float((gap - expit(self.odds) * (found - self.odds)).mean())


Rival = Callable[[Labelled, float, simulation.Generator], Line]


def drawn(cell: Cell, generator: simulation.Generator) -> Labelled:
    """Return a table of a population of its own."""
    source = population(Design("gaussian", cell.rows, cell.columns, cell.condition), generator)
    rows = source.table(cell.rows, generator).rows
    fresh = source.table(FRESH, generator).rows
    slopes = math.sqrt(VARIANCE) * source.best * source.half_widths
    labels = generator.uniform(size=cell.rows) < expit(cell.start + rows @ slopes)
    return Labelled(rows, labels.astype(float), fresh, cell.start + fresh @ slopes)


def ours(table: Labelled, epsilon: float) -> Line:
    """Return the private model."""
    model = PrivateLogisticRegression(epsilon=epsilon, delta=DELTA, bounds=(-1, 1), classes=(0, 1))
    model.fit(table.rows, table.labels)
    return Line(float(model.intercept_[0]), model.coef_[0])


def likeliest(table: Labelled) -> Line:
    """Return the maximum of the likelihood; a penalty of 1e-8 of a unit stands for none."""
    model = LogisticRegression(C=1e8, max_iter=1000).fit(table.rows, table.labels)
    return Line(float(model.intercept_[0]), model.coef_[0])


def base_rate(table: Labelled) -> Line:
    """Return the model without features."""
    yes = min(max(float(table.labels.mean()), 1e-6), 1 - 1e-6)
    return Line(math.log(yes / (1 - yes)), np.zeros(table.rows.shape[1]))


def descent(
    table: Labelled, epsilon: float, generator: simulation.Generator, setting: tuple[int, float]
) -> Line:
    """Return where noisy steps lead from 0: the mean of the second half of them."""
    (steps, pace), wide = setting, with_constant(table.rows)
    norm = math.sqrt(wide.shape[1]) / WIDTH
    short = clipped(wide, norm)
    sigma = norm * math.sqrt(steps) / mu_of(ApproxDP(epsilon, DELTA))
    length = pace / float(np.linalg.eigvalsh(wide.T @ wide)[-1])
    places = [np.zeros(wide.shape[1])]
    for _ in range(steps):
        gradient = short.T @ (table.labels - expit(wide @ places[-1]))
        noise = sigma * generator.standard_normal(wide.shape[1])
        places.append(places[-1] + length * (gradient + noise))
    return line(np.asarray(np.mean(places[steps // 2 + 1 :], axis=0)))


def rivals() -> dict[str, list[Rival]]:
    """Return each rival's settings, as ways to a model."""

    def told(rule: Callable[..., Line], setting: object) -> Rival:
        def fit(table: Labelled, epsilon: float, generator: simulation.Generator) -> Line:
            norm = math.sqrt(table.rows.shape[1] + 1) / WIDTH
            asked = table.rows, table.labels, ApproxDP(epsilon, DELTA), generator
            return rule(*asked, bound=norm, setting=setting)

        return fit

    found: dict[str, list[Rival]] = {
        DESCENT: [partial(descent, setting=setting) for setting in SETTINGS],
        NEWTON: [told(double_noise.fit, setting) for setting in double_noise.SETTINGS],
    }
    with suppress(noisy_sgd.MissingError):
        noisy_sgd.library()
        found[SGD] = [told(noisy_sgd.fit_labels, one) for one in noisy_sgd.LABEL_SETTINGS]
    return found


def measured(cell: Cell, tables: int) -> dict[str, float]:
    """Return the median excess log-loss of each method; of a rival, that of its best setting."""
    found: dict[str, list[float]] = {name: [] for name in (OURS, LIKELIEST, BASE)}
    ways = rivals()
    tried = {name: [[0.0] * tables for _ in several] for name, several in ways.items()}
    for repetition in range(tables):
        generator = seeded("logistic", cell, repetition)
        table = drawn(cell, generator)
        with simulation.door(repetition):
            found[OURS].append(table.excess(ours(table, cell.epsilon)))
        found[LIKELIEST].append(table.excess(likeliest(table)))
        found[BASE].append(table.excess(base_rate(table)))
        for name, several in ways.items():
            for fit, risks in zip(several, tried[name], strict=True):
                risks[repetition] = table.excess(fit(table, cell.epsilon, generator))
    medians = {name: median(values) for name, values in found.items()}
    return medians | {name: min(map(median, risks)) for name, risks in tried.items()}


def main(arguments: Sequence[str] | None = None, cells: Sequence[Cell] = CELLS) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Excess log-loss of private logistic regression.")
    parser.add_argument("--tables", type=int, default=20)
    tables = parser.parse_args(arguments).tables
    shown = Table("excess log-loss, medians", *METHODS)
    with threadpool_limits(1):
        for cell in cells:
            medians = measured(cell, tables)
            shown.add_row(
                str(cell), *(f"{medians[name]:.2g}" if name in medians else "" for name in METHODS)
            )
    Console(width=160).print(shown)


if __name__ == "__main__":
    main()
