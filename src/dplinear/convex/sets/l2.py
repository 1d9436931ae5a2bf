"""The L2 ball: models of bounded Euclidean norm."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.sets import checks, widths
from dplinear.convex.sets.contract import ConvexSet, Width

_WHERE = "L2Ball"


@dataclass(frozen=True)
class L2Ball(ConvexSet):
    """All θ with ‖θ‖ ≤ radius."""

    name: ClassVar[str] = "l2"
    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checks.dimension(self.dimension, _WHERE))
        object.__setattr__(self, "radius", checks.size(self.radius, "radius", _WHERE))

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2 * self.radius

    def minimiser(self, direction: Floats) -> Floats:
        """Return the point of the rim opposite to the direction; the centre if there is none."""
        largest = float(np.abs(direction).max())
        if largest == 0:
            return np.zeros(self.dimension)
        even = direction / largest
        return np.asarray(even * (-self.radius / float(np.linalg.norm(even))))

    def gauge(self, point: Floats) -> float:
        """Return ‖θ‖/radius."""
        return float(np.linalg.norm(point)) / self.radius

    def project(self, point: Floats) -> Floats:
        """Return the nearest point: the point itself, or shortened."""
        gauge = self.gauge(point)
        return point if gauge <= 1 else np.asarray(point / gauge)

    def width(self) -> Width:
        """Return radius·E‖g‖."""
        return Width(self.radius * widths.norm(self.dimension))

    def facts(self) -> Mapping[str, Any]:
        """Return its description."""
        return {"set": self.name, "dimension": self.dimension, "radius": self.radius}
