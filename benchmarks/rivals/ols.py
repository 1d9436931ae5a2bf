"""Ordinary least squares: not private; the floor of every table."""

import numpy as np

from benchmarks.rivals.common import Array, Line, line, with_constant
from dplinear.noise.simulation import Generator
from dplinear.privacy import Guarantee


def fit(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return the least-squares line.

    Promises: no privacy at all; `guarantee` and `generator` are ignored.
    """
    del guarantee, generator
    wide = with_constant(rows)
    gram = wide.T @ wide
    return line(np.asarray(np.linalg.lstsq(gram, wide.T @ target, rcond=1e-13)[0], np.float64))
