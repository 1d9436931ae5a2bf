"""The two forms of `release_model`, and which arguments go with which."""

from collections.abc import Mapping
from typing import Any

from dplinear.arguments import rejection
from dplinear.planner.auto import AUTO

_WHERE = "release_model"
# Arguments of models in a constraint set, and what they are where nobody gives them.
_CONSTRAINED: dict[str, Any] = {
    "row_norm": None,
    "target_bounds": None,
    "classes": None,
    "intercept_scaling": None,
    "projection": AUTO,
    "projected": False,
    "dimension": None,
    "seed": None,
    "clip": None,
    "lift": AUTO,
    "weight_bound": None,
}
# Private arrays, and what a schema has in their place.
_ARRAYS = {
    "groups": 'a schema names the column of ids: unit="patient".',
    "sample_weight": 'a schema names the column of weights: Schema(…, weight=("wght", 0, 20)).',
}
_OF_COLUMNS = ("schema", "features", "by")


def check_columns_form(given: Mapping[str, Any]) -> None:
    """Raise for an argument that belongs to models in a constraint set alone."""
    rule = "left out without a constraint"
    for name, hint in _ARRAYS.items():
        if given[name] is not None:
            raise rejection(name, _WHERE, rule, type(given[name]), hint)
    for name, usual in _CONSTRAINED.items():
        if not (given[name] is usual or (isinstance(usual, str) and _same(given[name], usual))):
            raise rejection(name, _WHERE, rule, given[name])


def check_rows_form(given: Mapping[str, Any]) -> None:
    """Raise for an argument that belongs to models of a schema's columns: it would be left aside.

    Labels may stand there by mistake: only their type is told.
    """
    for name in _OF_COLUMNS:
        if given[name] is not None:
            hint = "write release_model(X, target=y, row_norm=..., constraint=...)."
            rule = "left out where a constraint is given"
            raise rejection(name, _WHERE, rule, type(given[name]), hint)


def _same(value: object, text: str) -> bool:
    return isinstance(value, str) and value == text  # some objects mind being compared
