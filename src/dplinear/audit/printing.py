"""Audits by name, and the table of what their runs prove."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dplinear.arguments import choice
from dplinear.audit import picture
from dplinear.audit.audit import EXPECTED, AuditResult, audit_subject
from dplinear.audit.catalogue import entries, subject_of, usual_trials
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy, system
from dplinear.privacy.guarantees import Guarantee

EPSILONS = (0.5, 1.0, 3.0)
BITS = (0.1, 0.3, 0.5)  # two values tell at most one bit
HEADER = (
    *("mechanism", "neighbours", "promise", "audited as", "claimed", "audited (95%)"),
    *("part", "runs on each", "verdict"),
)
HEADS = ("promise", "claimed", "audited (95%)", "part", "runs on each", "verdict")
_WIDTHS = (20, 11, 14, 6, 12, 12)


# Shows a text while its `with` lasts, and gives what shows another in its place.
Tell = Callable[[str], AbstractContextManager[Callable[[str], object]]]


@dataclass(frozen=True)
class Audits:
    """Which audits to run: of one mechanism or of all, at the usual promises or at one."""

    mechanism: str
    epsilon: float | None = None
    delta: float | None = None
    neighbours: str | None = None
    trials: int | None = None
    seed: int | None = None
    plot: Path | None = None

    def run(self, tell: Tell) -> Iterator[AuditResult]:
        """Run them one after the other; `tell` shows a text for as long as each takes.

        A seed starts afresh for each mechanism, so that all together say what each says alone.
        """
        planned = list(self._planned())
        entropy: Entropy | None = None
        for index, (name, relation, guarantee) in enumerate(planned, start=1):
            if entropy is None or name != planned[index - 2][0]:
                entropy = system() if self.seed is None else simulation.entropy(self.seed)
            subject = subject_of(name, guarantee, relation, entropy)
            trials = usual_trials(subject) if self.trials is None else self.trials
            start = f"Audit {index} of {len(planned)}: {name}, {relation}, {guarantee}"
            with tell(f"{start}, {trials:,} runs on each table") as show:

                def watch(done: int, start: str = start, whole: int = 2 * trials) -> None:
                    show(f"{start}, {done:,} of {whole:,} runs done")

                result = audit_subject(subject, trials, entropy=entropy, watch=watch)
            yield result
        if self.plot is not None and entropy is not None:
            picture.save(picture.draw(subject, result, entropy), self.plot)

    def _planned(self) -> Iterator[tuple[str, str, Guarantee]]:
        """Yield mechanism, neighbours and promise of each audit, in their order."""
        known = entries()
        for name in list(known) if self.mechanism == "all" else [self.mechanism]:
            entry = known[choice(name, "mechanism", "audit", (*known, "all"))]
            usual = BITS if entry.delta == "bits" else EPSILONS
            epsilons = usual if self.epsilon is None else (self.epsilon,)
            for relation in entry.relations if self.neighbours is None else (self.neighbours,):
                for epsilon in epsilons:
                    yield name, relation, entry.guarantee(epsilon, self.delta)


def _cells(result: AuditResult) -> tuple[str, ...]:
    return (
        result.mechanism,
        result.neighbours,
        str(result.guarantee),
        result.unit,
        f"{result.claimed:.3g}",
        f"{result.audited:.3g}",
        f"{result.ratio:.2f}" + ("" if result.exact else " *"),
        f"{result.trials:,}",
        result.verdict,
    )


def table(results: Sequence[AuditResult]) -> Group:
    """Return the table for a terminal of 80 columns: a heading for each mechanism."""
    shown: list[RenderableType] = [_part(HEADS, "bold")]
    before = ""
    for result in results:
        heading = f"{result.mechanism}, {result.neighbours} neighbours"
        if heading != before:
            shown.append(Text(heading, style="bold"))
        before = heading
        colour = "red" if result.broken else "green" if result.ratio >= EXPECTED else ""
        unit, cells = result.unit, _cells(result)
        claimed, audited = f"{unit} = {result.claimed:.3g}", f"{unit} ≥ {result.audited:.3g}"
        shown.append(_part((f"  {cells[2]}", claimed, audited, *cells[6:]), colour))
    return Group(*shown)


def _part(cells: Sequence[str], style: str) -> Table:
    """Return one line whose cells stand below those of the others."""
    made = Table.grid(padding=(0, 1, 0, 0))
    for width in _WIDTHS:
        made.add_column(width=width)
    made.add_row(*cells, style=style)
    return made


def reading(*, simulated: bool) -> str:
    """Return how to read it."""
    lines = "Audited: a lower bound, wrong with probability 5%; broken: beyond 1e-4."
    lines += "\n* no exact statistic, or a claim that is a bound itself."
    return lines + ("\nSimulated noise." if simulated else "")


def markdown(results: Sequence[AuditResult]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| " + " | ".join(HEADER) + " |"
    yield "|" + "---|" * len(HEADER)
    for result in results:
        yield "| " + " | ".join(_cells(result)).replace("*", "\\*") + " |"
