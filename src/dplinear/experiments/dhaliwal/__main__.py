"""`python -m dplinear.experiments.dhaliwal`: Table 1, Figures 1 to 4, and CSV files."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from dplinear.experiments import figures
from dplinear.experiments.dhaliwal import picture, recovery, study
from dplinear.experiments.dhaliwal.design import EPSILON, ROWS, SETTINGS, paper_delta
from dplinear.experiments.dhaliwal.recovery import Recovery
from dplinear.experiments.dhaliwal.study import Study
from dplinear.experiments.dhaliwal.techniques import AFTER, BEFORE, PAPER_CELLS, PAPER_ROWS
from dplinear.experiments.output import watcher, write_csv

SIZES = (2, 3, 5, 7, 10, 14, 20)
_DRAWN = (PAPER_CELLS, PAPER_ROWS, AFTER)
_PAPERS = {
    study.NONE: (0.9783, 0.9772, 0.9771, 0.9797),
    PAPER_CELLS.name: (0.9441, 0.9082, 0.6954, 0.6927),
    PAPER_ROWS.name: (0.9477, 0.909, 0.6796, 0.6668),
}


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Run the experiment as the command line asks."""
    chosen = _parser().parse_args(arguments)
    console = console or Console()
    repetitions, rows, pairs = chosen.repetitions, ROWS, 1000
    if chosen.small:
        repetitions, rows, pairs = 2, 200, 50
    console.print(f"ε = {EPSILON:g}, {rows} rows, {repetitions} repetitions, seed {chosen.seed}")
    found = study.run(
        chosen.seed, repetitions=repetitions, rows=rows, watch=watcher(console, "Clustering")
    )
    recovered = {
        way.name: recovery.recover(way, *SETTINGS[0], chosen.seed, pairs=pairs, releases=pairs)
        for way in _DRAWN
    }
    curves = {
        way.name: np.array([recovery.deviations(way, 5 * k, k, chosen.seed) for k in SIZES])
        for way in _DRAWN
    }
    folder = chosen.output
    write_csv(folder / "dhaliwal-table1.csv", ("way", "d", "k", "mean", "error"), lines(found))
    deviations = (
        (name, k, f"{v:.4f}") for name in curves for k, v in zip(SIZES, curves[name], strict=True)
    )
    write_csv(folder / "dhaliwal-figure4.csv", ("way", "k", "deviation"), deviations)
    write_csv(folder / "dhaliwal-figure3.csv", ("way", "mean", "variance"), _moments(recovered))
    figures.save(picture.draw_rows(chosen.seed), folder / "dhaliwal-rows.png")
    figures.save(picture.draw_noise(recovered, SIZES, curves), folder / "dhaliwal-noise.png")
    for table in (_accuracies(found), _gains(found), _distances(recovered)):
        console.print(table)
    console.print(f"Written: dhaliwal-*.csv and dhaliwal-*.png in {folder}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.experiments.dhaliwal", description="Dhaliwal et al. 2019, §5."
    )
    parser.add_argument("--output", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="a few repetitions, to try it out")
    return parser


def lines(found: Study) -> Iterator[tuple[object, ...]]:
    """Yield the lines of Table 1: the mean accuracy of each way in each setting."""
    for way, accuracy in found.accuracy.items():
        error = accuracy.std(1, ddof=1) / np.sqrt(accuracy.shape[1])
        for place, (dimension, k) in enumerate(found.settings):
            mean = float(accuracy[place].mean())
            yield way, dimension, k, f"{mean:.4f}", f"{error[place]:.4f}"


def _moments(recovered: dict[str, Recovery]) -> Iterator[tuple[object, ...]]:
    for name, found in recovered.items():
        yield name, f"{found.errors.mean():.4f}", f"{found.errors.var():.3f}"


def _accuracies(found: Study) -> Table:
    heads = [f"d = {d}, k = {k}" for d, k in found.settings]
    table = Table("k-means on", *heads, title="Accuracy of two clusters (Table 1)")
    for way in found.accuracy:
        table.add_row(way, *(f"{mean:.3f}" for mean in found.means(way)))
    for name, printed in _PAPERS.items():
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


def _distances(recovered: dict[str, Recovery]) -> Table:
    title = "Recovered squared distances less the true ones, d = 3, k = 2"
    heads = ("mean", "standard error", "variance", "by the law", "by Claim 7")
    table = Table("", *heads, title=title)
    for name, found in recovered.items():
        error = found.errors.std() / np.sqrt(found.errors.size)
        # Given its scale, each release has a law of its own: theirs are averaged.
        ours = found.law.variances
        varied = ours.square * (found.squared**2).mean()
        varied += (14 * found.law.k * found.variance**2).mean()
        varied += 8 * (found.variance * found.scattered).mean()
        claimed = recovery.paper_variances(found.law.k, found.law.variance).at(found.squared)
        shown = (found.errors.mean(), error, found.errors.var(), varied, claimed.mean())
        table.add_row(name, *(f"{value:.4g}" for value in shown))
    return table


if __name__ == "__main__":
    main()
