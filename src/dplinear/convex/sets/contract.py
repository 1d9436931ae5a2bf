"""The contract of a constraint set: a compact convex set that a model is known to live in."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.sets import multiples, norms


@dataclass(frozen=True)
class Width:
    """A Gaussian width E sup ⟨g, θ⟩, g standard normal; `error` is 0, or that of a simulation."""

    value: float
    error: float = 0.0


@dataclass(frozen=True, eq=False)
class Atoms:
    """The finitely many extreme points of a set: ± each of them where `signed`.

    Atom k, and its opposite k + count where signed, is a column of `matrix` times `size`; `matrix`
    None stands for the identity.
    """

    count: int
    signed: bool
    size: float
    matrix: Floats | None = None

    @property
    def total(self) -> int:
        """How many there are, opposites counted."""
        return 2 * self.count if self.signed else self.count

    def scores(self, direction: Floats) -> Floats:
        """Return ⟨direction, atom⟩ for the first `count` atoms; their opposites have minus that."""
        inner = direction if self.matrix is None else direction @ self.matrix
        return np.asarray(inner * self.size)

    def lowest(self, direction: Floats) -> int:
        """Return the index of an atom that minimises ⟨direction, atom⟩."""
        scores = self.scores(direction)
        if not self.signed:
            return int(scores.argmin())
        best = int(np.abs(scores).argmax())
        return best + self.count if scores[best] > 0 else best

    def columns(self, indices: Sequence[int]) -> Floats:
        """Return the atoms of these indices, as columns."""
        positions = [index % self.count for index in indices]
        signs = np.array([-self.size if index >= self.count else self.size for index in indices])
        if self.matrix is not None:
            return np.asarray(self.matrix[:, positions] * signs)
        units = np.zeros((self.count, len(indices)))
        units[positions, range(len(indices))] = signs
        return units

    def mix(self, indices: Sequence[int], weights: Floats) -> Floats:
        """Return the sum of the atoms of these indices, times the weights."""
        if self.matrix is not None:
            return np.asarray(self.columns(indices) @ weights)
        signs = np.array([-self.size if index >= self.count else self.size for index in indices])
        positions = [index % self.count for index in indices]
        return np.bincount(positions, signs * weights, self.count).astype(np.float64)

    def unmix(self, point: Floats, most: int) -> tuple[list[int], Floats]:
        """Return the weightiest atoms that a point is mixed from, and weights that add up to 1.

        None at all where that is not plain to see: for atoms of a general matrix, or the origin.
        """
        sizes = np.abs(point)
        if self.matrix is not None or not sizes.any():
            return [], np.zeros(0)
        positions = np.flatnonzero(sizes)
        if len(positions) > most:
            positions = positions[np.argpartition(sizes[positions], -most)[-most:]]
        negative = self.signed & (point[positions] < 0)
        return (positions + self.count * negative).tolist(), sizes[positions] / sizes[
            positions
        ].sum()


class ConvexSet(ABC):
    """A compact convex set of R^dimension. Frozen, and public.

    `radius` is the largest norm in the set, `diameter` the largest distance. `atoms` are its
    extreme points where they are finitely many and can be listed, else None.
    """

    name: ClassVar[str]
    dimension: int

    @property
    @abstractmethod
    def radius(self) -> float:
        """The largest Euclidean norm of a point."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """The largest Euclidean distance of two points."""

    @property
    def atoms(self) -> Atoms | None:
        """The extreme points, if they can be listed."""
        return None

    @abstractmethod
    def minimiser(self, direction: Floats) -> Floats:
        """Return a point of the set that minimises ⟨direction, θ⟩."""

    @abstractmethod
    def gauge(self, point: Floats) -> float:
        """Return the least τ ≥ 0 with point ∈ τ·set; infinite if there is none."""

    def gauge_moved(self, point: Floats, shift: Floats) -> float:
        """Return the gauge of the set moved by `shift`: the least τ with point ∈ τ·(set + shift).

        As it stands here, for sets with the origin inside, whose gauge is finite.
        """
        return multiples.least_moved(self.gauge, point, shift)

    @abstractmethod
    def project(self, point: Floats) -> Floats:
        """Return the nearest point of the set."""

    def image_norm_bound(self, matrix: Floats) -> float:
        """Return an upper bound on ‖matrix·θ‖ over the set, rounding included."""
        atoms = self.atoms
        if atoms is None:
            return norms.product(norms.operator(matrix), self.radius)
        if atoms.matrix is None:
            return norms.product(norms.longest_column(matrix), atoms.size)
        return norms.product(norms.longest_image(matrix, atoms.matrix), atoms.size)

    @abstractmethod
    def width(self) -> Width:
        """Return the Gaussian width, exact or simulated."""

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Return what describes the set, for certificates and files: text and numbers."""
