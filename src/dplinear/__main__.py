"""`python -m dplinear`: how much noise a guarantee takes, ours against the papers' constants."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from dplinear.privacy import ApproxDP, calibrate, paper

DELTA = 1e-6


class Row(NamedTuple):
    """One line of the table: the same mechanism, calibrated twice."""

    mechanism: str
    noise: str
    epsilon: float
    published: paper.PaperConstant
    exact: float

    def cells(self) -> list[str]:
        """Return the printed cells."""
        held = self.published.holds()
        ratio = self.published.value / self.exact
        return [
            self.mechanism,
            self.noise,
            f"{self.epsilon:g}",
            _figure(self.published.value),
            _figure(self.exact),
            f"{ratio:.1f}x",
            "nothing" if held is None else f"{held.epsilon:.3g}",
        ]


def _figure(value: float) -> str:
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def rows() -> Iterator[Row]:
    """Yield the calibration table."""
    for epsilon in (0.1, 1.0):
        wanted = ApproxDP(epsilon, DELTA)
        sigma = calibrate.gaussian(wanted, 1.0)
        yield Row(
            "Analyze Gauss",
            "off-diag. σ",
            epsilon,
            paper.analyze_gauss(wanted, 1.0),
            sigma / math.sqrt(2),
        )
        yield Row(
            "Gaussian sketch",
            "w², 80 rows",
            epsilon,
            paper.sketch(wanted, 80, 1.0),
            calibrate.sketch(wanted, 80, 1.0),
        )
        yield Row(
            "Inverse-Wishart",
            "ψ, ν = 500",
            epsilon,
            paper.inverse_wishart(wanted, 500, 1.0),
            calibrate.inverse_wishart(wanted, 500, 1.0),
        )
        yield Row(
            "Additive Wishart",
            "k, d = 40",
            epsilon,
            paper.additive_wishart(wanted, 40),
            calibrate.additive_wishart(wanted, 40, 1.0, scale=1.0)[0],
        )


def main() -> None:
    """Print the table."""
    table = Table(title=f"Noise for rows of norm 1; δ = {DELTA:g}, one row more or less")
    table.add_column("mechanism", no_wrap=True)
    table.add_column("noise")
    for name in ("ε", "published", "exact", "ratio", "real ε"):
        table.add_column(name, justify="right")
    previous = None
    for row in rows():
        if previous is not None and row.epsilon != previous:
            table.add_section()
        table.add_row(*row.cells())
        previous = row.epsilon
    console = Console()
    console.print(table)
    console.print(
        "[b]exact[/b] keeps δ(ε) ≤ δ in arbitrary precision, and no smaller figure does; "
        "[b]real ε[/b] is what the published figure gives at the same δ."
    )


if __name__ == "__main__":
    main()
