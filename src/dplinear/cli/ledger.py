"""`dplinear ledger`: make a ledger, look at it, check it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplinear.cli import flags
from dplinear.cli.output import say, table, tell

if TYPE_CHECKING:
    from dplinear.ledger.ledger import BudgetLedger

app = typer.Typer(help="Declare privacy budgets, and see what is left of them.")

_SQLITE = b"SQLite format 3\0"

_Ledger = Annotated[
    str | None,
    typer.Argument(
        help="The ledger: a file, or postgresql://user@host/database.",
        metavar="LEDGER",
        show_default=False,
    ),
]
_Dataset = Annotated[
    str | None,
    typer.Argument(
        help="A name for the dataset, such as visits-2026.", metavar="DATASET", show_default=False
    ),
]


@app.command()
def create(
    ledger: _Ledger = None,
    dataset: _Dataset = None,
    *,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    mu: flags.Mu = None,
    bits: flags.Bits = None,
    neighbours: Annotated[
        str | None,
        flags.option(
            "--neighbours",
            text="Which neighbouring tables the budget is for (default: add_remove).",
            panel=flags.GUARANTEE,
            **flags.words(*flags.RELATIONS),
        ),
    ] = None,
    change: Annotated[
        float | None,
        flags.option(
            "--change",
            text="For budgets of smaller changes: how much neighbouring cells or rows differ.",
            panel=flags.GUARANTEE,
        ),
    ] = None,
    missing_public: Annotated[
        bool,
        flags.option(
            "--missing-public",
            text="With --change: which cells are missing is public.",
            panel=flags.GUARANTEE,
        ),
    ] = False,
    unit: Annotated[
        str | None,
        flags.option(
            "--unit",
            text="The unit of privacy: a column of ids, such as patient, whose rows are "
            "protected together.",
            panel=flags.GUARANTEE,
            metavar="COLUMN",
        ),
    ] = None,
    json_: flags.Json = False,
) -> None:
    """Declare the privacy budget of a dataset, once and for all. Makes the ledger if needed."""
    from dplinear.cli.settings import one_guarantee, positional
    from dplinear.ledger import Budget, open_ledger
    from dplinear.ledger.opening import is_there
    from dplinear.mechanisms.checks import read_guarantee

    path = positional(ledger, "LEDGER", "ledger create")
    name = positional(dataset, "DATASET", "ledger create")
    given = {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu, "bits": bits}
    asked = one_guarantee({key: value for key, value in given.items() if value is not None})
    named = (asked.get(each) for each in ("epsilon", "delta", "guarantee"))
    guarantee = read_guarantee("ledger create", *named)
    relation = neighbours or "add_remove"
    Budget(guarantee, relation, change, missing_public, unit)  # type: ignore[arg-type] # before a file
    _check_path(path)
    opened = open_ledger(path, create=not is_there(path))
    opened.declare(name, guarantee, relation, change, missing_public=missing_public, unit=unit)
    _show(opened, json=json_)


@app.command()
def show(ledger: _Ledger = None, *, json_: flags.Json = False) -> None:
    """Show what is spent and what is left of every budget."""
    _show(_open_ledger(ledger, "show"), json=json_)


@app.command()
def history(
    ledger: _Ledger = None,
    *,
    dataset: Annotated[
        str | None, flags.option("--dataset", text="Show this dataset alone.")
    ] = None,
    json_: flags.Json = False,
) -> None:
    """List every declared budget and every release, in order."""
    lines = _open_ledger(ledger, "history").history(dataset)
    if dataset is not None and not lines:
        from dplinear.cli.errors import Code, CommandError

        told = f"The dataset '{dataset}' has no line in this ledger."
        raise CommandError(told, "`dplinear ledger show` lists those that have.", Code.LEDGER)
    if json_:
        tell([_line(line) for line in lines])
        return
    heads = ("", "time (UTC)", "what", "dataset", "request", "released")
    say(table(heads, [_cells(_line(line)) for line in lines], left=6))


@app.command()
def verify(ledger: _Ledger = None, *, json_: flags.Json = False) -> None:
    """Check that no line, sum or kept release was changed."""
    lines = _open_ledger(ledger, "verify").verify()
    if json_:
        tell({"lines": lines, "sound": True})
        return
    say(f"{lines} lines, all as they were written, all within their budgets.")


def _check_path(path: str) -> None:
    """Raise where a file that is no ledger stands in the way of a new one."""
    from dplinear.arguments import is_url
    from dplinear.cli.errors import Code, CommandError

    file = Path(path)
    if is_url(path) or not file.exists() or Path(f"{path}.anchor").exists():
        return  # what was a ledger, and may be damaged, is for the ledger to judge
    if file.is_dir():
        hint = "name a file in it, such as budget.db."
        raise CommandError(f"The ledger '{file.name}' would be a folder.", hint, Code.LEDGER)
    with file.open("rb") as stream:
        known = stream.read(len(_SQLITE)) == _SQLITE
    if not known:
        told = f"The file '{file.name}' is there already, and is no ledger."
        raise CommandError(told, "choose another name.", Code.LEDGER)


def _open_ledger(ledger: str | None, command: str) -> "BudgetLedger":
    from dplinear.cli.settings import positional
    from dplinear.ledger import open_ledger

    return open_ledger(positional(ledger, "LEDGER", f"ledger {command}"))


def _line(line: Any) -> dict[str, Any]:
    told = line.content()
    spend = line.kind == "spend"
    return {
        "line": line.sequence,
        "time": line.time,
        "kind": line.kind,
        "dataset": line.dataset,
        "request": line.request,
        "mechanism": str(told.get("mechanism", "")),
        "guarantee": str(told.get("guarantee", "")) if spend else "",
    }


def _cells(line: dict[str, Any]) -> list[str]:
    time = line["time"].removesuffix("+00:00").replace("T", " ")
    released = ": ".join(filter(None, (line["mechanism"], line["guarantee"])))
    return [str(line["line"]), time, line["kind"], line["dataset"], line["request"], released]


def _show(ledger: "BudgetLedger", *, json: bool) -> None:
    found = ledger.status()
    if json:
        tell(
            [
                {
                    "dataset": each.dataset,
                    "budget": str(each.budget),
                    "spent": each.budget.text(each.spent),
                    "left": each.budget.text(each.remaining),
                    "spends": each.releases,
                    "settled_beforehand": _tighter_figures(ledger, each.dataset),
                }
                for each in found
            ]
        )
        return
    rows = [
        (
            each.dataset,
            str(each.budget),
            each.budget.text(each.spent),
            each.budget.text(each.remaining),
            str(each.releases),
        )
        for each in found
    ]
    from rich.text import Text

    say(table(("dataset", "budget", "spent", "left", "spends"), rows, left=4))
    for each in found:
        if settled := _tighter_figures(ledger, each.dataset):
            when = "if all releases had been fixed before the first"
            say(Text(f"{each.dataset}, {when}: {'; '.join(settled)}"))


def _tighter_figures(ledger: "BudgetLedger", dataset: str) -> list[str]:
    """Return tighter figures for what has happened; none of them admits a spend."""
    return [str(figure) for figure in ledger.figures(dataset).figures]
