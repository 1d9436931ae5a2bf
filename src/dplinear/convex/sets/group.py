"""The group-L1 ball: models of few groups of coefficients."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dplinear.arguments import wrong_type
from dplinear.arrays import Floats, Indices
from dplinear.convex.sets import checks, norms, widths
from dplinear.convex.sets.contract import ConvexSet, Width
from dplinear.convex.sets.simplex import nearest_on_simplex

_WHERE = "GroupBall"


@dataclass(frozen=True, eq=False)
class GroupBall(ConvexSet):
    """All θ whose groups have norms that add up to `radius` at most.

    `groups` has an integer for each coordinate: the group it belongs to.
    """

    name: ClassVar[str] = "group_l1"
    groups: Indices
    radius: float = 1.0
    dimension: int = field(init=False)
    sizes: Indices = field(init=False, repr=False)

    def __post_init__(self) -> None:
        labels = np.array(self.groups)
        if labels.ndim != 1 or not len(labels) or labels.dtype.kind not in "iu":
            rule = "a list of integers, one for each coordinate"
            raise wrong_type("groups", _WHERE, rule, self.groups)
        _, groups, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        groups.setflags(write=False)
        sizes.setflags(write=False)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "dimension", len(groups))
        object.__setattr__(self, "radius", checks.size(self.radius, "radius", _WHERE))

    def group_norms(self, point: Floats) -> Floats:
        """Return the norm of each group."""
        largest = float(np.abs(point).max()) or 1.0
        return np.asarray(largest * np.sqrt(np.bincount(self.groups, (point / largest) ** 2)))

    @property
    def diameter(self) -> float:
        """The distance of two opposite points."""
        return 2 * self.radius

    def minimiser(self, direction: Floats) -> Floats:
        """Return the point in the group of the largest norm, opposite to the direction."""
        lengths = self.group_norms(direction)
        largest = int(lengths.argmax())
        if lengths[largest] == 0:
            return np.zeros(self.dimension)
        inside = self.groups == largest
        return np.where(inside, direction * (-self.radius / lengths[largest]), 0.0)

    def gauge(self, point: Floats) -> float:
        """Return the sum of the groups' norms, over the radius."""
        return float(self.group_norms(point).sum()) / self.radius

    def project(self, point: Floats) -> Floats:
        """Return the nearest point: the groups' norms, projected onto a simplex."""
        lengths = self.group_norms(point)
        if float(lengths.sum()) <= self.radius:
            return point
        shares = nearest_on_simplex(lengths, self.radius) / np.where(lengths > 0, lengths, 1.0)
        return np.asarray(point * shares[self.groups])

    def image_norm_bound(self, matrix: Floats) -> float:
        """Return an upper bound on ‖matrix·θ‖: that of the group which is stretched most."""
        order = np.argsort(self.groups, kind="stable")
        parts = np.split(matrix[:, order], np.cumsum(self.sizes)[:-1], axis=1)
        return norms.product(max(norms.operator(part) for part in parts), self.radius)

    def width(self) -> Width:
        """Return radius·E max ‖g‖ over the groups."""
        sizes, counts = np.unique(self.sizes, return_counts=True)
        mean = widths.largest_norm(sizes.astype(np.float64), counts.astype(np.float64))
        return Width(self.radius * mean)

    def facts(self) -> Mapping[str, Any]:
        """Return its description; `digest` is the SHA-256 of the groups' numbers."""
        digest = hashlib.sha256(self.groups.astype("<i8").tobytes()).hexdigest()
        return {
            "set": self.name,
            "dimension": self.dimension,
            "radius": self.radius,
            "groups": len(self.sizes),
            "digest": digest,
        }
