"""Small tables for tests of the benchmarks' rivals, their extremal neighbours, and fixed draws."""

from typing import Any

import numpy as np

from benchmarks.rivals import Array, Line
from dplinear.noise import simulation
from dplinear.privacy import GDP, ApproxDP

ASKED = ApproxDP(1.0, 1e-6)
MU = 0.236704380663436
FREE = GDP(1e9)
BOUND = 2 * 0.25 * 3  # two typical norms of nine cells


class Constant:
    """A generator whose normal draws are all the same number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def standard_normal(self, size: Any = None) -> Any:
        return self.value if size is None else np.full(size, self.value)


def fixed(value: float) -> Any:
    return Constant(value)


def sample(n: int = 2000, d: int = 3, seed: int = 1) -> tuple[Array, Array]:
    generator = simulation.generator(seed)
    rows = np.clip(generator.standard_normal((n, d)) / 4, -1, 1)
    target = 0.1 + rows @ np.linspace(-0.5, 0.5, d) + generator.standard_normal(n) / 8
    return rows, np.clip(target, -1, 1)


def gap(one: Line, other: Line) -> float:
    wrong = np.abs(one.coefficients - other.coefficients).max()
    return float(max(wrong, abs(one.intercept - other.intercept)))


def neighbours(d: int = 8) -> list[tuple[Array, Array, Array, Array]]:
    """Return tables with and without an extremal row: corners of the box, and short rows."""
    rows, target = sample(50, d)
    extremes = [np.ones(d), -np.ones(d), np.eye(d)[0], np.zeros(d), np.full(d, 0.4)]
    return [
        (rows, target, np.vstack([rows, row]), np.append(target, goal))
        for row in extremes
        for goal in (-1.0, 1.0, 0.3)
    ]
