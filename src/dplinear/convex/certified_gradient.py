"""The gradient of a regularised sum of losses at an exact point, with a proved bound on its error.

Let J(θ) = Σ v·ℓ(⟨x, θ⟩; y) + Λ‖θ‖²/2 + ⟨linear, θ⟩ over n rows x of norm at most c, in units of
2^20, and of weights v in [0, 1], all 1 where rows have none. A point is a vector of integers over
2^k. Cut into digits of so few bits that their products with integer rows are exact in float64, it
has exact margins; slopes, times their rows' weights, are rounded to integers and cut in the same
way, so that Σ x·v·slope is exact for those; Λθ and `linear` are added as integers too. So the
gradient is off by what the slopes are, and no more: n·c·(error of a slope).

- As a rule slopes are float64's (`accurate_slopes.slopes`), of a margin kept as two numbers, which
  is off by L²·(2 + √d)·c·‖θ‖·2^−105, L the number of digits: so they are off by `ERROR`·slope and
  smoothness times that, and by 2^−51·slope as integers. A weight, a whole number of 2^−24, is one
  rounding more: 2^−53·slope.
- `exact` ones are made one by one with as many bits as a tolerance asks for. They are needed where
  there are very many rows, or for tolerances far below a row's own gradient.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dplinear.arrays import BigIntegers, Floats, Integers
from dplinear.convex.accurate_slopes import ERROR, exact_slope, slopes
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.smooth_losses import SmoothLoss
from dplinear.exact.integers import EXACT
from dplinear.exact.weights import WHOLE

_SLOPE_BITS = 51  # of a slope as an integer
Words = Integers


@dataclass(frozen=True, eq=False)
class Regularised:
    """Σ v·ℓ(⟨x, θ⟩; y) + Λ‖θ‖²/2 + ⟨linear, θ⟩: Λ is `weight`, rows have norm at most `norm`."""

    loss: SmoothLoss
    weight: float
    linear: "Point"
    norm: float

    @property
    def features(self) -> int:
        """The dimension of θ."""
        return len(self.linear.integers)


@dataclass(frozen=True, eq=False)
class Point:
    """A vector of `integers` over 2^`exponent`, exactly."""

    integers: BigIntegers
    exponent: int
    values: Floats = field(init=False, repr=False)  # each rounded once

    def __post_init__(self) -> None:
        found = [_ratio(int(whole), self.exponent) for whole in self.integers]
        object.__setattr__(self, "values", np.array(found, float))

    @classmethod
    def of(cls, values: Floats) -> "Point":
        """Return floats as they are."""
        lowest = int(np.frexp(values[values != 0])[1].min(initial=EXACT))
        return cls(_scale_to_integers(values, EXACT - lowest), EXACT - lowest)

    @classmethod
    def zero(cls, size: int) -> "Point":
        """Return 0."""
        return cls(np.zeros(size, object), 0)

    def move(self, direction: Floats) -> "Point":
        """Return the point plus a vector, which is rounded to the point's own grid."""
        steps = _scale_to_integers(direction, self.exponent)
        return Point(self.integers + steps, self.exponent)

    def rounded(self, exponent: int) -> "Point":
        """Return the nearest vector of integers over 2^`exponent`, halves rounded up."""
        shift = exponent - self.exponent
        if shift >= 0:
            return Point(self.integers << shift, exponent)
        return Point((self.integers + (1 << -shift - 1)) >> -shift, exponent)


@dataclass(frozen=True, eq=False)
class Gradient:
    """The gradient at a point: `values`, right to 2^−50 of themselves and `error` in all.

    `norm` is at least the norm of the exact gradient; `margins` are those of the rows.
    """

    values: Floats
    margins: Floats
    norm: float
    error: float


