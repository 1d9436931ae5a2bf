"""Is the planner right on real tables: predictions beside what mechanisms do on rows of them.

    python benchmarks/real_plans.py                # measure what is missing, then compare
    python benchmarks/real_plans.py --only-compare --cells
    python benchmarks/real_plans.py --levels       # one category of 1,500 levels, half a minute

A cell is a real table, a number of rows drawn from it with replacement (`real_populations.py`), and
ε, δ = 1e-6. What a mechanism did there is the median over tables of its excess risk, as the plan
measures it: as a share of the variance that the table's best line explains, both exact.

Tables are of two halves, by turns of their names. Those of `LOOKED` were in view when the planner's
populations were made, and their medians are among what its laws are fitted to (`--write` writes
them to looked_tables.jsonl); those of `KEPT` were not, and judge, with three of `tables.py`.

A plan is told nothing, or what who has such a table knows: the share explained to a twentieth, the
target's shape and about how wide its bounds are, about how far columns are correlated, and which
of them are 0/1, as a schema says. Where it then recommends nothing, its cells are left out.
"""

import argparse
import csv
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import Table as Columns
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

import dplinear as dpl
from benchmarks import real_populations, tables
from benchmarks.accuracy import DELTA
from benchmarks.designs import seeded
from benchmarks.population_records import REGRESSIONS
from benchmarks.real_populations import RealPopulation
from dplinear.noise import simulation
from dplinear.planner.contest import Contest
from dplinear.planner.forecast import FLOOR, least_squares
from dplinear.planner.simulated import SimulatedRows, plain_design
from dplinear.privacy import ApproxDP

MECHANISMS = ("whitened_descent", "adassp", "analyze_gauss", "coinpress")
SIZES, EPSILONS = (8_000, 32_000), (0.3, 1.0, 3.0)
REPETITIONS = 5
FACTOR, NEAR = 2.0, 1.2
FURTHER = ("california", "diamonds", "flights")
LOOKED = tuple(sorted(record.name for record in REGRESSIONS)[::2])
KEPT = (*sorted(record.name for record in REGRESSIONS)[1::2], *FURTHER)
# The shapes that someone would name who knows what the target is, not what its cells are.
SHAPES = {
    "food": "even",  # a share
    "savings": "long",
    "medical_expenses": "long",
    "doctor_contacts": "counts",
    "office_visits": "counts",
    "wives_hours": "even",
    "young_men": "even",  # a logarithm
    "log_wages": "even",
    "canadian_wages": "skewed",
    "movies": "even",  # a score
    "computers": "skewed",
    "vietnam_households": "even",  # a logarithm
    "pharmacy_visits": "counts",
    "vocabulary": "even",
    "german_visits": "counts",
    "wives_earnings": "skewed",
    "school_scores": "even",
    "california": "skewed",
    "diamonds": "skewed",
    "flights": "skewed",
}
CONDITIONS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3)
WIDTHS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
FLAT = (0.97, 1.03)  # the excess of the target's mean is 1
PROMISE = 0.05  # of R²
WEIGHT = 1.5  # of the logarithm of a real median, beside that of one simulated table
LOOKED_FILE = Path(__file__).with_name("looked_tables.jsonl")
LEVELS, LEVEL_ROWS = 1_500, 50_000
HEADER = ("table", "rows", "repetition", "epsilon", "mechanism", "excess")


@dataclass(frozen=True, order=True)
class Cell:
    """A real table, so many rows of it, and a budget."""

    table: str
    rows: int
    epsilon: float


Risks = Mapping[Cell, Mapping[str, Sequence[float]]]


@cache
def load(name: str) -> RealPopulation:
    """Return a population of the records, or of the tables of the accuracy benchmark."""
    if name not in FURTHER:
        return real_populations.load(name)
    found = tables.TABLES[name]()
    columns = tuple(f"x{index}" for index in range(found.rows.shape[1]))
    return RealPopulation(name, "regression", columns, found.rows, found.target)


