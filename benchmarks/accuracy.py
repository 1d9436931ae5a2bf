"""How accurate are private regressions, side by side: simulated tables and real ones.

Every method gets the same guarantee, neighbours (add_remove) and public bounds. Repetitions are
paired: all methods fit the same tables. All is seeded but OpenDP's noise, which cannot be. One run
prints tables and writes risks.csv, real.csv and accuracy.png to a folder. Two processes with one
thread each.

    python benchmarks/accuracy.py --cells quick
    python benchmarks/accuracy.py --cells core --repetitions 20
    python benchmarks/accuracy.py --cells single    # one column, where OpenDP has a method
    python benchmarks/accuracy.py --repetitions 1 --methods dd-ssp    # takes minutes a fit

A method that was changed is compared with what an earlier run found for the others, since seeds fix
all that they do: `--earlier build/accuracy/risks.csv --again dplinear`. A run that was stopped goes
on in the same way: `--earlier build/accuracy/so-far.csv`.

The best of many rivals, chosen by the repetitions that it is judged by, is flattered. `--fresh 100`
judges cells whose intervals leave open who is better once more, won or lost: by fresh tables,
against the rival of before.
"""

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import tables
from benchmarks.designs import LAWS, Design, draw, seeded
from benchmarks.rivals import (
    FLOOR,
    MEAN,
    METHODS,
    OURS,
    Array,
    Line,
    functional,
    marginals,
    noisy_sgd,
    theil_sen,
    worker,
)
from benchmarks.tables import TABLES, RealTable
from benchmarks.verdicts import Verdict, summary, verdict
from dplinear.papers import figures
from dplinear.papers.output import write_csv
from dplinear.privacy import ApproxDP

DELTA = 1e-6
HELD_OUT = 0.2
PATIENCE = 60.0  # seconds between two lines of progress where there is no terminal
REAL_EPSILONS = (0.1, 1.0, 4.0)
RISKS_HEADER = (
    "law",
    "rows",
    "columns",
    "condition",
    "epsilon",
    "delta",
    "repetition",
    "method",
    "excess_risk",
    "seconds",
)
REAL_HEADER = ("table", "epsilon", "delta", "repetition", "method", "r_squared", "seconds")


@dataclass(frozen=True)
class Grid:
    """Which simulated tables, at which budgets."""

    designs: tuple[Design, ...]
    epsilons: tuple[float, ...]


def _grid(laws: Iterable[str], sizes: Sequence[Iterable[float]], epsilons: Sequence[float]) -> Grid:
    rows, columns, conditions = sizes
    made = product(laws, rows, columns, conditions)
    designs = tuple(Design(law, int(n), int(d), float(k)) for law, n, d, k in made)
    return Grid(designs, tuple(epsilons))


GRIDS = {
    "quick": _grid(LAWS, [(1e3, 1e4), (5, 20), (1, 100)], (1.0,)),
    "core": _grid(LAWS, [(1e3, 1e4, 1e5), (5, 20, 100), (1, 100, 1e4)], (0.1, 1.0, 4.0)),
    "large": _grid(LAWS, [(1e6,), (5, 20), (1, 1e4)], (0.1, 1.0)),
    "small": _grid(LAWS, [(1e3, 1e4), (5, 20), (1, 100, 1e4)], (0.1, 1.0, 4.0)),  # of the core
    "single": _grid(LAWS, [(1e3, 1e4, 1e5), (1,), (1,)], (0.1, 1.0, 4.0)),
    "floor": _grid(LAWS[:1], [(1e5,), (10,), (1, 100)], (1.0,)),
}


@dataclass(frozen=True)
class Job:
    """One table and all methods on it; a design is simulated, a name stands for a real table."""

    source: Design | str
    repetition: int
    epsilons: tuple[float, ...]
    methods: tuple[str, ...]

    @property
    def cost(self) -> float:
        """Return about how long it takes, to start with the longest."""
        return self.source.rows * self.source.columns if isinstance(self.source, Design) else 0.0


@dataclass(frozen=True)
class Result:
    """The score of one method in one cell and repetition: excess risk, or R² of held-out rows."""

    source: Design | str
    epsilon: float
    repetition: int
    method: str
    score: float
    seconds: float

    @property
    def fields(self) -> tuple[object, ...]:
        """Return a line of the CSV file."""
        source = self.source
        where: tuple[object, ...] = (source,)
        if isinstance(source, Design):
            where = (source.law, source.rows, source.columns, source.condition)
        tail = (self.method, f"{self.score:.6g}", f"{self.seconds:.3f}")
        return (*where, self.epsilon, DELTA, self.repetition, *tail)


