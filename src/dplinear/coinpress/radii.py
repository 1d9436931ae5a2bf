"""How far normal rows reach: the radii and ridges of CoinPress. They touch accuracy alone.

Biswas, Dong, Kamath, Ullman 2020 (arXiv 2006.06618). Whatever these functions return, the sums that
use it are clipped to it and pay for it; so no promise of privacy rests on them.
"""

import math

from scipy.special import chdtrc

_BETAS = tuple(10 ** (-step / 2) for step in range(2, 17))  # from the paper's .1 on


def tail(dimension: int, beta: float) -> float:
    """Return g(d, β): a normal vector of d coordinates is longer with probability of at most β.

    Laurent and Massart 2000, Lemma 1.
    """
    extra = math.log(1 / beta)
    return math.sqrt(dimension + 2 * math.sqrt(dimension * extra) + 2 * extra)


def length(dimension: int, noise: float) -> float:
    """Return what to clip whitened rows to: the best of g(d, β) for β of .1 and less.

    `noise` is the standard deviation on a covariance's diagonal, for rows of length 1. Longer rows
    have more of it, shorter ones are clipped more often; the squared errors of both together, for
    normal rows, are the least.
    """
    lengths = [tail(dimension, beta) for beta in _BETAS]

    def error(square: float) -> float:
        # E (q − square)₊ of a chi-square q is d·P(q' > square) − square·P(q > square), q' of d + 2.
        lost = dimension * chdtrc(dimension + 2, square) - square * chdtrc(dimension, square)
        spread = dimension * (dimension + 1) / 2 * (noise * square) ** 2
        return float(spread + lost**2 / dimension)

    return min(lengths, key=lambda each: error(each**2))


def reach(radius: float, length: float) -> float:
    """Return R: how far rows lie from the centre of a ball that holds their mean.

    `radius` is the ball's, `length` what rows are within of their mean.
    """
    return min(math.sqrt(radius**2 + 6 * radius + length**2), radius + length)


def ball(rows: float, sigma: float, dimension: int, beta: float) -> float:
    """Return the radius of the next ball: sampling errors of the mean, and noise of `sigma`."""
    return math.sqrt(1 / rows + sigma**2) * tail(dimension, beta)


def sampling(dimension: int, rows: float) -> float:
    """Return η: how far a sample covariance of whitened rows may be off, in every direction."""
    ratio = dimension / rows
    return 0.5 * (2 * math.sqrt(ratio) + ratio)


def noise_norm(sigma: float, dimension: int) -> float:
    """Return about the spectral norm of symmetric noise of `sigma` on its diagonal."""
    return sigma * math.sqrt(2 * dimension)
