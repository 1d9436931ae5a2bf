"""The setting of Dhaliwal et al. 2019, §5: two round clusters, 4 apart, and ε = 4.

Rows of neighbours differ by at most 1 in L1, as in the paper.
"""

import math
from typing import NamedTuple

import numpy as np

from dplinear.arrays import Floats, Integers
from dplinear.noise.simulation import Generator

EPSILON = 4.0
DELTA = 1e-6
APART = 4.0
ROWS = 1000
SETTINGS = ((3, 2), (10, 3), (50, 10), (100, 20))


class Blobs(NamedTuple):
    """Rows, and which of the two clusters each is in."""

    rows: Floats
    labels: Integers


def blobs(rows: int, dimension: int, generator: Generator) -> Blobs:
    """Draw two clusters of variance 1 in every direction, 4 apart in a random one."""
    direction = generator.standard_normal(dimension)
    direction *= APART / 2 / np.linalg.norm(direction)
    labels = generator.integers(0, 2, rows)
    noise = generator.standard_normal((rows, dimension))
    return Blobs(noise + np.outer(2 * labels - 1, direction), labels)


def agreement(labels: Integers, found: Integers) -> float:
    """Return the accuracy of two clusters, whichever is called which."""
    right = float(np.mean(labels == found))
    return max(right, 1 - right)


def paper_delta(dimension: int, k: int, *, whole_rows: bool) -> float:
    """Return the probability with which the paper's proof fails: from 1 on it says nothing.

    Theorem 3 has d·e^{−k/2}; Theorem 5 has 2k·e^{−kt²/2}, which is 1 at the t that it sets.
    """
    return 1.0 if whole_rows else dimension * math.exp(-k / 2)
