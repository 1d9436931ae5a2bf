"""`dplinear release`: from a private table to a file that may be published. One file a release."""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import signature
from typing import Any

from dplinear.cli import flags
from dplinear.cli.errors import Code, CommandError, describe_interrupt


def _every(
    *,
    ledger: flags.Ledger = None,
    dataset: flags.Dataset = None,
    request: flags.RequestName = None,
    dry_run: flags.DryRun = False,
    threads: flags.Threads = None,
    engine: flags.Engine = None,
    progress: flags.Progress = None,
    config: flags.Config = None,
    json_: flags.Json = False,
    overwrite: flags.Overwrite = False,
) -> None:
    """Hold the flags that every release has."""


def command(
    without: Collection[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., int]]:
    """Return what makes a command of a gate's own flags: with those of every release after them.

    The function that is decorated has its name, its help and its flags, and nothing to do.
    """

    def decorate(own: Callable[..., None]) -> Callable[..., int]:
        shared = signature(_every).parameters.values()
        both = [*signature(own).parameters.values()]
        both += [each for each in shared if each.name not in without]

        @wraps(own)
        def run(**given: Any) -> int:
            return release(own.__name__, given)

        run.__signature__ = signature(own).replace(parameters=both)  # type: ignore[attr-defined]  # typer looks there
        run.__annotations__ = {each.name: each.annotation for each in both}
        return run

    return decorate


def release(name: str, given: Mapping[str, Any]) -> int:
    """Run `dplinear release NAME` with its flags: make the release, or only tell its price."""
    from dplinear.cli.release import gates, quote
    from dplinear.cli.release.printing import show
    from dplinear.ledger import tally

    asked, json = gates.order(name, given), bool(given["json_"])
    if not given.get("dry_run"):
        try:
            with tally() as spent:
                made, warning = gates.make_release(asked)
        except KeyboardInterrupt as stop:  # of which typer would keep no more than that
            raise CommandError(describe_interrupt(stop).sentence, code=Code.INTERRUPTED) from None
        show(asked, made, warning, json=json, again=asked.ledger is not None and not len(spent))
        return Code.DONE
    found = quote.quote(asked)
    quote.show(asked, found, json=json)
    if found.price is None or found.price.suffices:
        return Code.DONE
    if json:  # which has said so, and says one thing only
        return Code.BUDGET
    price = found.price
    told = f"The release would be refused: it needs {price.budget.text(price.cost)}."
    raise CommandError(told, price.hint, Code.BUDGET)
