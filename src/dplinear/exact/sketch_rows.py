"""Rows of a Gaussian sketch of an exact matrix, rounded exactly: round(factor·Z·Lᵀ), Z normal.

Float64 settles nearly every cell, with a bound that is proved, and integers the others. Where it
would leave too many open, integers of one size settle all of them at once. The result is the same
(docs/exact-pass.md, "Certified roots").
"""

from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dplinear import arguments
from dplinear.arrays import BigIntegers, Floats
from dplinear.exact.products import product
from dplinear.exact.roots import Root, row_norms
from dplinear.noise.entropy import Entropy
from dplinear.noise.normals import Normals, normals
from dplinear.noise.reals import Reals, round_enclosure

PRECISION = 68  # normal numbers have the digits for it from the start
WIDE_PRECISION = 96
_HAIR = 2.0**-52  # outweighs the rounding of t − q, and products that are too small for float64
_UP = 1 + 2.0**-20  # outweighs the rounding of float64 norms of fewer than 2^30 numbers
_EXACT = 2.0**51  # up to here the distance of a float64 from an integer is exact
_LARGEST = 1000  # exponent of a number that float64 surely holds


def sketch_rows(
    root: Root, rows: int, factor: arguments.Real, *, entropy: Entropy | None = None
) -> BigIntegers:
    """Draw `rows` independent rows of the law N(0, root.matrix), and round them times `factor`.

    How many cells are left to integers depends on draw and matrix, and time may tell it.
    """
    where = "sketch_rows.sketch_rows"
    rows = arguments.integer(rows, "rows", where, low=1)
    scale = arguments.rational(factor, "factor", where)
    draws = normals(rows * len(root), entropy=entropy)
    return rows_of(root, draws, scale)


def rows_of(root: Root, draws: Normals, scale: Fraction) -> BigIntegers:
    """Return round(scale·Z·Lᵀ), Z made of `draws` row by row."""
    root.refine(PRECISION)
    size = len(root)
    if _exponent(root, scale) > _LARGEST:
        return wide_rows_of(root, draws, scale)
    with np.errstate(all="ignore"):  # what is not finite is not settled
        middle, error = float_cells(root, draws.floats().reshape(-1, size), scale)
        nearest = np.rint(middle)
        settled = (0.5 - np.abs(middle - nearest) > error) & (np.abs(middle) < _EXACT)
    if 4 * np.count_nonzero(settled) < 3 * settled.size:  # cells one by one would take longer
        return wide_rows_of(root, draws, scale)
    nearest[~settled] = 0
    found = nearest.astype(np.int64).astype(np.object_)
    found[~settled] = _exact_cells(root, draws, scale, ~settled, PRECISION)
    return found


def _exponent(root: Root, scale: Fraction) -> int:
    """Return e such that no row of scale·L is as long as 2^e."""
    above = scale.numerator.bit_length() + max(int(each).bit_length() for each in root.norms)
    return above - scale.denominator.bit_length() - root.precision + 1


def float_cells(root: Root, z: Floats, scale: Fraction) -> tuple[Floats, Floats]:
    """Return scale·Z·Lᵀ in float64, and a bound on its error, which may be infinite."""
    size = len(root)
    above, below = scale.numerator, scale.denominator << root.precision
    # Python divides integers to the nearest float64.
    factor = np.array([int(each) * above / below for each in root.factor.ravel()])
    factor = factor.reshape(size, size)
    lengths = np.sqrt(np.einsum("ij,ij->i", factor, factor)) * _UP
    z_lengths = np.sqrt(np.einsum("ij,ij->i", z, z)) * _UP + 2.0**-49 * size
    # The sum of products, the rounding of the factor and of this bound; the factor's own error;
    # the digits that z lacks. (Of numbers beyond 16, it lacks more.)
    relative = (size + 4) * 2.0**-53 + 1.5 * root.looseness
    per_row = (z_lengths * relative + 2.0**-49 * sqrt(size)) * _UP
    per_row[(np.abs(z) >= 16).any(axis=1)] = np.inf
    return z @ factor.T, per_row[:, None] * lengths[None, :] + _HAIR


def wide_rows_of(root: Root, draws: Reals, scale: Fraction) -> BigIntegers:
    """Return the same as `rows_of`, all cells by way of integers of one size."""
    root.refine(WIDE_PRECISION)
    known, size = root.precision, len(root)
    z = draws.integers(known).reshape(-1, size)
    # (k + θ)·(l + λ) = k·l + θ·l + (k + θ)·λ, with |θ| ≤ 1 in each cell.
    error = np.abs(root.factor).sum(axis=1) + np.multiply.outer(row_norms(z) + size, root.errors)
    unit = scale / (1 << 2 * known)
    found, undecided = round_enclosure(product(z, root.factor.T), error, unit)
    found[undecided] = _exact_cells(root, draws, scale, undecided, 2 * known)
    return found


def _exact_cells(
    root: Root, draws: Reals, scale: Fraction, undecided: NDArray[np.bool_], precision: int
) -> list[int]:
    """Return the marked cells, in their order, each with as many digits of its row as it takes."""
    size = len(root)
    cells = [(int(i), int(j)) for i, j in np.argwhere(undecided)]
    found: dict[tuple[int, int], int] = {}
    while len(found) < len(cells):
        root.refine(precision)
        known = root.precision
        unit = scale / (1 << 2 * known)
        for i, j in cells:
            if (i, j) in found:
                continue
            z = np.array([[draws.integer(i * size + c, known) for c in range(size)]], np.object_)
            row = root.factor[j]
            error = np.abs(row).sum() + (row_norms(z)[0] + size) * root.errors[j]
            cell, still = round_enclosure(z.dot(row), np.array([error], np.object_), unit)
            if not still[0]:
                found[i, j] = int(cell[0])
        precision = 2 * known
    return [found[cell] for cell in cells]