class CertifiedRows:
    """All rows, as what a certified gradient needs of them.

    Requires: blocks of examples whose norm is at most problem.norm, verified (`held_block`).
    """

    def __init__(self, blocks: list[Block], problem: Regularised) -> None:
        self.blocks, self.problem = blocks, problem
        self.labels = np.concatenate([np.zeros(0), *(block.labels for block in blocks)]) / CELLS
        self.count = len(self.labels)
        self.weights = np.concatenate([np.zeros(0), *(_shares(block) for block in blocks)])
        self._norm = max(math.ceil(problem.norm * CELLS), 1)

    def start(self, tolerance: float) -> Point:
        """Return 0 on a grid so fine that its steps hardly move a gradient.

        Half a step in every coordinate moves it by √d·2^−k·(Λ + smoothness·norm²·n)/2.
        """
        problem, size = self.problem, self.problem.features
        bent = problem.weight + problem.loss.smoothness * problem.norm**2 * max(self.count, 1)
        exponent = math.frexp(bent)[1] + size.bit_length() - math.frexp(tolerance)[1] + 6
        return Point(np.zeros(size, object), exponent)

    def gradient(self, point: Point, tolerance: float, *, exact: bool = False) -> Gradient:
        """Return the gradient; with `exact` slopes, its error is at most a sixteenth of it."""
        digits, bits = self._digits(point)
        products = [
            np.concatenate([np.zeros(0), *(np.asarray(d @ b.features) for b in self.blocks)])
            for d in digits
        ]
        margins, rest = _add_products(products, bits, point.exponent)
        most = self.count * self.problem.norm
        if exact:
            precision = _precision(tolerance / (16 * max(most, 1e-300)))
            whole: BigIntegers | Words = self._exact_slopes(
                products, bits, point.exponent, precision
            )
            error = most * 2.0 ** min(1 - precision, 0)
        else:
            whole, precision = self._float_slopes(margins, rest)
            length = _norm(point.values)
            # Of L digits, L − 1 sums are rounded twice over; each is within (1 + √d)·c·‖θ‖.
            blurred = len(digits) ** 2 * (2 + math.sqrt(len(point.values))) * 2.0**-105
            blurred *= self.problem.norm * length
            slope = self.problem.loss.slope
            rounding = slope * (ERROR + 2.0**-51 + 2.0**-53)
            error = most * (rounding + self.problem.loss.smoothness * blurred)
        values = self._values(point, self._combine(whole), precision)
        norm = _norm(values)
        return Gradient(values, margins, (norm + error) * (1 + 2.0**-40), error)

    def _digits(self, point: Point) -> tuple[list[Floats], int]:
        """Return a point as vectors of few bits, the first worth most, and how many bits."""
        size = max(len(point.integers), 1)
        # By Cauchy–Schwarz no partial sum of a product with a row is beyond 2^53.
        bits = EXACT - 1 - self._norm.bit_length() - (size.bit_length() + 1) // 2
        return _cut(point.integers, max(bits, 1)), max(bits, 1)

    def _float_slopes(self, margins: Floats, rest: Floats) -> tuple[Words, int]:
        found = slopes(self.problem.loss, margins, rest, self.labels) * self.weights
        precision = _SLOPE_BITS - math.frexp(self.problem.loss.slope)[1]
        return np.rint(np.ldexp(found, precision)).astype(np.int64), precision

    def _exact_slopes(
        self, products: list[Floats], bits: int, exponent: int, precision: int
    ) -> BigIntegers:
        whole = np.zeros(self.count, object)
        for part in products:
            whole = (whole << bits if len(whole) else whole) + part.astype(np.int64).astype(object)
        unit = Fraction(2) ** exponent * CELLS
        loss, scale = self.problem.loss, Fraction(2) ** precision
        rows = zip(whole, self.labels.tolist(), self.weights.tolist(), strict=True)
        found = [
            exact_slope(loss, int(m) / unit, Fraction(y), precision + 2) * Fraction(v)
            for m, y, v in rows
        ]
        return np.array([round(slope * scale) for slope in found], object)

    def _combine(self, whole: BigIntegers | Words) -> BigIntegers:
        """Return Σ x·whole, exactly, over integers of any size."""
        total, start = np.zeros(self.problem.features, object), 0
        for block in self.blocks:
            stop = start + len(block.labels)
            bits = EXACT - 1 - self._norm.bit_length() - len(block.labels).bit_length()
            part = np.zeros(len(total), object)
            for digit in _cut(whole[start:stop], max(bits, 1)):
                product = np.asarray(block.features @ digit).astype(np.int64).astype(object)
                part = part * (1 << max(bits, 1)) + product
            total, start = total + part, stop
        return total

    def _values(self, point: Point, combined: BigIntegers, precision: int) -> Floats:
        """Return the exact sum of all three parts, each number rounded once."""
        weight = Fraction(self.problem.weight)
        data, index = CELLS * Fraction(2) ** precision, Fraction(2) ** point.exponent / weight
        linear = self.problem.linear
        given = Fraction(2) ** linear.exponent
        triples = zip(combined, point.integers, linear.integers, strict=True)
        exact = [int(a) / data + int(t) / index + int(b) / given for a, t, b in triples]
        return np.array([float(number) for number in exact], float)


def _shares(block: Block) -> Floats:
    """Return the weights of rows as parts of 1, exactly."""
    if block.weights is None:
        return np.ones(len(block.labels))
    return np.asarray(block.weights / WHOLE)


def _add_products(products: list[Floats], bits: int, exponent: int) -> tuple[Floats, Floats]:
    """Return Σ digits' products in the margins' units, as a number and what rounding left of it."""
    total = rest = np.zeros(products[0].shape)
    for index, part in enumerate(products):
        shift = bits * (len(products) - 1 - index) - exponent
        term = np.ldexp(part / CELLS, shift)
        whole = total + term
        back = whole - total
        rest = rest + ((total - (whole - back)) + (term - back))
        total = whole
    final = total + rest
    return final, rest - (final - total)


def _cut(whole: BigIntegers | Words, bits: int) -> list[Floats]:
    """Return integers as digits to the base 2^bits, the first worth most; all of one length."""
    digits: list[Floats] = []
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    while not digits or whole.any():
        low = ((whole + half) & mask) - half
        digits.append(low.astype(np.float64))
        whole = (whole - low) >> bits
    return digits[::-1]


def _scale_to_integers(values: Floats, exponent: int) -> BigIntegers:
    """Return floats times 2^exponent, rounded to integers."""
    mantissas, powers = np.frexp(values)
    pairs = zip(np.ldexp(mantissas, EXACT).tolist(), powers.tolist(), strict=True)
    shifts = [(int(m), p - EXACT + exponent) for m, p in pairs]
    return np.array([m << s if s >= 0 else ((m >> -s - 1) + 1) >> 1 for m, s in shifts], object)


def _ratio(whole: int, exponent: int) -> float:
    return float(Fraction(whole) / Fraction(2) ** exponent)


def _norm(values: Floats) -> float:
    """Return at least the norm of a vector, each entry of which was rounded once."""
    peak = float(np.abs(values).max(initial=0.0))
    if not peak or not math.isfinite(peak):
        return peak
    return peak * float(np.linalg.norm(values / peak)) * (1 + (len(values) + 8) * 2.0**-52)


def _precision(error: float) -> int:
    """Return the bits behind the point that keep an error below a positive number."""
    return max(-math.frexp(error)[1] + 2, 0)
