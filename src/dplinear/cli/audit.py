"""`dplinear audit`: what runs on neighbouring tables prove of a mechanism's promise."""

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
            help="a mechanism, precision, or all",
            metavar="MECHANISM",
            show_default=False,
            autocompletion=_names,
        ),
    ] = None,
    *,
    epsilon: Annotated[
        float | None, flags.option("--epsilon", text="ε, or bits where those are promised")
    ] = None,
    delta: Annotated[
        float | None, flags.option("--delta", text="δ, where the promise has one")
    ] = None,
    neighbours: Annotated[
        str | None,
        flags.option(
            "--neighbours", text="(default: all it knows)", **flags.words(*flags.RELATIONS)
        ),
    ] = None,
    trials: Annotated[int | None, flags.option("--trials", text="runs on each table")] = None,
    plot: Annotated[
        Path | None, flags.option("--plot", text="a PNG, SVG or PDF file of the last audit")
    ] = None,
    seed: Annotated[
        int | None, flags.option("--seed", text="simulated noise, the same on every run")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="print Markdown")] = False,
    json_: flags.Json = False,
) -> int:
    """Run a mechanism on its worst pair of tables, and say what that proves of its promise.

    `precision` asks whether released numbers can arise from a neighbouring table at all.
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
    results = list(asked.run(console(stderr=True).status))
    if json_:
        tell([_content(result) for result in results])
    elif markdown:
        for line in printing.markdown(results):
            typer.echo(line)
    else:
        say(printing.table(results), printing.reading(simulated=seed is not None))
    return Code.BROKEN if any(result.broken for result in results) else Code.DONE


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