def earlier(path: Path | None, again: Sequence[str]) -> list[Result]:
    """Return what an earlier run found for simulated tables, but for methods to be tried again."""
    if path is None:
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Result(
                Design(
                    line["law"], int(line["rows"]), int(line["columns"]), float(line["condition"])
                ),
                float(line["epsilon"]),
                int(line["repetition"]),
                line["method"],
                float(line["excess_risk"]),
                float(line["seconds"]),
            )
            for line in csv.DictReader(file)
            if line["method"] not in again
        ]


@lru_cache(maxsize=1)
def _real(name: str) -> RealTable:
    return TABLES[name]()


def r_squared(line: Line, rows: Array, target: Array) -> float:
    """Return R² of predictions."""
    with np.errstate(over="ignore"):
        wrong = target - line.intercept - rows @ line.coefficients
        return float(1 - (wrong @ wrong) / ((target - target.mean()) @ (target - target.mean())))


def run(job: Job) -> list[Result]:
    """Fit all methods at all budgets to one table."""
    if isinstance(job.source, Design):
        made = draw(job.source, seeded("table", job.source, job.repetition))
        rows, target, score = made.rows, made.target, made.excess_risk
    else:
        table = _real(job.source)
        chance = seeded("split", job.source, job.repetition).random(len(table.rows))
        held = chance < HELD_OUT
        rows, target = table.rows[~held], table.target[~held]

        def score(line: Line) -> float:
            return r_squared(line, table.rows[held], table.target[held])

    results = []
    for name, epsilon in product(job.methods, job.epsilons):
        method = METHODS[name]
        if method.worthwhile(len(rows), rows.shape[1], job.repetition):
            generator = seeded("noise", job.source, job.repetition, epsilon, name)
            start = time.perf_counter()
            line = method.fit(rows, target, ApproxDP(epsilon, DELTA), generator)
            seconds = time.perf_counter() - start
            found = score(line)
            results.append(Result(job.source, epsilon, job.repetition, name, found, seconds))
    return results


def _one_thread() -> None:
    threadpool_limits(1)


def run_all(jobs: Sequence[Job], processes: int, console: Console) -> Iterator[Result]:
    """Yield the results as they come, with a bar on a terminal."""
    ordered = sorted(jobs, key=lambda job: -job.cost)
    if processes == 1:
        for job in track(ordered, "fitting", console=console, disable=not console.is_terminal):
            yield from run(job)
        return
    with (
        Progress(console=console, disable=not console.is_terminal) as progress,
        ProcessPoolExecutor(processes, initializer=_one_thread) as pool,
    ):
        bar = progress.add_task("fitting", total=len(jobs))
        said = time.perf_counter()
        futures = as_completed([pool.submit(run, job) for job in ordered])
        for count, done in enumerate(futures, start=1):
            progress.advance(bar)
            if not console.is_terminal and time.perf_counter() - said > PATIENCE:
                console.print(f"{count} of {len(jobs)} tables, the largest first")
                said = time.perf_counter()
            yield from done.result()


