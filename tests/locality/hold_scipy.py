"""SciPy: every sparse format, with duplicates, explicit zeros and unsorted indices.

A row is a tuple of entries (column, value, key). Entries keep the order of their keys wherever a
format has an order, so what a neighbour changes moves no entry of another row past another.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dplinear.schema import Schema
from fuzz.dice import Dice

from .columns import Column
from .holders import SOURCES, Source
from .odd_cells import NUMBERS
from .pairs import Demands, Group, Pair, Row, Table

# Sums of these depend on the order in which they are added.
_VALUES = (0.1, 1 / 3, 0.7, -0.2, 1e16, -1e16, 1.0, 2.0, 0.0, -0.0, 1e-9)
_FORMATS = ("coo", "coo", "csr", "csr", "csc", "bsr", "bsr_wide", "dia", "dok", "lil")


def _entries(dice: Dice, width: int, *, odd: bool) -> Row:
    count = dice.pick((0, 1, 3, 3, 20, 60) if width > 1 else (0, 1, 3, 20))
    values = (*_VALUES, *(float(value) for value in NUMBERS.values())) if odd else _VALUES
    entries = [(dice.below(width), dice.pick(values), dice.below(1000)) for _ in range(count)]
    if dice.chance(0.4):
        entries.sort(key=lambda entry: entry[0])
        entries = [(column, value, place) for place, (column, value, _) in enumerate(entries)]
    return tuple(entries)


def _group(seed: int, count: int) -> Group:
    dice = Dice(seed)
    width = dice.pick((1, 3, 8, 40))
    columns = tuple(Column(f"c{place}", (-2, 2), {}) for place in range(width))
    schema = Schema({column.name: column.declared for column in columns})
    rows = tuple(_entries(dice, width, odd=dice.chance(0.1)) for _ in range(dice.pick((1, 3, 8))))
    base = Table(columns, rows, dice.below(2**62))
    return Group(base, schema, tuple(_neighbours(dice, base, count)))


def _neighbours(dice: Dice, base: Table, count: int) -> Iterator[Pair]:
    for _ in range(count):
        rows, at = list(base.rows), dice.below(len(base.rows))
        how = dice.pick(("change", "change", "add", "remove"))
        row = _entries(dice, len(base.columns), odd=True)
        if how == "remove":
            del rows[at]
        elif how == "change":
            rows[at] = row
        else:
            rows.insert(at, row)
        what = f"{len(row)} entries of {len({column for column, _, _ in row})} columns"
        yield Pair(base, replace(base, rows=tuple(rows)), at, how, what)


def _matrix(table: Table, dice: Dice, _: Path) -> Any:
    """Return a matrix in one of the formats, built from its own arrays: nothing is added up."""
    kind, dtype = dice.pick(_FORMATS), dice.pick(("f8", "f8", "f4", "g"))
    make = getattr(sparse, f"{kind[:3]}_{dice.pick(('array', 'matrix'))}")
    shape = (len(table.rows), len(table.columns))
    by_row = [sorted(row, key=lambda entry: entry[2]) for row in table.rows]
    listed = [(i, column, value, key) for i, row in enumerate(by_row) for column, value, key in row]
    if kind in {"dia", "dok", "lil"}:
        return make(_dense(listed, shape, dtype))
    if kind == "coo" and dice.chance(0.7):
        listed.sort(key=lambda entry: entry[3])
    if kind == "csc":
        listed.sort(key=lambda entry: entry[1])
    rows, columns = (np.array([entry[place] for entry in listed], int) for place in (0, 1))
    with np.errstate(all="ignore"):
        values = np.array([entry[2] for entry in listed], "f8").astype(dtype)
    if kind == "coo":
        return make((values, (rows, columns)), shape=shape)
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=shape[0])))).astype(int)
    if kind == "csr":
        return make((values, columns, starts), shape=shape)
    if kind == "csc":
        starts = np.concatenate(([0], np.cumsum(np.bincount(columns, minlength=shape[1]))))
        return make((values, rows, starts.astype(int)), shape=shape)
    if kind == "bsr":
        return make((values.reshape(-1, 1, 1), columns, starts), shape=shape)
    wide = np.zeros((len(listed), 1, shape[1]), values.dtype)  # a block is a whole row
    wide[np.arange(len(listed)), 0, columns] = values
    return make((wide, np.zeros(len(listed), int), starts), shape=shape)


def _dense(listed: list[Any], shape: tuple[int, int], dtype: str) -> Any:
    """Return the last entry of each place: these formats hold one."""
    made = np.zeros(shape, "f8")
    for row, column, value, _ in listed:
        made[row, column] = value
    with np.errstate(all="ignore"):
        return made.astype(dtype)


def _examples(table: Table, dice: Dice, folder: Path) -> Any:
    """A matrix and labels for the learners in constraint sets: a label is its row's last value."""
    intercept = dice.pick((0.0, 1.0))
    labels = np.array([row[-1][1] if row else 0.0 for row in table.rows], "f8")
    classes = dice.chance(0.5)
    options = {"classes": (0.1, 1.0)} if classes else {"target_bounds": (-1.0, 1.0)}
    return _matrix(table, dice, folder), labels, options | {"intercept": intercept}


class _Sparse(Source):
    """A source of sparse rows."""

    def group(self, seed: int, count: int) -> Group:
        return _group(seed, count)


_DEMANDS = Demands(kinds=("number",), plain=True)
SOURCES["scipy"] = _Sparse("scipy", _matrix, _DEMANDS, share=2.0)
SOURCES["scipy_examples"] = _Sparse("scipy_examples", _examples, _DEMANDS, door="examples")
