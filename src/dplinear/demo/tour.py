"""A made-up table, from a plan to a page: what a holder of a table does, step by step."""

from pathlib import Path
from typing import Any

from pyarrow import parquet
from rich.console import Console
from rich.table import Table

import dplinear as dpl
from dplinear import report
from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.analyst.regression.summary import number
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.curator import second_moments
from dplinear.demo.visits import ROWS, SCHEMA, visits
from dplinear.privacy import ZCDP

EPSILON, DELTA = 1.0, 1e-6
BUDGET = 0.05
DATASET = "visits-2026"
QUESTIONS = (
    ("charges", ["age", "bmi", "smoker"]),
    ("charges", ["smoker"]),
    ("bmi", ["age", "children"]),
)


def tour(folder: Path, console: Console | None = None) -> Path:
    """Plan, spend, release, ask three questions, and report; return the page's path.

    Requires: an empty folder.
    """
    console = Console(highlight=False) if console is None else console
    table = folder / "visits.parquet"
    parquet.write_table(visits(), table)
    _step(console, 1, f"A table: {ROWS:,} made-up visits")
    console.print(f"{', '.join(SCHEMA.columns)}; its public bounds are a schema.\n")

    _step(console, 2, "A plan, before a row is read")
    plan = dpl.plan(ROWS, SCHEMA, epsilon=EPSILON, delta=DELTA, learn="regression")
    console.print(f"{plan}\n")

    _step(console, 3, "A budget, and a release that it pays for")
    ledger = dpl.open_ledger(folder / "budget.db", create=True)
    ledger.declare(DATASET, ZCDP(BUDGET))
    bought: dict[str, Any] = {
        "epsilon": EPSILON, "delta": DELTA, "ledger": ledger, "dataset": DATASET,
    }  # fmt: skip
    moments = dpl.release_moments(table, SCHEMA, request="first", **bought)
    moments.save(folder / "visits.moments.json")
    console.print(f"{moments.certificate.mechanism}: {moments.certificate.holds}, by one pass.")
    console.print(f"{'; '.join(map(str, ledger.status()))}\n")

    _step(console, 4, "Three questions, for nothing more")
    fits = [moments.regress(*question) for question in QUESTIONS]
    console.print(fits[0].summary())
    console.print(_beside(fits, _without_noise(table, moments)))

    _step(console, 5, "A second release, which the budget refuses")
    try:
        dpl.release_moments(table, SCHEMA, request="second", **bought)
    except dpl.BudgetExceededError as error:
        refused = str(error).partition("\n")[0]
    console.print(f"{refused}\n")

    page = folder / "report.html"
    page.write_text(
        report.release_page(moments, ledger=ledger, dataset=DATASET, plan=plan, fits=fits),
        encoding="utf-8",
    )
    _step(console, 6, "The result")
    _result(console, fits, page)
    return page


def _step(console: Console, index: int, words: str) -> None:
    console.rule(f"[b]{index}. {words}", align="left")


def _without_noise(table: Path, moments: MomentsRelease) -> MomentsRelease:
    """Return the moments that nobody could see if the rows were not made up."""
    exact, silent = second_moments(table, SCHEMA), SymmetricGaussian(1e-24, 1e-24)
    return MomentsRelease(SCHEMA, exact.cells(), silent, moments.certificate, exact.count)


def _beside(fits: list[Any], exact: MomentsRelease) -> Table:
    """Return all answers beside those without privacy."""
    table = Table(title="All three beside the truth (the rows are made up, so we may look)")
    table.add_column("coefficient", no_wrap=True)
    for name in ("private", "95% interval", "without privacy"):
        table.add_column(name, justify="right", no_wrap=True)
    for (target, features), fit in zip(QUESTIONS, fits, strict=True):
        table.add_row(f"[b]{target} ~ {' + '.join(features)}")
        found, truth = fit.intervals(), exact.regress(target, features)
        for index, name in enumerate(found.names[1:], start=1):
            error = float(found.standard_errors[index])
            low, high = (number(float(end[index]), error) for end in (found.low, found.high))
            both = (number(model[name], error) for model in (fit, truth))
            table.add_row(f"  {name}", next(both), f"{low} to {high}", next(both))
        table.add_section()
    return table


def _result(console: Console, fits: list[Any], page: Path) -> None:
    """Print five lines of result, the last of which is the path of the page."""
    found = fits[0].intervals()
    for name, low, high in list(zip(found.names, found.low, found.high, strict=True))[1:]:
        said = f"{number(low, high - low)} to {number(high, high - low)}"
        console.print(f"charges go with {name}: {said}, with 95% confidence")
    console.print(f"each single row of the table is promised {fits[0].certificate.holds}")
    console.print(f"[b]{page}[/b]", soft_wrap=True)
