"""What a cell stands for, whatever its type: an oracle of its own, written without our reader.

Numbers, their texts and truth values are numbers; dates, times and their texts are moments; any
other text is itself; what holds nothing is None. Two cells of one meaning must be encoded alike.
"""

import datetime as dt
import decimal
import math
import re
import uuid
from fractions import Fraction
from typing import Any

import numpy as np

_NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity)", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0}

Meaning = tuple[str, Any] | None


def meaning(cell: Any) -> Meaning:
    """Return what a cell stands for: alike for all types that a reader may find for it."""
    try:
        return _meaning(cell)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return ("object", type(error).__name__)


def _meaning(cell: Any) -> Meaning:  # noqa: PLR0911 - a type each
    if isinstance(cell, np.generic) and not isinstance(cell, np.longdouble):
        cell = cell.item()
    if cell is None or type(cell).__name__ in {"NAType", "NaTType", "MaskedConstant"}:
        return None
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "surrogateescape")
    if isinstance(cell, str):
        return _of_text(str.__str__(cell))
    if isinstance(cell, complex):
        return _number(cell.real) if cell.imag == 0 else ("object", "complex")
    if isinstance(cell, bool | int | float | decimal.Decimal | Fraction | np.longdouble):
        return _number(cell)
    if isinstance(cell, dt.datetime):
        moment = cell if cell.tzinfo else cell.replace(tzinfo=dt.UTC)
        return ("moment", moment.astimezone(dt.UTC))
    if isinstance(cell, dt.date):
        return ("moment", dt.datetime(cell.year, cell.month, cell.day, tzinfo=dt.UTC))
    if isinstance(cell, dt.time):
        return ("time", cell)
    return ("identifier", cell) if isinstance(cell, uuid.UUID) else ("object", type(cell).__name__)


def _number(cell: Any) -> Meaning:
    try:
        number = float(cell)
    except OverflowError:
        number = math.inf if cell > 0 else -math.inf
    return None if math.isnan(number) else ("number", number)


def _of_text(text: str) -> Meaning:
    plain = text.strip()
    if _NUMBER.fullmatch(plain):
        return ("number", float(plain))
    if plain.lower() in _TRUTH:
        return ("number", _TRUTH[plain.lower()])
    if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", plain):
        try:
            return _meaning(dt.datetime.fromisoformat(plain))
        except ValueError:
            return ("text", text)
    if re.fullmatch(r"[0-9]{2}:[0-9]{2}(:[0-9.]+)?", plain):
        return ("time", dt.time.fromisoformat(plain))
    return ("identifier", uuid.UUID(text)) if _IDENTIFIER.fullmatch(text) else ("text", text)
