"""Is the planner right: its predictions beside what the accuracy benchmark's own tables give.

Every cell of the accuracy grid: both laws of rows, 1,000 to 100,000 rows, 5 to 100 columns,
condition numbers from 1 to 10,000, ε from 0.1 to 4, δ = 1e-6. Tables are those of `accuracy.py`
(its designs and seeds; nothing of the planner's simulator draws them), fitted by every method that
`dpl.plan` predicts. What was fitted is kept in a file, so that a run that was stopped goes on.

    python benchmarks/planner.py            # some 25 minutes on one core; goes on if stopped
    python benchmarks/planner.py --only-compare
    python benchmarks/planner.py --risks build/accuracy/risks.csv  # the descent, by that benchmark

Real tables are those of `real_plans.py`.
"""

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

import dplinear as dpl
from benchmarks.accuracy import DELTA, GRIDS, earlier
from benchmarks.designs import Design, Simulated, draw, seeded
from benchmarks.rivals import METHODS, OURS
from benchmarks.rivals.common import Line
from dplinear.descent.whitened import WhitenedDescent
from dplinear.planner.contest import NAMES, Contest
from dplinear.planner.simulated import SimulatedRows, plain_design
from dplinear.privacy import ApproxDP

REPETITIONS = 5
FEWER = 1  # of tables beyond so many cells
MANY_CELLS = 5_000_000
HEADER = ("law", "rows", "columns", "condition", "epsilon", "repetition", "method", "excess_risk")

Fitted = tuple[Design, float, int, str, float]
Job = tuple[Design, int]


def jobs(cells: str) -> list[Job]:
    """Return the tables, the first repetition of each design first, small ones before large."""
    designs = sorted(GRIDS[cells].designs, key=lambda one: one.rows * one.columns)
    return [
        (design, repetition)
        for repetition in range(REPETITIONS)
        for design in designs
        if repetition < FEWER or design.rows * design.columns <= MANY_CELLS
    ]


def simulated_rows(made: Simulated) -> SimulatedRows:
    """Return a table of the benchmark as solvers see one."""
    shape = plain_design(made.rows.shape[1]).shape
    block = np.column_stack([np.ones(len(made.rows)), made.rows, made.target])
    return SimulatedRows(shape, iter([block]))


def fitted(job: Job, epsilons: Sequence[float]) -> Iterator[Fitted]:
    """Yield the excess risk of each method on one table, at each budget."""
    design, repetition = job
    made = draw(design, seeded("table", design, repetition))
    rows = simulated_rows(made)
    for epsilon in epsilons:
        contest = Contest.of(design.columns, ApproxDP(epsilon, DELTA))
        seed = int(seeded("noise", design, repetition, epsilon).integers(2**32))
        for name, line in contest.lines(rows, seed).items():
            risk = made.excess_risk(Line(float(line[0]), line[1:]))
            yield design, epsilon, repetition, name, risk


def read(file: Path) -> list[Fitted]:
    """Return what an earlier run has fitted."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return [
            (
                Design(row["law"], int(row["rows"]), int(row["columns"]), float(row["condition"])),
                float(row["epsilon"]),
                int(row["repetition"]),
                row["method"],
                float(row["excess_risk"]),
            )
            for row in csv.DictReader(stream)
        ]


def descents(file: Path) -> list[Fitted]:
    """Return what the accuracy benchmark has found for the library's own estimator."""
    found = earlier(file, [name for name in METHODS if name != OURS])
    return [
        (one.source, one.epsilon, one.repetition, WhitenedDescent.name, one.score)
        for one in found
        if isinstance(one.source, Design)
    ]


def realise(cells: str, file: Path, minutes: float) -> None:
    """Fit what is not in the file yet, for so many minutes at most."""
    done = {(design, repetition) for design, _, repetition, _, _ in read(file)}
    left = [job for job in jobs(cells) if job not in done]
    start = time.perf_counter()
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    with file.open("a", encoding="utf-8", newline="") as stream:
        for count, job in enumerate(left, start=1):
            results = list(fitted(job, GRIDS[cells].epsilons))
            csv.writer(stream).writerows(
                (*astuple(design), epsilon, repetition, name, f"{risk:.6g}")
                for design, epsilon, repetition, name, risk in results
            )
            stream.flush()
            spent = (time.perf_counter() - start) / 60
            if count % 20 == 0:
                print(f"{count} of {len(left)} tables, {spent:.1f} minutes", flush=True)
            if spent > minutes:
                print(f"stopped after {spent:.1f} minutes; run it again to go on.", flush=True)
                return


# Predictions beside what came of them

LAWS = {"gaussian": "normal", "t4": "heavy"}
FACTOR, NEAR = 2.0, 1.2
Cell = tuple[Design, float]


