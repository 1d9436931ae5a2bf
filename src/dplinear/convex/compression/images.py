"""The image ΦC of a constraint set under a public projection: where compressed learning happens."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.compression.nearest import (
    Nearest,
    Stop,
    by_gradient,
    certify_nearest,
    in_ellipsoid,
)
from dplinear.convex.compression.nearest_groups import by_groups
from dplinear.convex.sets import Atoms, ConvexSet, GroupBall, L2Ball, Moved
from dplinear.convex.sets.hull import nearest_mixture
from dplinear.privacy.rounding import up

TOLERANCE = 1e-7
CAP = 4_000
_ROUNDING = 2.0**-49


class Map(Protocol):
    """A public linear map Φ from R^`source` to R^`target`.

    Both methods take a vector, or a matrix with a vector in each column.
    """

    @property
    def source(self) -> int:
        """The dimension of θ."""

    @property
    def target(self) -> int:
        """The dimension of Φθ."""

    def forward(self, vector: Floats) -> Floats:
        """Return Φθ."""

    def adjoint(self, vector: Floats) -> Floats:
        """Return Φᵀg."""


@dataclass(frozen=True, eq=False)
class Image:
    """ΦC; `map` None stands for C itself."""

    base: ConvexSet
    map: Map | None = None

    @property
    def dimension(self) -> int:
        """The dimension that it lies in."""
        return self.base.dimension if self.map is None else self.map.target

    def forward(self, source: Floats) -> Floats:
        """Return Φθ."""
        return source if self.map is None else self.map.forward(source)

    def adjoint(self, direction: Floats) -> Floats:
        """Return Φᵀg."""
        return direction if self.map is None else self.map.adjoint(direction)

    def minimiser(self, direction: Floats) -> Floats:
        """Return the θ of C whose Φθ minimises ⟨direction, Φθ⟩ over ΦC."""
        return self.base.minimiser(np.asarray(self.adjoint(direction)))

    @cached_property
    def matrix(self) -> Floats | None:
        """Φ itself, as numbers; None stands for the identity."""
        if self.map is None:
            return None
        rows = np.asarray(self.map.adjoint(np.eye(self.map.target)))
        return np.ascontiguousarray(rows.T)

    @cached_property
    def radius(self) -> float:
        """An upper bound on ‖ϑ‖ over ΦC, for this very Φ; rounding included."""
        if self.matrix is None:
            return up(self.base.radius, self.dimension + 8)
        return self.base.image_norm_bound(self.matrix)

    @cached_property
    def atoms(self) -> Atoms | None:
        """The images of the extreme points of C, if they can be listed; some may lie inside."""
        atoms = self.base.atoms
        if atoms is None or self.matrix is None:
            return atoms
        matrix = self.matrix if atoms.matrix is None else self.matrix @ atoms.matrix
        return Atoms(atoms.count, atoms.signed, atoms.size, matrix)

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """The eigenvalues of ΦΦᵀ, rising, and its eigenvectors."""
        if self.matrix is None:
            return np.ones(self.dimension), np.eye(self.dimension)
        values, vectors = np.linalg.eigh(self.matrix @ self.matrix.T)
        return np.maximum(values, 0.0), vectors

    def project(
        self,
        point: Floats,
        tolerance: float = TOLERANCE,
        *,
        near: Floats | None = None,
        cap: int = CAP,
    ) -> Nearest:
        """Return a point of ΦC near to the nearest one. It never raises.

        `near` is a θ of C to start from. It ends when the distance from the nearest point of all is
        proved to be at most tolerance·radius, or what rounding allows, or after `cap` steps; `gap`
        says what is proved.
        """
        if self.map is None:
            source = self.base.project(point)
            return Nearest(source, source, 0.0)
        base = self.base
        if isinstance(base, Moved):
            return self._nearest_in_moved(base, point, tolerance, near, cap)
        if isinstance(base, L2Ball):
            values, vectors = self.spectrum
            dual = in_ellipsoid(values, vectors, base.radius, point)
            return certify_nearest(self, base.project(np.asarray(self.adjoint(dual))), point)
        # A gap is a root of inner products, whose rounding no step can mend.
        rounding = _ROUNDING * self.radius * (self.radius + float(np.linalg.norm(point)))
        reach = max(tolerance * self.radius, rounding**0.5)
        if self.atoms is not None and base.atoms is not None:
            start = None if near is None else base.atoms.unmix(near, self.dimension)
            mixture = nearest_mixture(self.atoms, point, tolerance=reach, cap=cap, start=start)
            source = base.atoms.mix(mixture.indices, mixture.weights)
            return Nearest(np.asarray(self.forward(source)), source, mixture.gap, mixture.indices)
        first = base.minimiser(-np.asarray(self.adjoint(point))) if near is None else near
        if isinstance(base, GroupBall) and self.matrix is not None:
            return by_groups(base, self.matrix, point, first, Stop(reach, cap))
        steepest = float(self.spectrum[0][-1]) * (1 + 1e-9)
        return by_gradient(self, point, first, steepest, Stop(reach, cap))

    @cached_property
    def before(self) -> "Image":
        """The image of the set before it was moved, if it was."""
        if not isinstance(self.base, Moved):
            return self
        image = Image(self.base.base, self.map)
        # Φ is the same, and costs time to write out.
        object.__setattr__(image, "matrix", self.matrix)
        return image

    def _nearest_in_moved(
        self, base: Moved, point: Floats, tolerance: float, near: Floats | None, cap: int
    ) -> Nearest:
        """Return the nearest point of the image before the set was moved, moved."""
        origin = np.asarray(self.forward(base.origin))
        start = None if near is None else base.inward(near)
        found = self.before.project((point - origin) / base.factor, tolerance, near=start, cap=cap)
        source = base.outward(found.source)
        return Nearest(
            np.asarray(self.forward(source)), source, base.factor * found.gap, found.members
        )
