"""`python -m dplinear.papers.sheffet`: Figure 1 as a picture, a CSV file and a few tables."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from dplinear.papers.output import watcher
from dplinear.papers.sheffet import rows, study
from dplinear.papers.sheffet.components import component_error
from dplinear.papers.sheffet.design import COLUMNS, REDUNDANT, Design
from dplinear.papers.sheffet.findings import GAINS_AT, write
from dplinear.papers.sheffet.study import GAINS, RIVALS, Study
from dplinear.papers.sheffet.techniques import CALIBRATIONS, DELTA, EPSILON, TECHNIQUES, Bench


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Run the experiment as the command line asks."""
    chosen = _parser().parse_args(arguments)
    console = console or Console()
    design = Design.draw(chosen.seed, standardised=not chosen.own_units)
    console.print(
        f"ε = {EPSILON}, δ = {DELTA:g}, rows of norm at most B = {design.bound:g} "
        f"(B² = {design.bound**2:.0f}), {chosen.repetitions} repetitions, seed {chosen.seed}"
    )
    bench = Bench.of(design)
    if chosen.rows:
        with console.status("Passing 2^20 rows"):
            compared = rows.compare(bench, chosen.seed, repetitions=chosen.repetitions)
        console.print(_real_rows(compared))
        return
    found = study.run(
        bench,
        chosen.seed,
        repetitions=chosen.repetitions,
        watch=watcher(console, "Releasing"),
    )
    write(found, chosen.output)
    for table in (_crossovers(found), _gains(found), _components(design)):
        console.print(table)
    console.print(f"Written: sheffet-figure1.csv and sheffet-figure1.png in {chosen.output}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.papers.sheffet", description="Sheffet 2015, Figure 1."
    )
    parser.add_argument("--output", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--own-units", action="store_true", help="do not divide columns by their deviations"
    )
    parser.add_argument(
        "--rows", action="store_true", help="compare with 2^20 real rows, and draw nothing"
    )
    return parser


def _crossovers(found: Study) -> Table:
    title = "log2 of the rows at which scaled Analyze Gauss is worse, m ≥ 1 (paper: below 22)"
    table = Table("m", "calibration", *(rival.name for rival in RIVALS), title=title)
    for redundant in REDUNDANT[1:]:
        for calibration in CALIBRATIONS:
            cells = [
                _ranges(study.scaled_beaten(found, calibration, rival, redundant))
                for rival in RIVALS
            ]
            table.add_row(str(redundant), calibration, *cells)
    best = ", ".join(
        f"{_power(study.best_from(found, calibration))} ({calibration})"
        for calibration in CALIBRATIONS
    )
    table.caption = f"m = 0: Analyze Gauss is the best from {best}; paper: from 2^16."
    return table


def _gains(found: Study) -> Table:
    title = f"The paper's median error over the exact one, m = 0, n = 2^{GAINS_AT}"
    table = Table("technique", "paper's", "exact", "ratio", title=title)
    where = found.exponents.index(GAINS_AT)
    for technique in GAINS + tuple(each for each in TECHNIQUES if each not in GAINS):
        pair = [
            f"{found.median(calibration, technique, 0)[where]:.3g}"
            for calibration in ("paper", "exact")
        ]
        table.add_row(technique.name, *pair, f"{found.gain(technique, GAINS_AT):.2f}")
    return table


def _components(design: Design) -> Table:
    title = "Error of regression on principal components, without privacy, n = ∞"
    table = Table("m", f"k = {COLUMNS}", "all but one", "all", title=title)
    for redundant in REDUNDANT:
        whole = COLUMNS + redundant + 1
        errors = [component_error(design, redundant, k) for k in (COLUMNS, whole - 1, whole)]
        table.add_row(str(redundant), *(f"{error:.3f}" for error in errors))
    return table


def _real_rows(compared: rows.Comparison) -> Table:
    title = f"{compared.rows:,} real rows against moments drawn at once: median errors, m = 0 and 5"
    heads = [f"{kind}, m = {m}" for m in (0, 5) for kind in ("real", "drawn", "p")]
    table = Table("calibration", "technique", *heads, title=title)
    for calibration, technique in compared.real:
        cells = []
        for redundant in (0, 5):
            where = REDUNDANT.index(redundant)
            samples = (
                compared.real[calibration, technique],
                compared.drawn[calibration, technique],
            )
            cells += [f"{np.median(sample[:, where]):.3g}" for sample in samples]
            cells.append(f"{compared.likeness(calibration, technique, redundant):.2f}")
        table.add_row(calibration, technique.name, *cells)
    table.caption = (
        f"The exact pass and float64 products differ by {compared.rounding:.1e}; the moments and "
        f"their expectation by {compared.deviation:.1f} standard deviations at most. The longest "
        f"row reaches {compared.longest:.2f} of the bound. Through the gate: {compared.gate:.3g}."
    )
    return table


def _power(exponent: int | None) -> str:
    return "nowhere" if exponent is None else f"2^{exponent}"


def _ranges(exponents: list[int]) -> str:
    """Return whole numbers as ranges: 12–15, 23."""
    runs: list[list[int]] = []
    for exponent in exponents:
        if runs and exponent == runs[-1][-1] + 1:
            runs[-1].append(exponent)
        else:
            runs.append([exponent])
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    return ", ".join(shown) or "nowhere"


if __name__ == "__main__":
    main()