def available() -> list[str]:
    """Return the tables that can be had; a line is printed for each other."""
    names = real_populations.available([*LOOKED, *(name for name in KEPT if name not in FURTHER)])
    return [*names, *tables.available(FURTHER)]


@cache
def explained(name: str) -> float:
    """Return the share of the target's variance that the best line explains."""
    found, best = load(name), load(name).truth
    wrong = found.target - best.line[0] - found.rows @ best.line[1:]
    return 1 - float(np.mean(wrong**2)) / best.variance


def simulated(name: str, rows: int, repetition: int) -> SimulatedRows:
    """Return rows of a table, drawn with replacement, as solvers see them."""
    found = load(name)
    drawn = found.draw(rows, seeded("real plan", name, rows, repetition))
    block = np.column_stack([np.ones(rows), drawn])
    return SimulatedRows(plain_design(found.rows.shape[1]).shape, iter([block]))


def fitted(name: str, rows: int, repetition: int) -> Iterator[tuple[Any, ...]]:
    """Yield the excess of every mechanism on one table at every budget, a line of the file each."""
    found, drawn = load(name), simulated(name, rows, repetition)
    columns, scale = found.rows.shape[1], explained(name)
    plain = found.truth.excess(least_squares(drawn, plain_design(columns)))
    for epsilon in EPSILONS:
        contest = Contest.of(columns, ApproxDP(epsilon, DELTA), names=MECHANISMS)
        seed = int(seeded("real noise", name, rows, repetition, epsilon).integers(2**32))
        lines = contest.lines(drawn, seed, MECHANISMS)
        risks = {own: found.truth.excess(line) for own, line in lines.items()} | {FLOOR: plain}
        for mechanism, risk in risks.items():
            yield name, rows, repetition, epsilon, mechanism, f"{risk / scale:.6g}"


def read(file: Path) -> Risks:
    """Return what was measured, by cell and mechanism."""
    found: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    if not file.exists():
        return found
    with file.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            cell = Cell(row["table"], int(row["rows"]), float(row["epsilon"]))
            found[cell][row["mechanism"]].append(float(row["excess"]))
    return found


def measure(file: Path, names: Sequence[str], repetitions: int) -> None:
    """Measure what the file lacks."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    with file.open(encoding="utf-8", newline="") as stream:
        done = {
            (row["table"], int(row["rows"]), int(row["repetition"]))
            for row in csv.DictReader(stream)
        }
    start = time.process_time()
    with file.open("a", encoding="utf-8", newline="") as stream, threadpool_limits(1):
        for name in names:
            for rows in SIZES:
                for repetition in range(repetitions):
                    if (name, rows, repetition) not in done:
                        csv.writer(stream).writerows(list(fitted(name, rows, repetition)))
                        stream.flush()
            print(f"{name}: {(time.process_time() - start) / 60:.1f} minutes", flush=True)


@dataclass(frozen=True)
class Verdict:
    """One cell: its plan's errors, the order in which it ranks mechanisms, and what came."""

    cell: Cell
    predicted: Mapping[str, float]
    ends: Mapping[str, tuple[float, float]]
    came: Mapping[str, float]

    def ratio(self, mechanism: str) -> float:
        """Return what came as a multiple of what was predicted: above 1, the plan was hopeful."""
        return self.came[mechanism] / self.predicted[mechanism]

    def within(self, mechanism: str) -> bool:
        """Say whether the median came within a factor of two of the prediction."""
        return 1 / FACTOR <= self.ratio(mechanism) <= FACTOR

    def covered(self, mechanism: str) -> bool:
        """Say whether the median came within the plan's range."""
        low, high = self.ends[mechanism]
        return low <= self.came[mechanism] <= high

    @property
    def picked(self) -> str:
        """The first of the measured mechanisms in the plan's order."""
        return next(name for name in self.predicted if name in self.came)

    @property
    def regret(self) -> float:
        """What came of the pick, as a multiple of the best."""
        return self.came[self.picked] / min(self.came[name] for name in MECHANISMS)


