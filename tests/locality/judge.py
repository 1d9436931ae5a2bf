"""What tells two neighbouring tables apart, and is not noise: integers, words, shapes, files."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dplinear.schema import Schema
from fuzz.judge import Outcome, watched

from .doors import DOORS, NAMES, Rows, sums_of, through_sums
from .pairs import Pair
from .weighed import sharing

# py4j, on its own connection, before it sends a command once more
_RECONNECTS = (
    "py4j.clientserver INFO Error while sending or receiving.",
    "py4j.clientserver INFO Closing down clientserver connection",
    "root INFO Exception while sending command.",
)


@dataclass(frozen=True)
class Seen:
    """What an onlooker sees of one table: rows, words, and files that come or go."""

    outcome: Outcome
    files: tuple[str, ...]

    @property
    def foreign(self) -> str | None:
        """What is wrong with the error that was raised, if it is not in our own words."""
        return None if self.outcome.error is None else self.outcome.problem

    @property
    def rows(self) -> Rows | None:
        return self.outcome.value if self.outcome.error is None else None


def looked_at(data: Any, schema: Schema, door: str, folder: Path) -> Seen:
    """Send a table through a door."""
    before = _files(folder)
    outcome = watched(partial(DOORS[door], data, schema), NAMES)
    return Seen(outcome, tuple(sorted(before ^ _files(folder))))


def _files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*")}


def apart(
    base: Seen, other: Seen, pair: Pair, *, ordered: bool = True, units: bool = False
) -> str | None:
    """Return what tells the two tables apart, or None; with `units`, rows end in their ids."""
    for seen in (base, other):
        if seen.foreign is not None:
            return seen.foreign
    words, others = _words(base), _words(other)
    for what, said in words.items():
        if said != others[what]:
            return f"{what} differ: {said!r:.200} and {others[what]!r:.200}"
    if base.files != other.files:
        return f"files differ: {base.files} and {other.files}"
    if base.rows is None or other.rows is None:
        return None
    return _rows_apart(base.rows, other.rows, pair, ordered=ordered, units=units)


def _words(seen: Seen) -> dict[str, Any]:
    """Return what is said, but for what other libraries note for those who mend them.

    Such a note is of the size of a file or of a part: Dask's file system has one for each block.
    Others are of a connection that was idle until it was cut: Spark's bridge to Java makes it anew.
    """
    words = seen.outcome.seen()
    log = [line for line in words["log"] if line.startswith("dplinear") or " DEBUG " not in line]
    return words | {"log": [line for line in log if line not in _RECONNECTS]}


def _rows_apart(base: Rows, other: Rows, pair: Pair, *, ordered: bool, units: bool) -> str | None:
    if base.shape[1] != other.shape[1]:
        return f"shapes differ: {base.shape[1]} and {other.shape[1]} features"
    for rows, table in ((base, pair.base), (other, pair.other)):
        if len(rows) != len(table.rows):
            return f"the number of rows differs: {len(rows)} encoded of {len(table.rows)}"
    if not ordered:
        last = -1 if units else None  # ids are compared by who shares one, which needs an order
        return _multiset_apart(base[:, :last], other[:, :last], pair)
    longer = {"add": "other", "remove": "base"}.get(pair.how, "both")
    first = np.delete(base, pair.at, axis=0) if longer in {"base", "both"} else base
    second = np.delete(other, pair.at, axis=0) if longer in {"other", "both"} else other
    if units:
        first, second = sharing(first), sharing(second)
    changed = np.flatnonzero((first != second).any(axis=1))
    if not len(changed):
        return None
    row = int(changed[0])
    return (
        f"{len(changed)} of {len(first)} other rows change: row {row} is "
        f"{first[row].tolist()} and {second[row].tolist()}"
    )


def _multiset_apart(base: Rows, other: Rows, pair: Pair) -> str | None:
    before, after = (Counter(map(tuple, rows.tolist())) for rows in (base, other))
    gone, fresh = (before - after).total(), (after - before).total()
    most_gone, most_fresh = (pair.how != "add"), (pair.how != "remove")
    if gone > most_gone or fresh > most_fresh:
        return f"{gone} rows are gone and {fresh} are new"
    return None


def sums_apart(data: Any, schema: Schema, seen: Seen) -> str | None:
    """Return how the sums that gates read differ from the rows that were seen, or None."""
    if seen.rows is None:
        return None
    outcome = watched(partial(through_sums, data, schema), NAMES)
    if outcome.error is not None:
        return f"sums raise where rows do not: {outcome.error!r:.200}"
    integers, count = outcome.value
    if count != len(seen.rows) or (integers != sums_of(seen.rows)).any():
        return "the sums that gates read are not those of the rows"
    return None
