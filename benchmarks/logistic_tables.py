"""Private logistic regression on real tables, beside its rivals and scikit-learn's without noise.

    python benchmarks/logistic_tables.py
    python benchmarks/logistic_tables.py adult churn --fits 20

Printed are the log-loss of the median and of the worst of all fits, and the median area under the
curve, by ε at δ = 1e-6, on the rows themselves: what is measured is how far noise and clips take a
model from the likeliest one, not how well that one predicts. Tables that were in view while the
method was made are named so; the others judge it. Neighbours are add_remove.

The rivals, DP-SGD and DP-Newton, get rows in [-1, 1] with 0 or 1 for each level but the first;
their settings are picked after the fact, the best median loss at each ε. With `--rival-fits 0`
there are none.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

import dplinear as dpl
from benchmarks.label_tables import JUDGES, LABEL, TUNED, LabelTable
from benchmarks.rivals import double_noise, noisy_sgd
from benchmarks.rivals.common import CONSTANT, Array, Line
from benchmarks.tables import MissingError
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP

DELTA = 1e-6
EPSILONS = (0.3, 1.0, 3.0, 10.0, 100.0)


@dataclass(frozen=True)
class Score:
    """How good a model's probabilities are."""

    loss: float
    area: float


def score(labels: Array, probabilities: Array) -> Score:
    """Return the mean log-loss and the area under the curve."""
    area = float(roc_auc_score(labels, probabilities))
    return Score(float(log_loss(labels, probabilities)), area)


def likeliest(table: LabelTable) -> Score:
    """Return the score of maximum likelihood; a penalty of 1e-8 of a unit stands for none."""
    model = LogisticRegression(C=1e8, max_iter=5000).fit(table.design, table.labels)
    return score(table.labels, model.predict_proba(table.design)[:, 1])


def base_rate(table: LabelTable) -> Score:
    """Return the score of the best constant."""
    rate = float(table.labels.mean())
    return Score(float(log_loss(table.labels, np.full(len(table.labels), rate))), 0.5)


def private(table: LabelTable, epsilon: float, seed: int) -> tuple[Score, bool]:
    """Return the score of a private model, and whether it has standard errors."""
    with simulation.door(seed):
        model = dpl.release_model(
            table.frame,
            dpl.Schema(table.schema),
            LABEL,
            loss="logistic",
            epsilon=epsilon,
            delta=DELTA,
        )
    found = model.predict_proba(table.frame)[:, 1]
    return score(table.labels, found), model.standard_errors is not None


def rivals(table: LabelTable, epsilon: float, fits: int) -> dict[str, list[Score]]:
    """Return the scores of each rival in its best setting, as far as it can run here."""
    design, labels, bound = table.design, table.labels, math.hypot(table.longest, CONSTANT)
    asked = ApproxDP(epsilon, DELTA)

    def scores(rule: Callable[..., Line], setting: object) -> list[Score]:
        found = []
        for seed in range(fits):
            draws = simulation.generator(seed)
            model = rule(design, labels, asked, draws, bound=bound, setting=setting)
            odds = model.intercept + design @ model.coefficients
            found.append(score(labels, expit(odds)))
        return found

    def best(rule: Callable[..., Line], settings: Sequence[object]) -> list[Score]:
        tried = (scores(rule, setting) for setting in settings)
        return min(tried, key=lambda some: median(one.loss for one in some))

    found = {"DP-Newton": best(double_noise.fit, double_noise.SETTINGS)}
    with suppress(noisy_sgd.MissingError):
        found["DP-SGD"] = best(noisy_sgd.fit_labels, noisy_sgd.LABEL_SETTINGS)
    return found


def line(name: str, found: Sequence[Score], told: str = "") -> list[str]:
    """Return a printed line: the median and worst loss, the median area."""
    losses = [one.loss for one in found]
    numbers = median(losses), max(losses), median(one.area for one in found)
    return [name, *(f"{number:.4f}" for number in numbers), told]


def rows(table: LabelTable, fits: int, epsilons: Sequence[float], others: int) -> list[list[str]]:
    """Return the lines of one table."""
    lines = []
    for epsilon in epsilons:
        found = [private(table, epsilon, seed) for seed in range(fits)]
        told = sum(errors for _, errors in found)
        lines.append(line(f"ε={epsilon:g}", [one for one, _ in found], f"{told}/{fits}"))
        if others:
            tried = rivals(table, epsilon, others)
            lines += [line(f"  {name}", scores) for name, scores in tried.items()]
    for name, one in (("scikit-learn", likeliest(table)), ("base rate", base_rate(table))):
        lines.append([name, f"{one.loss:.4f}", "", f"{one.area:.4f}", ""])
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each of the chosen ones."""
    every = {**TUNED, **JUDGES}
    parser = argparse.ArgumentParser(description="Log-loss of private logistic regression.")
    parser.add_argument("names", nargs="*", default=list(every))
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--rival-fits", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    asked = parser.parse_args(arguments)
    console = Console(width=100)
    with threadpool_limits(1):
        for name in asked.names:
            try:
                table = every[name]()
            except MissingError as error:
                console.print(f"{name} is left out: {error}")
                continue
            kind = "in view while the method was made" if name in TUNED else "a judge"
            title = f"{table.name}, {len(table.labels):,} rows, {kind}"
            shown = Table("", "log-loss, median", "worst", "AUC", "with errors", title=title)
            for words in rows(table, asked.fits, asked.epsilons, asked.rival_fits):
                shown.add_row(*words)
            console.print(shown)


if __name__ == "__main__":
    main()
