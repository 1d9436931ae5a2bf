"""Predicted errors over budgets, rows and columns, for a page that reads between them.

Between the nodes of the grid, the logarithm of the error is interpolated along the logarithms of
all three axes; the script in `templates/plan.js` does the same, from the same numbers.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.planner.facts import MOST_COLUMNS, Facts, amount_of
from dplinear.planner.plan import QUESTIONS, Plan, unit_of

AMOUNTS = (0.05, 0.15, 0.4, 1.0, 3.0, 8.0)
ROWS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = (2, 5, 15, 40, 100)
# Questions whose answers take a while to predict have fewer nodes.
SLOW = frozenset({"moments", "pca"})
FEW_AMOUNTS = (0.05, 0.5, 8.0)
FEW_ROWS = (300, 3_000, 30_000, 1_000_000)
FEW_COLUMNS = (2, 40)
STOPS = 60  # of a slider
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class ErrorGrid:
    """Errors at the nodes of three axes, of each mechanism; `floor` is that without privacy.

    Without a floor the error would be 0. Errors whose ratio is below `alike` are as good as equal;
    `trivial` is the error of an answer that needs no data, if there is one; mechanisms that are not
    `exact` are shown and never recommended.
    """

    unit: str
    amounts: tuple[float, ...]
    rows: tuple[float, ...]
    columns: tuple[float, ...]
    errors: Mapping[str, Floats]
    floor: Floats | None
    trivial: float | None
    alike: float
    exact: frozenset[str]

    @property
    def axes(self) -> tuple[tuple[float, ...], ...]:
        """The nodes of all three axes."""
        return self.amounts, self.rows, self.columns

    def error(self, name: str, amount: float, rows: float, columns: float) -> float:
        """Return the error of one mechanism at any place within the grid."""
        return self._between(self.errors[name], (amount, rows, columns))

    def least(self, amount: float, rows: float, columns: float) -> float:
        """Return the error without privacy."""
        return 0.0 if self.floor is None else self._between(self.floor, (amount, rows, columns))

    def best(self, amount: float, rows: float, columns: float) -> str:
        """Return the one to recommend: the least error, or the usual one where some are alike."""
        names = [name for name in self.errors if name in self.exact]
        found = {name: self.error(name, amount, rows, columns) for name in names}
        limit = self.alike * min(found.values())
        return next(name for name, error in found.items() if error <= limit)

    def _between(self, values: Floats, point: Sequence[float]) -> float:
        ends = [_ends(axis, value) for axis, value in zip(self.axes, point, strict=True)]
        total = 0.0
        for corner in product((0, 1), repeat=3):
            weight = math.prod(
                share if side else 1 - share for side, (_, share) in zip(corner, ends, strict=True)
            )
            if weight:
                at = tuple(low + side for side, (low, _) in zip(corner, ends, strict=True))
                total += weight * math.log(values[at])
        return math.exp(total)


def _ends(axis: Sequence[float], value: float) -> tuple[int, float]:
    """Return the node before a value, and how far it is towards the next; within the ends."""
    low = min(max(bisect_right(axis, value) - 1, 0), len(axis) - 2)
    share = math.log(value / axis[low]) / math.log(axis[low + 1] / axis[low])
    return low, min(max(share, 0.0), 1.0)


def error_grid(plan: Plan) -> ErrorGrid:
    """Return what the planner predicts around a plan, all that is assumed staying as it is.

    Promises: the plan's own budget, rows and columns are nodes, so that there nothing is
    interpolated.
    """
    given, question = plan.given, QUESTIONS[plan.learn]
    own, slow = amount_of(given.guarantee), plan.learn in SLOW
    usual = FEW_AMOUNTS if slow else AMOUNTS
    amounts = _with(usual if unit_of(given.guarantee) == "ε" else _around(own), own)
    rows = _with(FEW_ROWS if slow else ROWS, given.rows)
    tried = [
        each
        for each in (FEW_COLUMNS if slow else COLUMNS)
        if question.beyond(replace(given, columns=int(each))) is None
    ]
    columns = _with(tried, given.columns)
    names = [name for name in question.ways if name in {line.mechanism for line in plan.lines}]
    points = list(product(amounts, rows, columns))
    facts = [_move_facts(given, *point) for point in points]
    shape = (len(amounts), len(rows), len(columns))
    least = _short((question.floor(each) for each in facts), shape)
    errors = {
        name: _short((question.predict(name, each).error for each in facts), shape)
        for name in names
    }
    unit = unit_of(given.guarantee)
    floor = least if least.min() > 0 else None
    trivial, alike = question.trivial, question.alike
    exact = frozenset(line.mechanism for line in plan.lines if line.exact)
    return ErrorGrid(unit, amounts, rows, columns, errors, floor, trivial, alike, exact)


def _with(usual: Sequence[float], own: float) -> tuple[float, ...]:
    return tuple(sorted({*map(float, usual), float(own)}))


def _around(own: float) -> tuple[float, ...]:
    return tuple(float(f"{own * factor:.3g}") for factor in (0.05, 0.15, 0.4, 2.5, 6.0))


def _move_facts(given: Facts, amount: float, rows: float, columns: float) -> Facts:
    """Return the same facts at another place; a row's norm grows with the matrix's side."""
    features = min(int(columns), MOST_COLUMNS)
    dimension = given.dimension + features - given.columns
    return replace(
        given.under(amount).resize(int(rows)),
        columns=features,
        dimension=dimension,
        square=given.square * dimension / given.dimension,
        components=min(given.components, features),
    )


def _short(values: Iterable[float], shape: tuple[int, ...]) -> Floats:
    """Return numbers that are short on a page, which has the same ones."""
    return np.array([float(f"{value:.{_DIGITS}g}") for value in values]).reshape(shape)


def stops(axis: Sequence[float], own: float, *, whole: bool = False) -> tuple[float, ...]:
    """Return the values that a slider goes through: round ones, and the plan's own."""
    low, high = math.log(axis[0]), math.log(axis[-1])
    found = {float(own), axis[0], axis[-1]}
    for index in range(STOPS + 1):
        value = float(f"{math.exp(low + (high - low) * index / STOPS):.2g}")
        value = float(round(value)) if whole else value
        if axis[0] <= value <= axis[-1]:
            found.add(value)
    return tuple(sorted(found))


def plain(grid: ErrorGrid, plan: Plan) -> dict[str, Any]:
    """Return the grid, its sliders and where they stand, as plain values for a page."""
    given = plan.given
    own = (amount_of(given.guarantee), float(given.rows), float(given.columns))
    sliders = [
        stops(axis, value, whole=index > 0)
        for index, (axis, value) in enumerate(zip(grid.axes, own, strict=True))
    ]
    return {
        "unit": grid.unit,
        "axes": [list(axis) for axis in grid.axes],
        "stops": [list(each) for each in sliders],
        "start": [each.index(float(value)) for each, value in zip(sliders, own, strict=True)],
        "names": list(grid.errors),
        "errors": [values.ravel().tolist() for values in grid.errors.values()],
        "floor": None if grid.floor is None else grid.floor.ravel().tolist(),
        "trivial": grid.trivial,
        "alike": grid.alike,
        "exact": [name in grid.exact for name in grid.errors],
    }
