"""The flags that commands share. Each has the name of the Python argument it stands for.

Defaults are None, so that a file of settings can speak where a flag is silent; what then holds is
the Python default, which the help names.
"""

from typing import Annotated, Any

import typer

GUARANTEE = "Guarantee"
TABLE = "Table"
BUDGET = "Budget"
READING = "Reading and printing"
SPECIAL = "For some mechanisms only"

RELATIONS = ("add_remove", "replace", "element", "row_l1", "row_l2")


def option(*names: str, text: str, panel: str = "Options", **more: Any) -> Any:
    """Return a flag without a default of its own."""
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **more)


def special(*names: str, text: str, **more: Any) -> Any:
    """Return a flag that some mechanisms have, and others do not."""
    return option(*names, text=text, panel=SPECIAL, **more)


def words(*known: str) -> Any:
    """Return what completes a flag whose values are known."""
    return {"autocompletion": lambda: list(known)}


# Which table
Data = Annotated[
    list[str] | None,
    typer.Argument(
        help="Parquet, CSV or Arrow files, folders or globs", show_default=False, metavar="DATA..."
    ),
]
SchemaFile = Annotated[
    str | None, option("--schema", text="a .toml or .json file of columns", panel=TABLE)
]
Column = Annotated[
    list[str] | None,
    option(
        "--column",
        text='"age 0 100", "smoker no,yes" or "member boolean"; once for each column',
        panel=TABLE,
        metavar="TEXT",
    ),
]
Derived = Annotated[
    list[str] | None,
    option("--derived", text='such as "age*smoker,age^2,log(bmi)"', panel=TABLE, metavar="TERMS"),
]
RowNorm = Annotated[
    float | None, option("--row-norm", text="clip rows of cells to this norm", panel=TABLE)
]

# How private
Epsilon = Annotated[float | None, option("--epsilon", text="ε", panel=GUARANTEE)]
Delta = Annotated[float | None, option("--delta", text="δ, with --epsilon", panel=GUARANTEE)]
Rho = Annotated[float | None, option("--rho", text="ρ of zCDP, instead of ε", panel=GUARANTEE)]
Mu = Annotated[float | None, option("--mu", text="μ of GDP, instead of ε", panel=GUARANTEE)]
Bits = Annotated[
    float | None, option("--bits", text="bits of any one cell, instead of ε", panel=GUARANTEE)
]
Rows2 = Annotated[
    str | None,
    option(
        "--neighbours",
        text="add_remove (the default) or replace",
        panel=GUARANTEE,
        **words("add_remove", "replace"),
    ),
]
Unit = Annotated[
    str | None,
    option(
        "--unit",
        text="the column of ids, such as patient: all rows of one are protected together",
        panel=GUARANTEE,
        metavar="COLUMN",
    ),
]
RowsPerUnit = Annotated[
    int | None,
    option("--rows-per-unit", text="as how many rows one counts at the most (1)", panel=GUARANTEE),
]
By = Annotated[
    str | None,
    option(
        "--by",
        text="a category such as hospital, or several: a release for each level, for one price; "
        'or groups, such as "hospital=north; hospital=south"',
        metavar="NAMES",
    ),
]

# How it is released
ExpectedRows = Annotated[
    int | None, option("--expected-rows", text="with auto: a public guess of their number")
]
MostRows = Annotated[int | None, special("--most-rows", text="sketch: rows at the most")]
Deviations = Annotated[
    str | None, special("--scale", text="public standard deviations, one or one a column")
]

# Who counts
Ledger = Annotated[str | None, option("--ledger", text="the ledger that counts", panel=BUDGET)]
Dataset = Annotated[
    str | None, option("--dataset", text="whose budget is spent, with --ledger", panel=BUDGET)
]
RequestName = Annotated[
    str | None,
    option("--request", text="a name: with --ledger, the same gets the same release", panel=BUDGET),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="show plan and price; open no table", rich_help_panel=BUDGET),
]

# How to read and print
Threads = Annotated[
    int | None, option("--threads", text="that read (default: all cores)", panel=READING)
]
Engine = Annotated[
    str | None,
    option(
        "--engine", text="dask or spark: its workers read", panel=READING, **words("dask", "spark")
    ),
]
Progress = Annotated[
    bool | None,
    option("--progress/--no-progress", text="a bar on stderr while reading", panel=READING),
]
Config = Annotated[
    str | None,
    option("--config", text="a .toml file of settings; flags win over it", panel=READING),
]
Json = Annotated[
    bool, typer.Option("--json", help="print JSON, for scripts", rich_help_panel=READING)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace the output if it is there")]

# What to ask
Release = Annotated[
    str | None,
    typer.Argument(help="the file of a release", show_default=False, metavar="RELEASE"),
]
Features = Annotated[
    list[str] | None,
    option("--features", text='names, such as "age,bmi" (default: all others)', metavar="NAMES"),
]


def output(text: str) -> Any:
    """Return the flag that says where a result goes."""
    return option("--output", text=text)
