"""Simulate the errors that `dpl.plan` looks up: what every method does on tables of many kinds.

    python -m dplinear.planner.errors.table                  # what is missing: tens of minutes
    python -m dplinear.planner.errors.table --repetitions 2  # a coarse table, a quarter of the time
    python -m dplinear.planner.errors.table --only-write --real benchmarks/looked_tables.jsonl

Each simulated table is a line of a file of results, so that a run that was stopped goes on where it
was; then all of them become the table that the package carries, `data/errors.json`. To them come
medians of some real tables, which benchmarks/real_plans.py measured; the others there judge.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from threadpoolctl import threadpool_limits

from dplinear.noise import simulation
from dplinear.planner.contest import NAMES, Contest
from dplinear.planner.errors.curves import Size, abscissa
from dplinear.planner.errors.logistic_errors import (
    LogisticSpot,
    logistic_content,
    logistic_spots,
    simulate_logistic,
)
from dplinear.planner.errors.real_like_fits import (
    MEMBERS,
    RealSpot,
    real_content,
    real_spots,
    simulate_real,
)
from dplinear.planner.errors.simulated_errors import (
    COLUMNS,
    CONDITIONS,
    DELTA,
    FEWER,
    MANY_ROWS,
    MOST_CELLS,
    MUS,
    REPETITIONS,
    ROWS_A_COLUMN,
    SEEN,
    SLOW,
    Results,
    Risks,
    Spot,
)
from dplinear.planner.forecast import FLOOR, least_squares
from dplinear.planner.populations import TAILS, Kind, Population, seed_of
from dplinear.planner.simulated import plain_design
from dplinear.privacy.guarantees import GDP, ApproxDP

PACKAGED = Path(__file__).parents[2] / "data" / "errors.json"
_PATIENCE = 60.0


def spots(repetitions: int) -> list[Spot]:
    """Return all tables, those that take longest last."""
    sizes = [(d, d * ratio) for d in COLUMNS for ratio in ROWS_A_COLUMN]
    sizes = [(d, n) for d, n in sizes if d * n <= MOST_CELLS]
    found = [
        Spot(tails, condition, d, n, repetition)
        for d, n in [*sizes, *((d, MANY_ROWS) for d in COLUMNS)]
        for tails in TAILS
        for condition in CONDITIONS
        for repetition in range(min(repetitions, most(d * n)))
    ]
    return sorted(found, key=lambda spot: (spot.cells > FEWER[0][0], spot.repetition, spot.cells))


def most(cells: int) -> int:
    """Return how many tables of this size are simulated at most; the law of many is narrow."""
    return next((times for limit, times in FEWER if cells <= limit), 1)


@cache
def budget(mu: float) -> ApproxDP:
    """Return the (ε, δ) that a Gaussian mechanism of this μ keeps."""
    return GDP(mu).to(ApproxDP, delta=DELTA)


@cache
def _contest(columns: int, mu: float) -> Contest:
    return Contest.of(columns, budget(mu))


def telling(name: str, size: Size) -> bool:
    """Say whether a fit is worth its time: privacy is neither all of the error nor none of it.

    What it adds to a descent's error is about 2/x², least squares has about columns/rows. The rest
    takes no time.
    """
    if name not in SLOW or size.mu == MUS[-1]:  # next to no noise: the method's own floor
        return True
    x = abscissa(name, size)
    return 0.4 <= x <= SEEN * math.sqrt(size.rows / size.columns)


def simulate(spot: Spot) -> Risks:
    """Return the excess risk of each method at each μ, and that of least squares."""
    seed = seed_of("planner table", spot)
    generator = simulation.generator(seed)
    kind = Kind(spot.columns, condition=spot.condition, tails=spot.tails)
    population = Population.draw(kind, generator)
    rows = population.table(spot.rows, generator)
    risks: Risks = defaultdict(list)
    for mu in MUS if spot.rows < MANY_ROWS else MUS[-1:]:
        size = Size(spot.rows, spot.columns, mu, spot.columns + 2)
        names = [name for name in NAMES if telling(name, size)]
        lines = _contest(spot.columns, mu).lines(rows, seed_of(seed, mu), names)
        for name in NAMES:
            risks[name].append(population.excess(lines[name]) if name in lines else None)
    floor = population.excess(least_squares(rows, plain_design(spot.columns)))
    return {FLOOR: [floor], **risks}


def read(file: Path) -> list[dict[str, Any]]:
    """Return what was simulated so far."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def content(
    lines: Sequence[Mapping[str, Any]], tables: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return the table that the package carries, as plain JSON."""
    squared = [(Spot(**line["spot"]), line["risks"]) for line in lines if "spot" in line]
    labels = [(LogisticSpot(**line["labels"]), line["risks"]) for line in lines if "labels" in line]
    real = [line["risks"] for line in lines if "real" in line]
    parts = {"logistic": logistic_content(labels), "real_like": real_content(real, tables)}
    return Results.of(squared).content() | parts


def run(file: Path, repetitions: int, members: int, console: Console) -> None:
    """Simulate what the file lacks, and say how long that takes."""
    lines = read(file)
    done = {Spot(**line["spot"]) for line in lines if "spot" in line}
    labelled = {LogisticSpot(**line["labels"]) for line in lines if "labels" in line}
    real = {RealSpot(**line["real"]) for line in lines if "real" in line}
    left: list[Spot | LogisticSpot | RealSpot] = []
    left += [spot for spot in real_spots(members) if spot not in real]
    left += [spot for spot in logistic_spots() if spot not in labelled]
    left += [spot for spot in spots(repetitions) if spot not in done]
    file.parent.mkdir(parents=True, exist_ok=True)
    start = said = time.perf_counter()
    with file.open("a", encoding="utf-8") as stream, threadpool_limits(1, "blas"):
        for count, spot in enumerate(left, start=1):
            stream.write(json.dumps(_line(spot)) + "\n")
            stream.flush()
            now = time.perf_counter()
            if now - said > _PATIENCE:
                said = now
                spent = (now - start) / 60
                console.print(f"{count} of {len(left)} tables, {spent:.1f} minutes")


def _line(spot: Spot | LogisticSpot | RealSpot) -> dict[str, Any]:
    """Return the results of a table as a line of the file."""
    if isinstance(spot, RealSpot):
        return {"real": vars(spot), "risks": simulate_real(spot)}
    if isinstance(spot, LogisticSpot):
        return {"labels": vars(spot), "risks": _short(simulate_logistic(spot))}
    risks = {name: _short(found) for name, found in simulate(spot).items()}
    return {"spot": vars(spot), "risks": risks}


def _short(risks: Sequence[float | None]) -> list[float | None]:
    return [None if risk is None else float(f"{risk:.4g}") for risk in risks]


def main(words: Sequence[str] | None = None, console: Console | None = None) -> None:
    """Simulate and write the table as the command line asks."""
    parser = argparse.ArgumentParser(
        prog="python -m dplinear.planner.errors.table", description=__doc__
    )
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--members", type=int, default=MEMBERS, help="populations that look real")
    parser.add_argument("--results", type=Path, default=Path("build/planner/table.jsonl"))
    parser.add_argument("--only-write", action="store_true", help="simulate nothing more")
    parser.add_argument("--real", type=Path, help="medians of real tables: real_plans.py --write")
    options, console = parser.parse_args(words), console or Console()
    if not options.only_write:
        run(options.results, options.repetitions, options.members, console)
    tables = read(options.real) if options.real is not None else []
    made = json.dumps(content(read(options.results), tables), separators=(",", ":"))
    PACKAGED.write_text(made + "\n", encoding="utf-8")
    console.print(f"{PACKAGED.name}: {len(made):,} bytes")


if __name__ == "__main__":
    main()
