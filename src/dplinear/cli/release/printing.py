"""What is printed of a release that was made."""

import shlex
from typing import TYPE_CHECKING, Any

from dplinear.cli.loading import words
from dplinear.cli.output import caution, certificate_facts, facts, say, short_path, tell
from dplinear.cli.release.gates import Order

if TYPE_CHECKING:
    from dplinear.schema import Schema

_REGRESS = "dplinear regress {file} --target {target}"
_NEXT = {
    "moments": _REGRESS,
    "sketch": _REGRESS,
    "rows": _REGRESS,
    "model": "dplinear report {file} --html",
    "scores": "dplinear report {file} --html",
    "mean": "dplinear report {file} --html",
    "covariance": "dplinear report {file} --html",
    "bounds": "dplinear release moments DATA --schema {file} ...",
    "rows_per_unit": "dplinear report {file} --html",
    "levels": "dplinear release moments DATA --schema {file} --column ...",
}
# The data may be others by now: a request is one release, whatever is in the file.
_AGAIN = (
    "this request was released before. You get that release: it was not computed from the data "
    "given now, and it costs nothing."
)
_DISTANCES = "dplinear distances {file} --i 0 --count 3"


def show(
    order: Order,
    release: Any,
    warning: str,
    *,
    json: bool,
    again: bool = False,
) -> None:
    """Print what was released, what it promises, and what is left of the budget.

    Of a release that the ledger had kept (`again`), that it is one.
    """
    if warning:
        caution(warning, f"keep {short_path(str(order.output))}: it is the only copy.")
    if json:
        content = _content(order, release) | {"from_ledger": again}
        tell(content | ({"warning": warning} if warning else {}))
        return
    say(words(release), "", facts(_lines(order, release, again=again)))


def _lines(order: Order, release: Any, *, again: bool) -> list[tuple[str, str]]:
    lines = certificate_facts(release.certificate)
    if again:
        lines.append(("from the ledger", _AGAIN))
    lines.append(("written to", short_path(str(order.output))))
    lines += [("budget", str(status)) for status in _remaining_budget(order)]
    projected = release.certificate.mechanism == "projection"
    following = _DISTANCES if projected else _NEXT[order.gate.name]
    target = "" if order.schema is None else _example(order.schema)
    file = shlex.quote(short_path(str(order.output)))
    lines.append(("next", following.format(file=file, target=shlex.quote(target))))
    return lines


def _example(schema: "Schema") -> str:
    """Return the last column that is a feature itself, if there is one, and no level of one."""
    whole = [name for name in schema.names if name in schema.columns]
    return (whole or schema.names)[-1]


def _remaining_budget(order: Order) -> list[Any]:
    if order.ledger is None:
        return []
    from dplinear.ledger import LedgerError, open_ledger

    try:
        found = open_ledger(order.ledger).status()
    except LedgerError:  # the release is there all the same
        return []
    return [status for status in found if status.dataset == order.dataset]


def _content(order: Order, release: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "release": order.gate.name,
        "output": order.output,
        "request": release.certificate.request,
        "certificate": release.certificate.to_dict(),
        "rows": getattr(release, "rows", None),
    }
    if order.gate.name == "rows_per_unit":
        names = ("rows_per_unit", "edges", "counts", "deviation")
        content |= {name: getattr(release, name) for name in names}
    else:
        content["schema"] = None if release.schema is None else release.schema.to_dict()
    if order.gate.name == "bounds":
        content |= {"bounds": release.bounds, "found": dict(release.found)}
    if order.gate.name == "levels":
        content |= {"levels": dict(release.found), "counts": dict(release.counts)}
    for status in _remaining_budget(order):
        text = status.budget.text
        content["budget"] = {
            "dataset": status.dataset,
            "budget": str(status.budget),
            "spent": text(status.spent),
            "left": text(status.remaining),
        }
    return content
