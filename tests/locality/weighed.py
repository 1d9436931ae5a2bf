"""Tables whose rows belong to units of privacy and have survey weights: who shares an id, and what.

A column of the table says whom each row belongs to, another how much it weighs. One odd row must
change neither for all others, and no word.
"""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from dplinear.curator.sources import ordered
from dplinear.curator.sources.unit_rows import Gatherer, width_of
from dplinear.schema import Schema
from fuzz.dice import Dice

_BOUNDS = ((0, 20), (0, 1), (3, 20), (0, 2.0**-60), (0, 2.0**300))


class _Caught(Gatherer):
    """Keeps every row with its weight, and the key of its unit, where it would put them aside."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema, lambda _rows, _keys: None)
        self.rows: list[Any] = []
        self.keys: list[bytes | None] = []

    def _put(self, keys: pa.Array) -> None:
        self.rows.append(self._rounded.astype(np.float64))
        self.keys += keys.to_pylist()
        self._start(0)


def weighed(schema: Schema, seed: int) -> Schema:
    """Return a schema of the same columns with a unit and a weight among them."""
    dice, names = Dice(seed), list(schema.columns)
    content = schema.to_dict()
    content["unit"] = dice.pick(names)
    content["weight"] = [dice.pick(names), *dice.pick(_BOUNDS)]
    found = Schema.from_dict(content)
    return found.leaving_out() if dice.chance(0.5) else found


def through_units(data: Any, schema: Schema) -> Any:
    """Return the encoded rows with their weights, and last a number for each one's id, or −1."""
    caught = _Caught(schema)
    for task in ordered._source(data, schema).tasks:
        for _ in task(caught):
            pass
    if not caught.rows:
        return np.zeros((0, width_of(schema) + 1), np.int64)
    owners = np.array([[-1 if key is None else _code(key)] for key in caught.keys], np.int64)
    return np.hstack([np.concatenate(caught.rows).astype(np.int64), owners])


def sharing(rows: Any) -> Any:
    """Return rows with the first row that has the same id in place of that id's number.

    How an id is written may depend on the others; who shares one must not.
    """
    found, first = rows.copy(), dict[int, int]()
    for index, owner in enumerate(rows[:, -1].tolist()):
        found[index, -1] = -1 if owner < 0 else first.setdefault(owner, index)
    return found


def _code(key: bytes) -> int:
    return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 2
