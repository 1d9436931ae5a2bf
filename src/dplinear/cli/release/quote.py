"""What a release would do and cost, found out without a table.

The gate itself is asked, with a table of the right columns and no rows in place of the real one,
and a ledger that stops it where it would spend. So every public argument is checked as it will be,
and no file of rows is opened.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dplinear.cli.output import facts, plain, say, short_path, table, tell
from dplinear.cli.release import gates

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dplinear.ledger.request import Request
    from dplinear.ledger.status import Price
    from dplinear.schema import Schema

_NAMED = 4  # levels or features of a column that are named in the table
_DELTA = 1e-6  # at which (ε, δ) is told where none was asked for
_NO_NUMBERS = (
    "cells without a number, all text and dates too, count as 0 (or the middle of `within`)"
)
_COUNTING = frozenset(  # mechanisms that release what share of a column was filled in
    (
        "analyze_gauss",
        "whitened_descent",
        "adassp",
        "coinpress",
        "huber_descent",
        "logistic_descent",
    )
)
_REAL = frozenset({"engine", "progress", "public_types"})  # of a table that is there


class _QuotedError(Exception):
    """The gate has come to the spend."""

    def __init__(self, request: "Request") -> None:
        super().__init__("the price is known")
        self.request = request


class _Quoter:
    """A ledger that lets nothing pass."""

    def spend(self, request: "Request") -> None:
        """Stop the gate."""
        raise _QuotedError(request)


@dataclass(frozen=True)
class Quote:
    """What a release would do. `request` is None where its output is there already."""

    request: "Request | None"
    price: "Price | None"


def quote(order: "gates.Order") -> Quote:
    """Return what an order would do and cost; nothing is read and nothing is spent."""
    arguments = {key: value for key, value in order.arguments.items() if key not in _REAL}
    request: Request | None = None
    try:
        gates.call_gate(order, _stand_in(order), arguments | {"ledger": _Quoter()})
    except _QuotedError as stopped:
        request = stopped.request
    if request is None or order.ledger is None:
        return Quote(request, None)
    from dplinear.ledger import open_ledger

    return Quote(request, open_ledger(order.ledger).price(request))


def _stand_in(order: "gates.Order") -> Any:
    """Return a table with the right columns and no rows."""
    import pyarrow as pa

    asked = order.arguments.get("columns")
    names = tuple(asked) if isinstance(asked, list) else ()
    if order.schema is not None:
        names = order.schema.read_columns
    if order.arguments.get("unit") is not None:
        names = (*names, order.arguments["unit"])
    weight = order.arguments.get("weight")
    if isinstance(weight, list | tuple) and weight:
        names = (*names, weight[0])
    return pa.table({name: pa.array([], pa.string()) for name in names})


def show(order: "gates.Order", found: Quote, *, json: bool) -> None:
    """Print the plan and the price."""
    if json:
        tell(_content(order, found))
        return
    say("Dry run: no table is opened, nothing is spent.", facts(_lines(order, found)))
    schema = _read_schema(order, found)
    if schema is not None:
        say("", _columns(schema))


def _read_schema(order: "gates.Order", found: Quote) -> "Schema | None":
    """Return the part of the schema that is read, with what becomes of missing cells in it."""
    facts = {} if found.request is None else found.request.parameters
    if order.schema is None or order.gate.name != "model" or "features" not in facts:
        return order.schema
    names, intercept = (*facts["features"], facts["target"]), order.arguments.get("intercept")
    return order.schema.select(names, intercept=intercept).leaving_out()


def _columns(schema: "Schema") -> "RenderableType":
    """Return a table of the columns that are read."""
    from dplinear.schema.describe import describe_columns, shorten

    heads = ("column", "type", "bounds or levels", "missing cells", "features")
    rows = [
        (each.name, each.type, each.allowed, each.missing, shorten(each.features, _NAMED))
        for each in describe_columns(schema, _NAMED)
    ]
    return table(heads, rows, left=len(heads))


def _lines(order: "gates.Order", found: Quote) -> list[tuple[str, str]]:
    lines = [("release", order.gate.name), ("table", f"{order.description} (not opened)")]
    lines += _column_lines(order, found)
    lines += _row_lines(order)
    lines += _filled_lines(order, found)
    request = found.request
    if request is None:
        lines.append(("price", "nothing: the output holds this release already"))
        return lines
    if request.parameters.get("by") is not None:
        listed = request.parameters.get("combinations")
        of = "" if listed is None else f"of {listed} "
        told = f"{{groups}} {of}by {{by}}, all for one price".format_map(request.parameters)
        lines.append(("groups", told))
    lines.append(("mechanism", request.mechanism))
    lines.append(("protects", _protected(request)))
    lines.append(("guarantee", f"{_guarantee_text(request)} ({request.neighbours} neighbours)"))
    also = _units(request)
    if also:
        lines.append(("which is", "; ".join(also.values())))
    lines += _price_lines(order, found.price)
    lines.append(("output", "none" if order.output is None else short_path(order.output)))
    return lines


def _column_lines(order: "gates.Order", found: Quote) -> list[tuple[str, str]]:
    """Return which columns are read, and which of those declared are not."""
    read = _read_schema(order, found)
    if read is None or order.schema is None:
        if order.gate.name not in gates.SEARCHES:
            return []
        missing = _NO_NUMBERS if order.gate.name == "bounds" else "cells without a level: no count"
        return [("columns", ", ".join(order.arguments["columns"])), ("missing", missing)]
    unused = [name for name in order.schema.columns if name not in read.columns]
    names = f"{len(read.columns)}: {', '.join(read.columns)}"
    names += f"; not read: {', '.join(unused)}" if unused else ""
    norm = f"{read.dimension}, in rows of norm at most {read.bound:.4g}"
    return [("columns", names), ("features", norm)]


def _row_lines(order: "gates.Order") -> list[tuple[str, str]]:
    """Return how rows count, and which are left out, if any are."""
    lines, schema = [], order.schema
    if schema is not None and schema.weight is not None:
        low, high = (f"{float(end):g}" for end in (schema.weight.low, schema.weight.high))
        words = f"by {schema.weight.column!r}, clamped to {low} to {high}; none where it is missing"
        lines.append(("weights", words))
    if order.gate.name == "model":
        lines.append(("left out", "rows without the target or a feature, unless `missing` is said"))
    elif schema is not None and schema.needed_features:
        lines.append(("left out", 'rows without a number in a column of missing = "leave_out"'))
    return lines


def _filled_lines(order: "gates.Order", found: Quote) -> list[tuple[str, str]]:
    """Return which cells are filled in with what, and whether their share is released."""
    from dplinear.schema.describe import describe_filling, shorten
    from dplinear.schema.filling import filled_columns

    read = _read_schema(order, found)
    names = () if read is None or found.request is None else filled_columns(read)
    if read is None or found.request is None or not names:
        return []
    filled = [f"{name} with {describe_filling(read.declared[name])}" for name in names]
    told = f"missing cells of {shorten(filled, _NAMED)}"
    released = found.request.mechanism in _COUNTING
    return [("filled in", f"{told}; their share is released" if released else told)]


def _price_lines(order: "gates.Order", price: "Price | None") -> list[tuple[str, str]]:
    if price is None:
        return [("price", "charged to no privacy budget, as no --ledger was given")]
    budget = price.budget
    cost = "nothing: this request was paid for" if price.repeated else budget.text(price.cost)
    left = f"{budget.text(price.left)} of {budget}"
    after = budget.text(price.after) if price.suffices else "refused: the budget does not suffice"
    return [
        ("price", f"{cost}, of '{order.dataset}' in {short_path(str(order.ledger))}"),
        ("left now", left),
        ("left after", after),
    ]


def _guarantee_text(request: "Request") -> str:
    return "nothing that is proved" if request.guarantee is None else str(request.guarantee)


def _protected(request: "Request") -> str:
    """Return whom the release would protect."""
    from dplinear.privacy.units import Unit, protected

    facts = request.parameters
    unit = None if facts.get("unit") is None else Unit(facts["unit"], facts["rows_per_unit"])
    return protected(request.neighbours, facts.get("change"), unit)


def _units(request: "Request") -> dict[str, str]:
    """Return the promise in the other units that theorems give it."""
    from dplinear.privacy.guarantees import MIDP, ZCDP, ApproxDP

    promised = request.guarantee
    found: dict[str, str] = {}
    if promised is None:
        return found
    if request.concentrated is not None and not isinstance(promised, ZCDP):
        found["rho"] = str(request.concentrated)
    for kind, more in ((ZCDP, {}), (ApproxDP, {"delta": _DELTA}), (MIDP, {})):
        name = {"ZCDP": "rho", "ApproxDP": "epsilon", "MIDP": "bits"}[kind.__name__]
        if isinstance(promised, kind) or name in found:
            continue
        if kind is MIDP and request.neighbours != "element":
            continue
        for source in (promised, request.concentrated):
            try:
                found[name] = str(source.to(kind, **more))  # type: ignore[union-attr,type-var]
                break
            except (ValueError, TypeError, AttributeError):  # no theorem
                continue
    return found


def _column_facts(order: "gates.Order", found: Quote) -> list[dict[str, Any]]:
    from dataclasses import asdict

    from dplinear.schema.columns import MOST_FEATURES
    from dplinear.schema.describe import describe_columns

    schema = _read_schema(order, found)
    return [] if schema is None else [asdict(e) for e in describe_columns(schema, MOST_FEATURES)]


def _content(order: "gates.Order", found: Quote) -> Mapping[str, Any]:
    request, price = found.request, found.price
    content: dict[str, Any] = {
        "dry_run": True,
        "release": order.gate.name,
        "data": order.data,
        "output": order.output,
        "schema": None if order.schema is None else order.schema.to_dict(),
        "columns": _column_facts(order, found),
        "mechanism": None if request is None else request.mechanism,
        "guarantee": None if request is None else _guarantee_text(request),
        "neighbours": None if request is None else str(request.neighbours),
        "protects": None if request is None else _protected(request),
        "in_other_units": {} if request is None else _units(request),
        "price": None,
    }
    if price is not None:
        budget = price.budget
        content["price"] = {
            "ledger": short_path(str(order.ledger)),
            "dataset": order.dataset,
            "budget": str(budget),
            "cost": budget.text(price.cost),
            "left": budget.text(price.left),
            "after": budget.text(price.after),
            "suffices": price.suffices,
            "repeated": price.repeated,
        }
    return dict(plain(content))
