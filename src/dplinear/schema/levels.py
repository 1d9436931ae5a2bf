"""The level that a cell holds, as a text that a schema can declare: for levels nobody can list.

Cells are read as ids are (`unit_keys`) and as levels are compared (`canonical`): 7, 7.0 and "007"
are one level, "7"; so are "yes", "Yes" and true, which are "1". What is released is made of the
meaning alone, so that no row decides how a level is spelt.

Promises, for every function here: the level of a cell depends on that cell alone, nothing raises or
warns because of what a cell holds, and every level is one that a category may have. Cells without
one: missing ones, texts of more than 200 characters, ones that cannot be printed, infinities, spans
of time, and dates that are not written year first.
"""

import math
import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.schema.canonical import Key, canonical, text_of
from dplinear.schema.cells import Cells
from dplinear.schema.unit_keys import keys_of
from dplinear.schema.unit_spans import SPAN

LONGEST = 200  # characters of a level
_VALUES = {b"n": "number", b"d": "day", b"c": "time"}
_EXACT = 2.0**53  # up to which whole numbers are written as such
_MIDNIGHT = "T00:00:00+00:00"


def levels_of(cells: Cells) -> pa.Array:
    """Return the level of each cell as text, null where it has none."""
    keys = keys_of(cells).dictionary_encode()
    texts = pa.array(map(level_of, keys.dictionary.to_pylist()), pa.large_string())
    return texts.take(pc.cast(keys.indices, pa.int64()))


def level_of(key: bytes | None) -> str | None:
    """Return the level that a cell's key stands for, if it can be one of a category."""
    if not key:
        return None
    meant = _meaning(key)
    if meant is None:
        return None
    text = _spell(meant)
    if not (0 < len(text) <= LONGEST and text.isprintable()):
        return None
    # What is nothing but a text is its own spelling; what has a value must be read as it again.
    return text if text == meant[1] or canonical(text) == meant else None


def _meaning(key: bytes) -> Key | None:
    """Return what a key means, as levels are compared: long whole numbers by their float64."""
    mark, rest = key[:1], key[1:]
    if mark == SPAN:
        return None
    if mark in _VALUES:
        return _VALUES[mark], float(struct.unpack("=d", rest)[0])
    try:
        return canonical(rest.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _spell(meant: Key) -> str:
    kind, value = meant
    if isinstance(value, str):
        return value
    if kind == "number":
        if not math.isfinite(value):
            return ""
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
    return text_of(kind, np.float64(value).item()).removesuffix(_MIDNIGHT)
