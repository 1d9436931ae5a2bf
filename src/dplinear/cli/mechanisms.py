"""`dplinear mechanisms`: what can be given as a mechanism, installed packages' own included."""

from typing import TYPE_CHECKING, Annotated

import typer

from dplinear.cli import flags
from dplinear.cli.output import facts, say, table, tell

if TYPE_CHECKING:
    from dplinear.registry import Facts


def _names() -> list[str]:
    from dplinear.registry import catalogue

    return [each.name for each in catalogue()]


def mechanisms(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A mechanism, to see its options.",
            metavar="MECHANISM",
            show_default=False,
            autocompletion=_names,
        ),
    ] = None,
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    json_: flags.Json = False,
) -> None:
    """List all mechanisms and what they release, or the options of one."""
    from dataclasses import asdict

    from dplinear.arguments import choice
    from dplinear.registry import catalogue

    found = catalogue()
    if name is not None:
        known = [each.name for each in found]
        choice(name, "MECHANISM", "mechanisms", list(dict.fromkeys(known)))
        found = [each for each in found if each.name == name]
    if json_:
        tell([asdict(each) for each in found])
    elif markdown:
        for line in lines_of(found):
            typer.echo(line)
    elif name is not None:
        for each in found:
            say(each.name, facts(_fact_lines(each)))
    else:
        lines = [(_label(each), each.releases, each.numerics) for each in found]
        say(table(("mechanism", "releases", "numerics"), lines))


def lines_of(found: "list[Facts]") -> list[str]:
    """Return a table in Markdown."""
    heads = ("mechanism", "releases", "numerics", "options")
    cells = [
        (f"`{_label(each)}`", each.releases, each.numerics, _options(each, "`")) for each in found
    ]
    rows = [f"| {' | '.join(line)} |" for line in (heads, *cells)]
    return [rows[0], f"|{'---|' * len(heads)}", *rows[1:]]


def _fact_lines(each: "Facts") -> list[tuple[str, str]]:
    return [
        ("is", each.summary),
        ("releases", each.releases),
        ("numerics", each.numerics),
        ("options", _options(each)),
        ("Python", each.path),
    ]


def _options(each: "Facts", quote: str = "") -> str:
    return ", ".join(f"{quote}{option}{quote}" for option in each.options) or "none"


def _label(each: "Facts") -> str:
    return each.name if each.package == "dplinear" else f"{each.name} ({each.package})"
