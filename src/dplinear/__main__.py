"""`dplinear`: releases of the bundled table, and what they answer; also `plan`, `ledger`, `audit`.

The same as `python -m dplinear`.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

import dplinear as dpl
from dplinear.analyst.laws import SymmetricGaussian
from dplinear.analyst.moments import MomentsRelease
from dplinear.analyst.summary import number
from dplinear.audit import __main__ as audit_commands
from dplinear.curator import second_moments
from dplinear.ledger import __main__ as ledger_commands
from dplinear.planner import bits
from dplinear.privacy import ZCDP, ApproxDP, calibrate, paper

DELTA = 1e-6
SCHEMA = dpl.Schema(
    {
        "age": (0, 100),
        "bmi": (10, 60),
        "smoker": {"type": "category", "levels": ["no", "yes"], "other": "no"},
        "children": (0, 8),
        "charges": (0, 60_000),
    }
)
QUESTIONS = (
    ("charges", ["age", "bmi", "smoker"]),
    ("charges", ["smoker"]),
    ("bmi", ["age", "children"]),
    ("smoker", ["age"]),
)


def one_model(console: Console) -> None:
    """Print the one regression that all of a budget buys."""
    with as_file(files("dplinear") / "data" / "visits.csv") as path:
        model = dpl.release_model(path, SCHEMA, *QUESTIONS[0], epsilon=1.0, delta=DELTA)
    console.rule("[b]One regression, for all of the same budget")
    console.print(model.summary(), highlight=False)
    console.print("It takes a release of its own, and answers this one question.\n")


def unknown_bounds(console: Console) -> None:
    """Print bounds that were found privately, from none worth the name."""
    columns = [name for name in SCHEMA.columns if name != "smoker"]
    with as_file(files("dplinear") / "data" / "visits.csv") as path:
        found = dpl.suggest_bounds(path, columns, rho=0.05)
    console.rule("[b]Bounds, for those who cannot name them")
    console.print(str(found), highlight=False)
    console.print(f"Found within ±1e9, for {found.certificate.holds}.\n", highlight=False)


def budget(console: Console) -> None:
    """Print how a budget is spent, and that it cannot be overspent."""
    console.rule("[b]A budget that outlives the process")
    with as_file(files("dplinear") / "data" / "visits.csv") as path, TemporaryDirectory() as folder:
        ledger = dpl.open_ledger(Path(folder) / "budget.db", create=True)
        ledger.declare("visits", ZCDP(0.05))
        for name in ("first", "first", "second"):
            try:
                dpl.release_moments(
                    *(path, SCHEMA), epsilon=1.0, delta=DELTA, ledger=ledger, dataset="visits",
                    request=name,
                )  # fmt: skip
                told = "; ".join(map(str, ledger.status()))
            except dpl.BudgetExceededError as error:
                told = str(error).partition("\n")[0]
            console.print(f"request {name!r}: {told}", highlight=False)
    console.print("The same request got the same release again, for nothing.\n")


def release(console: Console) -> tuple[MomentsRelease, MomentsRelease]:
    """Release the bundled table, save and load it; return that, and the same without noise."""
    with as_file(files("dplinear") / "data" / "visits.csv") as path:
        moments = dpl.release_moments(path, SCHEMA, epsilon=1.0, delta=DELTA)
        exact = second_moments(path, SCHEMA)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "visits.moments.json"
        moments.save(file)
        size = file.stat().st_size
        moments = dpl.load(file, kind="moments")
    console.rule("[b]One release of a bundled, made-up table")
    console.print(moments.describe(), highlight=False)
    console.print(f"Saved and loaded again: {size:,} bytes of JSON.\n")
    silent = SymmetricGaussian(1e-24, 1e-24)
    return moments, MomentsRelease(SCHEMA, exact.cells(), silent, moments.certificate, exact.count)


def answers(console: Console, moments: MomentsRelease, exact: MomentsRelease) -> None:
    """Print a regression with its intervals, then others beside the answers without privacy."""
    console.rule("[b]Any regression on it is free")
    console.print(moments.regress(*QUESTIONS[0]).summary(), highlight=False)
    table = Table(title="Other questions, no more budget (the rows are made up, so we may look)")
    table.add_column("model", no_wrap=True)
    table.add_column("coefficient")
    for name in ("private", "95% interval", "without privacy"):
        table.add_column(name, justify="right")
    for target, features in QUESTIONS[1:]:
        goal = "smoker=yes" if target == "smoker" else target
        fit, truth = moments.regress(goal, features), exact.regress(goal, features)
        found = fit.intervals()
        for place, name in enumerate(found.names[1:], start=1):
            error = float(found.standard_errors[place])
            low, high = (number(float(end[place]), error) for end in (found.low, found.high))
            shown = f"{low} to {high}" if error > 0 else "swamped by noise"
            label = f"{goal} ~ {' + '.join(features)}" if place == 1 else ""
            estimates = (number(model[name], error) for model in (fit, truth))
            table.add_row(label, name, next(estimates), shown, next(estimates))
        table.add_section()
    console.print(table)


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
    off_diagonal = calibrate.gaussian(wanted, 1.0) / 2**0.5
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
    console.rule("[b]Why the noise is so small")
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


COMMANDS = ("demo", "plan", "ledger", "audit")


def main(words: Sequence[str] | None = None) -> int:
    """Run a command: `demo` (as without any), or one that has words of its own."""
    parser = argparse.ArgumentParser(prog="dplinear", description=__doc__.splitlines()[0])
    parser.add_argument("command", nargs="?", choices=COMMANDS, default="demo")
    given = list(sys.argv[1:] if words is None else words)
    command, rest = parser.parse_args(given[:1]).command, given[1:]
    if command == "ledger":
        return ledger_commands.main(rest, prog="dplinear ledger")
    if command == "audit":
        return audit_commands.main(rest, prog="dplinear audit")
    if command == "plan":
        bits.main(rest, prog="dplinear plan")
        return 0
    parser.parse_args(given)  # the demo has no options
    demo()
    return 0


def demo() -> None:
    """Print it all."""
    console = Console()
    moments, exact = release(console)
    answers(console, moments, exact)
    one_model(console)
    unknown_bounds(console)
    budget(console)
    calibrations(console)


if __name__ == "__main__":
    sys.exit(main())
