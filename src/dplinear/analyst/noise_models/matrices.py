"""The noise models of released matrices: normal, Wishart and inverse-Wishart.

A law says how the released matrix spreads around the true second moments G, so that an analyst can
remove its mean, put error bars on what is computed from it, and draw it again in simulations.
All are in the cells' units, in which G is the sum of outer products of rows in [−1, 1]^d.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dplinear.analyst.noise_models.contract import (
    NOISE_MODELS,
    NoiseModel,
    Pivot,
    add_ridge,
    bartlett,
    isotropic,
    quadratic,
    size,
    weighted_products,
)
from dplinear.analyst.noise_models.noisy_rows import NoisyRows
from dplinear.analyst.noise_models.sketches import ProjectionNoise, SketchNoise
from dplinear.arguments import positive, real
from dplinear.arrays import Floats
from dplinear.noise.simulation import Generator

__all__ = [
    "NOISE_MODELS",
    "InverseWishartNoise",
    "NoiseModel",
    "NoisyRows",
    "Pivot",
    "ProjectionNoise",
    "SketchNoise",
    "SymmetricGaussian",
    "WishartNoise",
    "gaussian_norm",
]


@dataclass(frozen=True)
class SymmetricGaussian(NoiseModel):
    """G plus symmetric normal noise with these variances on and off the diagonal."""

    diagonal: float
    off_diagonal: float
    kind: ClassVar[str] = "symmetric gaussian"

    def __post_init__(self) -> None:
        positive(self.diagonal, "diagonal", "SymmetricGaussian")
        positive(self.off_diagonal, "off_diagonal", "SymmetricGaussian")

    def scaled(self, factor: float) -> "SymmetricGaussian":
        """Return the noise model of the matrix times a number above 0."""
        return SymmetricGaussian(factor**2 * self.diagonal, factor**2 * self.off_diagonal)

    def unbiased_estimate(self, released: Floats) -> Floats:
        """Return the released matrix."""
        return released

    def positive(self, released: Floats) -> Floats:
        """Return the released matrix, which need not be positive definite."""
        return released

    def variance(self, direction: Floats, gram: Floats) -> Floats:
        """Return Σ aᵢᵢ²·diagonal + 2·Σ_{i≠j} aᵢⱼ²·off_diagonal."""
        square = direction * direction
        diagonal = np.trace(square, axis1=-2, axis2=-1)
        rest = square.sum((-2, -1)) - diagonal
        return np.asarray(self.diagonal * diagonal + 2 * self.off_diagonal * rest)

    def sandwich(self, middle: Floats, gram: Floats) -> Floats:
        """Return off_diagonal·(tr(C)·I + C), with the diagonal's own variance in its place."""
        own = middle * np.eye(middle.shape[-1])
        rest = isotropic(middle) - 2 * own
        return np.asarray(self.off_diagonal * rest + self.diagonal * own)

    def spread(self, gram: Floats) -> float:
        """Return 2√(d·off_diagonal): the edge of the semicircle law."""
        return gaussian_norm(self.off_diagonal, gram.shape[-1])

    def draw(self, gram: Floats, generator: Generator) -> Floats:
        """Add fresh noise."""
        noise = np.tril(generator.standard_normal(gram.shape), -1) * math.sqrt(self.off_diagonal)
        noise += np.swapaxes(noise, -1, -2)
        where = np.arange(gram.shape[-1])
        drawn = generator.standard_normal(gram.shape[:-1]) * math.sqrt(self.diagonal)
        noise[..., where, where] = drawn
        return gram + noise


@dataclass(frozen=True)
class WishartNoise(NoiseModel):
    """G plus a Wishart(scale·I, degrees) matrix (scale is τ²)."""

    degrees: float
    scale: float
    kind: ClassVar[str] = "wishart noise"

    def __post_init__(self) -> None:
        positive(self.degrees, "degrees", "WishartNoise")
        positive(self.scale, "scale", "WishartNoise")

    def unbiased_estimate(self, released: Floats) -> Floats:
        """Return the matrix less the mean of the noise."""
        return np.asarray(released - self.degrees * self.scale * np.eye(released.shape[-1]))

    def positive(self, released: Floats) -> Floats:
        """Return the released matrix: positive definite."""
        return released

    def variance(self, direction: Floats, gram: Floats) -> Floats:
        """Return 2·degrees·scale²·|a|²."""
        square = (direction * direction).sum((-2, -1))
        return np.asarray(2 * self.degrees * self.scale**2 * square)

    def sandwich(self, middle: Floats, gram: Floats) -> Floats:
        """Return degrees·scale²·(tr(C)·I + C)."""
        return self.degrees * self.scale**2 * isotropic(middle)

    def spread(self, gram: Floats) -> float:
        """Return scale·(2√(degrees·d) + d): the edge of the Marchenko-Pastur law."""
        d = int(gram.shape[-1])
        return self.scale * (2 * math.sqrt(self.degrees * d) + d)

    def draw(self, gram: Floats, generator: Generator) -> Floats:
        """Add a fresh Wishart matrix."""
        half = bartlett(gram.shape, self.degrees, generator)
        return gram + self.scale * (half @ np.swapaxes(half, -1, -2))