@dataclass(frozen=True)
class Verdict:
    """One cell: what was predicted and what came, by method; and which method was recommended."""

    recommended: str
    predicted: dict[str, float]
    ends: dict[str, tuple[float, float]]
    risks: dict[str, list[float]]

    @property
    def realised(self) -> dict[str, float]:
        """The median risk of each method."""
        return {name: float(np.median(found)) for name, found in self.risks.items()}

    def within(self, name: str) -> bool:
        """Say whether the median came within a factor of two of the prediction."""
        return 1 / FACTOR <= self.realised[name] / self.predicted[name] <= FACTOR

    @property
    def near_best(self) -> bool:
        """Whether the recommended method came within a fifth of the best."""
        return self.realised[self.recommended] <= NEAR * min(self.realised.values())

    def covered(self, name: str) -> list[bool]:
        """Say of each table whether its risk was in the 90% interval."""
        low, high = self.ends[name]
        return [low <= risk <= high for risk in self.risks[name]]


def verdicts(results: Sequence[Fitted], *, informed: bool) -> dict[Cell, Verdict]:
    """Compare each cell with its plan, which knows the tails, and the condition number or not."""
    risks: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for design, epsilon, _, name, risk in results:
        risks[design, epsilon][name].append(risk)
    found = {}
    for (design, epsilon), methods in risks.items():
        plan = dpl.plan(
            design.rows,
            design.columns,
            epsilon=epsilon,
            delta=DELTA,
            condition=design.condition if informed else None,
            tails=LAWS[design.law],
        )
        found[design, epsilon] = Verdict(
            plan.recommended.mechanism,
            {line.mechanism: line.error for line in plan.lines},
            {line.mechanism: (line.low, line.high) for line in plan.lines},
            dict(methods),
        )
    return found


def share(truths: Iterable[bool]) -> str:
    """Return how many of so many, in percent."""
    counted = list(truths)
    return f"{100 * sum(counted) / len(counted):.1f}% of {len(counted)}"


def compare(results: Sequence[Fitted], console: Console) -> None:
    """Print how far the predictions hold."""
    tables = len({(design, repetition) for design, _, repetition, _, _ in results})
    console.print(f"{tables} tables at {len({one[1] for one in results})} budgets each.")
    for informed, title in (
        (True, "condition number and tails given"),
        (False, "tails given"),
    ):
        cells = verdicts(results, informed=informed)
        table = Table(title=f"Predictions beside {len(cells)} cells; {title}")
        for head in ("method", "within a factor 2", "tables in the 90% interval", "recommended"):
            table.add_column(head, justify="left" if head == "method" else "right")
        tried = {name for one in cells.values() for name in one.risks}
        for name in (name for name in NAMES if name in tried):
            table.add_row(
                name,
                share(one.within(name) for one in cells.values()),
                share(inside for one in cells.values() for inside in one.covered(name)),
                str(sum(one.recommended == name for one in cells.values())),
            )
        console.print(table)
        if tried != set(NAMES):
            continue
        close = share(one.within(one.recommended) for one in cells.values())
        console.print(f"The recommended method's median is within a factor 2 in {close} cells.")
        best = share(one.near_best for one in cells.values())
        console.print(f"The recommended method is within 20% of the best in {best} cells.\n")


def misses(results: Sequence[Fitted], console: Console) -> None:
    """Print the cells that missed, where condition number and tails were given."""
    for (design, epsilon), one in verdicts(results, informed=True).items():
        if one.within(one.recommended) and one.near_best:
            continue
        realised, name = one.realised, one.recommended
        best = min(realised, key=lambda key: realised[key])
        console.print(
            f"{design.law} n={design.rows} d={design.columns} κ={design.condition:g} ε={epsilon:g}:"
            f" {name} predicted {one.predicted[name]:.2g}, came {realised[name]:.2g};"
            f" best {best}: {realised[best]:.2g} (predicted {one.predicted[best]:.2g})"
        )


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="The planner's predictions beside real errors.")
    parser.add_argument("--cells", choices=list(GRIDS), default="core")
    parser.add_argument("--only-compare", action="store_true", help="fit nothing more")
    parser.add_argument("--misses", action="store_true", help="print the cells that missed")
    parser.add_argument("--risks", type=Path, help="risks.csv of accuracy.py; fits nothing")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--output", type=Path, default=Path("build/planner"))
    options = parser.parse_args(words)
    if options.risks is not None:
        compare(descents(options.risks), Console(width=120))
        return
    file = options.output / "realised.csv"
    if not options.only_compare:
        with threadpool_limits(1):
            realise(options.cells, file, options.minutes)
    results, console = read(file), Console(width=120)
    compare(results, console)
    if options.misses:
        misses(results, console)


if __name__ == "__main__":
    main()
