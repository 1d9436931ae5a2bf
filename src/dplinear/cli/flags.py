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
        help="The table: Parquet, CSV or Arrow files, folders or glob patterns.",
        show_default=False,
        metavar="DATA...",
    ),
]
SchemaFile = Annotated[
    str | None,
    option(
        "--schema",
        text="A .toml or .json file that declares the columns and their public bounds.",
        panel=TABLE,
    ),
]
Column = Annotated[
    list[str] | None,
    option(
        "--column",
        text='A column with its public bounds or levels: "age 0 100", "smoker no,yes" or'
        ' "member boolean". Repeat the flag for each column.',
        panel=TABLE,
        metavar="TEXT",
    ),
]
Derived = Annotated[
    list[str] | None,
    option(
        "--derived",
        text='Features derived from the columns, such as "age*smoker,age^2,log(bmi)".',
        panel=TABLE,
        metavar="TERMS",
    ),
]
RowNorm = Annotated[
    float | None,
    option(
        "--row-norm",
        text="Clip each row to this Euclidean norm, where bounds are mapped to -1 and 1.",
        panel=TABLE,
    ),
]

# How private
Epsilon = Annotated[
    float | None, option("--epsilon", text="The privacy parameter ε, such as 1.", panel=GUARANTEE)
]
Delta = Annotated[
    float | None,
    option(
        "--delta",
        text="The privacy parameter δ, such as 1e-6. It goes with --epsilon.",
        panel=GUARANTEE,
    ),
]
Rho = Annotated[
    float | None,
    option("--rho", text="Ask for ρ-zCDP, instead of --epsilon and --delta.", panel=GUARANTEE),
]
Mu = Annotated[
    float | None,
    option("--mu", text="Ask for μ-GDP, instead of --epsilon and --delta.", panel=GUARANTEE),
]
Bits = Annotated[
    float | None,
    option(
        "--bits",
        text="Let any one cell show by at most this many bits, instead of --epsilon.",
        panel=GUARANTEE,
    ),
]
Rows2 = Annotated[
    str | None,
    option(
        "--neighbours",
        text="Neighbouring tables differ by one row (or unit) that is added or removed "
        "(add_remove, the default) or replaced (replace).",
        panel=GUARANTEE,
        **words("add_remove", "replace"),
    ),
]
Unit = Annotated[
    str | None,
    option(
        "--unit",
        text="The unit of privacy: a column of ids, such as patient. All rows with the "
        "same id are protected together.",
        panel=GUARANTEE,
        metavar="COLUMN",
    ),
]
RowsPerUnit = Annotated[
    int | None,
    option(
        "--rows-per-unit",
        text="Let each unit count as at most this many rows (default: 1).",
        panel=GUARANTEE,
    ),
]
By = Annotated[
    str | None,
    option(
        "--by",
        text="Make a release for each level of a column such as hospital, all for the "
        'price of one. To choose the groups, write "hospital=north; '
        'hospital=south".',
        metavar="NAMES",
    ),
]

# How it is released
ExpectedRows = Annotated[
    int | None,
    option("--expected-rows", text="A public guess of the number of rows, for --mechanism auto."),
]
MostRows = Annotated[
    int | None, special("--most-rows", text="For sketch: the largest number of rows.")
]
Deviations = Annotated[
    str | None,
    special(
        "--scale",
        text="The public standard deviations of the columns: one for all, or one for each.",
    ),
]

# Who counts
Ledger = Annotated[
    str | None,
    option(
        "--ledger",
        text="The ledger that keeps the privacy budget: a file, or "
        "postgresql://user@host/database.",
        panel=BUDGET,
    ),
]
Dataset = Annotated[
    str | None,
    option(
        "--dataset",
        text="The dataset whose privacy budget is charged. It goes with --ledger.",
        panel=BUDGET,
    ),
]
RequestName = Annotated[
    str | None,
    option(
        "--request",
        text="A name for this request. With --ledger, the same name returns the same "
        "release and costs nothing more.",
        panel=BUDGET,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show what the release would do and cost, without opening the table.",
        rich_help_panel=BUDGET,
    ),
]

# How to read and print
Threads = Annotated[
    int | None,
    option(
        "--threads",
        text="How many threads read the table (default: one for each core).",
        panel=READING,
    ),
]
Engine = Annotated[
    str | None,
    option(
        "--engine",
        text="Let the workers of dask or spark read the table.",
        panel=READING,
        **words("dask", "spark"),
    ),
]
Progress = Annotated[
    bool | None,
    option(
        "--progress/--no-progress",
        text="Show a progress bar on stderr while the table is read (default: on a terminal).",
        panel=READING,
    ),
]
Config = Annotated[
    str | None,
    option("--config", text="A .toml file of settings. Flags override it.", panel=READING),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON, for scripts.", rich_help_panel=READING)
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
]

# What to ask
Release = Annotated[
    str | None,
    typer.Argument(help="The file of a release.", show_default=False, metavar="RELEASE"),
]
Features = Annotated[
    list[str] | None,
    option(
        "--features",
        text='The features of the model, such as "age,bmi" (default: all others).',
        metavar="NAMES",
    ),
]


def output(text: str) -> Any:
    """Return the flag that says where a result goes."""
    return option("--output", text=text)
