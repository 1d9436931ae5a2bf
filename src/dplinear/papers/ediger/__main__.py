"""`python -m dplinear.papers.ediger`: the figures as pictures, CSV files and a table."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dplinear.papers.ediger import study
from dplinear.papers.ediger.findings import FULL, SMALL, smaller, write, write_lemma
from dplinear.papers.ediger.study import FIGURES, NAMES, Figure, Study
from dplinear.papers.output import watcher


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Draw the figures that the command line asks for."""
    chosen = _parser().parse_args(arguments)
    console = console or Console()
    numbers = [chosen.figure] if chosen.figure else [1, *FIGURES]
    repetitions = SMALL if chosen.small else chosen.repetitions
    for number in numbers:
        if number == 1:
            write_lemma(chosen.seed, chosen.output)
            continue
        figure = smaller(FIGURES[number]) if chosen.small else FIGURES[number]
        watch = watcher(console, f"Figure {number}")
        found = study.run(figure.panels, chosen.seed, repetitions=repetitions, watch=watch)
        write(figure, found, chosen.output)
        console.print(_summary(figure, found))
    console.print(f"Written to {chosen.output}, seed {chosen.seed}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.papers.ediger", description="Ediger 2021, Figures 1 to 11."
    )
    parser.add_argument("--output", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--figure", type=int, choices=[1, *FIGURES], help="one figure alone")
    parser.add_argument("--repetitions", type=int, default=FULL)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="three repetitions, small tables")
    return parser


def _summary(figure: Figure, found: Study) -> Table:
    title = f"Figure {figure.number}. {figure.title}: median excess loss"
    table = Table("d", "Σ", "μ", "n", "ρ", *NAMES, title=title)
    for panel in figure.panels:
        drawn = panel.population
        medians = [found.median(panel, name) for name in NAMES]
        for index, (rows, rho) in enumerate(panel.points):
            cells = [f"{median[index]:.3g}" for median in medians]
            table.add_row(
                str(drawn.size),
                drawn.covariance,
                f"{drawn.mean:g}",
                f"{rows:,}",
                f"{rho:g}",
                *cells,
            )
    return table


if __name__ == "__main__":
    main()
