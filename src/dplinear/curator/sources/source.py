"""What a table is to the pass: tasks that add rows to an accumulator, and a size if it is free.

A source checks everything that is public about its table (columns, types, shapes) when it is made,
before any row is read. Its tasks may run in any order, on any thread.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from dplinear.arguments import rejection
from dplinear.curator.blocks import Blocks, Part, Reduction
from dplinear.schema import Schema

WHERE = "second_moments"

# Adds its rows to the accumulator, and yields how many it added, step by step.
Task = Callable[[Blocks[Any]], Iterator[int]]


class SourceError(RuntimeError):
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


def failure(what: str, error: BaseException) -> SourceError:
    """Return the one error for a table that broke off; readers' own words may quote rows."""
    return SourceError(
        f"Reading {what} failed ({type(error).__name__}), so nothing was computed or released."
        "\n\nHint: the data is damaged, cut short, or was withdrawn while it was read. "
        "The reader's own message is withheld, since it may quote private values."
    )


def check_names(schema: Schema, names: Iterable[object], table: str) -> None:
    """Raise unless every column of the schema stands once among the table's."""
    seen = Counter(names)
    absent = [name for name in schema.columns if not seen[name]]
    if absent:
        hint = "the schema names columns of the source; all others are ignored."
        rule = f"a table with every column of the schema ({table} lacks some)"
        raise rejection("data", WHERE, rule, ", ".join(absent), hint)
    twice = [name for name in schema.columns if seen[name] > 1]
    if twice:
        rule = f"a table with every column of the schema once ({table} has some twice)"
        raise rejection("data", WHERE, rule, ", ".join(twice))


def check_types(schema: Schema, types: pa.Schema, table: str) -> None:
    """Raise unless every column of a file is there, and declared to hold single values.

    Not for other types that a declaration cannot be read from: many writers choose a column's type
    by looking at its cells (SQLite's takes a column of nulls for integers), so an error would
    depend on private values. Such cells are missing. Nor for frames and relations, whose types may
    be guesses altogether.
    """
    check_names(schema, types.names, table)
    for name in schema.columns:
        kind = types.field(name).type
        if pa.types.is_nested(kind):
            rule = f"a table whose column '{name}' holds single values ({table})"
            raise rejection("data", WHERE, rule, kind)
