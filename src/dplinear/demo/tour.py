"""A made-up table, from a plan to a page: what the curator of a table does, step by step."""

from pathlib import Path
from typing import Any

from pyarrow import csv, parquet
from rich.console import Console
from rich.table import Table

import dplinear as dpl
from dplinear import report
from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.analyst.regression.summary import number
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.curator import second_moments
from dplinear.demo.stays import stays
from dplinear.demo.visits import ROWS, SCHEMA, visits
from dplinear.privacy import ZCDP
from dplinear.schema.columns import Numeric

EPSILON, DELTA = 1.0, 1e-6
BUDGET = 0.05
DATASET = "visits-2026"
QUESTIONS = (
    ("charges", ["age", "bmi", "smoker"]),
    ("charges", ["smoker"]),
    ("bmi", ["age", "children"]),
)
FILES = {
    "visits.parquet": "the private table of this demo: made up, one row for each patient",
    "stays-1.csv": "made-up stays in January, several for a patient (for the tutorial)",
    "stays-2.csv": "those in February",
    "budget.db": "the ledger: what was spent, and what is left",
    "budget.db.anchor": "its newest line, so that an old copy is noticed",
    "visits.moments.json": "the release, which may be published",
    "report.html": "a page about it, for a browser",
}


def tour(folder: Path, console: Console | None = None) -> Path:
    """Plan, spend, release, ask three questions, and report; return the page's path.

    Requires: an empty folder.
    """
    console = Console(highlight=False) if console is None else console
    table = folder / "visits.parquet"
    _write_tables(folder)
    _step(console, 1, "A private table")
    console.print(
        f"{ROWS:,} made-up visits to a hospital. The schema says, from public knowledge, within"
        " which bounds each column lies:"
    )
    console.print(f"{_bounds()}\n")

    _step(console, 2, "A plan: how accurate will it be?")
    console.print("Nothing is read and nothing is spent.\n")
    plan = dpl.plan(ROWS, SCHEMA, epsilon=EPSILON, delta=DELTA, learn="regression")
    console.print(f"{plan}\n")

    _step(console, 3, "A privacy budget, and one release that it pays for")
    ledger = dpl.open_ledger(folder / "budget.db", create=True)
    ledger.declare(DATASET, ZCDP(BUDGET))
    bought: dict[str, Any] = {
        "epsilon": EPSILON, "delta": DELTA, "ledger": ledger, "dataset": DATASET,
    }  # fmt: skip
    moments = dpl.release_moments(table, SCHEMA, request="first", **bought)
    moments.save(folder / "visits.moments.json")
    console.print(
        f"The rows were read once. Released: all second moments, with {moments.certificate.holds}."
        "\nThe ledger counts the privacy loss in ρ, which adds up over releases:"
    )
    console.print(f"{'; '.join(map(str, ledger.status()))}\n")

    _step(console, 4, "Three questions, asked of the release")
    console.print("Post-processing: they cost no further budget, and need no table.\n")
    fits = [moments.regress(*question) for question in QUESTIONS]
    console.print(fits[0].summary())
    console.print(_beside(fits, _without_noise(table, moments)))

    _step(console, 5, "A second release, which the ledger refuses")
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


def _write_tables(folder: Path) -> None:
    parquet.write_table(visits(), folder / "visits.parquet")
    for month in (1, 2):
        unquoted = csv.WriteOptions(quoting_style="none")  # none of its cells needs quotes
        csv.write_csv(stays(month), folder / f"stays-{month}.csv", unquoted)


def _step(console: Console, index: int, words: str) -> None:
    console.rule(f"[b]{index}. {words}", align="left")


def _bounds() -> str:
    """Return the schema in a line."""
    return ", ".join(
        f"{name} {float(column.low):,g} to {float(column.high):,g}"
        if isinstance(column, Numeric)
        else f"{name} yes or no"
        for name, column in SCHEMA.declared.items()
    )


def _without_noise(table: Path, moments: MomentsRelease) -> MomentsRelease:
    """Return the moments that nobody could see if the rows were not made up."""
    exact, silent = second_moments(table, SCHEMA), SymmetricGaussian(1e-24, 1e-24)
    return MomentsRelease(SCHEMA, exact.cells(), silent, moments.certificate, exact.count)


def _beside(fits: list[Any], exact: MomentsRelease) -> Table:
    """Return all answers beside those without privacy."""
    table = Table(title="All three beside the exact answers (only a made-up table may show those)")
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
    """Print what was found, what is protected, and where all files are; last, the page's path."""
    found = fits[0].intervals()
    ends = [
        f"{number(low, high - low)} to {number(high, high - low)}"
        for low, high in list(zip(found.low, found.high, strict=True))[1:]
    ]
    console.print(
        f"Charges rise by {ends[0]} per year of age, by {ends[1]} per point of bmi, and by "
        f"{ends[2]} for smokers (95% intervals)."
    )
    console.print(f"Every single row of the table is protected with {fits[0].certificate.holds}.")
    console.print(f"\nFiles in {page.parent}:", soft_wrap=True)
    for name, meaning in FILES.items():
        console.print(f"  {name:<20} {meaning}", soft_wrap=True)
    console.print("\nOpen this page in a browser:")
    console.print(f"[b]{page}[/b]", soft_wrap=True)
