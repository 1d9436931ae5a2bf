"""The grids that real draws are rounded to before they are released: public powers of two.

A step is a function of schema, guarantee and shape (and of a bound on the least eigenvalue, where
that was released before), never of the table itself. Each is so fine that rounding does not show,
and so coarse that float64 holds what is released, which files then keep in few digits. Rounding
adds step²/12 to the variance of an entry. In parts per million of its own deviation it moves a
coefficient, root mean square, for H = least·I (more for no other H): by 3 to 6 from a sketch's rows
(up to 9 if there are but two for each column), by less than 1 from its matrix, and by .2·√ν to
.3·√ν from an inverse-Wishart draw of ν degrees.
"""

import math
from fractions import Fraction

import numpy as np

from dplinear.arrays import BigIntegers, Floats


def row_step(least: float) -> Fraction:
    """Return the step of sketched rows, whose covariance is at least `least`·I: 2^−16·√least."""
    return power_of_two(2.0**-16 * math.sqrt(least))


def matrix_step(least: float, rows: int) -> Fraction:
    """Return the step of the matrix of a sketch: 2^−20·least/√rows.

    Its entries have deviations of at least least/√rows.
    """
    return power_of_two(2.0**-20 * least / math.sqrt(rows))


def inverse_step(least: float, degrees: int) -> Fraction:
    """Return the step of an inverse-Wishart draw, about H/degrees: 2^−20·least/degrees."""
    return power_of_two(2.0**-20 * least / degrees)


def ridge_units(ridge: float, least: float, unit: int) -> int:
    """Return a ridge in whole units of a grid, `unit` of which make 1: at least `ridge`.

    It is 1 at least, and 2^−30·least, which nobody sees beside H ≥ least: a matrix that is known
    not to be near singular is decomposed to fewer digits.
    """
    wanted = max(Fraction(ridge), Fraction(least) / (1 << 30))
    return max(math.ceil(wanted * unit), 1)


def power_of_two(most: float) -> Fraction:
    """Return the largest power of two that is at most a float above 0."""
    return Fraction(2) ** (math.frexp(most)[1] - 1)


def cells(integers: BigIntegers, step: Fraction) -> Floats:
    """Return integers·step in float64, each rounded once: Python divides integers of any size."""
    if math.frexp(float(step))[0] == 0.5 and Fraction(float(step)) == step:
        return np.asarray(integers.astype(np.float64) * float(step))
    above, below = step.numerator, step.denominator
    exact = [int(entry) * above / below for entry in integers.ravel()]
    return np.array(exact, np.float64).reshape(integers.shape)
