"""`python -m dplinear`: one exact pass over the bundled table, and what it takes to release it."""

import math
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow import csv
from rich.console import Console
from rich.table import Table

from dplinear.curator import Schema, SecondMoments, second_moments
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, calibrate, paper

DELTA = 1e-6
SCHEMA = Schema(
    {
        "age": (0, 100),
        "bmi": (10, 60),
        "smoker": ["no", "yes"],
        "children": (0, 8),
        "charges": (0, 60_000),
    }
)


def sources(path: Path) -> Iterator[tuple[str, SecondMoments]]:
    """Yield the matrix of the same rows, read in several ways."""
    table = csv.read_csv(path)
    order = simulation.generator(1).permutation(len(table))
    middle = len(table) // 3
    yield "the CSV file", second_moments(path, SCHEMA)
    yield "an Arrow table, one thread", second_moments(table, SCHEMA, threads=1)
    yield "its rows shuffled", second_moments(table.take(pa.array(order)), SCHEMA)
    first, second = table.slice(0, middle), table.slice(middle)
    yield "two parts, added", second_moments(second, SCHEMA) + second_moments(first, SCHEMA)


def passes(console: Console) -> None:
    """Print that every way of reading the bundled table gives the same bits."""
    table = Table(title="One exact pass over a bundled, made-up table")
    for name in ("read as", "rows", "features", "same bits"):
        table.add_column(name, justify="left" if name == "read as" else "right")
    with as_file(files("dplinear") / "data" / "visits.csv") as path:
        matrices = list(sources(path))
    whole = matrices[0][1]
    for name, moments in matrices:
        same = "yes" if moments == whole else "NO"
        table.add_row(name, f"{moments.count:,}", str(len(moments.names)), same)
    console.print(table)
    grid, entries = whole.grid, len(whole.names) ** 2
    variance = calibrate.grid_gaussian(ApproxDP(1.0, DELTA), grid.sensitivity, entries)
    sigma = math.sqrt(variance) / grid.cells**2
    console.print(
        f"One row moves this integer matrix by at most {grid.sensitivity:,} units, exactly. "
        f"Hiding a row at ε = 1, δ = {DELTA:g} takes integer noise of σ = {sigma:.1f} on its "
        f"diagonal, whose first entry is {whole.count:,}.\n"
    )


class Row(NamedTuple):
    """One line of the calibration table: the same mechanism, calibrated twice."""

    mechanism: str
    noise: str
    epsilon: float
    published: paper.PaperConstant
    exact: float

    def cells(self) -> list[str]:
        """Return the printed cells."""
        held = self.published.holds()
        return [
            self.mechanism,
            self.noise,
            f"{self.epsilon:g}",
            _figure(self.published.value),
            _figure(self.exact),
            f"{self.published.value / self.exact:.1f}x",
            "nothing" if held is None else f"{held.epsilon:.3g}",
        ]


def _figure(value: float) -> str:
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def rows(epsilon: float) -> Iterator[Row]:
    """Yield the calibrations at one ε."""
    wanted = ApproxDP(epsilon, DELTA)
    off_diagonal = calibrate.gaussian(wanted, 1.0) / math.sqrt(2)
    published = paper.analyze_gauss(wanted, 1.0)
    yield Row("Analyze Gauss", "off-diag. σ", epsilon, published, off_diagonal)
    ridge = calibrate.sketch(wanted, 80, 1.0)
    yield Row("Gaussian sketch", "w², 80 rows", epsilon, paper.sketch(wanted, 80, 1.0), ridge)
    psi = calibrate.inverse_wishart(wanted, 500, 1.0)
    published = paper.inverse_wishart(wanted, 500, 1.0)
    yield Row("Inverse-Wishart", "ψ, ν = 500", epsilon, published, psi)
    degrees = calibrate.additive_wishart(wanted, 40, 1.0, scale=1.0)[0]
    published = paper.additive_wishart(wanted, 40)
    yield Row("Additive Wishart", "k, d = 40", epsilon, published, degrees)


def calibrations(console: Console) -> None:
    """Print how much noise a guarantee takes, ours against the papers' constants."""
    table = Table(title=f"Noise for rows of norm 1; δ = {DELTA:g}, one row more or less")
    table.add_column("mechanism", no_wrap=True)
    table.add_column("noise")
    for name in ("ε", "published", "exact", "ratio", "real ε"):
        table.add_column(name, justify="right")
    for epsilon in (0.1, 1.0):
        for row in rows(epsilon):
            table.add_row(*row.cells())
        table.add_section()
    console.print(table)
    console.print(
        "[b]exact[/b] keeps δ(ε) ≤ δ in arbitrary precision, and no smaller figure does; "
        "[b]real ε[/b] is what the published figure gives at the same δ."
    )


def main() -> None:
    """Print both."""
    console = Console()
    passes(console)
    calibrations(console)


if __name__ == "__main__":
    main()
