"""`dplinear audit`: what runs on neighbouring tables prove of a mechanism's promise."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplinear.cli import flags
from dplinear.cli.output import console, say, tell

if TYPE_CHECKING:
    from dplinear.audit.audit import AuditResult


_PICTURES = (".png", ".svg", ".pdf")


def _names() -> list[str]:
    from dplinear.audit.catalogue import entries

    return [*entries(), "precision", "all"]


def audit(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            help="A mechanism, `all`, or `precision`.",
            metavar="MECHANISM",
            show_default=False,
            autocompletion=_names,
        ),
    ] = None,
    *,
    epsilon: Annotated[
        float | None,
        flags.option(
            "--epsilon", text="The ε to audit at; for bits, the number of bits (default: several)."
        ),
    ] = None,
    delta: Annotated[
        float | None, flags.option("--delta", text="The δ to audit at, if the guarantee has one.")
    ] = None,
    neighbours: Annotated[
        str | None,
        flags.option(
            "--neighbours",
            text="The neighbouring tables (default: all that the mechanism has).",
            **flags.words(*flags.RELATIONS),
        ),
    ] = None,
    trials: Annotated[
        int | None, flags.option("--trials", text="How many runs to make on each table.")
    ] = None,
    plot: Annotated[
        Path | None,
        flags.option("--plot", text="A PNG, SVG or PDF file for a picture of the last audit."),
    ] = None,
    seed: Annotated[
        int | None,
        flags.option(
            "--seed", text="Draw simulated noise from this seed, so that every run is the same."
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    json_: flags.Json = False,
) -> int:
    """Run a mechanism on its worst pair of neighbouring tables, and test its guarantee.

    `precision` tests whether a neighbouring table could give the same floating-point numbers.
    """
    from dplinear.audit import printing
    from dplinear.cli.errors import Code, CommandError
    from dplinear.cli.settings import positional

    name = positional(mechanism, "MECHANISM", "audit")
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        told = f"A picture is a {', '.join(_PICTURES[:-1])} or {_PICTURES[-1]} file."
        raise CommandError(f"{told} Got '{plot.name}'.")
    if name == "precision":
        return _attack(epsilon, delta, trials, seed, as_json=json_)
    asked = printing.Audits(name, epsilon, delta, neighbours, trials, seed, plot)
    results = list(asked.run(_status))
    if json_:
        tell([_content(result) for result in results])
    elif markdown:
        for line in printing.markdown(results):
            typer.echo(line)
    else:
        say(printing.table(results), printing.reading(simulated=seed is not None))
    return Code.BROKEN if any(result.broken for result in results) else Code.DONE


@contextmanager
def _status(text: str) -> Iterator[Callable[[str], object]]:
    """Show on a terminal's stderr how far an audit is."""
    with console(stderr=True).status(text) as status:
        yield status.update


def _attack(
    epsilon: float | None,
    delta: float | None,
    trials: int | None,
    seed: int | None,
    *,
    as_json: bool,
) -> int:
    """Ask of releases with continuous noise whether a float program could make them at all."""
    from dplinear.audit.precision import attack, suspects
    from dplinear.cli.errors import Code
    from dplinear.noise import simulation

    entropy = None if seed is None else simulation.entropy(seed)
    found = [
        attack(suspect, trials=200 if trials is None else trials, entropy=entropy)
        for suspect in suspects(
            2, epsilon=0.5 if epsilon is None else epsilon, delta=1e-6 if delta is None else delta
        )
    ]
    if as_json:
        tell([{"mechanism": one.name, "delta": one.delta, "holds": one.holds} for one in found])
    else:
        say(*map(str, found))
    return Code.DONE if all(one.holds for one in found) else Code.BROKEN


def _content(result: "AuditResult") -> dict[str, Any]:
    return {
        "mechanism": result.mechanism,
        "neighbours": result.neighbours,
        "promise": str(result.guarantee),
        "kind": result.kind,
        "claimed": result.claimed,
        "audited": result.audited,
        "trials": result.trials,
        "exact": result.exact,
        "verdict": result.verdict,
        "broken": result.broken,
    }
