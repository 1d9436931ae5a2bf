"""How much noise keeps a cell within so many bits, and how many bits noise lets through.

A cell is mapped to a vector v of `freedom` dimensions, of total variance at most `spread` whatever
the prior, and v + N(0, variance·I) is seen. Among vectors of that variance a normal one says most,
so at most (freedom/2)·log₂(1 + spread/(freedom·variance)) bits are learnt (docs/theory/bits.md).
"""

import math

from dplinear import arguments
from dplinear.privacy.roots import smallest_private
from dplinear.privacy.rounding import up

# Beyond these no cell means anything: floats themselves have 64 bits.
_FEWEST, _MOST = 2.0**-60, 64.0
_LEAST_VARIANCE = 1.0  # of grid noise, in units of the grid


def variance_for(bits: float, *, spread: float = 1.0, freedom: int = 1) -> float:
    """Return the least variance that lets at most `bits` through, rounded up.

    With spread and freedom 1 this is 1/(2^{2·bits} − 1), for a cell in [−1, 1].
    """
    where = "variance_for"
    arguments.real(bits, "bits", where, low=_FEWEST, high=_MOST)
    growth = math.expm1(2 * bits / freedom * math.log(2))
    return up(arguments.positive(spread, "spread", where) / freedom / growth, 16)


def grid_bits_through(
    variance: float, *, spread: float, freedom: int = 1, places: int = 1
) -> float:
    """Return the most bits that discrete Gaussian noise lets through, rounded up.

    Requires: a vector of `places` integers, of total variance at most `spread` whatever the prior,
    in `freedom` dimensions; noise of parameter `variance` ≥ 1 on each, in units of the grid.
    Promises: the bound of docs/theory/additive-noise.md, at every prior.
    """
    where = "grid_bits_through"
    variance = arguments.real(variance, "variance", where, low=_LEAST_VARIANCE)
    step = 1 / (12 * variance)
    ratio = arguments.positive(spread, "spread", where) / freedom / variance
    wide = freedom * math.log1p(step + ratio)
    narrow = (places - freedom) * math.log1p(step)
    # The entropy of the discrete Gaussian is short of the continuous one's by less than this: the
    # first term of its series is 2x·e^(−x), x = 2π²·variance, and the others add less than 1%.
    exponent = 2 * math.pi**2 * variance
    tails = places * 2.02 * exponent * math.exp(-exponent)
    return up(((wide + narrow) / 2 + tails) / math.log(2), 32)


def grid_variance_for(bits: float, *, spread: float, freedom: int = 1, places: int = 1) -> float:
    """Return the least variance of discrete Gaussian noise that lets at most `bits` through.

    Requires: as `grid_bits_through`. Promises: at least 1; the result itself is on the private
    side.
    """
    arguments.positive(bits, "bits", "grid_variance_for")

    def through(variance: float) -> float:
        return grid_bits_through(variance, spread=spread, freedom=freedom, places=places)

    if through(_LEAST_VARIANCE) <= bits:
        return _LEAST_VARIANCE
    guess = variance_for(bits, spread=spread + freedom / 12, freedom=freedom)
    return smallest_private(
        lambda variance: through(max(variance, _LEAST_VARIANCE)), bits, max(guess, 1.0)
    )
