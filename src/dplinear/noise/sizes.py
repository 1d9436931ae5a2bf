"""The `size` argument that all samplers share."""

from typing import Any

from dplinear import arguments


def shape(size: Any, where: str) -> tuple[int, ...]:
    """Return the shape that a size stands for: an integer, or a tuple of them."""
    sides = size if isinstance(size, tuple) else (size,)
    if all(type(side) is int and side >= 0 for side in sides):
        return sides
    return tuple(arguments.integer(side, "size", where, low=0) for side in sides)
