"""Row sums in Python's own integers and floats, one row at a time."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.exact.integers import shrink
from dplinear.exact.mapped_sums import MappedGram, MappedNorms, MappedSquares, MappedSum
from dplinear.exact.residual_sums import Gradient, ResidualHistogram, Residuals, SumOfSquares
from dplinear.exact.row_sums import ClippedGram, Count, RowSum, SquaredNorms
from dplinear.exact.shape import Shape

# A few columns, a row norm that clips, one column, the widest grid of long rows.
SHAPES = {
    "plain": Shape(6, 1_185_606, 21),
    "clipped": Shape(6, 1_290_555, 20),
    "one": Shape(1, 1_048_576, 20),
    "coarse": Shape(4, 3, 2),
    "wide": Shape(45, 1_236_000, 23),
    "longest": Shape(2300, 1_400_000, 26),
}


def integer_rows(random: Any, shape: Shape, count: int) -> Floats:
    """Rows as the grid makes them: many at the bound, some zero, some of one cell."""
    cells = float(min(shape.steps_per_unit, 1 << shape.exponent))
    rows = np.rint(random.uniform(-cells, cells, (shape.dimension, count)))
    rows *= random.choice([0.0, 1e-6, 0.1, 1.0, 1.0, 1.0], count)
    rows = np.rint(rows)
    alone = random.random(count) < 0.2
    rows[:, alone] = 0
    rows[random.integers(shape.dimension, size=int(alone.sum())), alone] = cells
    squares = np.array([float(sum(int(z) ** 2 for z in row)) for row in rows.T])
    over = squares > shape.sensitivity
    rows[:, over] = shrink(rows[:, over], squares[over], shape.sensitivity)
    return np.asarray(rows)


def statistics(random: Any, shape: Shape) -> dict[str, RowSum]:
    """One sum of each kind, with clips that some rows pass and others do not."""
    d = shape.dimension
    size = max(1, d - 1)
    whitening = random.normal(0, 1, (size, d)) * np.exp(random.normal(0, 3, (size, 1)))
    weights = random.normal(0, 0.3, d)
    weights[-1] = 1.0
    bound = float(shape.bound)
    some = sorted(random.permutation(d)[: max(1, d // 2)].tolist())
    leverage = 0.3 * bound * float(np.linalg.norm(whitening, 2))
    few = whitening[:12]
    norm = 0.3 * bound * float(np.linalg.norm(few, 2))
    return {
        "count": Count(),
        "norms": SquaredNorms(shape, some, limit=0.2 * bound**2),
        "all norms": SquaredNorms(shape, range(d), limit=2 * bound**2),
        "gram": ClippedGram(shape, some[:40], norm=0.4 * bound),
        "gram of neighbouring columns": ClippedGram(shape, range(min(d, 5)), norm=0.2),
        "energy": SumOfSquares(shape, weights, residual=0.3),
        "gradient": Gradient(shape, whitening, weights, leverage, residual=0.3),
        "mapped sum": MappedSum(shape, whitening, norm=leverage),
        "mapped norms": MappedNorms(shape, whitening, limit=leverage**2),
        "mapped squares": MappedSquares(shape, whitening, limit=leverage**2),
        "mapped gram": MappedGram(shape, few, norm=norm),
        "tapered": Gradient(shape, whitening, weights, leverage, residual=0.3, taper=2 * leverage),
        "bands": ResidualHistogram(shape, weights, residual=0.3, edges=(0.4, 0.6, 0.9)),
        "residuals": Residuals(shape, weights, residual=0.3),
    }


def oracle(statistic: RowSum, rows: Floats) -> list[int]:
    """The sum over rows, computed row by row."""
    total = [0] * statistic.size
    for row in rows.T:
        term = _TERMS[type(statistic)](statistic, [int(z) for z in row])
        total = [a + b for a, b in zip(total, term, strict=True)]
    return total


def _count(_: Any, __: list[int]) -> list[int]:
    return [1]


def _norms(statistic: SquaredNorms, row: list[int]) -> list[int]:
    return [min(sum(row[j] ** 2 for j in statistic.columns), statistic.bound)]


def _gram(statistic: ClippedGram, row: list[int]) -> list[int]:
    clipped = _clipped([row[j] for j in statistic.columns], math.isqrt(statistic.bound))
    return [a * b for a in clipped for b in clipped]


def _clipped(row: Sequence[int], norm: int) -> list[int]:
    square = sum(z * z for z in row)
    if square <= norm**2:
        return list(row)
    factor = norm / math.sqrt(square)
    while True:
        shorter = [int(z * factor) for z in row]
        if sum(z * z for z in shorter) <= norm**2:
            return shorter
        factor *= 1 - 2.0**-20


def _energy(statistic: SumOfSquares, row: list[int]) -> list[int]:
    exact = sum(int(a) * z for a, z in zip(statistic.integers[0], row, strict=True))
    clip = math.isqrt(statistic.bound)
    return [min(abs(round(Fraction(exact) * Fraction(statistic._step))), clip) ** 2]


def _residuals(statistic: Residuals, row: list[int]) -> list[int]:
    (exact,) = _products(statistic, row)
    steps = round(Fraction(exact) * Fraction(statistic._step))
    return [max(-statistic.bound, min(statistic.bound, steps))]


def _bands(statistic: ResidualHistogram, row: list[int]) -> list[int]:
    (exact,) = _products(statistic, row)
    worth = Fraction(2) ** -statistic.scale / statistic.shape.steps_per_unit

    def beyond(clip: float) -> bool:
        # A clip below one unit counts as one; it is compared as a float64.
        units = max(Fraction(clip) / worth, Fraction(1))
        return units <= 2**53 and abs(exact) > Fraction(float(units))

    counts = [0] * (1 + 2 * len(statistic.edges))
    passed = sum(beyond(edge) for edge in statistic.edges)
    if passed:
        counts[passed + (len(statistic.edges) if exact < 0 else 0)] = 1
    counts[0] = int(not beyond(statistic.residual))
    return counts


def _mapped_sum(statistic: MappedSum, row: list[int]) -> list[int]:
    return _shortened(statistic, row, statistic.bound)


def _mapped_gram(statistic: MappedGram, row: list[int]) -> list[int]:
    clipped = _shortened(statistic, row, math.isqrt(statistic.bound))
    return [a * b for a in clipped for b in clipped]


def _shortened(statistic: MappedSum | MappedGram, row: list[int], norm: int) -> list[int]:
    step = Fraction(statistic._step)
    vector = [round(product * step) for product in _products(statistic, row)]
    if sum(entry**2 for entry in vector) <= norm**2:
        return vector
    factor = (norm - 2) / math.sqrt(_square([float(entry) for entry in vector]))
    return _clipped([round(float(entry) * factor) for entry in vector], norm)


def _mapped_norms(statistic: MappedNorms, row: list[int]) -> list[int]:
    total = _square([float(product) for product in _products(statistic, row)])
    return [min(round(Fraction(total) * Fraction(statistic._step)), statistic.bound)]


def _mapped_squares(statistic: MappedSquares, row: list[int]) -> list[int]:
    floats = [float(product) for product in _products(statistic, row)]
    vector = [round(entry * entry * statistic._step) for entry in floats]
    if sum(entry**2 for entry in vector) <= statistic.bound**2:
        return vector
    factor = (statistic.bound - 2) / math.sqrt(_square([float(entry) for entry in vector]))
    return _clipped([round(float(entry) * factor) for entry in vector], statistic.bound)


def _products(statistic: Any, row: list[int]) -> list[int]:
    return [
        sum(int(a) * z for a, z in zip(line, row, strict=True))
        for line in statistic.integers.tolist()
    ]


def _square(vector: list[float]) -> float:
    """The squared length, each half added to the other until one number is left."""
    squares = [entry * entry for entry in vector]
    while len(squares) > 1:
        half = len(squares) // 2
        tail = squares[len(squares) - half :]
        head = [a + b for a, b in zip(squares, tail, strict=False)]
        squares = head + squares[half : len(squares) - half]
    return squares[0]


def _gradient(statistic: Gradient, row: list[int]) -> list[int]:
    products = _products(statistic, row)
    leverage, residual = statistic._clips
    whitened = [float(w) for w in products[:-1]]
    length = math.sqrt(_square(whitened))
    limit = residual * (leverage / max(length, leverage))
    if statistic._taper is not None:
        part = statistic._taper / max(length, statistic._taper)
        limit *= part * part
    factor = max(-limit, min(limit, float(products[-1]))) * statistic._step
    return _clipped([round(w * factor) for w in whitened], statistic.bound)


_TERMS: dict[type[RowSum], Callable[[Any, list[int]], list[int]]] = {
    Count: _count,
    SquaredNorms: _norms,
    ClippedGram: _gram,
    SumOfSquares: _energy,
    Gradient: _gradient,
    Residuals: _residuals,
    ResidualHistogram: _bands,
    MappedSum: _mapped_sum,
    MappedNorms: _mapped_norms,
    MappedGram: _mapped_gram,
    MappedSquares: _mapped_squares,
}


def square(change: Any) -> int:
    """The exact squared norm of a vector of integers."""
    return sum(int(entry) ** 2 for entry in change)


def broken_promises(statistic: RowSum, rows: Floats) -> list[str]:
    """What of the contract does not hold on a block of rows."""
    broken = []
    before = rows.copy()
    with np.errstate(all="raise"):
        whole = statistic.sum(rows)
        alone = [statistic.sum(rows[:, i : i + 1].copy()) for i in range(rows.shape[1])]
    if any(square(term) > statistic.bound**2 for term in alone):
        broken.append("bound")
    if (sum(alone, start=np.zeros(statistic.size, np.int64)) != whole).any():
        broken.append("alone")
    for i in (0, rows.shape[1] // 2):
        rest = np.delete(rows, i, axis=1)
        if square(whole - statistic.sum(rest)) > statistic.bound**2:
            broken.append("neighbours")
    if (rows != before).any():
        broken.append("left as it was")
    if whole.tolist() != oracle(statistic, rows):
        broken.append("exact")
    return broken