def told_facts(name: str) -> dict[str, Any]:
    """Return what a plan is told where it is told something: roughly, as a guess is."""
    found = load(name)
    width = 1 / math.sqrt(found.truth.variance)
    correlations = np.corrcoef(found.rows.T)
    condition = float(np.linalg.cond(correlations))
    return {
        "condition": min(CONDITIONS, key=lambda each: abs(math.log(each / condition))),
        "explained": max(round(20 * explained(name)), 1) / 20,
        "zero_one": float((np.abs(found.rows) == 1).all(axis=0).mean()),
        "target_shape": SHAPES[name],
        "target_width": min(WIDTHS, key=lambda each: abs(math.log(each / width))),
    }


def verdicts(risks: Risks, names: Iterable[str], *, told: bool) -> list[Verdict]:
    """Compare the cells of some tables with their plans, but for those that recommend nothing."""
    found = []
    for cell in sorted(cell for cell in risks if cell.table in set(names)):
        plan = dpl.plan(
            cell.rows,
            load(cell.table).rows.shape[1],
            epsilon=cell.epsilon,
            delta=DELTA,
            **(told_facts(cell.table) if told else {}),
        )
        if plan.beyond is not None:
            continue
        lines = [line for line in plan.lines if line.mechanism in MECHANISMS]
        came = {name: float(np.median(each)) for name, each in risks[cell].items()}
        found.append(
            Verdict(
                cell,
                {line.mechanism: line.error for line in lines} | {FLOOR: plan.floor},
                {line.mechanism: (line.low, line.high) for line in lines},
                came,
            )
        )
    return found


def flat_models(found: Sequence[Verdict], risks: Risks) -> tuple[int, int]:
    """Return how many models do as the mean does where the plan promises more, and how many all."""
    flat = promised = 0
    for one in found:
        best = told_facts(one.cell.table)["explained"]
        if best * (1 - one.predicted[one.picked]) > PROMISE:
            each = risks[one.cell][one.picked]
            promised += len(each)
            flat += sum(FLAT[0] <= risk <= FLAT[1] for risk in each)
    return flat, promised


def write_looked(risks: Risks, file: Path) -> None:
    """Write the medians of the tables that were looked at, as the planner's table reads them."""
    lines = []
    for name in LOOKED:
        for rows in SIZES:
            cells = {epsilon: risks[Cell(name, rows, epsilon)] for epsilon in EPSILONS}
            medians = [
                {
                    "epsilon": epsilon,
                    "risks": {each: short(float(np.median(own[each]))) for each in MECHANISMS},
                }
                for epsilon, own in cells.items()
            ]
            known = told_facts(name) | {"explained": short(explained(name))}
            known.pop("condition")
            known["target"] = known.pop("target_shape")
            known["target_width"] = short(1 / math.sqrt(load(name).truth.variance))
            known["zero_one"] = short(known["zero_one"])
            plain = short(float(np.median(cells[EPSILONS[0]][FLOOR])))
            size = {"rows": rows, "columns": load(name).rows.shape[1]}
            lines.append(
                {"name": name, **size, **known, FLOOR: plain, "weight": WEIGHT, "fits": medians}
            )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file.write_text(text, encoding="utf-8")


def short(value: float) -> float:
    """Return a number with three digits that count."""
    return float(f"{value:.3g}")


