"""Simulated tables for coverage: Gram matrices of normal rows, drawn directly, and their releases.

A design fixes the population and the mechanism. Nothing depends on the number of rows but the
numbers drawn, so a table of 100,000 rows costs as much as one of 100.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dplinear.analyst.noise_models.matrices import NoiseModel, SymmetricGaussian
from dplinear.analyst.regression.problem import Problem
from dplinear.arrays import Floats
from dplinear.noise.simulation import Generator, generator
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ApproxDP

DELTA = 1e-6
MEAN = 0.1  # of every column, where there is an intercept


@dataclass(frozen=True)
class Design:
    """A population of bounded rows, a guarantee, and the regression of the last column.

    `bounds` is "ball": features of total variance 1, target of variance 0.1, rows clipped to a
    squared norm of 3 (4 with the intercept); or "box": every column within 4 standard deviations on
    average, rows clipped to a squared norm of as many as there are columns. The features'
    covariance has geometric eigenvalues down to 1/`condition` of the largest, turned at random
    unless not `turned`. `law` None means Analyze Gauss, calibrated exactly.
    """

    epsilon: float = 0.5
    condition: float = 1.0
    rows: int = 100_000
    features: int = 10
    fit: float = 0.5
    bounds: str = "ball"
    intercept: bool = True
    turned: bool = True
    replace: bool = False
    law: NoiseModel | None = None

    @cached_property
    def covariance(self) -> Floats:
        """Of the features and the target, in cells."""
        d, chance = self.features, generator(1)
        values = self.condition ** (-np.arange(d) / (d - 1))
        values *= (1.0 if self.bounds == "ball" else d / 16) / values.sum()
        turn = np.linalg.qr(chance.standard_normal((d, d)))[0] if self.turned else np.eye(d)
        inner = turn @ np.diag(values) @ turn.T
        slopes = chance.standard_normal(d)
        variance = 0.1 if self.bounds == "ball" else 1 / 16
        slopes *= np.sqrt(self.fit * variance / (slopes @ inner @ slopes))
        crossed = (inner @ slopes)[:, None]
        return np.block([[inner, crossed], [crossed.T, np.array([[variance]])]])

    @cached_property
    def truth(self) -> Floats:
        """The population's coefficients, the intercept first."""
        slopes = np.linalg.solve(self.covariance[:-1, :-1], self.covariance[:-1, -1])
        level = [MEAN * (1 - slopes.sum())] if self.intercept else []
        return np.asarray([*level, *slopes], np.float64)

    @cached_property
    def noise(self) -> NoiseModel:
        """The law of the release."""
        if self.law is not None:
            return self.law
        norm = (3 if self.bounds == "ball" else self.features + 1) + self.intercept
        sensitivity = norm * (np.sqrt(2) if self.replace else 1.0)
        scale = calibrate.gaussian(ApproxDP(self.epsilon, DELTA), float(sensitivity))
        return SymmetricGaussian(scale**2, scale**2 / 2)

    @cached_property
    def least(self) -> float:
        """The least eigenvalue of the features' expected moments (with the intercept, if any)."""
        inner = self.covariance[:-1, :-1]
        if self.intercept:
            d = self.features
            mean = np.full((d, 1), MEAN)
            inner = np.block([[np.ones((1, 1)), mean.T], [mean, inner + MEAN**2]])
        return self.rows * float(np.linalg.eigvalsh(inner)[0])

    @property
    def predicted(self) -> float:
        """The noise's predicted norm over the least eigenvalue: above 1/2 refusing is allowed."""
        size = self.features + 1 + self.intercept
        around = self.rows * np.eye(size) * float(np.linalg.eigvalsh(self.covariance)[-1])
        return self.noise.spread(around) / self.least

    def problems(self, count: int, seed: int = 0) -> Iterator[Problem]:
        """Draw tables, release each, and pose the regression."""
        chance = generator(seed)
        for _ in range(count):
            gram = self.table(chance)
            whole = self.noise.unbiased_estimate(self.noise.draw(gram, chance))
            yield self.problem(whole)

    def table(self, chance: Generator) -> Floats:
        """Draw the Gram matrix of a table: the mean and the scatter, which are independent."""
        half = np.linalg.cholesky(self.covariance)
        d = len(half)
        freedom = self.rows - self.intercept
        triangle = np.tril(chance.standard_normal((d, d)), -1)
        triangle[np.arange(d), np.arange(d)] = np.sqrt(chance.chisquare(freedom - np.arange(d)))
        scatter = half @ triangle @ triangle.T @ half.T
        if not self.intercept:
            return np.asarray(scatter)
        mean = MEAN + half @ chance.standard_normal(d) / np.sqrt(self.rows)
        edge = self.rows * np.append(1.0, mean)
        gram = np.empty((d + 1, d + 1))
        gram[0], gram[:, 0] = edge, edge
        gram[1:, 1:] = scatter + self.rows * np.outer(mean, mean)
        return gram

    def problem(self, whole: Floats) -> Problem:
        """Pose the regression of the last cell on all others."""
        p = len(whole) - 1
        known = self.replace or not self.intercept
        return Problem(
            whole=whole,
            noise_model=self.noise,
            transform=np.eye(p + 1),
            penalty=np.zeros(p),
            readout=np.eye(p),
            offset=np.zeros(p),
            names=tuple(f"x{i}" for i in range(p)),
            target="y",
            count=float(self.rows if known else whole[0, 0]),
        )
