"""How many rows `suggest_bounds` needs, and how wide its `within` may be, on normal columns.

For k columns and ρ, the number of rows is a multiple of √(k/ρ): the share of columns that were
found, and of rows outside their bounds, over all tables. Then the same with one column and many
rows, for a `within` ever wider than what the column holds: how wide the bounds are, in deviations.
"""

import argparse
import math

import numpy as np

import dplinear as dpl
from dplinear.noise import simulation

MULTIPLES = (12, 25, 75, 250)
SETTINGS = ((1, 0.1), (5, 0.1), (5, 0.01))
WIDTHS = (1e2, 1e5, 1e8, 1e11, 1e13)


def outside(columns: int, rho: float, rows: int, seed: int) -> tuple[float, list[float]]:
    """Return the share of columns found, and of their rows outside, each by itself."""
    drawn = simulation.generator(seed)
    table = 100 * drawn.standard_normal((rows, columns)) + drawn.uniform(-300, 300, columns)
    names = [f"x{place}" for place in range(columns)]
    release = dpl.suggest_bounds(table, names, rho=rho)
    found = [place for place, name in enumerate(names) if release.found[name]]
    low, high = np.array([release.bounds[name] for name in names]).T
    beyond = ((table < low) | (table > high)).mean(axis=0)
    return len(found) / columns, beyond[found].tolist()


def width(wide: float, seed: int) -> float:
    """Return how wide the bounds of a standard normal column are."""
    table = simulation.generator(seed).standard_normal((20_000, 1))
    release = dpl.suggest_bounds(table, ["x"], rho=0.1, within=(-wide, wide))
    low, high = release.bounds["x"]
    return float(high - low)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    tables = parser.parse_args().tables
    print("columns    rho  rows/√(k/ρ)    rows   found   outside: mean   worst column")
    for columns, rho in SETTINGS:
        for multiple in MULTIPLES:
            rows = math.ceil(multiple * math.sqrt(columns / rho))
            runs = [outside(columns, rho, rows, seed) for seed in range(tables)]
            shares = [share for _, each in runs for share in each]
            mean, worst = (np.mean(shares), max(shares)) if shares else (math.nan, math.nan)
            found = np.mean([share for share, _ in runs])
            print(
                f"{columns:7d} {rho:6g} {multiple:12d} {rows:7d} {found:7.0%} "
                f"{mean:15.4%} {worst:14.2%}"
            )
    print("\nwithin, in deviations    width of the bounds, in deviations (median)")
    for wide in WIDTHS:
        print(f"{wide:21g}    {np.median([width(wide, s) for s in range(min(tables, 5))]):.3g}")


if __name__ == "__main__":
    main()
