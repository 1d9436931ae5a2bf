"""`dplinear release`: from a private table to a file that may be published. One file a release."""

from collections.abc import Mapping
from typing import Any

from dplinear.cli.errors import Code, CommandError


def release(name: str, given: Mapping[str, Any]) -> int:
    """Run `dplinear release NAME` with its flags: make the release, or only tell its price."""
    from dplinear.cli import gates, quote  # noqa: PLC0415 - not for --help
    from dplinear.cli.release.printing import show  # noqa: PLC0415

    asked, json = gates.order(name, given), bool(given["json_"])
    if not given.get("dry_run"):
        show(asked, *gates.released(asked), json=json)
        return Code.DONE
    found = quote.quote(asked)
    quote.show(asked, found, json=json)
    if found.price is None or found.price.suffices:
        return Code.DONE
    if json:  # which has said so, and says one thing only
        return Code.BUDGET
    price = found.price
    told = f"The release would be refused: it costs {price.budget.text(price.cost)}."
    raise CommandError(told, "ask for a weaker guarantee.", Code.BUDGET)
