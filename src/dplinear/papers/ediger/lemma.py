"""Lemma 3.1 and Figure 1: the covariance of z = x·y, and the bound that dominates it."""

from dataclasses import dataclass

import numpy as np

from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.papers.ediger.populations import Population


def covariance(coefficients: Floats, noise: float = 1.0) -> Floats:
    """Return the covariance of x·y for x ~ N(0, I), y = x·β + e, e of variance `noise`.

    It is ββᵀ + (‖β‖² + σ²)I. Its largest eigenvalue is 2‖β‖² + σ², along β; that is at most
    2E[y²].
    """
    square = float(coefficients @ coefficients)
    return np.outer(coefficients, coefficients) + (square + noise) * np.eye(len(coefficients))


def bound(coefficients: Floats, noise: float = 1.0) -> float:
    """Return the multiple of the identity that dominates that covariance: the paper's, squared.

    The paper prints √(2‖β‖² + 1)·I where it compares covariances; as a standard deviation it holds.
    """
    return 2 * float(coefficients @ coefficients) + noise


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points z in the plane, and the coefficients that made them."""

    coefficients: Floats
    points: Floats


def cloud(seed: int, rows: int = 2000) -> Cloud:
    """Draw z for two features."""
    table = Population(2).draw(rows, seed)
    return Cloud(table.coefficients, table.features * table.target[:, None])


def sample_covariance(coefficients: Floats, rows: int, seed: int) -> Floats:
    """Return the sample covariance of z."""
    generator = simulation.generator(seed)
    features = generator.standard_normal((rows, len(coefficients)))
    z = features * (features @ coefficients + generator.standard_normal(rows))[:, None]
    return np.asarray(np.cov(z, rowvar=False))
