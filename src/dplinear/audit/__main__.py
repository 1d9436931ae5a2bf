"""`python -m dplinear.audit`: what runs on neighbouring tables prove of a mechanism's promise."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from dplinear.audit import picture
from dplinear.audit.audit import EXPECTED, AuditResult, audit_subject
from dplinear.audit.catalogue import ENTRIES, subject_of, usual_trials
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy, system
from dplinear.privacy.neighbours import Neighbours

EPSILONS = (0.5, 1.0, 3.0)
BITS = (0.1, 0.3, 0.5)  # two values tell at most one bit
HEADER = (
    *("mechanism", "neighbours", "promise", "audited as", "claimed", "audited (95%)"),
    *("part", "runs on each", "verdict"),
)
_UNITS = {"epsilon": "ε", "mu": "μ", "bits": "bits"}


def main(
    arguments: Sequence[str] | None = None,
    console: Console | None = None,
    prog: str = "python -m dplinear.audit",
) -> int:
    """Audit what the command line asks for; return 1 if a promise is broken."""
    chosen = _parser(prog).parse_args(arguments)
    console = console or Console()
    entropy = system() if chosen.seed is None else simulation.entropy(chosen.seed)
    results = list(_results(chosen, entropy, console))
    if chosen.markdown:
        for line in markdown(results):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
    else:
        console.print(_table(results))
        console.print(_reading(simulated=chosen.seed is not None))
    return int(any(result.broken for result in results))


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("mechanism", choices=[*ENTRIES, "all"], metavar="MECHANISM")
    parser.add_argument("--epsilon", type=float, help="ε, or bits where those are promised")
    parser.add_argument("--delta", type=float, help="δ, where the promise has one")
    parser.add_argument("--neighbours", choices=[str(one) for one in Neighbours])
    parser.add_argument("--trials", type=int, help="runs on each of the two tables")
    parser.add_argument("--plot", type=Path, help="a PNG or SVG file to draw the last audit in")
    parser.add_argument("--seed", type=int, help="simulated noise, the same on every run")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser


def _results(
    chosen: argparse.Namespace, entropy: Entropy, console: Console
) -> Iterator[AuditResult]:
    names = list(ENTRIES) if chosen.mechanism == "all" else [chosen.mechanism]
    for name in names:
        entry = ENTRIES[name]
        usual = BITS if entry.delta == "bits" else EPSILONS
        epsilons = usual if chosen.epsilon is None else (chosen.epsilon,)
        relations = entry.relations if chosen.neighbours is None else (chosen.neighbours,)
        for relation in relations:
            for epsilon in epsilons:
                guarantee = entry.guarantee(epsilon, chosen.delta)
                subject = subject_of(name, guarantee, relation, entropy)
                trials = usual_trials(subject) if chosen.trials is None else chosen.trials
                with console.status(f"{name}, {relation}, {guarantee}: {trials:,} runs on each"):
                    result = audit_subject(subject, trials, entropy=entropy)
                yield result
    if chosen.plot is not None:
        figure = picture.draw(subject, result, entropy)
        chosen.plot.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(chosen.plot, dpi=100)


def _cells(result: AuditResult) -> tuple[str, ...]:
    return (
        result.mechanism,
        result.neighbours,
        str(result.guarantee),
        _UNITS[result.kind],
        f"{result.claimed:.3g}",
        f"{result.audited:.3g}",
        f"{result.ratio:.2f}" + ("" if result.exact else " *"),
        f"{result.trials:,}",
        result.verdict,
    )


def _table(results: Sequence[AuditResult]) -> Table:
    title = "Promises and what runs on the worst known pair prove"
    table = Table(*HEADER, title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for result in results:
        colour = "red" if result.broken else "green" if result.ratio >= EXPECTED else None
        table.add_row(*_cells(result), style=colour)
    return table


def _reading(*, simulated: bool) -> str:
    lines = "Audited: a lower bound, wrong with probability 5% at the most; broken: beyond 1e-4."
    lines += "\n* no exact statistic, or a claim that is a bound itself."
    return lines + ("\nSimulated noise." if simulated else "")


def markdown(results: Sequence[AuditResult]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| " + " | ".join(HEADER) + " |"
    yield "|" + "---|" * len(HEADER)
    for result in results:
        yield "| " + " | ".join(_cells(result)).replace("*", "\\*") + " |"


if __name__ == "__main__":
    sys.exit(main())
