"""Pairs of neighbouring tables: a base table, and the same table but for one odd row.

A group is one base and many neighbours of it, all thrown by one seed, so that the base is encoded
once. The odd row holds one odd cell, or nothing but odd cells, or ordinary cells of other types.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dplinear.schema import Schema
from fuzz.dice import Dice

from .columns import Column, chosen
from .odd_cells import odd_cell, odd_names

Row = tuple[Any, ...]
_SIZES = (1, 2, 3, 5, 8, 8, 8, 13)
_TALL = 150  # rows: more than what readers look at that infer types from the first hundred


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns. `public` seeds what a holder does, alike for neighbours."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    public: int

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def cells(self, place: int) -> list[Any]:
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Pair:
    """Two tables that differ in one row. `at` is where it stands in both, or in the longer one."""

    base: Table
    other: Table
    at: int
    how: str
    what: str

    def __str__(self) -> str:
        return f"{self.how} row {self.at} of {len(self.base.rows)}: {self.what}"


@dataclass(frozen=True)
class Demands:
    """What a holder takes: kinds of odd cells; columns of plain numbers; columns with names."""

    kinds: tuple[str, ...] = ("text", "number", "object")
    plain: bool = False
    named: bool = True
    columns: tuple[str, ...] = ()  # these alone, where a door needs them


@dataclass(frozen=True)
class Group:
    """A base table, its schema, and its neighbours."""

    base: Table
    schema: Schema
    pairs: tuple[Pair, ...]


def group_of(seed: int, demands: Demands, count: int) -> Group:
    """Throw a base table and `count` neighbours."""
    dice = Dice(seed)
    columns, schema = chosen(dice, plain=demands.plain, named=demands.named)
    pools = [dice.pick(list(column.pools)) for column in columns]
    size = _TALL if dice.chance(0.02) else dice.pick(_SIZES)
    throw = _Rows(dice, columns, pools, demands)
    rows = [throw.ordinary() for _ in range(size)]
    if dice.chance(0.2):
        rows[dice.below(size)] = throw.odd()[0]
    base = Table(columns, tuple(rows), dice.below(2**62))
    return Group(base, schema, tuple(_neighbours(dice, base, throw, count)))


@dataclass(frozen=True)
class _Rows:
    """Throws rows of a table's columns."""

    dice: Dice
    columns: Sequence[Column]
    pools: Sequence[str]
    demands: Demands

    def ordinary(self) -> Row:
        pairs = zip(self.columns, self.pools, strict=True)
        return tuple(self.dice.pick(column.pools[pool]) for column, pool in pairs)

    def odd(self) -> tuple[Row, str]:
        """Return an odd row, and what is odd about it."""
        row, count = list(self.ordinary()), len(self.columns)
        if self.dice.chance(0.15):
            return self._other_types(row)
        places = range(count) if self.dice.chance(0.15) else (self.dice.below(count),)
        words = []
        for place in places:
            kind, name = self.dice.pick(odd_names(self.demands.kinds))
            if kind == "line":
                return (odd_cell(kind, name),) * count, f"line {name!r} ({self._types()})"
            row[place] = odd_cell(kind, name)
            words.append(f"{kind} {name!r} in {self.columns[place].name!r}")
        return tuple(row), ", ".join(words) + f" ({self._types()})"

    def _other_types(self, row: list[Any]) -> tuple[Row, str]:
        place = self.dice.below(len(row))
        column = self.columns[place]
        pool = self.dice.pick(list(column.pools))
        row[place] = self.dice.pick(column.pools[pool])
        return tuple(row), f"{row[place]!r} of {pool} in {column.name!r} ({self._types()})"

    def _types(self) -> str:
        pairs = zip(self.columns, self.pools, strict=True)
        return "beside " + ", ".join(f"{column.name}: {pool}" for column, pool in pairs)


def _neighbours(dice: Dice, base: Table, throw: _Rows, count: int) -> Iterator[Pair]:
    for _ in range(count):
        rows, at = list(base.rows), dice.below(len(base.rows))
        how = dice.pick(("change", "change", "change", "add", "add", "remove"))
        if how == "remove":
            row, what = rows.pop(at), f"an ordinary row ({throw._types()})"
            assert row is not None
        else:
            row, what = throw.odd()
            at = at if how == "change" else dice.below(len(rows) + 1)
            rows[at : at + (how == "change")] = [row]
        yield Pair(base, replace(base, rows=tuple(rows)), at, how, what)
