"""What every set checks of its public arguments."""

import math
from typing import Any

import numpy as np

from dplinear.arguments import integer, positive, rejection, wrong_type
from dplinear.arrays import Floats


def dimension(value: Any, where: str) -> int:
    """Return a number of coordinates."""
    return integer(value, "dimension", where, low=1)


def size(value: Any, parameter: str, where: str) -> float:
    """Return a radius or another size."""
    return positive(value, parameter, where)


def numbers(
    value: Any,
    parameter: str,
    where: str,
    shape: tuple[int | None, ...],
) -> Floats:
    """Return an array of finite numbers as a copy that cannot be written to."""
    sides = " x ".join("any number" if side is None else str(side) for side in shape)
    rule = f"an array of finite numbers, {sides}"
    try:
        array = np.array(value, np.float64)
    except (TypeError, ValueError):
        raise wrong_type(parameter, where, rule, type(value)) from None
    fits = array.ndim == len(shape) and array.size > 0
    if not fits or any(
        want not in {None, got} for want, got in zip(shape, array.shape, strict=True)
    ):
        raise rejection(parameter, where, rule, f"an array of shape {array.shape}")
    if not math.isfinite(float(np.abs(array).sum())):
        raise rejection(parameter, where, rule, "numbers that are not, or too large")
    array.setflags(write=False)
    return array
