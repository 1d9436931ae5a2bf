"""How much the best attacker learns of one cell from a sketch, by simulation.

The attacker knows the law of the noise and every other cell, and holds a number of values of this
one for equally likely. Rows of the sketch are independent N(0, K + aaᵀ), a the row that holds the
cell: with K whitened away, the likelihood of a value needs the released rows along `a` alone.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from dplinear.noise import simulation

from .tables import Matrix

DRAWS = 20_000
# For a public column without noise, so that its matrix can be inverted: far below any true noise.
FLOOR = 1e-6


class Leak(NamedTuple):
    """The mutual information in bits: its estimate, and bounds on either side of it."""

    bits: float
    low: float
    high: float


def leak(
    others: Matrix, ridges: Matrix, rows: Matrix, sketch_rows: int, alarm: float, seed: int = 1
) -> Leak:
    """Return what is learnt of which of `rows` completes the table, each as likely.

    `others` are all other rows of the table. The bounds fail with probability `alarm` each: the
    information given the release is between 0 and log₂ of the number of values (Maurer and Pontil
    2009, Theorem 4).
    """
    generator = simulation.generator(seed)
    covariance = others.T @ others + np.diag(np.maximum(ridges, FLOOR))
    white = linalg.solve_triangular(np.linalg.cholesky(covariance), rows.T, lower=True)
    along = np.linalg.qr(white)[1]
    dimension, values = along.shape
    truth = generator.integers(0, values, DRAWS)
    drawn = generator.standard_normal((DRAWS, sketch_rows, dimension))
    drawn += generator.standard_normal((DRAWS, sketch_rows, 1)) * along.T[truth][:, None, :]
    lengths = (along**2).sum(0)
    squares = np.square(drawn @ along).sum(1)
    logs = (squares / (1 + lengths) - sketch_rows * np.log1p(lengths)) / 2
    posterior = np.exp(logs - logs.max(1, keepdims=True))
    posterior /= posterior.sum(1, keepdims=True)
    uncertain = -(posterior * np.log2(np.maximum(posterior, 1e-300))).sum(1)
    learnt = np.log2(values) - uncertain
    logarithm = np.log(2 / alarm)
    wide = 7 * np.log2(values) * logarithm / (3 * (DRAWS - 1))
    slack = float(np.sqrt(2 * learnt.var(ddof=1) * logarithm / DRAWS) + wide)
    mean = float(learnt.mean())
    return Leak(mean, mean - slack, mean + slack)
