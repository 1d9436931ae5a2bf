"""The lines of a plan: one for each mechanism, and one for each number of rows per unit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dplinear.planner.facts import Facts
from dplinear.planner.questions import Question, is_exact

_PLENTY = 1e3  # of ε, ρ or μ: a budget that leaves no noise to speak of


@dataclass(frozen=True)
class Line:
    """What to expect of one mechanism.

    `error` is the median over tables, and 90% of them are between `low` and `high`; `call` makes
    the release; `note` says what was assumed or extrapolated. What is not `exact` has a guarantee
    of the ideal mechanism only, and is never recommended.
    """

    mechanism: str
    call: str
    error: float
    low: float
    high: float
    note: str = ""
    exact: bool = True


@dataclass(frozen=True)
class UnitLine:
    """What to expect where a unit counts as at most `rows_per_unit` rows.

    `error` is that of the best mechanism, `sampling` what it would be without noise, and `noise`
    the rest of it (of its square, where errors are root mean squares).
    """

    rows_per_unit: int
    mechanism: str
    error: float
    noise: float
    sampling: float


def _line(question: Question, way: str, facts: Facts) -> Line:
    found = question.predict(way, facts)
    call = question.call(way, facts)
    return Line(way, call, found.error, found.low, found.high, found.note, is_exact(way))


def rank_lines(question: Question, facts: Facts, ways: Sequence[str]) -> list[Line]:
    """Return the lines, the least error first; where some are alike, the usual one first.

    Requires: a way that is exact. Those that are not come last.
    """
    lines = [_line(question, way, facts) for way in ways]
    ordered = sorted(lines, key=lambda line: (not line.exact, line.error))
    limit = question.alike * ordered[0].error
    alike = next(line for line in lines if line.exact and line.error <= limit)
    return [alike, *(line for line in ordered if line is not alike)]


def compare_rows_per_unit(
    question: Question, facts: Facts, ways: Sequence[str], candidates: Sequence[int]
) -> tuple[UnitLine, ...]:
    """Return a line for each number of rows that a unit may count as."""
    found = []
    for candidate in candidates:
        own = facts.per_unit(candidate)
        best = rank_lines(question, own, ways)[0]
        sampling = min(question.predict(best.mechanism, own.under(_PLENTY)).error, best.error)
        if question.adds_squares:
            noise = math.sqrt(best.error**2 - sampling**2)
        else:
            noise = best.error - sampling
        found.append(UnitLine(candidate, best.mechanism, best.error, noise, sampling))
    return tuple(found)


def best_rows_per_unit(lines: Sequence[UnitLine]) -> UnitLine:
    """Return the line to follow: that of the least error; of several, the one of fewest rows.

    Requires: lines in rising order of rows.
    """
    return min(lines, key=lambda line: line.error)
