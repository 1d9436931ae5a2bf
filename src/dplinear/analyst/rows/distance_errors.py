"""How the squared distance of two released rows spreads, where rows went through a projection.

With s the squared distance of two rows of cells, U the difference of their releases and σ² the
noise's variance in each of k numbers, D = |U|² − 2kσ² has mean s over the draws of P and of the
noise. Dhaliwal et al. 2019, Claims 6 and 7.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dplinear.analyst.noise_models.rows import NOISES, PROJECTIONS, ProjectedRows
from dplinear.arguments import choice, integer, positive
from dplinear.arrays import Floats
from dplinear.noise.simulation import Generator

_MANY = 1024  # cells from which on a sum of squares is drawn as the normal it nearly is


class Quadratic(NamedTuple):
    """Var D as a function of s: square·s² + linear·s + constant."""

    square: float
    linear: float
    constant: float

    def at(self, squared: Floats) -> Floats:
        """Return the variance where the squared distance is `squared`."""
        return np.asarray((self.square * squared + self.linear) * squared + self.constant)


class Parts(NamedTuple):
    """Draws of what |U|² is made of: |U|² = s·own + 2√s·cross + noise."""

    own: Floats
    cross: Floats
    noise: Floats


@dataclass(frozen=True)
class DistanceErrorModel:
    """What distances need of the law of projected rows; fields as in `ProjectedRows`."""

    noise: str
    k: int
    dimension: int
    variance: float
    projection: str

    def __post_init__(self) -> None:
        where = "DistanceErrorModel"
        choice(self.noise, "noise", where, NOISES)
        choice(self.projection, "projection", where, PROJECTIONS)
        integer(self.k, "k", where, low=1)
        integer(self.dimension, "dimension", where, low=1)
        positive(self.variance, "variance", where)

    @classmethod
    def of(cls, noise_model: ProjectedRows) -> "DistanceErrorModel":
        """Return the part of a release's law that distances need."""
        return cls(
            noise_model.noise,
            noise_model.k,
            noise_model.dimension,
            noise_model.variance,
            noise_model.projection,
        )

    @property
    def before(self) -> bool:
        """Whether the noise is on the cells, before the projection."""
        return self.noise.startswith("perturbed")

    @property
    def normal(self) -> bool:
        """Whether the noise is Gaussian rather than Laplace."""
        return self.noise.endswith("gaussian")

    @property
    def offset(self) -> float:
        """2kσ²: the mean of |U|² for two equal rows."""
        return 2 * self.k * self.variance

    @property
    def spread(self) -> float:
        """Var |uP|² of a unit vector u: at most, for signs, where it depends on the vector."""
        k, d = self.k, self.dimension
        if self.projection == "gaussian":
            return 2 / k
        if self.projection == "rademacher":
            # (2/k)(1 − Σ uᵢ⁴), and Σ uᵢ⁴ is at least 1/d.
            return 2 * (1 - 1 / d) / k
        return 2 * max(d - k, 0) / (k * (d + 2))

    @property
    def variances(self) -> Quadratic:
        """Var D, over P and the noise, for noise whose scale does not depend on P.

        |U|² = |aP|² + 2⟨aP, N⟩ + |N|², three uncorrelated terms. For Laplace noise the sum is
        spread·s² + 8σ²s + 14kσ⁴.
        Departs from the paper: Claim 7 has 4 for the 8, which is half the variance of its third
        term, and subtracts 2kσ², though a constant has no variance.
        """
        variance = self.variance
        if not self.before:
            # Var (n₁ − n₂)² = 2(kurtosis + 1)σ⁴; the kurtosis is 6 for Laplace noise, 3 for normal.
            fourth = 8.0 if self.normal else 14.0
            return Quadratic(self.spread, 8 * variance, fourth * self.k * variance**2)
        # N = MP, τ² = `cell`. Given Q = PPᵀ: Var 2aQM = 8τ²·aQ²aᵀ, and
        # Var MᵀQM = 8τ⁴ tr Q² + 6τ⁴ Σ Qᵢᵢ², the last for Laplace noise only.
        d, cell = self.dimension, self._cell
        square, own = self._gram_moments
        fourth = 8 * square + (0 if self.normal else 6 * own)
        return Quadratic(self.spread, 8 * cell * square, cell**2 * d * fourth)

    @property
    def _cell(self) -> float:
        """The variance of the noise on a cell, as far as the numbers' variance tells."""
        return self.k * self.variance / self.dimension

    @property
    def _gram_moments(self) -> tuple[float, float]:
        """E (Q²)ᵢᵢ and E Qᵢᵢ² of Q = PPᵀ."""
        k, d = self.k, self.dimension
        if self.projection == "gaussian":
            return (d + k + 1) / k, 1 + 2 / k
        if self.projection == "rademacher":
            return 1 + (d - 1) / k, 1.0
        return max(d / k, 1.0), 1 + self.spread

    def parts(self, count: int, generator: Generator) -> Parts:
        """Draw what |U|² is made of, for rows that differ in a random direction.

        Departs from the law: a sign projection is drawn as the normal one that it resembles where
        many cells differ.
        """
        first, second = self._directions(count, generator)
        if not self.before:
            noise = self.draw((count, self.k), generator) - self.draw((count, self.k), generator)
        else:
            length, along = self._perturbation(count, generator)
            across = np.sqrt(np.maximum(1 - along**2, 0))
            noise = length[:, None] * (along[:, None] * first + across[:, None] * second)
        return Parts((first**2).sum(1), (first * noise).sum(1), (noise**2).sum(1))

    def draw(self, shape: tuple[int, int], generator: Generator) -> Floats:
        """Draw the noise of rows; noise on cells as normal, which it nearly is once projected."""
        if self.normal or self.before:
            return generator.standard_normal(shape) * math.sqrt(self.variance)
        return generator.laplace(0, math.sqrt(self.variance / 2), shape)

    def _directions(self, count: int, generator: Generator) -> tuple[Floats, Floats]:
        """Draw the images uP and vP of two orthogonal unit vectors."""
        k, d = self.k, self.dimension
        first, second = generator.standard_normal((2, count, k))
        if self.projection != "orthonormal":
            return first / math.sqrt(k), second / math.sqrt(k)
        # The first k coordinates of two orthonormal vectors, of d coordinates or of k if d < k.
        hidden = _draw_hidden(max(d - k, 0), count, generator)
        one = np.concatenate([first, hidden[0]], axis=1)
        two = np.concatenate([second, hidden[1]], axis=1)
        one /= np.linalg.norm(one, axis=1, keepdims=True)
        two -= (two * one).sum(1, keepdims=True) * one
        two /= np.maximum(np.linalg.norm(two, axis=1, keepdims=True), 1e-300)
        stretch = math.sqrt(max(d / k, 1.0))
        return one[:, :k] * stretch, two[:, :k] * stretch

    def _perturbation(self, count: int, generator: Generator) -> tuple[Floats, Floats]:
        """Draw |M|, and the cosine between M and the direction in which the rows differ."""
        d = self.dimension
        if self.normal:
            square = 2 * generator.chisquare(d, count)
        elif d > _MANY:
            square = np.maximum(2 * d + math.sqrt(14 * d) * generator.standard_normal(count), 0)
        else:
            square = np.zeros(count)
            for _ in range(d):
                once, again = generator.laplace(0, math.sqrt(0.5), (2, count))
                square += (once - again) ** 2
        normal = generator.standard_normal(count)
        rest = generator.chisquare(d - 1, count) if d > 1 else np.zeros(count)
        return np.sqrt(self._cell * square), normal / np.sqrt(normal**2 + rest)


def _draw_hidden(size: int, count: int, generator: Generator) -> Floats:
    """Draw pairs of normal vectors of `size` coordinates; two stand for more, as Bartlett's do.

    Only their lengths and angle matter.
    """
    if size <= 2:
        return generator.standard_normal((2, count, size))
    pairs = np.zeros((2, count, 2))
    pairs[0, :, 0] = np.sqrt(generator.chisquare(size, count))
    pairs[1, :, 0] = generator.standard_normal(count)
    pairs[1, :, 1] = np.sqrt(generator.chisquare(size - 1, count))
    return pairs
