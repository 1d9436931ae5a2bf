"""What "auto" stands for at the gates: the planner's choice, from public arguments alone.

The number of rows of a table is private between tables of which one has a row more. So a choice
rests on the number of rows only where the caller gives one, as a public guess; without it, on what
does not depend on it, or it is the usual way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dplinear.arguments import integer
from dplinear.planner.facts import MOST_ROWS, Facts
from dplinear.planner.lines import rank_lines
from dplinear.planner.plan import QUESTIONS
from dplinear.planner.populations import WIDTH
from dplinear.planner.questions import is_exact
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours

AUTO = "auto"


@dataclass(frozen=True)
class Asked:
    """What a gate knows in public: a guarantee between neighbours, and the size of a row."""

    guarantee: Guarantee
    neighbours: Neighbours
    columns: int
    dimension: int
    square: float


@dataclass(frozen=True)
class Choice:
    """A way, and a sentence for the certificate."""

    name: str
    note: str


def read_expected(value: Any, where: str) -> int | None:
    """Return the number of rows that a caller expects, if any."""
    if value is None:
        return None
    hint = "a public guess, never the count of the table itself where that is private."
    return integer(value, "expected_rows", where, low=1, high=MOST_ROWS, hint=hint)


def choose(learn: str, ways: Sequence[str], asked: Asked, rows: int | None) -> Choice:
    """Return the way with the least predicted error of the exact ones that can keep the guarantee.

    Requires: `ways` of one of the planner's questions, the usual one, which is exact, first.
    Promises: a function of its arguments. Without `rows` it is the usual way, or the first that can
    keep the guarantee; where none can, the usual way, which will say why. So for tables beyond all
    that were simulated.
    """
    question = QUESTIONS[learn]
    facts = Facts(
        rows=rows or 1,
        columns=asked.columns,
        dimension=asked.dimension,
        square=asked.square,
        guarantee=asked.guarantee,
        neighbours=asked.neighbours,
        width=WIDTH,
    )
    exact = [way for way in ways if is_exact(way)]
    able = [way for way in exact if question.refusal(way, facts) is None] or [ways[0]]
    if rows is None or len(able) == 1:
        return Choice(able[0], f"'auto' is {able[0]} here, whatever the number of rows.")
    if question.beyond(facts) is not None:
        return Choice(able[0], f"'auto' is {able[0]} here: no table like it was simulated.")
    best = rank_lines(question, facts, able)[0]
    note = f"'auto' chose {best.mechanism}, of the least predicted error for {rows:,} rows."
    return Choice(best.mechanism, note)
