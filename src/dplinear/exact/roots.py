"""Certified Cholesky factors, inverses and least eigenvalues of exact matrices, to any precision.

A guess may come from float64 and LAPACK, of which nothing is trusted: it is improved, rounded to
integers, and its error is bounded by its exact residual (docs/exact-pass.md, "Certified roots").
"""

from fractions import Fraction
from math import isqrt

import numpy as np
from scipy import linalg

from dplinear.arrays import BigIntegers, Floats, Integers
from dplinear.exact.products import product, square

_FLOAT_BITS = 900  # integers of so many bits, and their products with small ones, fit in float64
# The search for a least eigenvalue: most rounds, of so many steps of inverse iteration each; and by
# what a distance below the quotient grows until there is a root.
_ROUNDS, _STEPS, _GALLOP = 64, 4, 16


class Root:
    """The Cholesky factor L of an exact matrix, of which more digits can be asked for.

    Requires: a symmetric matrix of integers that is at least floor·I, floor an integer above 0.
    (A Gram matrix plus an integer ridge is at least the ridge.)
    Promises: once `refine` was called, `factor` is a lower triangle of integers, and its i-th row
    is within errors[i] of that of L·2^precision in Euclidean norm; norms[i] bounds the norm of the
    row itself, and 3/2·norms[i]·looseness bounds errors[i] but for rounding.
    """

    factor: BigIntegers
    errors: BigIntegers
    norms: BigIntegers
    looseness: float  # at least ‖E‖/(floor − ‖E‖), E the residual

    def __init__(self, matrix: BigIntegers | Integers, floor: int) -> None:
        self.matrix: BigIntegers = matrix.astype(np.object_)
        self.floor, self.precision = floor, 0

    def __len__(self) -> int:
        return len(self.matrix)

    def refine(self, precision: int) -> None:
        """Make `precision` at least what is asked for."""
        precision = max(precision, 1)
        while self.precision < precision:
            needed = self.floor << 2 * precision
            start = self.factor << precision - self.precision if self.precision else None
            found = approximate_root(self.matrix, precision, needed >> precision // 2, start)
            if found is None or not self._certify(*found, precision):
                precision *= 2

    def _certify(self, factor: BigIntegers, size: int, precision: int) -> bool:
        """Take a triangle whose residual is at most `size`, if that is small enough."""
        room = (self.floor << 2 * precision) - size
        if 2 * size >= room or any(factor[i, i] <= 0 for i in range(len(self))):
            return False
        self.factor, self.precision, self.norms = factor, precision, row_norms(factor)
        self.errors = -(-3 * size * self.norms // (2 * room))
        self.looseness = size / room * (1 + 2.0**-40) + 2.0**-1000
        return True


def approximate_root(
    matrix: BigIntegers, precision: int, target: int, start: BigIntegers | None = None
) -> tuple[BigIntegers, int] | None:
    """Return a lower triangle T of integers, and a bound on ‖matrix·4^precision − T·Tᵀ‖_F.

    The bound is proved, whatever the matrix. It is meant to be at most `target`, and will be at
    some precision if the matrix is positive definite and the target a part of 4^precision. None if
    at this precision the matrix does not seem to be positive definite.
    """
    with np.errstate(all="ignore"):
        found = _by_floats(matrix, precision, start)
    if found is not None and found[1] <= target:
        return found
    factor = _by_integers(matrix, precision)
    if factor is None:
        return None
    return factor, norm((matrix << 2 * precision) - square(factor))


def _by_floats(
    matrix: BigIntegers, precision: int, start: BigIntegers | None
) -> tuple[BigIntegers, int] | None:
    """Improve a guess by Newton's method until its residual no longer falls."""
    shift = max(-(-(_bits(matrix) - _FLOAT_BITS) // 2), 0)  # float64 works on matrix/4^shift
    try:
        guess = np.tril(linalg.cholesky(_floats(matrix, 2 * shift), lower=True, check_finite=False))
    except linalg.LinAlgError:
        return None
    inverse = linalg.blas.dtrsm(1.0, guess, np.eye(len(guess)), lower=1)
    if not (np.isfinite(guess).all() and np.isfinite(inverse).all()):
        return None
    factor = _integers(guess, precision + shift) if start is None else start
    best: tuple[BigIntegers, int] | None = None
    while True:
        residual = (matrix << 2 * precision) - square(factor)
        size = norm(residual)
        if best is not None and 4 * size > best[1]:
            return best
        best = factor, size
        if size <= 4 * len(factor) * norm(factor):  # as rounding to integers leaves it
            return best
        # With F = T⁻¹·E·T⁻ᵀ, the root of I + F is about I plus F's lower half.
        scaled = inverse @ _floats(residual, 2 * precision + 2 * shift) @ inverse.T
        step = np.tril(guess @ (np.tril(scaled, -1) + np.diag(np.diag(scaled) / 2)))
        if not np.isfinite(step).all():
            return best
        factor = factor + _integers(step, precision + shift)


def _by_integers(matrix: BigIntegers, precision: int) -> BigIntegers | None:
    """Return Cholesky's factor in fixed point, for matrices beyond float64's reach.

    None if a pivot is not above 0: the matrix is not positive definite, or more digits are needed.
    """
    size = len(matrix)
    work = precision + 64 + 2 * size.bit_length()
    factor = np.zeros((size, size), np.object_)
    for j in range(size):
        rest = (matrix[j:, j] << 2 * work) - factor[j:, :j].dot(factor[j, :j])
        if rest[0] <= 0:
            return None
        pivot = isqrt(int(rest[0]))
        factor[j, j] = pivot
        factor[j + 1 :, j] = rest[1:] // pivot
    return np.asarray(factor >> (work - precision), np.object_)


def inverse_triangle(
    triangle: BigIntegers, precision: int, slack: int
) -> tuple[BigIntegers, int] | None:
    """Invert a lower triangle A of which A·2^precision is known within `slack` in Frobenius norm.

    Returns integers R and e with ‖A⁻¹·2^precision − R‖_F ≤ e, or None if the precision is too small
    to say that A has an inverse.
    """
    with np.errstate(all="ignore"):
        found = _inverse_by_floats(triangle, precision)
    if found is None or found[1] >> (2 * precision - precision // 2):
        inverse = _inverse_by_integers(triangle, precision)
        if inverse is None:
            return None
        found = inverse, norm(_unit(len(triangle), precision) - product(triangle, inverse))
    inverse, residual = found
    length = norm(inverse)
    # A·R = I − G with ‖G‖ ≤ this, so A⁻¹ = R·(I − G)⁻¹.
    distance = residual + slack * length
    room = (1 << 2 * precision) - distance
    if 2 * distance >= room:
        return None
    return inverse, -(-length * distance // room)


def _inverse_by_floats(triangle: BigIntegers, precision: int) -> tuple[BigIntegers, int] | None:
    """Improve a guess of the inverse until its residual no longer falls."""
    approximate = _floats(triangle, precision)
    guess = np.tril(linalg.blas.dtrsm(1.0, approximate, np.eye(len(triangle)), lower=1))
    if not np.isfinite(guess).all():
        return None
    inverse, unit = _integers(guess, precision), _unit(len(triangle), precision)
    best: tuple[BigIntegers, int] | None = None
    while True:
        residual = unit - product(triangle, inverse)
        size = norm(residual)
        if best is not None and 4 * size > best[1]:
            return best
        best = inverse, size
        if size <= 4 * len(triangle) * norm(triangle):
            return best
        step = guess @ _floats(residual, 2 * precision)
        if not np.isfinite(step).all():
            return best
        inverse = inverse + _integers(step, precision)


def _inverse_by_integers(triangle: BigIntegers, precision: int) -> BigIntegers | None:
    """Return the inverse in fixed point, row by row, or None if a number on the diagonal is 0."""
    size = len(triangle)
    if any(triangle[i, i] == 0 for i in range(size)):
        return None
    inverse, unit = np.zeros((size, size), np.object_), _unit(size, precision)
    for i in range(size):
        inverse[i] = (unit[i] - triangle[i, :i].dot(inverse[:i])) // triangle[i, i]
    return inverse


def least_eigenvalue(
    matrix: BigIntegers | Integers, *, width: Fraction = Fraction(1)
) -> tuple[Fraction, Fraction]:
    """Enclose the least eigenvalue of an exact symmetric matrix: low ≤ λ ≤ high ≤ low + width.

    Above it is any Rayleigh quotient; below, s − ‖E‖ for any s and any real T with
    matrix − s·I = T·Tᵀ + E. Where float64 does not see the least eigenvector, such a T does
    (`_improve`). If all that does not bring them together, bisection on exact determinants does.
    """
    matrix = matrix.astype(np.object_)
    low, high = _search_quotients(matrix, width)
    while high - low > width:
        middle = _between(low, high)
        if is_positive_definite(_shift_diagonal(matrix, middle)):
            low = middle
        else:
            high = middle
    return low, high


def _search_quotients(matrix: BigIntegers, width: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose the least eigenvalue by quotients and roots, as a rule within `width`."""
    digits = _bits(matrix) // 2 + len(matrix).bit_length() + int(1 / width).bit_length()
    precision = digits + 16  # at which rounding leaves less than the goal
    vector = _least_vector(matrix)
    low, high, factor = Fraction(-norm(matrix)), _quotient(matrix, vector), None
    for _ in range(_ROUNDS):
        below = width / 2
        while below < high - low:  # so a root would tell more than is known
            found = _root_below(matrix, high - below, width / 4, precision)
            if found is not None:
                low, factor = max(low, found[0]), found[1]
                break
            below *= _GALLOP
        if high - low <= width or factor is None:
            break
        vector = _improve(factor, vector, precision)
        high = min(high, _quotient(matrix, vector))
    return low, high


def _root_below(
    matrix: BigIntegers, most: Fraction, step: Fraction, precision: int
) -> tuple[Fraction, BigIntegers] | None:
    """Return a lower bound on all eigenvalues, next below `most`, and the T that proves it.

    None if there is no such bound, or none is found.
    """
    shift = most // step * step  # of few digits
    target = int(step * shift.denominator * 4**precision)
    found = approximate_root(_shift_diagonal(matrix, shift), precision, target)
    if found is None or found[1] > target or any(each <= 0 for each in np.diag(found[0])):
        return None
    return shift - Fraction(found[1], shift.denominator << 2 * precision), found[0]


def _quotient(matrix: BigIntegers, vector: BigIntegers) -> Fraction:
    """Return Rayleigh's quotient, which is at least the least eigenvalue."""
    return Fraction(int(vector.dot(matrix.dot(vector))), int(vector.dot(vector)))


def _improve(factor: BigIntegers, vector: BigIntegers, bits: int) -> BigIntegers:
    """Return about (T·Tᵀ)⁻ᵏ·vector, of so many bits: inverse iteration, on integers."""
    size, spare = len(factor), 2 * _bits(factor)
    for _ in range(_STEPS):
        solved = vector << spare
        for i in range(size):
            solved[i] = (solved[i] - factor[i, :i].dot(solved[:i])) // factor[i, i]
        solved = solved << spare
        for i in reversed(range(size)):
            solved[i] = (solved[i] - factor[i + 1 :, i].dot(solved[i + 1 :])) // factor[i, i]
        cut = solved >> max(_bits(solved) - bits, 0)
        vector = cut if cut.any() else vector
    return vector


def _between(low: Fraction, high: Fraction) -> Fraction:
    """Return a number of few digits next to the middle."""
    gap = high - low
    shift = gap.denominator.bit_length() - gap.numerator.bit_length() + 7  # 2^-shift ≤ gap/64
    step = Fraction(1 << max(-shift, 0), 1 << max(shift, 0))
    return (low + high) / 2 // step * step


def _least_vector(matrix: BigIntegers) -> BigIntegers:
    """Return integers that point about where the least eigenvector does, and are not all 0."""
    unit = np.zeros(len(matrix), np.object_)
    unit[int(np.argmin(np.diag(matrix)))] = 1
    shift = max(_bits(matrix) - _FLOAT_BITS, 0)
    try:
        with np.errstate(all="ignore"):
            _, vectors = linalg.eigh(_floats(matrix, shift), check_finite=False)
    except linalg.LinAlgError:
        return unit
    if not np.isfinite(vectors).all():
        return unit
    vector = _integers(np.asarray(vectors[:, 0], np.float64), 60)
    return vector if vector.any() else unit


def _shift_diagonal(matrix: BigIntegers, shift: Fraction) -> BigIntegers:
    """Return (matrix − shift·I) times the shift's denominator."""
    moved: BigIntegers = matrix * shift.denominator
    moved[np.diag_indices(len(matrix))] -= shift.numerator
    return moved


def is_positive_definite(matrix: BigIntegers) -> bool:
    """Return whether all leading minors are above 0, by Bareiss' elimination, which is exact."""
    rest, before = matrix.copy(), 1
    while len(rest):
        pivot, column = int(rest[0, 0]), rest[1:, 0]
        if pivot <= 0:
            return False
        rest = (pivot * rest[1:, 1:] - np.multiply.outer(column, column)) // before
        before = pivot
    return True


def norm(matrix: BigIntegers) -> int:
    """Return an integer of at least the Frobenius norm, and less than 1 above it."""
    return _root_up(int((matrix * matrix).sum()))


def row_norms(matrix: BigIntegers) -> BigIntegers:
    """Return the same for the Euclidean norm of each row."""
    squares = (matrix * matrix).sum(axis=1)
    return np.array([_root_up(int(each)) for each in squares], np.object_)


def _root_up(number: int) -> int:
    return isqrt(number - 1) + 1 if number else 0


def _unit(size: int, precision: int) -> BigIntegers:
    unit = np.zeros((size, size), np.object_)
    unit[np.diag_indices(size)] = 1 << 2 * precision
    return unit


def _bits(matrix: BigIntegers) -> int:
    """Return how many bits the largest of them has."""
    return max(int(matrix.max()).bit_length(), int(matrix.min()).bit_length())


def _floats(matrix: BigIntegers, precision: int) -> Floats:
    """Return about matrix·2^-precision."""
    spare = max(_bits(matrix) - _FLOAT_BITS, 0)
    return np.asarray(np.ldexp((matrix >> spare).astype(np.float64), spare - precision))


def _integers(values: Floats, precision: int) -> BigIntegers:
    """Return values·2^precision, rounded down; values are finite."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64).astype(np.object_)
    shift = exponent.astype(np.int64) - 53 + precision
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    return np.asarray((whole << left.astype(np.object_)) >> right.astype(np.object_), np.object_)
