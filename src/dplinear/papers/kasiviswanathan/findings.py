"""Kasiviswanathan and Jin 2016: its Table 1, the experiments it left out, claims and verdicts."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from dplinear.convex.compression import theorems
from dplinear.convex.sets import L1Ball
from dplinear.papers import figures
from dplinear.papers.exhibits import FAILS, HOLDS, Exhibit, Finding, Outcome, Run, by_share, span
from dplinear.papers.kasiviswanathan import picture, study
from dplinear.papers.kasiviswanathan.contest import TRIVIAL, Contestant, guarantee
from dplinear.papers.kasiviswanathan.study import FULL, QUICK, Cell, Study
from dplinear.papers.kasiviswanathan.tables import TRUE, WEIGHT
from dplinear.papers.output import write_csv

HEADER = (
    *("guarantee", "loss", "rows", "features", "epsilon", "learner", "dimension", "repetitions"),
    *("excess", "excess_error", "relative", "least_risk", "winner", "auto"),
)
KINDS = {False: "approximate", True: "pure"}
_STEADY = 0.1  # of the risk


def lines(found: Study) -> Iterator[tuple[object, ...]]:
    """Yield the lines of the CSV file: one for each contestant of each cell."""
    for cell in found.plan.cells():
        winner, chosen = found.winner(cell), found.automatic(cell)
        least = float(np.mean(found.least[cell]))
        for who in found.field(cell):
            values = np.array(found.excess[cell, who])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            numbers = (values.mean(), error, found.relative(cell, who), least)
            yield (
                *(KINDS[cell.pure], cell.loss, cell.rows, cell.features, cell.epsilon),
                *(who.learner, who.dimension or "", len(values)),
                *(f"{number:.6g}" for number in numbers),
                *(int(who == winner), int(who == chosen)),
            )


def write_lines(found: Study, folder: Path) -> Path:
    """Write all excesses as a CSV file."""
    path = folder / "kasiviswanathan.csv"
    write_csv(path, HEADER, lines(found))
    return path


def write_figure(found: Study, folder: Path, *, pure: bool) -> Path:
    """Write the figure of one kind of guarantee."""
    path = folder / f"kasiviswanathan-{KINDS[pure]}.png"
    figures.save(picture.draw(found, pure=pure), path)
    return path


def _run_study(run: Run) -> Study:
    """Return the contest, run once for all exhibits."""
    plan = QUICK if run.quick else FULL
    watch = run.watch("Kasiviswanathan and Jin, learning")
    return run.once("study", lambda: study.run(plan, run.seed, watch=watch))


def _contest(run: Run, *, pure: bool) -> Outcome:
    found = _run_study(run)
    cells = [cell for cell in found.plan.cells() if cell.pure is pure]
    files = (
        write_figure(found, run.folder, pure=pure),
        run.once("lines", lambda: write_lines(found, run.folder)),
    )
    return Outcome((_learns(found, cells), _steady(found, pure=pure), _plain(found, cells)), files)


def _learns(found: Study, cells: list[Cell]) -> Finding:
    left = [found.relative(cell, found.best_compressed(cell)) for cell in cells]
    better = sum(each < 1 for each in left)
    return Finding(
        "Non-trivial private learning is possible from compressed rows alone.",
        f"The best compressed learner has less excess risk than θ = 0 in {better} of {len(cells)} "
        f"cells; in parts of it: {span(left)}.",
        by_share(better / len(cells)),
    )


def _steady(found: Study, *, pure: bool) -> Finding:
    changes = {loss: found.doubling(loss, pure=pure) for loss in found.plan.losses}
    shown = "; ".join(
        f"{loss} {risk:+.1%}, excess {excess:+.0%}" for loss, (risk, excess) in changes.items()
    )
    steady = [risk < _STEADY for risk, _ in changes.values()]
    return Finding(
        "The price of compression follows the width of the set, which grows with ln d only: "
        "more features cost next to nothing.",
        f"Twice the features change the best compressed learner's risk by: {shown}.",
        by_share(sum(steady) / len(steady), most=1.0),
    )


def _plain(found: Study, cells: list[Cell]) -> Finding:
    compressed = sum(found.winner(cell).dimension > 0 for cell in cells)
    return Finding(
        "Not in the paper: compression also makes the private model more accurate.",
        f"A compressed learner wins in {compressed} of {len(cells)} cells; rows as they are, or "
        "the model 0, in the others.",
        by_share(compressed / len(cells), few=0.2),
    )


def _table1(run: Run) -> Outcome:
    found = _run_study(run)
    path = run.folder / "kasiviswanathan-table1.csv"
    below, silent, rows = 0, 0, []
    for cell in found.plan.cells():
        asked = guarantee(cell.epsilon, pure=cell.pure)
        rate = theorems.compressed_rate(_setting(cell), asked)
        best = found.mean(cell, found.best_compressed(cell))
        trivial = found.mean(cell, Contestant(TRIVIAL))
        below += best <= rate
        silent += rate >= trivial
        kind = (KINDS[cell.pure], cell.loss, cell.rows, cell.features, cell.epsilon)
        rows.append((*kind, *(f"{number:.6g}" for number in (rate, best, trivial))))
    header = (*HEADER[:5], "rate", "best_compressed", "trivial")
    write_csv(path, header, rows)
    says = "" if silent < len(rows) else ", and says nothing at these sizes"
    finding = Finding(
        "Table 1: the excess risk from compressed rows is at most a rate in n, ε and the width.",
        f"With constants of 1 and without powers of ln n: the best compressed learner is below the "
        f"rate in {below} of {len(rows)} cells; the rate is above the excess of θ = 0 in {silent}.",
        f"{HOLDS}{says}" if below == len(rows) else FAILS,
    )
    return Outcome((finding,), (path,))


def _setting(cell: Cell) -> theorems.Setting:
    """Return a cell as the theorems see it: labels are in [−1, 1], rows have norm 1."""
    ball = L1Ball(cell.features, WEIGHT[cell.loss] * TRUE)
    slope = 2 * (ball.radius + 1) if cell.loss == "squared" else 1.0
    return theorems.Setting(
        rows=cell.rows, width=ball.width().value, size=ball.radius, lipschitz=slope
    )


EXHIBITS: dict[str, Exhibit] = {
    "approximate": partial(_contest, pure=False),
    "pure": partial(_contest, pure=True),
    "table1": _table1,
}
