"""How well a row can be guessed from its projection by someone who knows the matrix.

Two attacks, with their expected errors in closed form: least squares, which needs to know nothing
else, and the best linear guess for cells that are uniform on [−1, 1]. What a promise of privacy
bounds is more than this; it is here as a plain picture of what a leaked matrix would be worth.
"""

import math
from typing import NamedTuple

import numpy as np

from dplinear.arrays import Floats

PRIOR = 1 / 3  # the variance of a cell that is uniform on [−1, 1]


class Attack(NamedTuple):
    """Root mean squared errors per cell, in the cells' units."""

    least_squares: float
    best_linear: float
    guessing: float  # of someone who sees no release


def attack(matrix: Floats, variance: float, *, before: bool) -> Attack:
    """Return the errors of guesses x̂ of x from z = xP + noise.

    Requires: P, of shape (features, k); the noise's variance in a number of z, or in a cell where
    the noise came `before` the projection.
    Promises: for least squares, x̂ = zP⁺: what P loses of a row is guessed as 0, and the noise in
    the directions that it keeps comes through P⁺. The best linear guess weighs each direction by
    what it says against the prior.
    """
    features = len(matrix)
    strengths = np.linalg.svd(matrix, compute_uv=False)
    kept = strengths[strengths > 1e-9 * strengths.max(initial=0.0)] ** 2
    lost = PRIOR * (features - len(kept))
    through = np.full(len(kept), variance) if before else variance / kept
    shrunk = PRIOR * through / (PRIOR + through)
    return Attack(
        math.sqrt((lost + float(through.sum())) / features),
        math.sqrt((lost + float(shrunk.sum())) / features),
        math.sqrt(PRIOR),
    )
