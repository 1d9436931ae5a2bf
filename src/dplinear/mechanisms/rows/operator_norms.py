"""How far a matrix of integers can move a vector: norms that noise scales are made of, rounded up.

For rows v of Euclidean norm 1, ‖vA‖₁ is at most the largest ‖As‖₂ over signs s, and ‖vA‖₂ at most
the largest singular value. docs/theory/projected-rows.md.
"""

import math
from collections.abc import Iterator

import numpy as np

from dplinear.arrays import Floats
from dplinear.privacy.rounding import ULP, up

MOST_SIGNS = 20  # of them all 2^19 pairs of opposite signs are tried
_SLACK = 2.0**-24  # outweighs the rounding of a Cholesky factorisation of up to 4096 columns
_SMALL = 16  # the larger half of the signs is tried 2^16 at a time


def spectral_norm(integers: Floats) -> float:
    """Return the largest singular value, rounded up by less than a ten-millionth.

    Promises: an upper bound, verified: λI − AᵀA has a Cholesky factor, with a margin above what
    rounding can hide (Rump 2006, "Verification of positive definiteness").
    """
    gram = _gram(integers if integers.shape[1] <= integers.shape[0] else integers.T)
    size, trace = len(gram), float(np.trace(gram))
    if trace == 0:
        return 0.0
    top = float(np.linalg.eigvalsh(gram)[-1])
    share = _SLACK
    while True:
        tried = top * (1 + share)
        # The margin outweighs the rounding of the Gram matrix and of the factorisation.
        margin = 4 * (sum(integers.shape) + 4) * ULP * trace
        try:
            np.linalg.cholesky((tried - margin) * np.eye(size) - gram)
        except np.linalg.LinAlgError:
            share *= 2
            continue
        return up(math.sqrt(tried))


def sign_norm(integers: Floats) -> float:
    """Return the largest ‖As‖₂ over signs s, rounded up.

    Promises: all signs are tried up to 20 columns, and the largest is above by a billionth at the
    most; beyond, √columns times the spectral norm, which no sign vector exceeds.
    """
    columns = integers.shape[1]
    if columns > MOST_SIGNS:
        return up(math.sqrt(columns) * spectral_norm(integers), 8)
    gram = _gram(integers)
    largest = _largest_form(gram)
    # A sum of m products is off by m roundings of its terms' sizes. Those of Gᵢⱼ add up to at most
    # |aᵢ||aⱼ|, as does |Gᵢⱼ| itself, and over all i and j these come to no more than k·tr G.
    error = 4 * (columns**2 + len(integers)) * ULP * columns * float(np.trace(gram))
    return up(math.sqrt(largest + error))


def sign_images(integers: Floats) -> Iterator[Floats]:
    """Yield As for all signs s of up to 20 columns, but for opposites, some at a time.

    Promises: exact, for entries below 2^40.
    """
    columns = integers.shape[1]
    first, rest = _signs(columns)[: 1 << (columns - 1)], max(1, (1 << 20) // len(integers))
    for start in range(0, len(first), rest):
        yield np.asarray(integers @ first[start : start + rest].T)


def _gram(integers: Floats) -> Floats:
    return np.asarray(integers.T @ integers)


def _largest_form(gram: Floats) -> float:
    """Return the largest sᵀGs over signs s: halves of s are combined, and −s is as good as s."""
    half = max(1, len(gram) // 2)
    first, second = _signs(half), _signs(len(gram) - half)
    one = np.einsum("ij,jk,ik->i", first, gram[:half, :half], first)
    other = np.einsum("ij,jk,ik->i", second, gram[half:, half:], second)
    largest = -math.inf
    step = max(1, (1 << _SMALL) // len(second))
    for start in range(0, len(first) // 2, step):
        part = slice(start, min(start + step, len(first) // 2))
        crossed = first[part] @ gram[:half, half:] @ second.T
        largest = max(largest, float((one[part, None] + other + 2 * crossed).max()))
    return largest


def _signs(count: int) -> Floats:
    """Return all sign vectors; the second half are the opposites of the first, in reverse order."""
    bits = np.arange(1 << count)[:, None] >> np.arange(count)[::-1] & 1
    return np.asarray(1.0 - 2.0 * bits)
