"""Wishart and inverse-Wishart matrices and Gaussian sketches of exact matrices, rounded exactly.

What is returned is the rounding ⌊t + 1/2⌋ of an ideal real matrix, cell by cell, for a public scale
(docs/exact-pass.md, "Certified roots"). Precision grows until every cell is settled: without a
limit, and without ever drawing a bit again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dplinear import arguments
from dplinear.arrays import BigIntegers
from dplinear.exact.products import product, square
from dplinear.exact.roots import Root, inverse_triangle, norm, row_norms
from dplinear.noise.bartlett import Bartlett
from dplinear.noise.entropy import Entropy
from dplinear.noise.reals import round_enclosure

_GUARD = 56  # bits beyond the unit of the result: of 100 columns, one in 10^12 needs more
PRECISION = 128  # where roots of private matrices start, whatever is in them


@dataclass(frozen=True, eq=False)
class _Half:
    """A real matrix T: T·2^precision is within errors[i] of rows[i], in every row."""

    rows: BigIntegers
    errors: BigIntegers
    precision: int


def wishart_integers(
    dimension: int,
    degrees: int | Fraction,
    factor: arguments.Real,
    *,
    entropy: Entropy | None = None,
) -> BigIntegers:
    """Draw round(factor·W) with W of the law Wishart(I, degrees).

    Requires: degrees of at least `dimension`.
    Promises: symmetric, and a function of nothing but these arguments and the bits.
    """
    scale = arguments.rational(factor, "factor", "gaussian_draws.wishart_integers")
    triangle = Bartlett(dimension, degrees, entropy=entropy)
    return wishart_of(triangle, scale)


def wishart_of(triangle: Bartlett, scale: Fraction) -> BigIntegers:
    """Return round(scale·A·Aᵀ) for a triangle A."""
    size = triangle.dimension
    length = int(triangle.degrees + size).bit_length() // 2 + size.bit_length()
    precision = int(scale).bit_length() + length + _GUARD

    def half(precision: int) -> _Half:
        # Rows have at most `size` cells, each of them known within 1.
        errors = np.full(size, size, np.object_)
        return _Half(triangle.integers(precision), errors, precision)

    return _rounded_square(half, scale, precision)


def sketch_matrix(
    root: Root, degrees: int | Fraction, factor: arguments.Real, *, entropy: Entropy | None = None
) -> BigIntegers:
    """Draw round(factor·W) with W of the law Wishart(root.matrix, degrees): L·A·Aᵀ·Lᵀ.

    It is RᵀR for a Gaussian sketch R of `degrees` rows.
    """
    scale = arguments.rational(factor, "factor", "gaussian_draws.sketch_matrix")
    return sketch_matrix_of(root, Bartlett(len(root), degrees, entropy=entropy), scale)


def sketch_matrix_of(root: Root, triangle: Bartlett, scale: Fraction) -> BigIntegers:
    """Return round(scale·L·A·Aᵀ·Lᵀ) for a triangle A."""

    def half(precision: int) -> _Half:
        root.refine(precision)
        return _times(root, triangle.integers(root.precision), len(root))

    return _rounded_square(half, scale, PRECISION)


def inverse_wishart(
    root: Root, degrees: int | Fraction, factor: arguments.Real, *, entropy: Entropy | None = None
) -> BigIntegers:
    """Draw round(factor·M) with M⁻¹ of the law Wishart(root.matrix⁻¹, degrees): L·A⁻ᵀ·A⁻¹·Lᵀ."""
    scale = arguments.rational(factor, "factor", "gaussian_draws.inverse_wishart")
    return inverse_wishart_of(root, Bartlett(len(root), degrees, entropy=entropy), scale)


def inverse_wishart_of(root: Root, triangle: Bartlett, scale: Fraction) -> BigIntegers:
    """Return round(scale·L·A⁻ᵀ·A⁻¹·Lᵀ) for a triangle A."""

    def half(precision: int) -> _Half | None:
        root.refine(precision)
        known = root.precision
        found = inverse_triangle(triangle.integers(known), known, len(root))
        return None if found is None else _times(root, found[0].T, found[1])

    return _rounded_square(half, scale, PRECISION)


def _times(root: Root, right: BigIntegers, error: int) -> _Half:
    """Return L·B, for a matrix B with B·2^precision within `error` of `right`."""
    # (l + λ)·(B + Θ) = l·B + λ·(B + Θ) + l·Θ; rounding down moves a row by less than its length.
    rows = product(root.factor, right) >> root.precision
    moved = root.errors * (norm(right) + error) + root.norms * error
    return _Half(rows, -(-moved >> root.precision) + len(root), root.precision)


def _rounded_square(
    half: Callable[[int], _Half | None], scale: Fraction, precision: int
) -> BigIntegers:
    """Return round(scale·T·Tᵀ), for a matrix T that can be had to any precision."""
    while True:
        found = half(precision)
        if found is not None:
            lengths, errors, full = row_norms(found.rows), found.errors, square(found.rows)
            i, j = np.tril_indices(len(full))
            reach = errors[i] * (lengths[j] + errors[j]) + errors[j] * lengths[i]
            unit = scale / (1 << 2 * found.precision)
            rounded, undecided = round_enclosure(full[i, j], reach, unit)
            if not undecided.any():
                full[i, j] = full[j, i] = rounded
                return full
            precision = found.precision
        precision *= 2
