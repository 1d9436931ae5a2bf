"""The arrays that functions of all rooms take and return, by what they hold."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
BigIntegers = npt.NDArray[np.object_]  # Python's own, of any size
Indices = npt.NDArray[np.intp]
