"""NumPy: arrays of every dtype, of objects, of text, masked, structured, and inferred."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.dice import Dice
from fuzz.tables import objects

from .holders import source
from .pairs import Table
from .texts import text_of, written

_DTYPES = (
    *("f2", "f4", "f8", "f8", "g", ">f4", ">f8"),
    *("i1", "i2", "i4", "i8", ">i8", "u1", "u2", "u4", "u8", "?"),
)


def _grid(table: Table, cells: list[Any]) -> Any:
    return objects(cells, (len(table.rows), len(table.columns)))


@source("numpy_numbers", kinds=("number",), plain=True, named=False)
def _numbers(table: Table, dice: Dice, _: Path) -> Any:
    kind = dice.pick(_DTYPES)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cells = np.array(table.rows, "f8").reshape(len(table.rows), len(table.columns))
        if np.dtype(kind).kind in "iu":  # NumPy's own cast of NaN depends on where it stands
            ends = np.iinfo(kind)
            cells = np.nan_to_num(np.clip(cells, ends.min / 2, ends.max / 2))
        made = cells.astype(kind)
    layouts = (
        lambda: made,
        lambda: np.asfortranarray(made),
        lambda: made.repeat(2, axis=0)[::2],
        lambda: np.ma.masked_invalid(made),
        lambda: np.ma.masked_equal(made, 3),
        lambda: made.view(np.recarray),
    )
    return dice.make(layouts)


@source("numpy_objects", named=False)
def _objects(table: Table, dice: Dice, _: Path) -> Any:
    made = _grid(table, [cell for row in table.rows for cell in row])
    return np.asfortranarray(made) if dice.chance(0.3) else made


@source("numpy_inferred", named=False, refused=0.25, infers=True)
def _inferred(table: Table, dice: Dice, folder: Path) -> Any:
    """What np.array makes of a list of rows: one dtype, found by looking at every cell."""
    _ = dice, folder
    made = np.array([list(row) for row in table.rows])
    if made.ndim != 2:
        raise ValueError("rows within cells")
    return made


@source("numpy_text", kinds=("text", "broken"), named=False, refused=0.1)
def _text(table: Table, dice: Dice, _: Path) -> Any:
    made = _grid(table, [text_of(cell) for row in table.rows for cell in row])
    if dice.chance(0.5):
        return made.astype(str)
    if dice.chance(0.3):
        return _beyond_unicode(made.astype(str))
    return np.vectorize(lambda text: text.encode("utf-8", "surrogateescape"), otypes="O")(
        made
    ).astype("S")


def _beyond_unicode(made: Any) -> Any:
    """Return text whose broken letters are none that Python has: NumPy holds any 32 bits."""
    points = np.ascontiguousarray(made).view(np.uint32)
    points[(points >= 0xDC80) & (points <= 0xDCFF)] += 0x110000
    return points.view(made.dtype).reshape(made.shape)


@source("numpy_masked", named=False)
def _masked(table: Table, dice: Dice, folder: Path) -> Any:
    _ = dice, folder
    cells = [cell for row in table.rows for cell in row]
    hidden = np.array([cell is None or cell is np.ma.masked for cell in cells], bool)
    shape = (len(table.rows), len(table.columns))
    return np.ma.MaskedArray(_grid(table, cells), mask=hidden.reshape(shape))


@source("numpy_structured", refused=0.1)
def _structured(table: Table, dice: Dice, _: Path) -> Any:
    """A field of a fixed type for each column: what cannot stand in it, NumPy refuses."""
    kinds = [dice.pick(("O", "O", "U60", "S60", "f8", "M8[us]")) for _ in table.columns]
    made = np.empty(len(table.rows), list(zip(table.names, kinds, strict=True)))
    for place, (name, kind) in enumerate(zip(table.names, kinds, strict=True)):
        cells = table.cells(place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "O":
                made[name] = objects(cells, (-1,))
            else:
                made[name] = [_field(cell, kind) for cell in cells]
    return made


def _field(cell: Any, kind: str) -> Any:
    """Return a cell for a field, as a careful user would: missing where it has no place there."""
    if kind[0] in "US":
        text = text_of(cell)
        return text.encode("utf-8", "surrogateescape") if kind[0] == "S" else text
    try:
        return np.array([cell]).astype(kind)[0]
    except Exception:
        return np.float64("nan") if kind == "f8" else np.datetime64("NaT")


@source("numpy_genfromtxt", kinds=("text",), refused=0.5, share=0.3, infers=True)
def _genfromtxt(table: Table, dice: Dice, folder: Path) -> Any:
    """What NumPy's own reader of text finds: a type for each column, by looking at its cells."""
    file = written(table, dice, folder, end="\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = np.genfromtxt(
            file,
            delimiter=",",
            dtype=None,
            names=table.names,
            skip_header=1,
            encoding="utf-8",
            deletechars="",
            replace_space=" ",
            comments=None,  # type: ignore[call-overload]  # which NumPy's own pages allow
        )
    return np.atleast_1d(made)
