"""What may tell neighbours apart although it should not: a short list, each with its reason."""

from collections.abc import Callable
from dataclasses import dataclass

from .holders import Source
from .judge import Seen
from .pairs import Pair

Applies = Callable[[Source, Pair, Seen, Seen], bool]


@dataclass(frozen=True)
class Exemption:
    """A reason why dplinear cannot undo what happened before it saw a table."""

    name: str
    reason: str
    applies: Applies


EXEMPTIONS: tuple[Exemption, ...] = ()


def excused(source: Source, pair: Pair, base: Seen, other: Seen) -> str | None:
    """Return the name of the exemption that a pair falls under, or None."""
    for exemption in EXEMPTIONS:
        if exemption.applies(source, pair, base, other):
            return exemption.name
    return None
