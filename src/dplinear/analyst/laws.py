"""What is known in public about the noise of a released matrix.

A law says how the released matrix spreads around the true second moments G, so that an analyst can
remove its mean, put error bars on what is computed from it, and draw it again in simulations.
All are in the cells' units, in which G is the sum of outer products of rows in [−1, 1]^d.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplinear.arguments import positive, real, rejection
from dplinear.noise.simulation import Generator

Matrix = NDArray[np.float64]


class Pivot(NamedTuple):
    """What is exact about regressions on a matrix whose noise is proportional to the matrix.

    The first-order variance times `factor` gives Student's t with `freedom` degrees, where the law
    adds no ridge; `harmless` is the mean square of the relative noise that this already allows for.
    """

    factor: float
    freedom: float
    harmless: float


class Law(ABC):
    """The law of a released matrix, given the true one.

    Requires: arrays of shape (..., d, d); `direction` symmetric.
    Promises: `unbiased` has mean G; `variance` is that of ⟨direction, unbiased⟩ = Σ aᵢⱼmᵢⱼ.
    """

    kind: ClassVar[str]

    @abstractmethod
    def unbiased(self, released: Matrix) -> Matrix:
        """Return the estimate of G whose mean is G; it need not be positive definite."""

    @abstractmethod
    def positive(self, released: Matrix) -> Matrix:
        """Return the released matrix on the scale of G, its mean not removed."""

    @abstractmethod
    def variance(self, direction: Matrix, gram: Matrix) -> Matrix:
        """Return the variance of ⟨direction, unbiased⟩ where the true matrix is `gram`."""

    @abstractmethod
    def sandwich(self, middle: Matrix, gram: Matrix) -> Matrix:
        """Return E[N·middle·N], N = unbiased − G, for a symmetric `middle`.

        With middle = vvᵀ it is the covariance matrix of N·v.
        """

    @abstractmethod
    def spread(self, gram: Matrix) -> float:
        """Return the expected spectral norm of unbiased − G, to a few per cent for d ≥ 5."""

    @abstractmethod
    def draw(self, gram: Matrix, generator: Generator) -> Matrix:
        """Draw released matrices for true ones, one for each, in a simulation."""

    def pivot(self, dimension: int, features: int) -> Pivot:  # noqa: ARG002 - additive noise
        """Return the pivot of a regression on so many of the matrix's columns."""
        return Pivot(factor=1.0, freedom=math.inf, harmless=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain JSON."""
        return {"kind": self.kind, **vars(self)}

    @staticmethod
    def from_dict(content: Any) -> "Law":  # noqa: ANN401 - whatever a file held
        """Build a law from what `to_dict` returned."""
        where = "Law.from_dict"
        if not isinstance(content, dict) or content.get("kind") not in LAWS:
            raise rejection("content", where, "a law of a known kind", content)
        fields = {name: value for name, value in content.items() if name != "kind"}
        kind = LAWS[content["kind"]]
        if set(fields) != {entry.name for entry in dataclasses.fields(kind)}:  # type: ignore[arg-type]
            raise rejection("content", where, f"the numbers of {kind.__name__}", content)
        return kind(**fields)


@dataclass(frozen=True)
class SymmetricGaussian(Law):
    """G plus symmetric normal noise with these variances on and off the diagonal."""

    diagonal: float
    off_diagonal: float
    kind: ClassVar[str] = "symmetric gaussian"

    def __post_init__(self) -> None:
        positive(self.diagonal, "diagonal", "SymmetricGaussian")
        positive(self.off_diagonal, "off_diagonal", "SymmetricGaussian")

    def unbiased(self, released: Matrix) -> Matrix:
        """Return the released matrix."""
        return released

    def positive(self, released: Matrix) -> Matrix:
        """Return the released matrix, which need not be positive definite."""
        return released

    def variance(self, direction: Matrix, gram: Matrix) -> Matrix:  # noqa: ARG002 - additive
        """Return Σ aᵢᵢ²·diagonal + 2·Σ_{i≠j} aᵢⱼ²·off_diagonal."""
        square = direction * direction
        diagonal = np.trace(square, axis1=-2, axis2=-1)
        rest = square.sum((-2, -1)) - diagonal
        return np.asarray(self.diagonal * diagonal + 2 * self.off_diagonal * rest)

    def sandwich(self, middle: Matrix, gram: Matrix) -> Matrix:  # noqa: ARG002 - additive
        """Return off_diagonal·(tr(C)·I + C) where the diagonal has twice that variance."""
        own = middle * np.eye(middle.shape[-1])
        rest = _isotropic(middle) - 2 * own
        return np.asarray(self.off_diagonal * rest + self.diagonal * own)

    def spread(self, gram: Matrix) -> float:
        """Return 2√(d·off_diagonal): the edge of the semicircle law."""
        return gaussian_norm(self.off_diagonal, gram.shape[-1])

    def draw(self, gram: Matrix, generator: Generator) -> Matrix:
        """Add fresh noise."""
        noise = np.tril(generator.standard_normal(gram.shape), -1) * math.sqrt(self.off_diagonal)
        noise += np.swapaxes(noise, -1, -2)
        where = np.arange(gram.shape[-1])
        drawn = generator.standard_normal(gram.shape[:-1]) * math.sqrt(self.diagonal)
        noise[..., where, where] = drawn
        return gram + noise


@dataclass(frozen=True)
class WishartNoise(Law):
    """G plus a Wishart(scale·I, degrees) matrix (scale is τ²)."""

    degrees: float
    scale: float
    kind: ClassVar[str] = "wishart noise"

    def __post_init__(self) -> None:
        positive(self.degrees, "degrees", "WishartNoise")
        positive(self.scale, "scale", "WishartNoise")

    def unbiased(self, released: Matrix) -> Matrix:
        """Return the matrix less the mean of the noise."""
        return np.asarray(released - self.degrees * self.scale * np.eye(released.shape[-1]))

    def positive(self, released: Matrix) -> Matrix:
        """Return the released matrix: positive definite."""
        return released

    def variance(self, direction: Matrix, gram: Matrix) -> Matrix:  # noqa: ARG002 - additive
        """Return 2·degrees·scale²·|a|²."""
        square = (direction * direction).sum((-2, -1))
        return np.asarray(2 * self.degrees * self.scale**2 * square)

    def sandwich(self, middle: Matrix, gram: Matrix) -> Matrix:  # noqa: ARG002 - additive
        """Return degrees·scale²·(tr(C)·I + C)."""
        return self.degrees * self.scale**2 * _isotropic(middle)

    def spread(self, gram: Matrix) -> float:
        """Return scale·(2√(degrees·d) + d): the edge of the Marchenko-Pastur law."""
        d = int(gram.shape[-1])
        return self.scale * (2 * math.sqrt(self.degrees * d) + d)

    def draw(self, gram: Matrix, generator: Generator) -> Matrix:
        """Add a fresh Wishart matrix."""
        half = _bartlett(gram.shape, self.degrees, generator)
        return gram + self.scale * (half @ np.swapaxes(half, -1, -2))


@dataclass(frozen=True)
class SketchLaw(Law):
    """SᵀS/rows, S a Gaussian sketch: Wishart(G + ridge·I, rows)/rows."""

    rows: float
    ridge: float
    kind: ClassVar[str] = "sketch"

    def __post_init__(self) -> None:
        positive(self.rows, "rows", "SketchLaw")
        real(self.ridge, "ridge", "SketchLaw", low=0)

    def unbiased(self, released: Matrix) -> Matrix:
        """Return the matrix less the ridge."""
        return np.asarray(released - self.ridge * np.eye(released.shape[-1]))

    def positive(self, released: Matrix) -> Matrix:
        """Return the released matrix: positive definite when rows ≥ d."""
        return released

    def variance(self, direction: Matrix, gram: Matrix) -> Matrix:
        """Return (2/rows)·tr(AHAH), H = G + ridge·I."""
        return _quadratic(direction, gram, self.ridge) * (2 / self.rows)

    def sandwich(self, middle: Matrix, gram: Matrix) -> Matrix:
        """Return (tr(CH)·H + HCH)/rows."""
        trace, outer = _weighted(middle, _ridged(gram, self.ridge))
        return (trace + outer) / self.rows

    def pivot(self, dimension: int, features: int) -> Pivot:  # noqa: ARG002 - of any dimension
        """Return that of least squares on the rows of the sketch."""
        freedom = self.rows - features
        factor = self.rows / freedom if freedom > 0 else math.inf
        return Pivot(factor, max(freedom, 0.0), (features + 1) / self.rows)

    def spread(self, gram: Matrix) -> float:
        """Return |H|·(2√(d/rows) + d/rows)."""
        aspect = int(gram.shape[-1]) / self.rows
        largest = float(np.linalg.eigvalsh(gram)[-1]) + self.ridge
        return largest * (2 * math.sqrt(aspect) + aspect)

    def draw(self, gram: Matrix, generator: Generator) -> Matrix:
        """Draw a Wishart matrix around G + ridge·I."""
        factor = np.linalg.cholesky(gram + self.ridge * np.eye(gram.shape[-1]))
        half = factor @ _bartlett(gram.shape, self.rows, generator)
        return np.asarray(half @ np.swapaxes(half, -1, -2) / self.rows)


@dataclass(frozen=True)
class InverseWishartLaw(Law):
    """M with M⁻¹ ~ Wishart((G + ridge·I)⁻¹, degrees), as drawn; its mean is H/(degrees − d − 1)."""

    degrees: float
    ridge: float
    kind: ClassVar[str] = "inverse wishart"

    def __post_init__(self) -> None:
        positive(self.degrees, "degrees", "InverseWishartLaw")
        real(self.ridge, "ridge", "InverseWishartLaw", low=0)

    def unbiased(self, released: Matrix) -> Matrix:
        """Return (degrees − d − 1)·M − ridge·I."""
        return np.asarray(self.positive(released) - self.ridge * np.eye(released.shape[-1]))

    def positive(self, released: Matrix) -> Matrix:
        """Return (degrees − d − 1)·M: positive definite."""
        return np.asarray(released * (self.degrees - released.shape[-1] - 1))

    def variance(self, direction: Matrix, gram: Matrix) -> Matrix:
        """Return the variance from the exact second moments of the inverse-Wishart law."""
        # With a = degrees − d: Var⟨A, M⟩(a−1)² = [2(a−1)·tr(AHAH) + 2·tr(AH)²]/(a(a−3)).
        a = self.degrees - gram.shape[-1]
        if a <= 3:
            return np.full(direction.shape[:-2], np.inf)
        trace = np.trace(direction @ _ridged(gram, self.ridge), axis1=-2, axis2=-1)
        square = _quadratic(direction, gram, self.ridge)
        return np.asarray((2 * (a - 1) * square + 2 * trace * trace) / (a * (a - 3)))

    def sandwich(self, middle: Matrix, gram: Matrix) -> Matrix:
        """Return [(a−1)·tr(CH)·H + (a+1)·HCH]/(a(a−3)), a = degrees − d."""
        a = self.degrees - gram.shape[-1]
        trace, outer = _weighted(middle, _ridged(gram, self.ridge))
        if a <= 3:
            return np.full(trace.shape, np.inf)
        return ((a - 1) * trace + (a + 1) * outer) / (a * (a - 3))

    def pivot(self, dimension: int, features: int) -> Pivot:
        """Return that of b = −Ωxy/Ωyy, Ω = M⁻¹, given Ωyy."""
        a = self.degrees - dimension
        if a <= 3:
            return Pivot(math.inf, 0.0, 0.0)
        factor = a * (a - 3) / ((a - 1) * (a + features))
        harmless = ((a - 1) * features + a + 1) / (a * (a - 3))
        return Pivot(factor, a + features, harmless)

    def spread(self, gram: Matrix) -> float:
        """Return |H| times the larger edge of the inverse Marchenko-Pastur law, less 1."""
        d = int(gram.shape[-1])
        largest = float(np.linalg.eigvalsh(gram)[-1]) + self.ridge
        edge = (self.degrees - d - 1) / (math.sqrt(self.degrees) - math.sqrt(d)) ** 2
        return largest * max(edge - 1, 0.0)

    def draw(self, gram: Matrix, generator: Generator) -> Matrix:
        """Draw an inverse-Wishart matrix around G + ridge·I."""
        factor = np.linalg.cholesky(_ridged(gram, self.ridge))
        triangle = _bartlett(gram.shape, self.degrees, generator)
        half = np.linalg.solve(triangle, np.swapaxes(factor, -1, -2))
        return np.asarray(np.swapaxes(half, -1, -2) @ half)


LAWS: dict[str, type[Law]] = {
    law.kind: law for law in (SymmetricGaussian, WishartNoise, SketchLaw, InverseWishartLaw)
}


def gaussian_norm(off_diagonal: float, dimension: int) -> float:
    """Return the expected spectral norm of symmetric Gaussian noise: 2√(d·variance)."""
    return 2 * math.sqrt(dimension * off_diagonal)


def _ridged(gram: Matrix, ridge: float) -> Matrix:
    return np.asarray(gram + ridge * np.eye(gram.shape[-1]))


def _isotropic(middle: Matrix) -> Matrix:
    """Return tr(C)·I + C."""
    trace = np.trace(middle, axis1=-2, axis2=-1)[..., None, None]
    return np.asarray(trace * np.eye(middle.shape[-1]) + middle)


def _weighted(middle: Matrix, ridged: Matrix) -> tuple[Matrix, Matrix]:
    """Return tr(CH)·H and HCH."""
    product = ridged @ middle
    trace = np.trace(product, axis1=-2, axis2=-1)[..., None, None]
    return np.asarray(trace * ridged), np.asarray(product @ ridged)


def _quadratic(direction: Matrix, gram: Matrix, ridge: float) -> Matrix:
    """Return tr(AHAH)."""
    product = direction @ _ridged(gram, ridge)
    return np.asarray(np.einsum("...ij,...ji->...", product, product))


def _bartlett(shape: tuple[int, ...], degrees: float, generator: Generator) -> Matrix:
    """Draw lower triangles A with A Aᵀ ~ Wishart(I, degrees), for simulation."""
    triangle = np.tril(generator.standard_normal(shape), -1)
    d = shape[-1]
    squares = generator.chisquare(degrees - np.arange(d), shape[:-1])
    triangle[..., np.arange(d), np.arange(d)] = np.sqrt(squares)
    return triangle
