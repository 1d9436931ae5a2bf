"""Natural logarithms that are the same bits on every machine, and rational bounds of them.

The logarithm of a C library, or NumPy's own, differs in the last place between processors, and even
between the ways one array is laid out. So it is made of additions, multiplications and divisions
here, which IEEE 754 rounds in one way only.
"""

from decimal import Context, Decimal
from fractions import Fraction
from math import ceil, floor, sqrt

import numpy as np

from dplinear.arrays import Floats

_CONTEXT = Context(prec=80)  # whose logarithm is correctly rounded, whatever the machine
_UNIT = 2**64
_TERMS = 10
_HALF_ROOT = sqrt(0.5)
_LN2 = Fraction(_CONTEXT.ln(Decimal(2)))
# In two parts: an exponent of at most 11 bits times the first, of 40, is exact.
_HIGH = floor(_LN2 * 2**40) / 2**40
_LOW = float(_LN2 - Fraction(_HIGH))


def log(values: Floats) -> Floats:
    """Return the natural logarithm of each number.

    Requires: finite positive numbers, not below 2^-1022; of any others the result is some number.
    Promises: each a bitwise function of its own value, on every machine: splitting off a power of
    two is exact, and so is every rounding after it. Within 2^-50 of the exact logarithm, relative
    to it: with x = 2^e·m, m in [√½, √2), and s = (m − 1)/(m + 1), log x = e·log 2 + 2·artanh(s),
    |s| < 0.1716; eleven terms of that series leave less than 2^-60 of it.
    """
    mantissas, exponents = np.frexp(values)
    small = mantissas < _HALF_ROOT
    mantissas = np.where(small, 2 * mantissas, mantissas)
    exponents = (exponents - small).astype(np.float64)
    ratios = (mantissas - 1) / (mantissas + 1)
    squares = ratios * ratios
    series = np.full_like(squares, 1 / (2 * _TERMS + 1))
    for term in range(_TERMS - 1, 0, -1):
        series = series * squares + 1 / (2 * term + 1)
    ends = 2 * ratios + (2 * ratios * squares * series + exponents * _LOW)
    return np.asarray(exponents * _HIGH + ends)


def log1p(values: Floats) -> Floats:
    """Return log(1 + x) of each number, with what 1 + x rounds away put back.

    Requires: finite numbers of 0 or more. Promises: as `log`.
    """
    sums = 1 + values
    return log(sums) + (values - (sums - 1)) / sums


def log_bounds(number: Fraction) -> tuple[Fraction, Fraction]:
    """Return rational numbers below and above log(number), both equal to it at 1.

    Requires: a positive number.
    Promises: at most 2^-62 apart, and close relative to the logarithm where that is nearly 0, by
    1 − 1/y ≤ log y ≤ y − 1.
    """
    quotient = _CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))
    near = Fraction(_CONTEXT.ln(quotient)) * _UNIT
    # 80 digits leave less than one unit of error, for logarithms below 10^6.
    below, above = Fraction(floor(near) - 1, _UNIT), Fraction(ceil(near) + 1, _UNIT)
    return max(below, 1 - 1 / number), min(above, number - 1)
