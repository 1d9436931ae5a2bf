"""`python -m dplinear.ledger`: make a ledger, look at it, check it."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dplinear.ledger.ledger import BudgetLedger
from dplinear.ledger.opening import open_ledger
from dplinear.ledger.request import LedgerError
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours


def main(given: Sequence[str] | None = None, prog: str = "python -m dplinear.ledger") -> int:
    """Run one command; return 0, or 1 with a sentence on the standard error."""
    arguments = _parser(prog).parse_args(given)
    commands = {"create": _create, "show": _show, "history": _history, "verify": _verify}
    try:
        commands[arguments.command](arguments)
    except (LedgerError, ValueError, TypeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create", help="give a dataset its budget, once and for all")
    create.add_argument("ledger", help="the ledger's file; made where there is none")
    create.add_argument("dataset")
    for name in ("rho", "mu", "epsilon", "delta", "bits", "change"):
        create.add_argument(f"--{name}", type=float)
    create.add_argument("--neighbours", default="add_remove", choices=[*map(str, Neighbours)])
    for name, text in (
        ("show", "what is left of every budget"),
        ("history", "every line, in order"),
        ("verify", "check every line, every sum and every release that is kept"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("ledger")
        if name == "history":
            command.add_argument("--dataset")
    return parser


def _create(given: argparse.Namespace) -> None:
    guarantee = _guarantee(given)
    ledger = open_ledger(given.ledger, create=not Path(given.ledger).exists())
    ledger.declare(given.dataset, guarantee, given.neighbours, given.change)
    _show(given, ledger)


def _guarantee(given: argparse.Namespace) -> Guarantee:
    kinds: dict[str, Callable[[float], Guarantee]] = {
        "rho": ZCDP,
        "mu": GDP,
        "epsilon": PureDP,
        "bits": MIDP,
    }
    named = [name for name in kinds if getattr(given, name) is not None]
    if len(named) != 1 or (given.delta is not None and named != ["epsilon"]):
        raise LedgerError("Give one of --rho, --mu, --bits, --epsilon, or --epsilon and --delta.")
    if given.delta is not None:
        return ApproxDP(given.epsilon, given.delta)
    return kinds[named[0]](getattr(given, named[0]))


def _show(given: argparse.Namespace, ledger: BudgetLedger | None = None) -> None:
    rows = [
        (
            each.dataset,
            str(each.budget),
            each.budget.text(each.spent),
            each.budget.text(each.remaining),
            str(each.releases),
        )
        for each in (ledger or open_ledger(given.ledger)).status()
    ]
    _table(("dataset", "budget", "spent", "left", "spends"), rows)


def _history(given: argparse.Namespace) -> None:
    rows = [
        (
            str(line.sequence),
            line.time,
            line.kind,
            line.dataset,
            line.request,
            str(line.content().get("mechanism", "")),
            str(line.content().get("guarantee", "")) if line.kind == "spend" else "",
        )
        for line in open_ledger(given.ledger).history(given.dataset)
    ]
    _table(("line", "time", "what", "dataset", "request", "mechanism", "guarantee"), rows)


def _verify(given: argparse.Namespace) -> None:
    lines = open_ledger(given.ledger).verify()
    sys.stdout.write(f"{lines} lines, all as they were written, all within their budgets.\n")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - for people only
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(*heads)
    for row in rows:
        table.add_row(*map(Text, row))  # names are the users', and not markup
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
