"""Uniform integers, exact."""

from dplinear import arguments
from dplinear.noise.entropy import Entropy


def uniform_below(total: int, entropy: Entropy) -> int:
    """Return a uniform integer from 0 to total − 1."""
    length = arguments.integer(total, "total", "uniform_below", low=1).bit_length()
    while (value := entropy.bits(length)) >= total:
        pass
    return value
