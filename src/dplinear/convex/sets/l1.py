"""The L1 ball: sparse models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.sets import checks, widths
from dplinear.convex.sets.contract import Atoms, ConvexSet, Width
from dplinear.convex.sets.simplex import nearest_on_simplex

_WHERE = "L1Ball"


@dataclass(frozen=True)
class L1Ball(ConvexSet):
    """All θ with Σ|θⱼ| ≤ radius."""

    name: ClassVar[str] = "l1"
    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checks.dimension(self.dimension, _WHERE))
        object.__setattr__(self, "radius", checks.size(self.radius, "radius", _WHERE))

    @property
    def diameter(self) -> float:
        """The distance of two opposite corners."""
        return 2 * self.radius

    @property
    def atoms(self) -> Atoms:
        """The corners, plus and minus."""
        return Atoms(self.dimension, signed=True, size=self.radius)

    def minimiser(self, direction: Floats) -> Floats:
        """Return the corner at the largest coordinate, opposite in sign."""
        corner = np.zeros(self.dimension)
        largest = int(np.abs(direction).argmax())
        corner[largest] = -self.radius if direction[largest] > 0 else self.radius
        return corner

    def gauge(self, point: Floats) -> float:
        """Return Σ|θⱼ|/radius."""
        return float(np.abs(point).sum()) / self.radius

    def project(self, point: Floats) -> Floats:
        """Return the nearest point: the coordinates' sizes, projected onto a simplex."""
        sizes = np.abs(point)
        if float(sizes.sum()) <= self.radius:
            return point
        return np.asarray(np.sign(point) * nearest_on_simplex(sizes, self.radius))

    def width(self) -> Width:
        """Return radius·E max |gⱼ|."""
        return Width(self.radius * widths.largest_magnitude(self.dimension))

    def facts(self) -> Mapping[str, Any]:
        """Return its description."""
        return {"set": self.name, "dimension": self.dimension, "radius": self.radius}