@dataclass(frozen=True)
class InverseWishartNoise(NoiseModel):
    """M with M⁻¹ ~ Wishart((G + ridge·I)⁻¹, degrees), as drawn; its mean is H/(degrees − d − 1)."""

    degrees: float
    ridge: float
    kind: ClassVar[str] = "inverse wishart"

    def __post_init__(self) -> None:
        positive(self.degrees, "degrees", "InverseWishartNoise")
        real(self.ridge, "ridge", "InverseWishartNoise", low=0)

    def unbiased_estimate(self, released: Floats) -> Floats:
        """Return (degrees − d − 1)·M − ridge·I."""
        return np.asarray(self.positive(released) - self.ridge * np.eye(released.shape[-1]))

    def positive(self, released: Floats) -> Floats:
        """Return (degrees − d − 1)·M: positive definite."""
        return np.asarray(released * (self.degrees - released.shape[-1] - 1))

    def variance(self, direction: Floats, gram: Floats) -> Floats:
        """Return the variance from the exact second moments of the inverse-Wishart law."""
        # With a = degrees − d: Var⟨A, M⟩(a−1)² = [2(a−1)·tr(AHAH) + 2·tr(AH)²]/(a(a−3)).
        a = self.degrees - gram.shape[-1]
        if a <= 3:
            return np.full(direction.shape[:-2], np.inf)
        trace = np.trace(direction @ add_ridge(gram, self.ridge), axis1=-2, axis2=-1)
        square = quadratic(direction, add_ridge(gram, self.ridge))
        return np.asarray((2 * (a - 1) * square + 2 * trace * trace) / (a * (a - 3)))

    def sandwich(self, middle: Floats, gram: Floats) -> Floats:
        """Return [(a−1)·tr(CH)·H + (a+1)·HCH]/(a(a−3)), a = degrees − d."""
        a = self.degrees - gram.shape[-1]
        trace, outer = weighted_products(middle, add_ridge(gram, self.ridge))
        if a <= 3:
            return np.full(trace.shape, np.inf)
        return np.asarray(((a - 1) * trace + (a + 1) * outer) / (a * (a - 3)))

    def part(self, dimension: int, kept: Sequence[int]) -> "InverseWishartNoise":
        """Return the law with a degree less for each row and column left out."""
        return InverseWishartNoise(self.degrees - (dimension - len(kept)), self.ridge)

    def pivot(self, dimension: int, features: int) -> Pivot:
        """Return that of b = −Ωxy/Ωyy, Ω = M⁻¹, given Ωyy."""
        a = self.degrees - dimension
        if a <= 3:
            return Pivot(math.inf, 0.0, 0.0)
        factor = a * (a - 3) / ((a - 1) * (a + features))
        harmless = ((a - 1) * features + a + 1) / (a * (a - 3))
        return Pivot(factor, a + features, harmless)

    def spread(self, gram: Floats) -> float:
        """Return |H| times the larger edge of the inverse Marchenko-Pastur law, less 1.

        Both are taken for the block of the effective dimension tr(H)/|H|.
        """
        largest, effective = size(add_ridge(gram, self.ridge))
        a = self.degrees - int(gram.shape[-1])
        edge = (a - 1) / (math.sqrt(a + effective) - math.sqrt(effective)) ** 2
        return largest * max(edge - 1, 0.0)

    def draw(self, gram: Floats, generator: Generator) -> Floats:
        """Draw an inverse-Wishart matrix around G + ridge·I."""
        factor = np.linalg.cholesky(add_ridge(gram, self.ridge))
        triangle = bartlett(gram.shape, self.degrees, generator)
        half = np.linalg.solve(triangle, np.swapaxes(factor, -1, -2))
        return np.asarray(np.swapaxes(half, -1, -2) @ half)


def gaussian_norm(off_diagonal: float, dimension: int) -> float:
    """Return the expected spectral norm of symmetric Gaussian noise: 2√(d·variance)."""
    return 2 * math.sqrt(dimension * off_diagonal)
