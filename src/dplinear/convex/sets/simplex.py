"""The probability simplex: mixtures."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.sets import checks, multiples, widths
from dplinear.convex.sets.contract import Atoms, ConvexSet, Width

_WHERE = "Simplex"


def nearest_on_simplex(point: Floats, size: float) -> Floats:
    """Return the nearest θ ≥ 0 with Σθⱼ = size: the point less a threshold, cut at zero.

    The threshold comes from one sort (Held, Wolfe and Crowder 1974).
    """
    # The largest coordinate is subtracted first, so that large points lose no digits.
    lowered = point - point.max()
    falling = np.sort(lowered)[::-1]
    thresholds = (np.cumsum(falling) - size) / np.arange(1, len(point) + 1)
    kept = int(np.flatnonzero(falling > thresholds)[-1])
    nearest = np.maximum(lowered - thresholds[kept], 0.0)
    return np.asarray(nearest * (size / nearest.sum()))


@dataclass(frozen=True)
class Simplex(ConvexSet):
    """All θ ≥ 0 with Σθⱼ = size.

    It does not contain the origin: a gauge of at most 1 does not put a point in it.
    """

    name: ClassVar[str] = "simplex"
    dimension: int
    size: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checks.dimension(self.dimension, _WHERE))
        object.__setattr__(self, "size", checks.size(self.size, "size", _WHERE))

    @property
    def radius(self) -> float:
        """The norm of a corner."""
        return self.size

    @property
    def diameter(self) -> float:
        """The distance of two corners."""
        return math.sqrt(2) * self.size if self.dimension > 1 else 0.0

    @property
    def atoms(self) -> Atoms:
        """The corners."""
        return Atoms(self.dimension, signed=False, size=self.size)

    def minimiser(self, direction: Floats) -> Floats:
        """Return the corner at the smallest coordinate."""
        corner = np.zeros(self.dimension)
        corner[int(direction.argmin())] = self.size
        return corner

    def gauge(self, point: Floats) -> float:
        """Return Σθⱼ/size where no coordinate is negative."""
        return self.gauge_moved(point, np.zeros(self.dimension))

    def gauge_moved(self, point: Floats, shift: Floats) -> float:
        """Return the τ that the sum asks for, if no coordinate of point − τ·shift is negative."""
        total, change = float(point.sum()), self.size + float(shift.sum())
        slack = multiples.SLACK * float(np.abs(point).sum())
        if abs(change) <= multiples.SLACK * (self.size + float(np.abs(shift).sum())):
            return math.inf if abs(total) > slack else multiples.least_linear(-shift, -point)
        multiple = total / change
        fits = multiple >= 0 and float((point - multiple * shift).min()) >= -slack
        return multiple if fits else math.inf

    def project(self, point: Floats) -> Floats:
        """Return the nearest point."""
        return nearest_on_simplex(point, self.size)

    def width(self) -> Width:
        """Return size·E max gⱼ."""
        return Width(self.size * widths.largest(self.dimension))

    def facts(self) -> Mapping[str, Any]:
        """Return its description."""
        return {"set": self.name, "dimension": self.dimension, "size": self.size}
