"""A normal distribution cut off at a ball, of an exact matrix, drawn and rounded exactly.

Proposals are exact normal numbers through a triangle of integers that is about a root; the chance
of acceptance makes up for the difference, exactly. Float64 refuses most of those that are refused,
with a bound that is proved; all others are decided by enclosures, and what is accepted is rounded
once (docs/theory/exponential-mechanism.md).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dplinear.arrays import BigIntegers, Floats
from dplinear.exact.products import square
from dplinear.exact.roots import approximate_root, inverse_triangle, norm
from dplinear.noise import inversion
from dplinear.noise.entropy import Entropy, Words, system, words
from dplinear.noise.normals import normals
from dplinear.noise.reals import Reals, round_enclosure

PRECISION = 128  # of inverses, at first
_SHIFT, _CLOSE = (
    8,
    20,
)  # bits of a root behind the point at first; and of the ridge, before its rest
_AT_ONCE = 64  # proposals
_TILT = 1 / 16  # the least ridge·rate²/2·radius²: it refuses one proposal in 16 at the most
_HEIGHT = 64  # bits of a uniform number at first
_HAIR = 2.0**-40


@dataclass(frozen=True, eq=False)
class CutNormal:
    """The law of density ∝ exp(−rate²/2·(uᵀ·matrix·u − 2·⟨vector, u⟩)) on ‖u‖ ≤ radius.

    Requires: an exact symmetric matrix of Python integers that is positive semidefinite, and a
    vector of such; all else rational and above 0.
    """

    matrix: BigIntegers
    vector: BigIntegers
    rate: Fraction
    radius: Fraction


def cut_normal(
    distribution: CutNormal, step: Fraction, *, entropy: Entropy | None = None
) -> BigIntegers:
    """Draw u, and return ⌊u/step + 1/2⌋.

    Promises: the rounding of exactly that law. With k·‖u‖²·rate²/2 taken off the exponent, for an
    integer k ≥ 1, the law without the ball is normal; a draw of it is accepted with probability
    exp(−k·rate²/2·(radius² − ‖u‖²)), which is at most 1 in the ball (`Proposals`). Any k is right;
    tries are fewest with the one at which E‖u‖² = radius², or next to 0 where it is less without.
    The matrix may be private; so may the time that this takes be. There is no cap on tries.
    """
    bits, fine = entropy or system(), _in_fine_units(distribution)
    proposals = Proposals(fine, best_ridge(fine))
    while True:
        draws = normals(_AT_ONCE * len(distribution.vector), entropy=bits)
        found = first_accepted(proposals, draws, words(bits, _AT_ONCE), step, bits)
        if found is not None:
            return found


def first_accepted(
    proposals: "Proposals", draws: Reals, heights: Words, step: Fraction, entropy: Entropy
) -> BigIntegers | None:
    """Return the first proposal that is accepted, rounded, or None if there is none.

    `heights` are the first 64 bits of uniform numbers, of which more are drawn where it takes them.
    """
    refused = proposals.refuse(draws.floats().reshape(len(heights), -1), heights)
    for index in np.flatnonzero(~refused):
        found = _decide(proposals, draws, (int(index), int(heights[index])), step, entropy)
        if found is not None:
            return found
    return None


def _decide(
    proposals: "Proposals",
    draws: Reals,
    trial: tuple[int, int],
    step: Fraction,
    entropy: Entropy,
) -> BigIntegers | None:
    """Return a proposal, rounded, or None if it is refused: with as many digits as it takes.

    `trial` is its index, and the first 64 bits of its uniform number.
    """
    index, height = trial
    indices = range(index * proposals.size, (index + 1) * proposals.size)
    seen, accepted = _HEIGHT, None
    while True:
        digits = [draws.integer(draw, proposals.precision) for draw in indices]
        point = proposals.enclose(np.array(digits, object))
        if accepted is None:
            accepted = proposals.verdict(point, height, seen)
        if accepted is False:
            return None
        rounded = point.rounded(step) if accepted else None
        if rounded is not None:
            return rounded
        if accepted is None:
            height, seen = height << seen | entropy.bits(seen), 2 * seen
        proposals.refine(2 * proposals.precision)


@dataclass(frozen=True, eq=False)
class _Enclosure:
    """A real vector u: u·unit is within `error` of `middle` in Euclidean norm."""

    middle: BigIntegers
    error: int
    unit: Fraction

    def rounded(self, step: Fraction) -> BigIntegers | None:
        """Return ⌊u/step + 1/2⌋, or None if that is still open."""
        errors = np.full(len(self.middle), self.error, object)
        found, undecided = round_enclosure(self.middle, errors, 1 / (step * self.unit))
        return None if undecided.any() else found


class Proposals:
    """Draws of a normal law, and whether they are accepted for points of another, in a ball.

    Let T be any lower triangle of integers, about the root of the matrix plus ridge·I, both taken
    4^shift times, and D = T·Tᵀ − matrix, which is then next to ridge·I. Proposals are normal about
    (T·Tᵀ)⁻¹·vector with the inverse covariance rate²·T·Tᵀ: u = T⁻ᵀ·(rate·T⁻¹·vector + z)/rate.
    Accepted with probability exp(−rate²/2·(top·radius² − uᵀDu)), top ≥ ‖D‖, they have the law that
    is asked for: whatever T, nothing is lost by its rounding.
    """

    precision: int

    def __init__(self, distribution: CutNormal, ridge: int, precision: int = PRECISION) -> None:
        self.size, self.radius, shift = len(distribution.vector), distribution.radius, _SHIFT
        raised = distribution.matrix.copy()
        raised[np.diag_indices(self.size)] += ridge
        while True:
            target = (ridge << 2 * shift) >> _CLOSE
            found = approximate_root(raised, shift, target)
            if found is not None and _is_root(*found, target):
                break
            shift *= 2
        self._triangle, rest = found
        self.rate, self._vector = distribution.rate / (1 << shift), distribution.vector << 2 * shift
        self._bend = square(self._triangle) - (distribution.matrix << 2 * shift)
        self._top = (ridge << 2 * shift) + rest
        self.refine(precision)

    def refine(self, precision: int) -> None:
        """Take `precision` digits, or more if it takes more to invert T."""
        found = None
        while found is None:
            self.precision = precision
            found = inverse_triangle(self._triangle << precision, precision, 0)
            precision *= 2
        self._inverse, self._off = found
        self._length = norm(self._inverse)
        pull = self._inverse.dot(self._vector) * self.rate.numerator
        self._pull = pull // self.rate.denominator
        self._pull_off = math.ceil(self.rate * (self._off * norm(self._vector)))
        # Python divides integers to the nearest float64.
        self._floats = [
            np.array([int(each) / (1 << self.precision) for each in numbers.ravel()]).reshape(
                numbers.shape
            )
            for numbers in (self._pull, self._inverse)
        ]

    def enclose(self, digits: BigIntegers) -> _Enclosure:
        """Enclose a proposal, for integers within 1 of the numbers z·2^precision."""
        # rate·T⁻¹·vector + z: off by what the inverse is, and by 1 for z and 1 for rounding down.
        shifted = digits + self._pull
        off = self._pull_off + 2 * self.size
        # (R + Θ)ᵀ·(w + η) = Rᵀ·w + Θᵀ·(w + η) + Rᵀ·η.
        error = self._off * (norm(shifted) + off) + self._length * off
        unit = self.rate * (1 << 2 * self.precision)
        return _Enclosure(shifted.dot(self._inverse), error, unit)

    def refuse(self, z: Floats, heights: Words) -> NDArray[np.bool_]:
        """Return which proposals, a row of z for each, are refused for certain.

        With u = 2^−53, a sum of d products is right to (d + 2)·u of the norms' product; z lacks
        2^−49·max(1, |z|/8) at most (`Normals.floats`), and the rounding of all the rest is a few u:
        2^−40 outweighs them, for d up to 2048. The error of the inverse itself is added. The chance
        is at most exp(−rate²/2·top·(radius² − ‖u‖²)).
        """
        try:
            with np.errstate(all="ignore"):
                return self._surely_refused(z, heights)
        except ArithmeticError:  # beyond float64: then digits decide them all
            return np.zeros(len(heights), np.bool_)

    def _surely_refused(self, z: Floats, heights: Words) -> NDArray[np.bool_]:
        one, scale = 1 << self.precision, float(self.rate * self.radius)
        pull, inverse = self._floats[0], self._floats[1] / scale  # in radii
        shifted = z + pull
        lengths = _lengths(shifted) + _lengths(z) + _lengths(pull[None, :]) + 2 * self.size
        blur = _HAIR + (self._off / self._length + self._pull_off / one)
        errors = blur * lengths * (self._length / one / scale)
        sizes = _lengths(shifted @ inverse)
        most = (sizes + errors) * (1 + _HAIR)
        exponents = (1 - most) * (1 + most) * (self._top * scale * scale / 2 * (1 - _HAIR))
        outside = (sizes - errors) * (1 - _HAIR) > 1
        probabilities = _exponential_above(np.clip(exponents, 0.0, 1024.0))
        return np.asarray(outside | (heights.astype(np.float64) * 2.0**-64 > probabilities))

    def verdict(self, point: _Enclosure, height: int, seen: int) -> bool | None:
        """Return whether a point is accepted, or None if that is still open.

        `height` are the first `seen` bits of a uniform number.
        """
        u, error = point.middle, point.error
        square_, length = int(u.dot(u)), norm(u)
        # ‖u‖² and uᵀDu are off by at most this, and this times ‖D‖.
        off = error * (2 * length + error)
        radius = (self.radius * point.unit) ** 2
        if square_ - off > radius:
            return False
        if square_ + off > radius:
            return None
        factor = self.rate**2 / 2 / point.unit**2
        short = self._top * radius - int(u.dot(self._bend.dot(u)))
        least, most = (max(short + sign * self._top * off, Fraction(0)) for sign in (-1, 1))
        if height < inversion.exponential(factor * most, seen)[0]:
            return True
        if height >= inversion.exponential(factor * least, seen)[1]:
            return False
        return None


def _is_root(triangle: BigIntegers, rest: int, target: int) -> bool:
    """Return whether a triangle is near enough to a root, and has an inverse."""
    return rest <= target and all(each > 0 for each in np.diag(triangle))


def _lengths(rows: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _exponential_above(exponents: Floats) -> Floats:
    """Return at least exp(−x), by sums and products alone: (1 + y + y²/2 + y³/6)^−1024."""
    part = exponents / 1024
    power = 1 / (1 + part * (1 + part / 2 * (1 + part / 3)))
    for _ in range(10):
        power = power * power
    return np.asarray(power * (1 + 2.0**-36))  # of roundings there are fewer than 2^13


def _in_fine_units(distribution: CutNormal) -> CutNormal:
    """Return the same law, of integers so large that a ridge of 1 is next to nothing."""
    square = distribution.rate**2 * distribution.radius**2
    spare = square.numerator.bit_length() - square.denominator.bit_length() + _CLOSE
    shift = max(spare, 0) // 2 + 1
    matrix, vector = distribution.matrix << 2 * shift, distribution.vector << 2 * shift
    return CutNormal(matrix, vector, distribution.rate / (1 << shift), distribution.radius)


def best_ridge(distribution: CutNormal) -> int:
    """Return the k with which tries are about fewest; any k is right."""
    # In radii, so that no unit is too small or too large for float64.
    square = distribution.rate**2 * distribution.radius**2 / 2
    try:
        with np.errstate(all="ignore"):
            curvatures, axes = np.linalg.eigh(distribution.matrix.astype(np.float64))
            slopes = float(square / distribution.radius) * (
                axes.T @ distribution.vector.astype(np.float64)
            )
            tilt = best_tilt(float(square) * np.maximum(curvatures, 0.0), slopes)
    except (ArithmeticError, ValueError):  # beyond float64: LinAlgError is a ValueError
        tilt = _TILT
    # A little more costs few tries, and keeps roots easy to find where the matrix has none.
    return max(int(Fraction(max(tilt, _TILT)) / square), 1)


def best_tilt(curvatures: Floats, slopes: Floats) -> float:
    """Return the t ≥ 0 at which E‖u‖² = 1, or 0 if it is less without any.

    u has density ∝ exp(−Σ ((curvature + t)·u² − 2·slope·u)).
    """

    def excess(log_tilt: float) -> float:
        raised = curvatures + math.exp(log_tilt)
        return math.log(float((0.5 / raised + (slopes / raised) ** 2).sum()))

    # Here E‖u‖² ≤ m/2t + ‖slopes‖²/t² is no more than 1.
    high = math.log(len(slopes) + 2 * float(np.linalg.norm(slopes)))
    low = high - 80.0
    if excess(low) <= 0:
        return 0.0 if float(curvatures.min()) > 0 else math.exp(low)
    return math.exp(float(brentq(excess, low, high + 1e-9, xtol=1e-6)))