def compare_levels(console: Console) -> None:
    """Fit one table of one long category, and print it beside its plan."""
    generator = seeded("levels", LEVELS, LEVEL_ROWS)
    effects = generator.standard_normal(LEVELS)
    codes = generator.integers(LEVELS, size=LEVEL_ROWS)
    names = [f"l{index}" for index in range(LEVELS)]
    target = effects[codes] + generator.standard_normal(LEVEL_ROWS)
    schema = dpl.Schema({"place": names, "y": (-6.0, 6.0)})
    plan = dpl.plan(LEVEL_ROWS, schema, epsilon=1.0, delta=DELTA, explained=0.5)
    table = Columns.from_pydict({"place": [names[code] for code in codes], "y": target})
    with simulation.door(1), threadpool_limits(1):
        model = dpl.release_model(
            table,
            schema,
            "y",
            epsilon=1.0,
            delta=DELTA,
            mechanism=plan.recommended.mechanism,
            threads=1,
        )
    slopes = dict(zip(model.coefficients.names, model.coefficients.values, strict=True))
    fitted = model.intercept + np.array([slopes.get(f"place={name}", 0.0) for name in names])
    came = float(np.mean((fitted - effects) ** 2) / effects.var())
    console.print(
        f"{LEVELS:,} levels, {LEVEL_ROWS:,} rows, ε = 1: {plan.recommended.mechanism} came to "
        f"{came:.2g}, the plan says {plan.recommended.error:.2g}."
    )


def share(truths: Iterable[bool]) -> str:
    """Return how many of all, in percent."""
    counted = list(truths)
    return f"{100 * sum(counted) / len(counted):.0f}%"


def summary(found: Sequence[Verdict], title: str) -> Table:
    """Return the table of one half."""
    table = Table(title=f"{title}, {len(found)} cells")
    for head in ("mechanism", "within a factor 2", "median ratio", "in the range", "picked"):
        table.add_column(head, justify="left" if head == "mechanism" else "right")
    for name in (*MECHANISMS, FLOOR):
        plain = name == FLOOR
        table.add_row(
            name,
            share(one.within(name) for one in found),
            f"{np.median([one.ratio(name) for one in found]):.2f}",
            "" if plain else share(one.covered(name) for one in found),
            "" if plain else str(sum(one.picked == name for one in found)),
        )
    return table


def compare(risks: Risks, console: Console, *, cells: bool) -> None:
    """Print how far the plans hold on each half of the tables."""
    for names, half in ((LOOKED, "tables looked at"), (KEPT, "tables kept to judge")):
        for told in (True, False):
            found = verdicts(risks, names, told=told)
            if not found:
                continue
            left = sum(cell.table in names for cell in risks) - len(found)
            if left:
                console.print(f"{left} cells are beyond what was simulated.")
            console.print(summary(found, f"{half}, {'told' if told else 'told nothing'}"))
            every = [one.within(name) for one in found for name in MECHANISMS]
            near = share(one.regret <= NEAR for one in found)
            console.print(f"All four: {share(every)} of {len(every)} within a factor 2.")
            console.print(f"The pick is within 20% of the best in {near} of the cells.")
            if told:
                flat, promised = flat_models(found, risks)
                console.print(f"{flat} of {promised} models promised an R² above .05 are flat.")
            console.print()
            for one in found if cells else ():
                words = [
                    f"{name} {one.came[name]:.2g} ({one.ratio(name):.2g})" for name in one.predicted
                ]
                console.print(f"{one.cell.table} {one.cell.rows} ε={one.cell.epsilon:g}", *words)


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="The planner's predictions on real tables.")
    parser.add_argument("--only-compare", action="store_true", help="measure nothing more")
    parser.add_argument("--cells", action="store_true", help="print every cell")
    parser.add_argument("--levels", action="store_true", help="one category of many levels, alone")
    parser.add_argument("--write", action="store_true", help="write what was looked at")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--output", type=Path, default=Path("build/planner"))
    options = parser.parse_args(words)
    if options.levels:
        compare_levels(Console(width=120))
        return
    file = options.output / "real.csv"
    if not options.only_compare:
        measure(file, available(), options.repetitions)
    if options.write:
        write_looked(read(file), LOOKED_FILE)
    compare(read(file), Console(width=120), cells=options.cells)


if __name__ == "__main__":
    main()
