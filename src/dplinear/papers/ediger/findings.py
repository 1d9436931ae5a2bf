"""The figures of Ediger 2021: files, claims and verdicts.

The paper calls estimates accurate and does not say from where on. Here a line is accurate if its
excess loss is at most a twentieth of what the features explain, which is the trace of Σ on average.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from dplinear.papers import figures
from dplinear.papers.ediger import lemma, picture, study
from dplinear.papers.ediger.rivals import LEAST_SQUARES, OURS, PAPER
from dplinear.papers.ediger.study import BEYOND, ERRORS, FIGURES, NAMES, Figure, Panel, Study
from dplinear.papers.exhibits import (
    FAILS,
    HOLDS,
    IN_PART,
    NOT_AS_PRINTED,
    Exhibit,
    Finding,
    Outcome,
    Run,
    by_share,
    span,
)
from dplinear.papers.output import write_csv

HEADER = (
    *("figure", "covariance", "mean", "features", "rows", "rho", "way", "repetitions"),
    *("mean_excess", "lower_quartile", "median", "upper_quartile"),
)
ACCURATE = 0.05
SMALL_RHO = 0.1
SMALL, FULL = 3, 50  # repetitions
_LEMMA_ROWS = 200_000
_CLOSE = 2.0  # times the error of least squares


def smaller(figure: Figure) -> Figure:
    """Return a figure with a few points of its first two panels."""
    rows = slice(2) if figure.number == 12 else slice(None, None, 4)
    panels = tuple(
        Panel(panel.population, panel.rows[rows], panel.rhos[-6::3]) for panel in figure.panels[:2]
    )
    return Figure(figure.number, figure.title, panels)


def lines(figure: Figure, found: Study) -> Iterator[tuple[object, ...]]:
    """Yield the lines of a CSV file: one for each point of each curve."""
    for panel in figure.panels:
        population = panel.population
        for way, name in enumerate(NAMES):
            for (rows, rho), all_losses in zip(panel.points, found.losses[panel][way], strict=True):
                losses = all_losses[~np.isnan(all_losses)]
                summary = (losses.mean(), *np.quantile(losses, [0.25, 0.5, 0.75]))
                kind = (population.covariance, population.mean, population.size)
                shown = (f"{value:.6g}" for value in summary)
                yield (figure.number, *kind, rows, rho, name, len(losses), *shown)


def write(figure: Figure, found: Study, folder: Path) -> tuple[Path, ...]:
    """Write a figure as a picture and a CSV file."""
    table, drawn = (folder / f"ediger-figure{figure.number:02d}.{end}" for end in ("csv", "png"))
    write_csv(table, HEADER, lines(figure, found))
    figures.save(picture.draw(figure, found), drawn)
    return drawn, table


def write_lemma(seed: int, folder: Path) -> tuple[Path, ...]:
    """Write Figure 1 as a picture."""
    drawn = folder / "ediger-figure01.png"
    figures.save(picture.draw_lemma(seed), drawn)
    return (drawn,)


def _lemma(run: Run) -> Outcome:
    beta = lemma.cloud(run.seed, 2).coefficients
    largest = float(np.linalg.eigvalsh(lemma.sample_covariance(beta, _LEMMA_ROWS, run.seed))[-1])
    square = lemma.bound(beta)
    below = largest < 1.02 * square
    verdict = HOLDS if largest <= square**0.5 else NOT_AS_PRINTED if below else FAILS
    finding = Finding(
        "The covariance of z = x·y is dominated by √(2‖β‖² + 1)·I.",
        f"Its largest eigenvalue is {largest:.3f} ({_LEMMA_ROWS:,} rows); the root is "
        f"{square**0.5:.3f}, 2‖β‖² + 1 itself {square:.3f}.",
        verdict,
    )
    return Outcome((finding,), write_lemma(run.seed, run.folder))


def excess_share(panel: Panel, found: Study, name: str) -> dict[tuple[int, float], float]:
    """Return the median excess loss at each (n, ρ), in parts of what the features explain."""
    explained = float(np.trace(panel.population.matrix))
    return dict(zip(panel.points, found.median(panel, name) / explained, strict=True))


def _figure(run: Run, number: int) -> Outcome:
    figure = smaller(FIGURES[number]) if run.quick else FIGURES[number]
    found = study.run(
        figure.panels,
        run.seed,
        repetitions=SMALL if run.quick else FULL,
        watch=run.watch(f"Ediger, Figure {number}"),
    )
    if number == 5:
        finding = _errors(figure, found)
    elif number == 12:
        finding = _beyond(figure, found)
    elif len(figure.panels[0].rows) == 1:
        finding = _budgets(figure, found)
    else:
        finding = _sizes(figure, found)
    return Outcome((finding,), write(figure, found, run.folder))


_SIZES = {
    2: "In few dimensions the estimates are accurate even for small n.",
    3: "In up to 35 dimensions the estimates are good from 4,000 rows on.",
    6: "With two features highly correlated, estimates in few dimensions are accurate.",
    7: "With a covariance of ten times the identity, so are they.",
    9: "With means of 2, estimates in few dimensions are accurate.",
    10: "With means of 10, so are they.",
}


def _sizes(figure: Figure, found: Study) -> Finding:
    panels = [panel for panel in figure.panels if panel.population.size <= 35]
    rows = min(panels[0].rows) if figure.number == 2 else max(panels[0].rows)
    return _accuracy(_SIZES[figure.number], panels, found, [(rows, study.RHO)])


def _budgets(figure: Figure, found: Study) -> Finding:
    fewest = figure.panels[0]
    points = [point for point in fewest.points if 0.05 <= point[1] <= SMALL_RHO]
    claim = "With fewer dimensions the estimates stay accurate for small ρ."
    return _accuracy(claim, [fewest], found, points)


def _accuracy(
    claim: str, panels: Sequence[Panel], found: Study, points: Sequence[tuple[int, float]]
) -> Finding:
    kinds = (PAPER.name, OURS.name, LEAST_SQUARES)
    parts = {
        name: [excess_share(panel, found, name)[point] for panel in panels for point in points]
        for name in kinds
    }
    shown = "; ".join(f"{name} {span(values, 2)}" for name, values in parts.items())
    sizes = ", ".join(str(panel.population.size) for panel in panels)
    rhos = ", ".join(f"{rho:g}" for rho in sorted({rho for _, rho in points}))
    share = float(np.mean([part <= ACCURATE for part in parts[PAPER.name]]))
    return Finding(
        claim,
        f"Median excess loss in parts of what features explain, d = {sizes}, "
        f"n = {points[0][0]:,}, ρ = {rhos}: {shown}.",
        by_share(share, most=1.0, few=0.0),
    )


def _errors(figure: Figure, found: Study) -> Finding:
    (panel,) = figure.panels
    falls = []
    for error in ERRORS.values():
        for name in (PAPER.name, OURS.name):
            curve = np.nanmean(error(found.losses[panel][NAMES.index(name)]), axis=-1)
            falls.append(bool(curve[-1] < curve[0]))
    return Finding(
        "Several error functions show the same: errors fall with n.",
        f"From n = {panel.rows[0]:,} to {panel.rows[-1]:,} the mean falls in {sum(falls)} of "
        f"{len(falls)} curves ({len(ERRORS)} errors, the paper's algorithm and ours).",
        by_share(sum(falls) / len(falls), most=1.0),
    )


def _beyond(figure: Figure, found: Study) -> Finding:
    last = max(figure.panels[0].rows)
    ratios = {
        name: [
            float(found.median(panel, name)[-1] / found.median(panel, LEAST_SQUARES)[-1])
            for panel in figure.panels
        ]
        for name in (PAPER.name, OURS.name)
    }
    shown = "; ".join(f"{name} {span(values, 2)}" for name, values in ratios.items())
    near = [bool(np.max(values) <= _CLOSE) for values in ratios.values()]
    verdict = HOLDS if all(near) else "holds for ours only" if near[1] else FAILS
    return Finding(
        "Not in the paper: with many rows, privacy costs next to nothing.",
        f"Median excess loss over that of least squares without privacy, "
        f"n = {last:,} (of up to {BEYOND[-1]:,}): {shown}.",
        IN_PART if any(near) and not near[1] else verdict,
    )


EXHIBITS: dict[str, Exhibit] = {
    "figure1": _lemma,
    **{f"figure{number}": partial(_figure, number=number) for number in FIGURES},
}
