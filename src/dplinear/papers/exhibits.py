"""What `reproduce` makes of a paper: exhibits, the claims about them, and what was found.

An exhibit is a figure or a table. A paper's `findings.py` has them all; each verdict there is
computed from the numbers of the run that it stands beside.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold"
OPEN = "open at these sizes"
NOT_AS_PRINTED = "holds with a correction"
PAPERS_NOISE = "holds under the paper's own noise only"

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Paper:
    """A paper, and the titles of what is reproduced of it, by name."""

    title: str
    figures: Mapping[str, str]


@dataclass(frozen=True)
class Result:
    """One claim about a figure or a table, what this run measured, and the verdict.

    `files` show it: pictures first, then CSV files. Claims that begin with "Not in the paper" are
    ours.
    """

    paper: str
    figure: str
    claim: str
    measured: str
    verdict: str
    files: tuple[Path, ...]

    def facts(self) -> dict[str, Any]:
        """Return all of it as plain values, files by their names."""
        return {
            "paper": self.paper,
            "figure": self.figure,
            "claim": self.claim,
            "measured": self.measured,
            "verdict": self.verdict,
            "files": [path.name for path in self.files],
        }


class Finding(NamedTuple):
    """A claim in our words, what this run measured, and a verdict that follows from it."""

    claim: str
    measured: str
    verdict: str


class Outcome(NamedTuple):
    """What was found about an exhibit, and the files that show it."""

    findings: Sequence[Finding]
    files: Sequence[Path]


def _silent(what: str, done: int, total: int) -> None:
    """Show nothing."""


@dataclass(eq=False)
class Run:
    """One run over a paper: where files go, how large tables are, and what was made already.

    `progress` is told what is being done, and how many of how many steps of it are done.
    """

    folder: Path
    quick: bool = False
    seed: int = 1
    progress: Callable[[str, int, int], None] = _silent
    _made: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Return what `make` makes, the same for every exhibit that asks for it by this name."""
        if name not in self._made:
            self._made[name] = make()
        made: Made = self._made[name]
        return made

    def watch(self, what: str) -> Callable[[Sequence[Item]], Iterable[Item]]:
        """Return a wrapper for a loop that tells `progress` how far it is."""

        def watch(items: Sequence[Item]) -> Iterable[Item]:
            self.progress(what, 0, len(items))
            for done, item in enumerate(items, start=1):
                yield item
                self.progress(what, done, len(items))

        return watch


# A figure or a table, as what makes it.
Exhibit = Callable[[Run], Outcome]


def span(values: Iterable[float], digits: int = 3) -> str:
    """Return the least and the largest number as text; one of them, if they print the same."""
    listed = list(values)
    ends = [f"{end:.{digits}g}" for end in (min(listed), max(listed))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def by_share(share: float, *, most: float = 0.9, few: float = 0.1) -> str:
    """Return the verdict on a claim that is so in a share of its places."""
    if share >= most:
        return HOLDS
    return FAILS if share <= few else IN_PART
