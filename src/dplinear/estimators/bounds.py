"""Public bounds, as estimators take them: one pair for all columns, or one pair for each."""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from dplinear.arguments import mistyped, real, rejection

Pair = tuple[Any, Any]  # two real numbers, kept as they came so that fractions stay exact


def read_bounds(bounds: Any, parameter: str, where: str) -> Pair | list[Pair]:
    """Return the pair for all columns, or the pairs for each, as far as no table need be seen."""
    hint = (
        f"write {parameter}=(low, high) for all columns, or a list with a pair for each. Bounds "
        "are public: they come from what is known about the columns, never from the rows."
    )
    rule = "a pair of numbers (low, high), or a list of such pairs"
    if bounds is None:
        raise mistyped(parameter, where, f"given, as {rule}", bounds, hint)
    listed = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    if not isinstance(listed, list | tuple) or not listed:
        raise mistyped(parameter, where, rule, bounds, hint)
    if all(isinstance(end, numbers.Real) for end in listed):
        return _pair(listed, parameter, where, hint)
    return [_pair(pair, parameter, where, hint) for pair in listed]


def _pair(pair: Any, parameter: str, where: str, hint: str) -> Pair:
    rule = "made of pairs (low, high) of finite numbers with low below high"
    if not isinstance(pair, list | tuple | np.ndarray) or len(pair) != 2:
        raise mistyped(parameter, where, rule, pair, hint)
    low, high = pair
    if real(low, parameter, where, hint=hint) >= real(high, parameter, where, hint=hint):
        raise rejection(parameter, where, rule, pair, hint)
    return low, high


def for_columns(
    bounds: Pair | list[Pair], names: Sequence[str], parameter: str, where: str
) -> dict[str, Pair]:
    """Return the bounds of each column, by name."""
    if not isinstance(bounds, list):
        return dict.fromkeys(names, bounds)
    if len(bounds) != len(names):
        rule = f"one pair, or {len(names)} pairs: one for each column"
        raise rejection(parameter, where, rule, f"{len(bounds)} pairs")
    return dict(zip(names, bounds, strict=True))
