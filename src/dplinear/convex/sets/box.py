"""The box: every coefficient between two bounds of its own."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dplinear.arguments import rejection
from dplinear.arrays import Floats
from dplinear.convex.sets import checks, multiples, norms
from dplinear.convex.sets.contract import ConvexSet, Width

_WHERE = "Box"


@dataclass(frozen=True, eq=False)
class Box(ConvexSet):
    """All θ with low ≤ θ ≤ high, coordinate by coordinate; one number for each coordinate."""

    name: ClassVar[str] = "box"
    low: Floats
    high: Floats
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        low = checks.numbers(self.low, "low", _WHERE, (None,))
        high = checks.numbers(self.high, "high", _WHERE, (len(low),))
        if (low > high).any():
            raise rejection("high", _WHERE, "at least `low` in every coordinate", self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "dimension", len(low))

    @property
    def radius(self) -> float:
        """The norm of the furthest corner."""
        return float(np.linalg.norm(np.maximum(np.abs(self.low), np.abs(self.high))))

    @property
    def diameter(self) -> float:
        """The length of the diagonal."""
        return float(np.linalg.norm(self.high - self.low))

    def minimiser(self, direction: Floats) -> Floats:
        """Return the corner opposite to the direction."""
        return np.where(direction > 0, self.low, self.high)

    def gauge(self, point: Floats) -> float:
        """Return the least τ with τ·low ≤ point ≤ τ·high."""
        return self.gauge_moved(point, np.zeros(self.dimension))

    def gauge_moved(self, point: Floats, shift: Floats) -> float:
        """Return the least τ with τ·(low + shift) ≤ point ≤ τ·(high + shift)."""
        slopes = np.concatenate([self.high + shift, -self.low - shift])
        return multiples.least_linear(slopes, np.concatenate([point, -point]))

    def project(self, point: Floats) -> Floats:
        """Return the nearest point."""
        return np.clip(point, self.low, self.high)

    def image_norm_bound(self, matrix: Floats) -> float:
        """Return an upper bound on ‖matrix·θ‖: its centre, and half its diagonal at most."""
        halves = norms.product(norms.operator(matrix), self.diameter / 2)
        return norms.product(norms.image(matrix, (self.low + self.high) / 2) + halves, 1.0)

    def width(self) -> Width:
        """Return Σ (high − low)/2·E|g|."""
        return Width(float((self.high - self.low).sum()) / 2 * math.sqrt(2 / math.pi))

    def facts(self) -> Mapping[str, Any]:
        """Return its description; `digest` is the SHA-256 of the bounds, low then high."""
        digest = hashlib.sha256(np.concatenate([self.low, self.high]).astype("<f8").tobytes())
        return {"set": self.name, "dimension": self.dimension, "digest": digest.hexdigest()}
