"""Cubic B-splines: smooth functions of one number that are never negative and sum to 1.

De Boor 1978, "A Practical Guide to Splines", chapters IX and X: for knots t, the functions of
order k follow from those of order k − 1 by convex combinations. So Bᵢ ≥ 0 and Σ Bᵢ = 1 between
the outermost knots, and hence Σ Bᵢ² ≤ (Σ Bᵢ)² = 1: all functions together add no more to the
squared norm of a row than one of them could.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats

DEGREE = 3


def even_knots(low: Fraction, high: Fraction, functions: int) -> tuple[Fraction, ...]:
    """Return knots from low to high, evenly spaced, that so many cubic B-splines belong to."""
    pieces = functions - DEGREE
    return tuple(low + (high - low) * Fraction(index, pieces) for index in range(pieces + 1))


def basis(values: Floats, knots: Sequence[Fraction]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the four functions that may be above 0 at each value, and the index of the first.

    Requires: values between the outermost knots; knots whose floats increase.
    Promises: shape (4, values), never negative, of sum 1 but for rounding; each column a bitwise
    function of its value alone, on every machine. All operations are rounded as IEEE 754 says, in
    an order that is fixed.
    """
    inner = np.array([float(knot) for knot in knots])
    padded = np.concatenate([np.repeat(inner[0], DEGREE), inner, np.repeat(inner[-1], DEGREE)])
    # The piece that a value is in; the last one has its upper end, too.
    pieces = np.clip(np.searchsorted(inner, values, side="right") - 1, 0, len(inner) - 2)
    first = pieces.astype(np.int64)
    found = np.zeros((DEGREE + 1, len(values)))
    found[0] = 1.0
    for degree in range(1, DEGREE + 1):
        carried = np.zeros(len(values))
        for index in range(degree):
            right = padded[first + DEGREE + 1 + index]
            left = padded[first + DEGREE + 1 + index - degree]
            share = found[index] / (right - left)
            found[index] = carried + (right - values) * share
            carried = (values - left) * share
        found[degree] = carried
    return found, first
