"""What the rivals share: the protocol, the constant column, clipped rows and symmetric noise.

Every rival is a function `fit(rows, target, guarantee, generator)` that returns a `Line`. Cells of
`rows` and `target` lie in [-1, 1], which is public; nothing else about them is. Neighbours are
add_remove: one row more or less, so the number of rows is private.

The noise is that of the theorems, in floating point, from a seeded generator: fit to compare
errors, not to protect anyone.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dplinear.noise.simulation import Generator
from dplinear.privacy import Guarantee, calibrate

Array = np.ndarray[Any, np.dtype[np.float64]]

# By the convention of these benchmarks bounds are four standard deviations from the middle, so a
# cell is typically a quarter. A constant column of that size is an intercept at the price of one
# more column; one made of ones would use up the row norm.
CONSTANT = 0.25
TYPICAL = 0.25


@dataclass(frozen=True)
class Line:
    """A linear model in cells: intercept + row · coefficients."""

    intercept: float
    coefficients: Array


class Fit(Protocol):
    """How every method of the benchmark is called."""

    def __call__(
        self, rows: Array, target: Array, guarantee: Guarantee, generator: Generator, /
    ) -> Line:
        """Return the fitted model."""


def mu_of(guarantee: Guarantee) -> float:
    """Return the largest μ whose Gaussian profile keeps the guarantee."""
    return 1 / calibrate.gaussian(guarantee, 1.0)


def with_constant(rows: Array) -> Array:
    """Return the rows with the constant column in front."""
    wide = np.empty((len(rows), rows.shape[1] + 1))
    wide[:, 0] = CONSTANT
    wide[:, 1:] = rows
    return wide


def line(wide: Array) -> Line:
    """Return the model whose coefficients were fitted with the constant column in front."""
    return Line(float(wide[0]) * CONSTANT, wide[1:])


def largest_norm(columns: int) -> float:
    """Return the norm that no row of [-1, 1] cells with the constant column exceeds."""
    return math.sqrt(columns + CONSTANT**2)


def clipped(wide: Array, norm: float) -> Array:
    """Return the rows, those longer than `norm` scaled down to it."""
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    if lengths.size == 0 or float(lengths.max()) <= norm:
        return wide
    return np.asarray(wide * np.minimum(1.0, norm / lengths)[:, None])


def symmetric_noise(size: int, sigma: float, generator: Generator) -> Array:
    """Return symmetric Gaussian noise: σ on the diagonal, σ/√2 off it.

    So the density depends on the Frobenius norm alone, and a matrix of Frobenius sensitivity Δ is
    Δ/σ-GDP with it.
    """
    square = generator.standard_normal((size, size)) * sigma
    return np.asarray((square + square.T) / 2)


def ridge_solution(gram: Array, ridge: float, moments: Array) -> Array:
    """Return (gram₊ + ridge·I)⁻¹ moments, gram₊ without its negative part."""
    values, vectors = np.linalg.eigh(gram)
    lifted = np.maximum(values, 0.0) + ridge
    floor = 1e-12 * max(float(lifted.max()), 1e-300)
    scaled = np.where(lifted > floor, 1 / np.maximum(lifted, floor), 0.0)
    return np.asarray(vectors @ (scaled * (vectors.T @ moments)))
