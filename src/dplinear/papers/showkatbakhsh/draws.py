"""Least squares on protected tables, drawn at once from the table's Gram matrix.

What is released has n or n' rows of d + 1 columns, but its least-squares solution depends on few
numbers, whose joint law is known exactly: no n x d matrix of noise is made, and no projection.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from dplinear.arrays import Floats
from dplinear.noise import simulation


@dataclass(frozen=True, eq=False)
class Sums:
    """All that is needed of a table [X y]: its Gram matrix, and its number of rows.

    `sum_of_squares` is the paper's f²(X).
    """

    gram: Floats
    rows: int
    sum_of_squares: float

    @property
    def features(self) -> int:
        """The number of columns of X."""
        return len(self.gram) - 1

    def best(self) -> Floats:
        """Return θ*, least squares on the table itself."""
        return np.asarray(linalg.solve(self.gram[:-1, :-1], self.gram[:-1, -1], assume_a="pos"))

    def loss(self, coefficients: Floats) -> float:
        """Return g(θ) = ‖Xθ − y‖²."""
        ends = np.append(coefficients, -1.0)
        return float(ends @ self.gram @ ends)


@dataclass(frozen=True)
class Noise:
    """The variances of the noise in cells of X and of y."""

    features: float
    target: float


def draw_projected(
    sums: Sums, sketch_rows: int, noise: Noise, source: simulation.Generator
) -> Floats:
    """Draw least squares on n' rows of [SX + σN, Sy + τM].

    The rows are those of a Gaussian sketch of a table with further rows diag(σ, …, σ, τ). Least
    squares on a sketch of any table is its own solution θ plus ‖r‖·R⁻¹g/√χ²_{n'−d+1}, with r its
    residual, RᵀR the features' Gram matrix and g standard normal: sketches of r and of the
    features' span are independent, and no direction in that span is special.
    Requires: n' ≥ d.
    """
    d = sums.features
    factor = linalg.cholesky(sums.gram[:-1, :-1] + noise.features * np.eye(d), lower=False)
    centre = linalg.cho_solve((factor, False), sums.gram[:-1, -1])
    square = sums.loss(centre) + noise.features * float(centre @ centre) + noise.target
    scale = math.sqrt(square / source.chisquare(sketch_rows - d + 1))
    step = linalg.solve_triangular(factor, source.standard_normal(d))
    return np.asarray(centre + scale * step)


def draw_perturbed(sums: Sums, noise: Noise, source: simulation.Generator) -> Floats:
    """Draw least squares on [X + σN, y + τM].

    With [X y] = QR, noise within the span of Q adds to R, and noise beyond it has a Wishart Gram
    matrix of n − d − 1 degrees of freedom. Requires: n > d.
    """
    size = sums.features + 1
    scales = np.full(size, math.sqrt(noise.features))
    scales[-1] = math.sqrt(noise.target)
    within = linalg.cholesky(sums.gram, lower=False)
    within += scales * source.standard_normal((size, size))
    beyond = scales * beyond_span(size, sums.rows - size, source)
    gram = within.T @ within + beyond.T @ beyond
    return np.asarray(linalg.solve(gram[:-1, :-1], gram[:-1, -1], assume_a="pos"))


def beyond_span(columns: int, degrees: int, source: simulation.Generator) -> Floats:
    """Return a matrix whose Gram matrix is Wishart(I, degrees): normal rows, or Bartlett's few."""
    if degrees < columns:
        return source.standard_normal((degrees, columns))
    upper = np.triu(source.standard_normal((columns, columns)), 1)
    np.fill_diagonal(upper, np.sqrt(source.chisquare(degrees - np.arange(columns))))
    return upper
