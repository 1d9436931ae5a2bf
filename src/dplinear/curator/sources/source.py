"""What a table is to the pass: tasks that add rows to an accumulator, and a size if it is free.

A source checks everything that is public about its table (columns, types, shapes) when it is made,
before any row is read. Its tasks may run in any order, on any thread.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from dplinear.arguments import ArgumentError, describe, listed, nearest
from dplinear.exact.blocks import Blocks, Part, Reduction
from dplinear.schema import Schema
from dplinear.tracebacks import PlainError

WHERE = "second_moments"

# Adds its rows to the accumulator, and yields how many it added, step by step.
Task = Callable[[Blocks[Any]], Iterator[int]]


class SourceError(PlainError, RuntimeError):
    """A table could not be read to its end. Nothing was computed or released."""


@dataclass(frozen=True)
class Source:
    """Tasks that together add every row once; `rows` is known only where it costs no reading.

    `once` says that the tasks can be iterated only once; `in_memory`, that no reading is needed.
    """

    tasks: Iterable[Task]
    rows: int | None = None
    once: bool = False
    in_memory: bool = False


class Reader(Protocol):
    """A table whose columns and types are checked, and that runs passes over its rows."""

    def run(self, reduction: Reduction[Part]) -> Part:
        """Return what the reduction comes to over every row; or raise `SourceError`."""


def failure(what: str) -> SourceError:
    """Return the one error for a table that broke off.

    Readers' own words may quote rows, and which error they raise may depend on a cell.
    """
    return SourceError(
        f"Reading {what} failed, so nothing was computed or released."
        "\n\nHint: the data is damaged, cut short, or was withdrawn while it was read. "
        "The reader's own message is withheld, since it may quote private values."
    )


@contextmanager
def withheld(what: str) -> Iterator[None]:
    """Say of a table that breaks off only that it did, whatever its reader raises.

    A panic of a library in Rust is no `Exception`. What ends a program is let through.
    """
    try:
        yield
    except (SourceError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # noqa: BLE001 - a reader may raise anything, and quote rows
        raise failure(what) from None


def check_names(schema: Schema, names: Iterable[object], table: str) -> None:
    """Raise unless every column that is declared or asked for stands once among the table's.

    Types are not checked, in files no more than in frames: many writers choose a column's type by
    looking at its cells (pandas' makes a column of lists because of one list), so that an error
    would tell of a cell. Where a type means nothing in a column, its cells are missing.
    """
    seen = Counter(names)
    absent = [name for name in schema.read_columns if not seen[name]]
    if absent:
        rule = "a table with every column that is declared or asked for"
        got = f"{table}, which lacks {listed(map(describe, absent))}"
        raise ArgumentError("data", WHERE, rule, got, _near_columns(absent, seen))
    twice = [name for name in schema.read_columns if seen[name] > 1]
    if twice:
        rule = "a table with every column that is declared or asked for once"
        got = f"{table}, which has {listed(map(describe, twice))} more than once"
        raise ArgumentError("data", WHERE, rule, got)


def _near_columns(absent: Iterable[str], names: Iterable[object]) -> str:
    """Return which columns of the table may be those that are missing: a header is public."""
    own = [name for name in names if isinstance(name, str)]
    near = {name: nearest(name, own, 1) for name in absent}
    found = [
        f"did you mean {describe(table_name)} for {describe(name)}?"
        for name, names_near in near.items()
        for table_name in names_near
    ]
    return listed(found, 3) or "names must be those of the table, letter by letter."
