"""Integers held in float64: public matrices of few enough bits, rows of a verified norm.

docs/exact-pass.md, "Other sums", has the proofs.
"""

import threading
from collections.abc import Callable
from math import frexp, prod

import numpy as np

from dplinear.arrays import Floats, Indices

EXACT = 53  # every integer of at most 2^53 is a float64

_MARGIN = 2.0  # rounding moves a length by about a third, so that few columns are too long again
FARTHEST = 2.0**100  # the most that an entry is taken for
_FEW = 2  # columns that a row of a sparse matrix uses: a feature, and the constant to centre it
_MOST_HELD = 2**21  # numbers in a thread's hands between calls, for each role: 16 MiB
_memory = threading.local()


def quantise(matrix: Floats, exponent: int) -> tuple[Floats, int]:
    """Round a public matrix to integers that multiply integer rows exactly.

    Requires: finite entries, not all zero; rows to multiply of integer norm at most 2^exponent.
    Promises: integers A and the largest k, with A = round(matrix·2^k) and every row of A of norm at
    most 2^(53 − exponent). So each partial sum of A·z is an integer of at most 2^53, and float64
    computes the product exactly, in any order, fused or not. A function of the arguments alone.
    """
    reach = 2.0 ** (EXACT - exponent)
    largest = np.abs(matrix).max()
    shift = EXACT - exponent - frexp(float(largest))[1] + 1
    while True:
        integers = np.rint(np.ldexp(matrix, shift))
        squares = np.einsum("ij,ij->i", integers, integers)
        # The margin outweighs the rounding of these float64 sums of squares.
        if squares.max() * (1 + 2.0**-20) <= reach * reach:
            integers.flags.writeable = False
            return integers, shift
        shift -= 1


def squared_lengths(values: Floats) -> Floats:
    """Return the squared norm of each column, bitwise the same whatever stands beside it.

    Neither a sum along an axis nor a product promises that: both choose the order of additions by
    the shape of the block. Halving the rows, addition by addition, is elementwise.
    """
    squares = np.multiply(values, values, out=scratch("squares", values.shape))
    count = len(squares)
    while count > 1:
        half = count // 2
        squares[:half] += squares[count - half : count]
        count -= half
    return np.array(squares[0])


def ordered_squares(values: Floats) -> Floats:
    """Return what `squared_lengths` does, added from the first row to the last, one by one.

    Zeros change nothing then, so that it can be done for sparse rows as well, to the same bits.
    """
    squares = np.cumsum(values * values, axis=0)
    return np.array(squares[-1])


def scratch(role: str, shape: tuple[int, ...]) -> Floats:
    """Return memory of this thread for intermediate results, valid until its role is asked again.

    Blocks of megabytes are fresh pages at every call otherwise, which take longer than the sums.
    """
    size = prod(shape)
    if size > _MOST_HELD:
        return np.empty(shape)
    held: Floats | None = getattr(_memory, role, None)
    if held is None or held.size < size:
        held = np.empty(size)
        setattr(_memory, role, held)
    return held[:size].reshape(shape)


def support_of(matrix: Floats) -> Indices:
    """Return which columns the first rows of a matrix use: at most k ≤ 2 each, shape (k, rows).

    A row that uses fewer has others in their stead, of entries that are 0. Nothing, k = 0, for a
    matrix most rows of which use more: it is dense.
    """
    counts = np.count_nonzero(matrix, axis=1)
    more = counts > _FEW
    first = int(np.argmax(more)) if more.any() else len(matrix)
    if 2 * first < len(matrix) or matrix.shape[1] <= 2 * _FEW:
        return np.zeros((0, 0), np.intp)
    rows, columns = np.nonzero(matrix[:first])
    support = np.tile(np.argmin(np.abs(matrix[:first]), axis=1), (int(counts[:first].max()), 1))
    starts = np.cumsum(counts[:first]) - counts[:first]
    support[np.arange(len(rows)) - starts[rows], rows] = columns
    return support


def product(
    matrix: Floats, rows: Floats, support: Indices | None = None, step: float = 1.0
) -> Floats:
    """Return step·matrix·rows in memory of this thread, valid until the next call.

    Requires: `support`, as `support_of` gives it for the first rows of the matrix, or None; then
    those take a few multiplications to a row. `step`, a power of 2, so that it rounds nothing.
    """
    out = scratch("products", (len(matrix), rows.shape[1]))
    if support is None or not support.size:
        return np.matmul(matrix * step if step != 1 else matrix, rows, out=out)
    count = support.shape[1]
    first, own = out[:count], np.arange(count)
    for at, columns in enumerate(support):
        part = scratch("parts", first.shape) if at else first
        np.take(rows, columns, axis=0, out=part, mode="clip")
        part *= (matrix[own, columns] * step)[:, None]
        if at:
            first += part
    if count < len(matrix):
        np.matmul(matrix[count:] * step, rows, out=out[count:])
    return out


def clamp(values: Floats) -> Floats:
    """Return any float64 as a number that `shorten` takes: NaN is 0, the rest within ±2^100.

    The operations are elementwise; a row with an infinite entry then points where that one does.
    """
    return np.clip(np.where(np.isnan(values), 0.0, values), -FARTHEST, FARTHEST)


def shorten(rows: Floats, norm: int, lengths: Callable[[Floats], Floats] | None = None) -> Floats:
    """Round columns in place; scale those then longer than `norm` down to it, and round again.

    Requires: entries of at most 2^100; `norm` from 2^10 to 2^26; `lengths`, which adds up squares
    that float64 cannot hold, in an order fixed for each column (None: `squared_lengths`).
    Promises: integers; every norm at most `norm`, verified on them; each column bitwise the same
    whatever stands beside it.
    """
    np.rint(rows, out=rows)
    # Sums of squares are exact up to 2^53; beyond, they are above 2^52 in any order.
    squares = np.einsum("ij,ij->j", rows, rows)
    over = squares > norm**2
    if over.any():
        if squares.max() > 2.0 ** (EXACT - 1):
            squares = (lengths or squared_lengths)(rows)
        # The others are multiplied by 1: picking columns out and putting them back takes longer.
        rows *= np.where(over, (norm - _MARGIN) / np.sqrt(np.maximum(squares, 1.0)), 1.0)
        bound_norms(np.rint(rows, out=rows), norm**2)
    return rows


def bound_norms(rows: Floats, most: int) -> Floats:
    """Shorten, in place, the columns whose squared norm is above `most`.

    Requires: integers; squared norms of at most 2^53, so that their sums are exact in any order.
    Promises: integers; every squared norm at most `most`, verified on them.
    """
    squares = np.einsum("ij,ij->j", rows, rows)
    over = np.flatnonzero(squares > most)
    if len(over):
        rows[:, over] = shrink(rows[:, over], squares[over], most)
    return rows


def shrink(rows: Floats, squares: Floats, most: int) -> Floats:
    """Scale long columns of integers towards zero, until their squared norm is at most `most`.

    Requires: `most` of at most 2^52; `squares`, the squared norms, each a bitwise function of its
    column alone.
    """
    factor = np.sqrt(float(most)) / np.sqrt(squares)
    shorter = np.trunc(rows * factor)
    while True:
        # Sums of squares near 2^52 are exact in any order, so integers are compared.
        over = np.einsum("ij,ij->j", shorter, shorter) > most
        if not over.any():
            return np.asarray(shorter)
        factor = np.where(over, factor * (1 - 2.0**-20), factor)
        shorter = np.trunc(rows * factor)
