"""The same draws from the same digits in ball arithmetic (python-flint): an independent way."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

from dplinear.arrays import BigIntegers
from dplinear.noise.bartlett import Bartlett
from dplinear.noise.reals import Reals


def _ball(k: int, precision: int) -> arb:
    return arb(mid=arb(int(k)), rad=arb(1)) * arb(2) ** -precision


def _triangle(triangle: Bartlett, precision: int) -> Any:
    integers = triangle.integers(precision)
    size = range(triangle.dimension)
    return arb_mat(
        [[_ball(integers[i, j], precision) if j <= i else arb(0) for j in size] for i in size]
    )


def cholesky(matrix: BigIntegers) -> Any:
    """Return the factor in balls, or None if they are too wide to say that there is one."""
    size = len(matrix)
    factor = [[arb(0)] * size for _ in range(size)]
    for j in range(size):
        for i in range(j, size):
            rest = arb(int(matrix[i, j]))
            for k in range(j):
                rest -= factor[i][k] * factor[j][k]
            if i == j and not rest > 0:
                return None
            factor[i][j] = rest.sqrt() if i == j else rest / factor[j][j]
    return arb_mat(factor)


def _rounded(matrix: Any, scale: Fraction) -> BigIntegers | None:
    factor = arb(scale.numerator) / scale.denominator
    found = [(cell * factor + arb(0.5)).floor().unique_fmpz() for cell in matrix.entries()]
    if any(cell is None for cell in found):
        return None
    integers = np.array([int(cell) for cell in found], object)
    return integers.reshape(matrix.nrows(), matrix.ncols())


def _settled(attempt: Callable[[int], BigIntegers | None]) -> BigIntegers:
    """Try at 128 bits, 256, … until every rounding is unique."""
    precision, before = 128, ctx.prec
    try:
        while True:
            ctx.prec = precision + 40
            found = attempt(precision)
            if found is not None:
                return found
            precision *= 2
    finally:
        ctx.prec = before


def wishart(triangle: Bartlett, scale: Fraction) -> BigIntegers:
    """Return round(scale·A·Aᵀ)."""

    def attempt(precision: int) -> BigIntegers | None:
        half = _triangle(triangle, precision)
        return _rounded(half * half.transpose(), scale)

    return _settled(attempt)


def sketch_matrix(matrix: BigIntegers, triangle: Bartlett, scale: Fraction) -> BigIntegers:
    """Return round(scale·L·A·Aᵀ·Lᵀ)."""

    def attempt(precision: int) -> BigIntegers | None:
        factor = cholesky(matrix)
        if factor is None:
            return None
        half = factor * _triangle(triangle, precision)
        return _rounded(half * half.transpose(), scale)

    return _settled(attempt)


def inverse_wishart(matrix: BigIntegers, triangle: Bartlett, scale: Fraction) -> BigIntegers:
    """Return round(scale·L·A⁻ᵀ·A⁻¹·Lᵀ)."""

    def attempt(precision: int) -> BigIntegers | None:
        factor = cholesky(matrix)
        if factor is None:
            return None
        try:
            half = _triangle(triangle, precision).solve(factor.transpose())
        except ZeroDivisionError:
            return None
        return _rounded(half.transpose() * half, scale)

    return _settled(attempt)


def sketch_rows(matrix: BigIntegers, draws: Reals, scale: Fraction) -> BigIntegers:
    """Return round(scale·Z·Lᵀ)."""
    size = len(matrix)

    def attempt(precision: int) -> BigIntegers | None:
        factor = cholesky(matrix)
        if factor is None:
            return None
        balls = [_ball(k, precision) for k in draws.integers(precision)]
        return _rounded(arb_mat(len(balls) // size, size, balls) * factor.transpose(), scale)

    return _settled(attempt)
