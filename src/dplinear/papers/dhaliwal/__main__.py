"""`python -m dplinear.papers.dhaliwal`: Table 1, Figures 1 to 4, and CSV files."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from dplinear.papers.dhaliwal import study
from dplinear.papers.dhaliwal.design import EPSILON, paper_delta
from dplinear.papers.dhaliwal.findings import (
    FULL,
    PRINTED,
    SMALL,
    by_claim_7,
    deviations,
    model_error,
    recover_distances,
    write_noise,
    write_rows,
    write_table,
)
from dplinear.papers.dhaliwal.recovery import Recovery
from dplinear.papers.dhaliwal.study import Study
from dplinear.papers.dhaliwal.techniques import AFTER, BEFORE, PAPER_CELLS, PAPER_ROWS
from dplinear.papers.output import watcher


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Run the experiment as the command line asks."""
    chosen = _parser().parse_args(arguments)
    console = console or Console()
    repetitions, rows, pairs = SMALL if chosen.small else (chosen.repetitions, *FULL[1:])
    console.print(f"ε = {EPSILON:g}, {rows} rows, {repetitions} repetitions, seed {chosen.seed}")
    found = study.run(
        chosen.seed, repetitions=repetitions, rows=rows, watch=watcher(console, "Clustering")
    )
    distances, curves = recover_distances(chosen.seed, pairs), deviations(chosen.seed)
    folder = chosen.output
    write_table(found, folder)
    write_rows(chosen.seed, folder)
    write_noise(distances, curves, folder)
    for table in (_accuracies(found), _gains(found), _distances(distances)):
        console.print(table)
    console.print(f"Written: dhaliwal-*.csv and dhaliwal-*.png in {folder}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.papers.dhaliwal", description="Dhaliwal et al. 2019, §5."
    )
    parser.add_argument("--output", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--repetitions", type=int, default=FULL[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="a few repetitions, to try it out")
    return parser


def _accuracies(found: Study) -> Table:
    heads = [f"d = {d}, k = {k}" for d, k in found.settings]
    table = Table("k-means on", *heads, title="Accuracy of two clusters (Table 1)")
    for way in found.accuracy:
        table.add_row(way, *(f"{mean:.3f}" for mean in found.means(way)))
    for name, printed in PRINTED.items():
        table.add_row(f"as printed: {name}", *(f"{each:.3f}" for each in printed))
    for whole, name in ((False, PAPER_CELLS.name), (True, PAPER_ROWS.name)):
        deltas = [paper_delta(d, k, whole_rows=whole) for d, k in found.settings]
        table.add_row(f"δ of: {name}", *(f"{delta:.3g}" for delta in deltas))
    return table


def _gains(found: Study) -> Table:
    title = "Mean accuracy gained, same tables, projections and draws (standard error)"
    heads = [f"d = {d}, k = {k}" for d, k in found.settings]
    table = Table("", *heads, title=title)
    for way, other in (
        (AFTER.name, PAPER_CELLS.name),
        (AFTER.name, PAPER_ROWS.name),
        (BEFORE.name, PAPER_CELLS.name),
        *((study.aware(each), each.name) for each in study.AWARE),
    ):
        mean, error = found.gain(way, other)
        cells = [f"{m:+.4f} ({e:.4f})" for m, e in zip(mean, error, strict=True)]
        table.add_row(f"{way} over {other}", *cells)
    return table


def _distances(distances: dict[str, Recovery]) -> Table:
    title = "Recovered squared distances less the true ones, d = 3, k = 2"
    heads = ("mean", "standard error", "variance", "by the law", "by Claim 7")
    table = Table("", *heads, title=title)
    for name, found in distances.items():
        error = found.errors.std() / np.sqrt(found.errors.size)
        variances = (found.errors.var(), model_error(found), by_claim_7(found))
        shown = (found.errors.mean(), error, *variances)
        table.add_row(name, *(f"{value:.4g}" for value in shown))
    return table


if __name__ == "__main__":
    main()
