"""`python -m dplinear.experiments.ediger`: the figures as pictures, CSV files and a table."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from dplinear.experiments import figures
from dplinear.experiments.ediger import picture, study
from dplinear.experiments.ediger.study import FIGURES, NAMES, Figure, Panel, Study
from dplinear.experiments.output import watcher, write_csv

HEADER = (
    *("figure", "covariance", "mean", "features", "rows", "rho", "way", "repetitions"),
    *("mean_excess", "lower_quartile", "median", "upper_quartile"),
)
_SMALL = 3


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Draw the figures that the command line asks for."""
    chosen = _parser().parse_args(arguments)
    console = console or Console()
    numbers = [chosen.figure] if chosen.figure else [1, *FIGURES]
    repetitions = _SMALL if chosen.small else chosen.repetitions
    for number in numbers:
        name = f"ediger-figure{number:02d}"
        if number == 1:
            figures.save(picture.draw_lemma(chosen.seed), chosen.output / f"{name}.png")
            continue
        figure = _smaller(FIGURES[number]) if chosen.small else FIGURES[number]
        watch = watcher(console, f"Figure {number}")
        found = study.run(figure.panels, chosen.seed, repetitions=repetitions, watch=watch)
        write_csv(chosen.output / f"{name}.csv", HEADER, lines(figure, found))
        figures.save(picture.draw(figure, found), chosen.output / f"{name}.png")
        console.print(_summary(figure, found))
    console.print(f"Written to {chosen.output}, seed {chosen.seed}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.experiments.ediger", description="Ediger 2021, Figures 1 to 11."
    )
    parser.add_argument("--output", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--figure", type=int, choices=[1, *FIGURES], help="one figure alone")
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="three repetitions, small tables")
    return parser


def _smaller(figure: Figure) -> Figure:
    panels = tuple(
        Panel(panel.population, panel.rows[:2], panel.rhos[-2:]) for panel in figure.panels[:2]
    )
    return Figure(figure.number, figure.title, panels)


def lines(figure: Figure, found: Study) -> Iterator[tuple[object, ...]]:
    """Yield the lines of a CSV file: one for each point of each curve."""
    for panel in figure.panels:
        law = panel.population
        for way, name in enumerate(NAMES):
            for (rows, rho), all_losses in zip(panel.points, found.losses[panel][way], strict=True):
                losses = all_losses[~np.isnan(all_losses)]
                summary = (losses.mean(), *np.quantile(losses, [0.25, 0.5, 0.75]))
                place = (figure.number, law.covariance, law.mean, law.size, rows, rho, name)
                yield (*place, len(losses), *(f"{value:.6g}" for value in summary))


def _summary(figure: Figure, found: Study) -> Table:
    title = f"Figure {figure.number}. {figure.title}: median excess loss"
    table = Table("d", "Σ", "μ", "n", "ρ", *NAMES, title=title)
    for panel in figure.panels:
        law = panel.population
        medians = [found.median(panel, name) for name in NAMES]
        for place, (rows, rho) in enumerate(panel.points):
            cells = [f"{median[place]:.3g}" for median in medians]
            table.add_row(
                str(law.size), law.covariance, f"{law.mean:g}", f"{rows:,}", f"{rho:g}", *cells
            )
    return table


if __name__ == "__main__":
    main()
