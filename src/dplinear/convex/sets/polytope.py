"""The polytope of given vertices: mixtures of known models."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linprog

from dplinear.arrays import Floats
from dplinear.convex.sets import checks
from dplinear.convex.sets.contract import Atoms, ConvexSet, Width
from dplinear.convex.sets.hull import nearest_mixture
from dplinear.noise.simulation import generator

_WHERE = "Polytope"
_TOLERANCE = 1e-12
_DRAWS = 10_000
_WORK = 2e9


@dataclass(frozen=True, eq=False)
class Polytope(ConvexSet):
    """The convex hull of the rows of `vertices`.

    Projections and gauges are found by algorithms that end, to about 1e-8 and 1e-9 of its size.
    """

    name: ClassVar[str] = "polytope"
    vertices: Floats
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        vertices = checks.numbers(self.vertices, "vertices", _WHERE, (None, None))
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "dimension", vertices.shape[1])

    @cached_property
    def radius(self) -> float:
        """The norm of the furthest vertex."""
        return float(np.linalg.norm(self.vertices, axis=1).max())

    @cached_property
    def diameter(self) -> float:
        """The largest distance of two vertices."""
        return max(
            float(np.linalg.norm(self.vertices[k:] - vertex, axis=1).max())
            for k, vertex in enumerate(self.vertices)
        )

    @property
    def atoms(self) -> Atoms:
        """The vertices."""
        return Atoms(len(self.vertices), signed=False, size=1.0, matrix=self.vertices.T)

    def minimiser(self, direction: Floats) -> Floats:
        """Return the vertex with the smallest inner product."""
        return np.array(self.vertices[int((self.vertices @ direction).argmin())])

    def gauge(self, point: Floats) -> float:
        """Return the least sum of weights λ ≥ 0 with Σλₖ·vertexₖ = point, by a linear program."""
        return self.gauge_moved(point, np.zeros(self.dimension))

    def gauge_moved(self, point: Floats, shift: Floats) -> float:
        """Return the gauge of the hull of the moved vertices."""
        size = float(np.abs(point).max())
        if size == 0:
            return 0.0
        vertices = self.vertices + shift
        unit = float(np.abs(vertices).max()) or 1.0
        found = linprog(
            np.ones(len(vertices)),
            A_eq=vertices.T / unit,
            b_eq=point / size,
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        return math.inf if found.fun is None else float(found.fun) * size / unit

    @cached_property
    def _flat(self) -> tuple[Floats, Atoms]:
        """A basis of the flat through the vertices, from the first, and their coordinates in it."""
        basis, coordinates = np.linalg.qr((self.vertices - self.vertices[0]).T)
        return basis, Atoms(len(self.vertices), signed=False, size=1.0, matrix=coordinates)

    def project(self, point: Floats) -> Floats:
        """Return the nearest point."""
        # In the flat's own coordinates, which are few where the vertices are.
        basis, atoms = self._flat
        tolerance = _TOLERANCE * self.radius
        cap = 1_000 + 10 * len(self.vertices)
        inner = (point - self.vertices[0]) @ basis
        mixture = nearest_mixture(atoms, inner, tolerance=tolerance, cap=cap)
        return self.atoms.mix(mixture.indices, mixture.weights)

    @cached_property
    def _width(self) -> Width:
        centred = self.vertices - self.vertices.mean(
            axis=0
        )  # the mean is the same, with less noise
        draws = int(min(max(_WORK / centred.size, 200), _DRAWS))
        seeded = generator(0)
        batch = max(1, int(4e6 / self.dimension))
        tops: list[Floats] = []
        for start in range(0, draws, batch):
            count = min(batch, draws - start)
            tops.append((centred @ seeded.standard_normal((self.dimension, count))).max(axis=0))
        largest = np.concatenate(tops)
        return Width(float(largest.mean()), float(largest.std(ddof=1)) / math.sqrt(draws))

    def width(self) -> Width:
        """Return the mean of the largest ⟨g, vertex⟩ over seeded draws, and its standard error."""
        return self._width

    def facts(self) -> Mapping[str, Any]:
        """Return its description; `digest` is the SHA-256 of the vertices, row by row."""
        digest = hashlib.sha256(self.vertices.astype("<f8").tobytes()).hexdigest()
        return {
            "set": self.name,
            "dimension": self.dimension,
            "vertices": len(self.vertices),
            "digest": digest,
        }
