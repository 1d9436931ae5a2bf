"""How often 95% intervals hold the truth where the rows of a person are correlated.

    python benchmarks/unit_coverage.py [--tables 40] [--epsilon 8]

Features and errors of two rows of a person correlate by 0.5, and by 1 in the last panel, where all
rows of a person are one. Standard errors of releases with a unit are upper bounds, whatever the
correlation: intervals may be wider than they need to be, never narrower. `width` is by how much:
the mean standard error over the standard deviation of the estimates. Nothing is timed.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

import dplinear as dpl
from benchmarks.panel_data import SIZES, Panel, arrow, simulated
from dplinear.noise import simulation
from dplinear.planner.populations import seed_of

DELTA = 1e-6
KS = (1, 3)


def panels() -> Iterator[Panel]:
    """Yield panels of correlated rows, and one in which the rows of a person are equal."""
    for name, sizes in SIZES.items():
        yield simulated(f"{name}, r = 0.5", sizes, 0.5)
    name, sizes = next(iter(SIZES.items()))
    yield simulated(f"{name}, r = 1", sizes, 1.0)


def ways(panel: Panel, table: Any, k: int, epsilon: float) -> dict[str, Any]:
    """Return the intervals of both releases."""
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "rows_per_unit": k}
    asked |= {"progress": False, "threads": 1}
    model = dpl.release_model(table, panel.schema, "y", **asked)
    moments = dpl.release_moments(table, panel.schema, **asked)
    return {"release_model": model.intervals(), "release_moments": moments.regress("y").intervals()}


def try_panel(panel: Panel, k: int, epsilon: float, tables: int) -> Iterator[list[str]]:
    """Yield a line for each way: coverage of slopes, its standard error, and the width."""
    found: dict[str, list[Any]] = {}
    for number in range(tables):
        drawn = panel.draw(simulation.generator(seed_of("coverage", panel.name, number)))
        with simulation.door(seed_of("noise", panel.name, k, number)):
            for way, intervals in ways(panel, arrow(drawn, panel), k, epsilon).items():
                found.setdefault(way, []).append(intervals)
    truth = panel.best[0][1:]
    for way, each in found.items():
        told = [one for one in each if not one.swamped]
        if len(told) < 2:
            yield [panel.name, str(k), way, "", "", f"{len(told)} of {len(each)}"]
            continue
        low, high = (np.array([getattr(one, end)[1:] for one in told]) for end in ("low", "high"))
        errors = np.array([one.standard_errors[1:] for one in told])
        estimates = np.array([one.estimates[1:] for one in told])
        held = (low <= truth) & (truth <= high)
        share, spread = held.mean(), held.mean(axis=1).std(ddof=1) / math.sqrt(len(told))
        width = errors.mean() / np.sqrt(((estimates - truth) ** 2).mean())
        shown = [panel.name, str(k), way, f"{share:.1%} ± {spread:.1%}", f"{width:.2f}"]
        yield [*shown, f"{len(told)} of {len(each)}"]


def main() -> None:
    """Print the table, as Markdown."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=int, default=40, help="in each cell, of five slopes each")
    parser.add_argument("--epsilon", type=float, default=8.0)
    given = parser.parse_args()
    heads = ["panel", "k", "release", "slopes that 95% intervals hold", "width", "tables with them"]
    print("| " + " | ".join(heads) + " |\n|" + 6 * "---|")
    with threadpool_limits(1):
        for panel in panels():
            for k in KS:
                for line in try_panel(panel, k, given.epsilon, given.tables):
                    print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
