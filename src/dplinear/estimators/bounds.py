"""Public bounds, as estimators take them: one pair for all columns, or one for each, or by name."""

import numbers
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dplinear.arguments import ArgumentError, describe, listed, meant, real, rejection, wrong_type

Pair = tuple[Any, Any]  # two real numbers, kept as they came so that fractions stay exact
Bounds = Pair | list[Pair] | dict[str, Pair]


def read_bounds(bounds: Any, where: str) -> Bounds:
    """Return the bounds of the columns of X, as far as no table need be seen.

    They are those of a target, or a mapping of the names of a data frame's columns to pairs.
    """
    if not isinstance(bounds, Mapping):
        return read_target_bounds(bounds, where, "bounds")
    hint = 'write bounds={"age": (0, 100), ...}, with a pair for each column.'
    if not bounds or not all(isinstance(name, str) for name in bounds):
        raise wrong_type("bounds", where, "a mapping of columns' names to pairs", bounds, hint)
    return {name: _pair(pair, "bounds", where, hint) for name, pair in bounds.items()}


def read_target_bounds(
    bounds: Any, where: str, parameter: str = "target_bounds"
) -> Pair | list[Pair]:
    """Return the pair for all targets, or the pairs for each."""
    hint = (
        f"write {parameter}=(low, high) for all columns, or a list with a pair for each. Bounds "
        "are public: they come from what is known about the columns, never from the rows."
    )
    rule = "a pair of numbers (low, high), or a list of such pairs"
    if bounds is None:
        raise wrong_type(parameter, where, f"given, as {rule}", bounds, hint)
    if isinstance(bounds, np.ndarray):
        found = _of_array(bounds, where, parameter)
        if found is None:  # an array may be one of rows, of which no error shows a number
            raise wrong_type(parameter, where, rule, bounds, hint)
        return found
    if not isinstance(bounds, list | tuple) or not bounds:
        raise wrong_type(parameter, where, rule, bounds, hint)
    if all(isinstance(end, numbers.Real) for end in bounds):
        return _pair(bounds, parameter, where, hint)
    return [_pair(pair, parameter, where, hint) for pair in bounds]


def _of_array(bounds: Any, where: str, parameter: str) -> Pair | list[Pair] | None:
    with suppress(ArgumentError):
        return read_target_bounds(bounds.tolist(), where, parameter)
    return None


def _pair(pair: Any, parameter: str, where: str, hint: str) -> Pair:
    rule = "made of pairs (low, high) of finite numbers with low below high"
    if not isinstance(pair, list | tuple | np.ndarray) or len(pair) != 2:
        raise wrong_type(parameter, where, rule, pair, hint)
    low, high = pair
    if real(low, parameter, where, hint=hint) >= real(high, parameter, where, hint=hint):
        raise rejection(parameter, where, rule, pair, hint)
    return low, high


def by_index(bounds: Bounds, frame_names: Sequence[str] | None, where: str) -> Pair | list[Pair]:
    """Return bounds that were given by name as a pair for each column, in the frame's order.

    Requires: the names of the frame's own columns, or None for a table whose columns have none.
    """
    if not isinstance(bounds, dict):
        return bounds
    if frame_names is None:
        rule = "a pair, or a list of pairs, where X is no data frame"
        hint = "the columns of an array have no names: write the pairs in their order."
        raise rejection("bounds", where, rule, "pairs by name", hint)
    missing = [str(name) for name in frame_names if name not in bounds]
    if missing:
        rule = "a mapping that has every column of X"
        given = [str(name) for name in bounds if name not in set(frame_names)]
        got = f"no bounds for {listed(map(describe, missing))}"
        raise ArgumentError("bounds", where, rule, got, meant(missing[0], given))
    unknown = [name for name in bounds if name not in set(frame_names)]
    if unknown:
        rule = "a mapping of the columns of X"
        hint = f"X has the columns {listed(frame_names)}."
        raise rejection("bounds", where, rule, ", ".join(unknown), hint)
    return [bounds[name] for name in frame_names]


def columns_of(bounds: Bounds) -> int | None:
    """Return the public number of columns; None where one pair stands for all of them."""
    return len(bounds) if isinstance(bounds, list | dict) else None


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
