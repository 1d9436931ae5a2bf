"""The errors of a regression on tables that look like real ones: a law for each shape of target.

What privacy adds to the excess risk is a falling curve of x (`curves.abscissa`), as for tables of
normal rows; but more moves it: how much the best line explains, the bounds of the target, the
number of columns and how many of them are 0/1. Each moves x by a power, and the height by another.
`table` fits curve and powers to populations of `real_like`, and this looks them up: for descents
and CoinPress, which clip, a law for each shape of target; for noise on a whole matrix, one for all.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.descent.whitened import WhitenedDescent
from dplinear.planner.errors.curves import (
    PROPORTIONAL,
    WHOLE_MATRIX,
    Size,
    abscissa,
    far_bounds,
    sampling_error,
)
from dplinear.planner.real_like import TARGETS

COVARIATES = ("columns", "noise", "zero_one", "target_width", "even", "simulated")
NODES = np.arange(-1.5, 6.01, 0.5)  # of the decimal logarithm of x
TYPICAL_COLUMNS, TYPICAL_WIDTH, TYPICAL_SHARE = 10.0, 5.0, 0.5
_LEAST_NOISE = 1e-3
_MOST = 10.0  # that descents add: noise hides all, and their lines end next to flat
_SHARES, _WIDTHS = (0.1, 0.9), (1.5, 20.0)  # of 0/1 columns, and of bounds, that were simulated


@dataclass(frozen=True)
class Looks:
    """How a table looks: the shape of its target, and figures of it; None where not given."""

    target: str
    explained: float
    zero_one: float = TYPICAL_SHARE
    target_width: float | None = None


@dataclass(frozen=True)
class Law:
    """What one mechanism does to tables with one shape of target.

    `curve` is the decimal logarithm of what privacy adds, at `NODES`; `powers` move x and `heights`
    the curve, in the order of `COVARIATES`; `spread` is the standard deviation of a single table's
    logarithm.
    """

    curve: Floats
    powers: Floats
    heights: Floats
    spread: float

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Law":
        """Return a law of the table that the package carries."""
        curve, powers, heights = (
            np.asarray(content[name], float) for name in ("curve", "powers", "heights")
        )
        return cls(curve, powers, heights, float(content["spread"]))

    def added(self, x: float, moved: Floats) -> float:
        """Return what privacy adds at x; beyond the last node it goes on as there."""
        place = math.log10(x) - float(self.powers @ moved)
        value = float(np.interp(place, NODES, self.curve)) + float(self.heights @ moved)
        slope = float(self.curve[-1] - self.curve[-2]) / float(NODES[-1] - NODES[-2])
        return math.pow(10.0, value + slope * max(place - float(NODES[-1]), 0.0))


def is_whole(name: str) -> bool:
    """Say whether a mechanism's noise is on a whole matrix."""
    return name in WHOLE_MATRIX or name in PROPORTIONAL


def covariates(
    name: str, columns: float, looks: Looks, width: float, *, simulated: bool = False
) -> Floats:
    """Return what moves x, each of them 0 for a typical table.

    Noise of descents follows what the line leaves, that of whole matrices all of the target.
    Simulated tables are a little harder than real ones, which fits allow for.
    """
    whole = is_whole(name)
    noise = 1 / looks.explained - (0.0 if whole else 1.0)
    return np.array(
        [
            math.log10(columns / TYPICAL_COLUMNS),
            math.log10(max(noise, _LEAST_NOISE)),
            min(max(looks.zero_one, _SHARES[0]), _SHARES[1]) - TYPICAL_SHARE,
            math.log10(min(max(width, _WIDTHS[0]), _WIDTHS[1]) / TYPICAL_WIDTH),
            float(looks.target == TARGETS[0]),
            float(simulated),
        ]
    )


class RealLikeTable:
    """Laws by mechanism and shape of target, and how far their simulations reached."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.targets: tuple[str, ...] = tuple(content["targets"])
        self.widths: dict[str, float] = content["widths"]
        self.most_columns: int = content["most_columns"]
        self.most_x: float = content["most_x"]
        self._factors: dict[str, float] = content["factors"]
        self._laws = {
            name: {target: Law.of(each) for target, each in found.items()}
            for name, found in content["laws"].items()
        }

    def floor(self, size: Size, looks: Looks) -> float:
        """Return the median excess risk of least squares; uneven errors move it by a factor."""
        rows = size.rows if size.sample is None else size.sample
        factor = self._factors[looks.target]
        return sampling_error(rows, size.columns, looks.explained, factor)

    def find(self, name: str, size: Size, looks: Looks) -> tuple[float, float]:
        """Return the median excess risk of a mechanism, and the spread of its logarithm."""
        law = self._laws[name][looks.target]
        width = looks.target_width or self.widths[looks.target]
        moved = covariates(name, size.columns, looks, width)
        added = law.added(abscissa(name, size), moved)
        if not is_whole(name):
            added = min(added, _MOST)
        if name == WhitenedDescent.name:
            added += far_bounds(size)
        return self.floor(size, looks) + added, law.spread
