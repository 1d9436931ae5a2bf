"""Sets scaled and shifted: factor·C + shift."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dplinear.arguments import wrong_type
from dplinear.arrays import Floats
from dplinear.convex.sets import checks, norms
from dplinear.convex.sets.contract import Atoms, ConvexSet, Width

_WHERE = "Moved"
_LISTED = 1 << 22


@dataclass(frozen=True, eq=False)
class Moved(ConvexSet):
    """factor·base + shift; no shift where it is None.

    `gauge` is about the origin, wherever the set is: infinite for points that no multiple contains.
    """

    name: ClassVar[str] = "moved"
    base: ConvexSet
    factor: float = 1.0
    shift: Floats | None = None
    dimension: int = field(init=False)
    origin: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.base, ConvexSet):
            raise wrong_type("base", _WHERE, "a set such as L1Ball(dimension)", self.base)
        count = self.base.dimension
        shift = np.zeros(count) if self.shift is None else self.shift
        origin = checks.numbers(shift, "shift", _WHERE, (count,))
        object.__setattr__(self, "factor", checks.size(self.factor, "factor", _WHERE))
        object.__setattr__(self, "shift", origin if origin.any() else None)
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "dimension", count)

    def inward(self, point: Floats) -> Floats:
        """Return the point that is moved to this one."""
        return np.asarray((point - self.origin) / self.factor)

    def outward(self, point: Floats) -> Floats:
        """Return where a point is moved to."""
        return np.asarray(self.factor * point + self.origin)

    @property
    def radius(self) -> float:
        """An upper bound on the largest norm, exact where nothing is shifted."""
        return self.factor * self.base.radius + float(np.linalg.norm(self.origin))

    @property
    def diameter(self) -> float:
        """The base's, scaled."""
        return self.factor * self.base.diameter

    @property
    def atoms(self) -> Atoms | None:
        """The base's, moved, if that makes a list of moderate size."""
        atoms = self.base.atoms
        if atoms is None:
            return None
        if self.shift is None:
            return Atoms(atoms.count, atoms.signed, self.factor * atoms.size, atoms.matrix)
        if atoms.total * self.dimension > _LISTED:
            return None
        columns = atoms.columns(list(range(atoms.total)))
        listed = self.factor * columns + self.origin[:, None]
        return Atoms(atoms.total, signed=False, size=1.0, matrix=listed)

    def minimiser(self, direction: Floats) -> Floats:
        """Return the base's, moved."""
        return self.outward(self.base.minimiser(direction))

    def gauge(self, point: Floats) -> float:
        """Return the least τ ≥ 0 with point ∈ τ·set."""
        return self.base.gauge_moved(point, self.origin / self.factor) / self.factor

    def gauge_moved(self, point: Floats, shift: Floats) -> float:
        """Return the gauge after another shift."""
        return self.base.gauge_moved(point, (self.origin + shift) / self.factor) / self.factor

    def project(self, point: Floats) -> Floats:
        """Return the base's nearest point to where the point came from, moved."""
        return self.outward(self.base.project(self.inward(point)))

    def image_norm_bound(self, matrix: Floats) -> float:
        """Return an upper bound on ‖matrix·θ‖ over the set."""
        scaled = norms.product(self.base.image_norm_bound(matrix), self.factor)
        if self.shift is None:
            return scaled
        return norms.product(scaled + norms.image(matrix, self.origin), 1.0)

    def width(self) -> Width:
        """Return the base's, scaled: a shift adds nothing on average."""
        width = self.base.width()
        return Width(self.factor * width.value, self.factor * width.error)

    def facts(self) -> Mapping[str, Any]:
        """Return its description; `digest` is the SHA-256 of the shift, where there is one."""
        digest = hashlib.sha256(self.origin.astype("<f8").tobytes()).hexdigest()
        return {
            "set": self.name,
            "dimension": self.dimension,
            "factor": self.factor,
            "shift": "none" if self.shift is None else digest,
            "base": dict(self.base.facts()),
        }
