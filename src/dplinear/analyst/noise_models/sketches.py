"""The noise models of sketches: noise that is proportional to the matrix, ridges included."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dplinear.analyst.noise_models.contract import (
    NoiseModel,
    Pivot,
    add_ridge,
    bartlett,
    quadratic,
    size,
    weighted_products,
)
from dplinear.arguments import positive, real, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.noise.simulation import Generator


@dataclass(frozen=True)
class ProportionalNoise(NoiseModel):
    """SᵀS/rows, the rows of S drawn from N(0, H): Wishart(H, rows)/rows, H = G + ridges."""

    rows: float

    @property
    @abstractmethod
    def ridges(self) -> Floats:
        """What is added to the diagonal of G: one number, or one for each feature."""

    def unbiased_estimate(self, released: Floats) -> Floats:
        """Return the matrix less the ridges."""
        return np.asarray(released - self.ridges * np.eye(released.shape[-1]))

    def positive(self, released: Floats) -> Floats:
        """Return the released matrix: positive definite when rows ≥ d."""
        return released

    def variance(self, direction: Floats, gram: Floats) -> Floats:
        """Return (2/rows)·tr(AHAH)."""
        return quadratic(direction, add_ridge(gram, self.ridges)) * (2 / self.rows)

    def sandwich(self, middle: Floats, gram: Floats) -> Floats:
        """Return (tr(CH)·H + HCH)/rows."""
        trace, outer = weighted_products(middle, add_ridge(gram, self.ridges))
        return (trace + outer) / self.rows

    def pivot(self, dimension: int, features: int) -> Pivot:
        """Return that of least squares on the rows of the sketch."""
        freedom = self.rows - features
        factor = self.rows / freedom if freedom > 0 else math.inf
        return Pivot(factor, max(freedom, 0.0), (features + 1) / self.rows)

    def spread(self, gram: Floats) -> float:
        """Return |H|·(2√(e/rows) + e/rows), e = tr(H)/|H| the effective dimension."""
        largest, effective = size(add_ridge(gram, self.ridges))
        aspect = effective / self.rows
        return largest * (2 * math.sqrt(aspect) + aspect)

    def draw(self, gram: Floats, generator: Generator) -> Floats:
        """Draw a Wishart matrix around H."""
        factor = np.linalg.cholesky(add_ridge(gram, self.ridges))
        half = factor @ bartlett(gram.shape, self.rows, generator)
        return np.asarray(half @ np.swapaxes(half, -1, -2) / self.rows)


@dataclass(frozen=True)
class SketchNoise(ProportionalNoise):
    """A Gaussian sketch with one ridge on all features: H = G + ridge·I."""

    ridge: float
    kind: ClassVar[str] = "sketch"

    def __post_init__(self) -> None:
        positive(self.rows, "rows", "SketchNoise")
        real(self.ridge, "ridge", "SketchNoise", low=0)

    @property
    def ridges(self) -> Floats:
        """The one ridge."""
        return np.asarray(self.ridge, np.float64)


@dataclass(frozen=True)
class ProjectionNoise(ProportionalNoise):
    """A sketch with a ridge for each feature, 0 for public ones; None where they are not public."""

    noise: tuple[float, ...] | None
    kind: ClassVar[str] = "projection"

    def __post_init__(self) -> None:
        where = "ProjectionNoise"
        positive(self.rows, "rows", where)
        if self.noise is None:
            return
        if not isinstance(self.noise, list | tuple):  # files hold lists
            raise wrong_type("noise", where, "a ridge for each feature, or None", self.noise)
        ridges = tuple(real(ridge, "noise", where, low=0) for ridge in self.noise)
        object.__setattr__(self, "noise", ridges)

    @property
    def known(self) -> bool:
        """Whether the ridges are public."""
        return self.noise is not None

    @property
    def dimension(self) -> int | None:
        """The number of ridges."""
        return None if self.noise is None else len(self.noise)

    @property
    def ridges(self) -> Floats:
        """The ridges, or an error where they are not public."""
        if self.noise is None:
            hint = "what is left is least squares on the rows as they are: release.regress(target)."
            raise rejection("noise", "ProjectionNoise", "public for this", "private noise", hint)
        return np.array(self.noise)

    def part(self, dimension: int, kept: Sequence[int]) -> "ProjectionNoise":
        """Return the law with the ridges of the features that are kept."""
        known = self.noise
        return self if known is None else ProjectionNoise(self.rows, tuple(known[i] for i in kept))

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain JSON."""
        noise = None if self.noise is None else list(self.noise)
        return {"kind": self.kind, "rows": self.rows, "noise": noise}
