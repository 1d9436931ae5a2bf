"""`python -m dplinear.papers.kasiviswanathan`: figures, CSV files, and who wins where."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from dplinear.papers.kasiviswanathan import picture, study
from dplinear.papers.kasiviswanathan.contest import DELTA
from dplinear.papers.kasiviswanathan.findings import write_figure, write_lines
from dplinear.papers.kasiviswanathan.study import FULL, QUICK, Study, ratio
from dplinear.papers.output import watcher


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Run the experiments as the command line asks."""
    chosen = _parser().parse_args(arguments)
    console = console or Console()
    plan = QUICK if chosen.quick else FULL
    if chosen.repetitions is not None:
        plan = replace(plan, repetitions=chosen.repetitions)
    console.print(
        f"Rows like texts, L1 ball, δ = {DELTA:g}, add_remove, "
        f"{plan.repetitions} tables a cell, seed {chosen.seed}"
    )
    found = study.run(
        plan, chosen.seed, processes=chosen.processes, watch=watcher(console, "Learning")
    )
    write_lines(found, chosen.output)
    for pure in (False, True):
        write_figure(found, chosen.output, pure=pure)
        console.print(winners(found, pure=pure))
    for sentence in verdict(found):
        console.print(sentence)
    console.print(f"Written: kasiviswanathan.csv and two figures in {chosen.output}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.papers.kasiviswanathan",
        description="Kasiviswanathan and Jin 2016: the experiments.",
    )
    parser.add_argument("--output", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--repetitions", type=int, default=None, help="tables a cell")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="tiny tables, to see that it runs")
    return parser


def winners(found: Study, *, pure: bool) -> Table:
    """Return who wins where, with excesses relative to that of the model 0."""
    kind = "pure ε" if pure else "(ε, δ)"
    heads = ("loss", "n", "d", "ε", "winner", "compressed", "auto", "÷")
    title = f"Excess risk, {kind}: 1 is that of θ = 0, ÷ what auto's is to the winner's"
    table = Table(*heads, title=title, padding=(0, 0), box=SIMPLE)
    for cell in found.plan.cells():
        if cell.pure is not pure:
            continue
        shown = [
            f"{who.title} {ratio(found.relative(cell, who))}"
            for who in (found.winner(cell), found.best_compressed(cell), found.automatic(cell))
        ]
        sizes = (cell.loss, f"{cell.rows}", f"{cell.features}", f"{cell.epsilon:g}")
        table.add_row(*sizes, *shown, f"{found.behind(cell):.2f}")
    return table


def verdict(found: Study) -> Iterator[str]:
    """Yield what the tables say, in sentences."""
    cells = list(found.plan.cells())
    for pure, kind in ((False, "(ε, δ)"), (True, "pure ε")):
        own = [cell for cell in cells if cell.pure is pure]
        plain = sum(found.winner(cell).dimension == 0 for cell in own)
        yield f"{kind}: a model learnt from rows as they are wins in {plain} of {len(own)} cells."
    for loss in found.plan.losses:
        cell = picture.middle(found, loss, pure=False)
        best = found.best_compressed(cell)
        left = found.relative(cell, best)
        yield (
            f"{loss}, n = {cell.rows:,}, d = {cell.features:,}, ε = {cell.epsilon:g}: the best "
            f"compressed learner ({best.title}) {'beats' if left < 1 else 'does not beat'} the "
            f"trivial model: {ratio(left)} of its excess."
        )
        risk, excess = found.doubling(loss)
        yield f"{loss}: twice the features change its risk by {risk:+.1%}, excess by {excess:+.0%}."
    share = found.close(cells)
    yield f"auto is within 10% of the winner in {share:.0%} of {len(cells)} cells."


if __name__ == "__main__":
    main()
