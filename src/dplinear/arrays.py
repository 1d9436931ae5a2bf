"""The arrays that functions of all rooms take and return, by what they hold."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
BigIntegers = npt.NDArray[np.object_]  # Python's own, of any size
Indices = npt.NDArray[np.intp]
Booleans = npt.NDArray[np.bool_]

_KINDS = {"c": "complex numbers", "m": "spans of time", "M": "dates", "O": "objects", "S": "bytes"}


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return what an array holds, in words that are the same however long or large its cells are.

    NumPy chooses the width of text, the unit of dates and the size of numbers by looking at every
    cell, so that a message with a dtype in it would tell of one.
    """
    if dtype.subdtype is not None:
        return f"arrays of {kind_of(dtype.subdtype[0])}"
    if dtype.names is not None:
        return "records with fields"
    if dtype.kind in "biuf":
        return "numbers"
    return _KINDS.get(dtype.kind, "text" if dtype.kind in "UT" else "values of no known kind")