def kept(results: Iterable[Result], known: Sequence[Result], output: Path) -> Iterator[Result]:
    """Pass results of simulated tables on, and write them down, so that a run can go on later."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / "so-far.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(RISKS_HEADER)
        lines.writerows(one.fields for one in known)
        for one in results:
            if isinstance(one.source, Design):
                lines.writerow(one.fields)
                file.flush()
            yield one


Cell = tuple[Design | str, float]


def by_cell(results: Iterable[Result]) -> dict[Cell, dict[str, list[float]]]:
    """Return the scores of each method in each cell, in the order of the repetitions."""
    cells: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda one: one.repetition):
        cells[result.source, result.epsilon][result.method].append(result.score)
    return {key: dict(found) for key, found in cells.items()}


def _facts(cell: Cell) -> list[str]:
    design, epsilon = cell
    if isinstance(design, str):
        return [design, f"{epsilon:g}"]
    sizes = (design.rows, design.columns, design.condition, epsilon)
    return [design.law, *(_short(size) for size in sizes)]


def _short(size: float) -> str:
    return f"{size:g}" if size < 1e3 else f"{size:.0e}".replace("e+0", "e")


def risks_table(verdicts: dict[Cell, Verdict], methods: Sequence[str]) -> Table:
    """Return the medians of excess risk, the best of the private methods and of rivals marked."""
    table = Table(title="Median excess risk (signal variance 1); ratio: best rival / ours, 95%")
    for head in ("rows", "n", "d", "κ", "ε", *methods, "best rival", "ratio"):
        table.add_column(head.replace(" ", "\n"), justify="right", no_wrap=True)
    for cell, one in verdicts.items():
        values = [f"{one.medians[m]:.2g}" if m in one.medians else "" for m in methods]
        ratio = f"{one.advantage:.3g} [{one.low:.2g}, {one.high:.2g}]" if one.counts else "-"
        table.add_row(*_facts(cell), *values, one.rival, ratio)
    return table


def real_table(cells: dict[Cell, dict[str, list[float]]], methods: Sequence[str]) -> Table:
    """Return the medians of R² on held-out rows."""
    table = Table(title="Median R² on held-out rows of real tables")
    for head in ("table", "ε", *methods):
        table.add_column(head.replace(" ", "\n"), justify="right", no_wrap=True)
    for cell in sorted(cells, key=lambda one: (list(TABLES).index(str(one[0])), one[1])):
        medians = {name: float(np.median(found)) for name, found in cells[cell].items()}
        values = [f"{medians[m]:.3f}" if m in medians else "" for m in methods]
        values = [value if len(value) < 9 else f"{float(value):.0e}" for value in values]
        table.add_row(*_facts(cell), *values)
    return table


def picture(verdicts: dict[Cell, Verdict], path: Path) -> None:
    """Draw each cell: ours against the best rival, and the ratio with its interval."""
    figure = figures.blank(11, 5)
    left, right = figure.subplots(1, 2)
    epsilons = sorted({epsilon for _, epsilon in verdicts})
    for place, epsilon in enumerate(epsilons):
        chosen = [one for (_, budget), one in verdicts.items() if budget == epsilon]
        for counts, marker in ((True, "o"), (False, "x")):
            part = [one for one in chosen if one.counts is counts]
            left.loglog(
                [one.medians[one.rival] for one in part],
                [one.medians[OURS] for one in part],
                marker,
                color=f"C{place}",
                markersize=4,
                label=f"ε = {epsilon:g}" if counts else None,
            )
    ends = [v for one in verdicts.values() for v in (one.medians[one.rival], one.medians[OURS])]
    reach = [min(ends), min(max(ends), 1e2)]
    left.plot(reach, reach, color="grey", linewidth=0.8)
    left.set(
        xlabel="best rival's median excess risk", ylabel="ours", ylim=(reach[0] / 2, reach[1] * 2)
    )
    left.legend()
    ranked = sorted((one for one in verdicts.values() if one.counts), key=lambda one: one.advantage)
    for place, one in enumerate(ranked):
        right.plot(
            [place, place], [max(one.low, 1e-3), min(one.high, 1e3)], color="C0", linewidth=1
        )
    right.semilogy([one.advantage for one in ranked], "k.", markersize=3)
    right.axhline(1, color="grey", linewidth=0.8)
    right.set(xlabel="cells where any method beats the mean", ylabel="best rival / ours, 95%")
    figures.save(figure, path)


# Methods that need what may be missing, and what finds it.
NEEDS: dict[str, Callable[[], object]] = {
    "diffprivlib": functional.ENVIRONMENT.interpreter,
    "dd-ssp": marginals.ENVIRONMENT.interpreter,
    "opendp": theil_sen.library,
    **dict.fromkeys(("dp-sgd", "dp-sgd, long", "dp-sgd, short"), noisy_sgd.library),
}
MISSING = worker.MissingError, theil_sen.MissingError, noisy_sgd.MissingError


def available(methods: Sequence[str]) -> list[str]:
    """Return the methods that can run here; print a line for one that cannot."""
    found = []
    for name in methods:
        try:
            if name in NEEDS:
                NEEDS[name]()
            found.append(name)
        except MISSING as error:
            print(f"{name} is left out: {error}.")
    return found


def jobs_of(
    options: argparse.Namespace, methods: tuple[str, ...], known: Sequence[Result] = ()
) -> list[Job]:
    """Return what is asked for, as far as it can be had and is not known."""
    jobs = []
    tried = {(one.source, one.repetition, one.method) for one in known}
    if options.cells != "none":
        grid = GRIDS[options.cells]
        for design, repetition in product(grid.designs, range(options.repetitions)):
            left = tuple(name for name in methods if (design, repetition, name) not in tried)
            if left:
                jobs.append(Job(design, repetition, grid.epsilons, left))
    for name in tables.available(options.tables):
        repetitions = range(options.table_repetitions)
        jobs += [Job(name, repetition, REAL_EPSILONS, methods) for repetition in repetitions]
    return jobs


def compared(
    cells: dict[Cell, dict[str, list[float]]],
    keys: Sequence[Cell],
    methods: Sequence[str],
    output: Path,
    console: Console,
) -> None:
    """Print how we stand beside the rivals, and draw it."""
    verdicts = {key: verdict(cells[key]) for key in keys}
    console.print(risks_table(verdicts, methods))
    print(summary([cells[key] for key in keys]))
    try:
        picture(verdicts, output / "accuracy.png")
    except ImportError as error:
        print(error)


def once_more(results: Iterable[Result], options: argparse.Namespace, console: Console) -> None:
    """Judge cells that are close by fresh tables, against the rival that was best before."""
    simulated = (one for one in results if isinstance(one.source, Design))
    before = {cell: verdict(risks) for cell, risks in by_cell(simulated).items()}
    close = {cell: one for cell, one in before.items() if one.close}
    unseen = range(options.repetitions, options.repetitions + options.fresh)
    jobs = [
        Job(design, repetition, (epsilon,), (OURS, MEAN, FLOOR, one.rival))
        for ((design, epsilon), one), repetition in product(close.items(), unseen)
    ]
    found = list(run_all(jobs, options.processes, Console(stderr=True)))
    write_csv(options.output / "fresh.csv", RISKS_HEADER, (one.fields for one in found))
    risks = by_cell(found)
    after = {cell: verdict(risks[cell], one.rival) for cell, one in close.items()}
    methods = [name for name in METHODS if any(name in one.medians for one in after.values())]
    console.print(risks_table(after, methods))
    counted = [cell for cell, one in before.items() if one.counts]
    won = sum((after.get(cell) or before[cell]).won for cell in counted)
    floor = sum(one.medians[FLOOR] <= one.medians[one.rival] for one in after.values())
    print(
        f"{len(close)} cells are close; at or below the best rival in "
        f"{sum(one.won for one in close.values())} of them by the tables that chose it, in "
        f"{sum(one.won for one in after.values())} by {options.fresh} fresh ones, clearly above in "
        f"{sum(one.high < 1 for one in after.values())}. (Least squares, without privacy: {floor}.)"
        f"\nWith fresh tables where cells are close: at or below in {won} of {len(counted)} "
        f"({won / max(len(counted), 1):.1%})."
    )


def report(results: Sequence[Result], methods: Sequence[str], output: Path) -> None:
    """Print the tables and write the files."""
    tried = {one.method for one in results}
    methods = [name for name in methods if name in tried]
    console = Console(width=80 + 12 * len(methods))
    simulated = [one for one in results if isinstance(one.source, Design)]
    real = [one for one in results if not isinstance(one.source, Design)]
    if simulated:
        write_csv(output / "risks.csv", RISKS_HEADER, (one.fields for one in simulated))
        cells = by_cell(simulated)
        keys = sorted(cells, key=lambda cell: (*vars(cell[0]).values(), cell[1]))
        rivals = set(methods) - {OURS, MEAN, FLOOR}
        if rivals:
            compared(cells, keys, methods, output, console)
        ratios = [np.mean(cells[key][OURS]) / np.mean(cells[key][FLOOR]) for key in keys]
        least, most = min(ratios), max(ratios)
        print(f"Mean excess risk, ours / least squares: from {least:.3g} to {most:.3g}.")
    if real:
        write_csv(output / "real.csv", REAL_HEADER, (one.fields for one in real))
        console.print(real_table(by_cell(real), methods))
    spent: dict[str, float] = defaultdict(float)
    for one in results:
        spent[one.method] += one.seconds
    print("Seconds in fits:", ", ".join(f"{name} {spent[name]:.0f}" for name in methods))


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description="Accuracy of private regressions, side by side.")
    parser.add_argument("--cells", choices=[*GRIDS, "none"], default="quick")
    parser.add_argument("--repetitions", type=int, default=20)
    usual = [name for name, method in METHODS.items() if not method.asked]
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=usual)
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=[])
    parser.add_argument("--table-repetitions", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--earlier", type=Path, help="risks.csv of an earlier run")
    parser.add_argument("--again", nargs="*", choices=list(METHODS), default=[])
    parser.add_argument("--fresh", type=int, default=0, help="more tables where cells are close")
    parser.add_argument("--output", type=Path, default=Path("build/accuracy"))
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    options = arguments(words)
    chosen = {OURS, MEAN, FLOOR, *options.methods}
    methods = tuple(available([name for name in METHODS if name in chosen]))
    known = earlier(options.earlier, options.again)
    jobs = jobs_of(options, methods, known)
    start = time.perf_counter()
    found = run_all(jobs, options.processes, Console(stderr=True))
    results = [*known, *kept(found, known, options.output)]
    report(results, methods, options.output)
    if options.fresh:
        once_more(results, options, Console(width=80 + 12 * len(methods)))
    print(f"{len(jobs)} tables in {time.perf_counter() - start:.0f} s.")


if __name__ == "__main__":
    main()
