"""How often 95% intervals hold the truth, over simulated tables: both methods, many designs.

Fails if, in the first table, a coefficient's intervals hold the truth less than 92% or more than
98% of the time, or are refused where the predicted noise is below half the least eigenvalue.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from analyst.designs import Design
from dplinear.analyst.noise_models.matrices import InverseWishartNoise, SketchNoise, WishartNoise
from dplinear.analyst.regression.bootstrap import bootstrap
from dplinear.analyst.regression.inference import delta_method

TABLES = 2_000
BATCH = 250
WITHIN = (0.92, 0.98)

GRID = [Design(epsilon=e, condition=k) for e in (0.5, 2.0) for k in (1.0, 100.0)]
VARIANTS = {
    "fit R² = 0.2": {"fit": 0.2},
    "fit R² = 0.9": {"fit": 0.9},
    "diagonal covariance": {"turned": False},
    "no intercept": {"intercept": False},
    "replace, rows public": {"replace": True},
    "bounds: a box": {"bounds": "box"},
}
LAWS = {
    "Wishart noise, 95 degrees": WishartNoise(95.0, 4.0),
    "sketch, 24 rows, no ridge": SketchNoise(24.0, 0.0),
    "sketch, 500 rows, ridge 290": SketchNoise(500.0, 290.0),
    "inverse Wishart, 40 degrees, no ridge": InverseWishartNoise(40.0, 0.0),
    "inverse Wishart, 500 degrees, ridge 290": InverseWishartNoise(500.0, 290.0),
}


@dataclass(frozen=True)
class Job:
    """A design, a method, and how many tables."""

    label: str
    design: Design
    method: str = "delta"
    tables: int = TABLES


@dataclass(frozen=True)
class Count:
    """How many tables were answered, and how often each coefficient was covered."""

    tables: int
    answered: int
    covered: np.ndarray[tuple[int], np.dtype[np.int64]]

    def __add__(self, other: "Count") -> "Count":
        return Count(
            self.tables + other.tables,
            self.answered + other.answered,
            self.covered + other.covered,
        )


def count(job: Job, start: int) -> Count:
    """Measure one batch of tables, drawn from a seed of its own."""
    truth, answered = job.design.truth, 0
    covered = np.zeros(len(truth), np.int64)
    size = min(BATCH, job.tables - start)
    with threadpool_limits(1):
        for place, problem in enumerate(job.design.problems(size, seed=start)):
            if job.method == "delta":
                found = delta_method(problem)
            else:
                found = bootstrap(problem, seed=start + place)
            if found.swamped is None:
                answered += 1
                covered += (found.low <= truth) & (truth <= found.high)
    return Count(size, answered, covered)


def measure(job: Job, pool: ProcessPoolExecutor) -> Count:
    """Measure all tables of a job."""
    first, *rest = pool.map(partial(count, job), range(0, job.tables, BATCH))
    return sum(rest, first)


def row(job: Job, result: Count) -> list[str]:
    """Return a line of the table."""
    design = job.design
    facts = [job.label, f"{design.epsilon:g}", f"{design.condition:g}", f"{design.rows:,}"]
    facts += [job.method, f"{design.predicted:.2f}", f"{1 - result.answered / result.tables:.1%}"]
    if result.answered < 20:
        return [*facts, "", "", "", ""]
    share = result.covered / result.answered
    error = 1.96 * np.sqrt(0.05 * 0.95 / result.answered)
    missed = (result.answered - result.covered.min()) / result.tables
    least, mean, most = share.min(), share.mean(), share.max()
    return [*facts, f"{least:.1%}", f"{mean:.1%}", f"{most:.1%} ± {error:.1%}", f"{missed:.1%}"]


def show(title: str, jobs: list[Job], pool: ProcessPoolExecutor) -> list[tuple[Job, Count]]:
    """Measure and print one table."""
    table = Table(title=title)
    heads = ["design", "ε", "κ", "rows", "method", "noise/λ", "refused"]
    for head in [*heads, "least", "mean", "most", "printed and wrong"]:
        table.add_column(head, justify="left" if head in {"design", "method"} else "right")
    results = [(job, measure(job, pool)) for job in jobs]
    for job, result in results:
        table.add_row(*row(job, result))
    Console(width=140).print(table)
    return results


def main() -> int:
    """Print the tables; return 1 if a promise of the first one is broken."""
    methods = ("delta", "bootstrap")
    required = [Job("ball, R² = 0.5", design, method) for design in GRID for method in methods]
    others = [
        Job(label, Design(epsilon=epsilon, condition=100.0, **change))  # type: ignore[arg-type]
        for label, change in VARIANTS.items()
        for epsilon in (0.5, 2.0)
    ]
    others += [
        Job(label, Design(condition=k, law=law))
        for label, law in LAWS.items()
        for k in (1.0, 100.0)
    ]
    close = [
        Job("ball, R² = 0.5", Design(condition=k, rows=rows), method, 500)
        for k, sizes in (
            (1.0, (5_000, 4_000, 3_000, 2_500)),
            (100.0, (60_000, 50_000, 40_000, 30_000, 20_000)),
        )
        for rows in sizes
        for method in methods
    ]
    with ProcessPoolExecutor(2) as pool:
        results = show(f"Coverage over {TABLES:,} tables, 95% intervals", required, pool)
        show("The same for other designs and laws", others, pool)
        show("Towards refusal: 500 tables each", close, pool)
    broken = []
    for job, result in results:
        share = result.covered / max(result.answered, 1)
        refused = result.tables - result.answered
        if refused and (job.design.predicted <= 0.5 or job.design.condition == 1):
            broken.append(f"{job} refuses")
        if not WITHIN[0] <= share.min() <= share.max() <= WITHIN[1]:
            broken.append(f"{job} covers {share.min():.3f} to {share.max():.3f}")
    print("\n".join(broken) or "all coefficients between 92% and 98%, no refusal")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
