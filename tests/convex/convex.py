"""Sets written out as inequalities and support functions, and none of the library's code."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from dplinear.convex.sets import Box, ConvexSet, GroupBall, L1Ball, L2Ball, Moved, Polytope, Simplex
from dplinear.noise import simulation

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Oracle:
    """A set, its support function max ⟨direction, θ⟩, and how far a point is outside, about."""

    name: str
    made: ConvexSet
    support: Callable[[Floats], float]
    outside: Callable[[Floats], float]


def _groups(groups: NDArray[np.intp], point: Floats) -> list[float]:
    return [float(np.linalg.norm(point[groups == group])) for group in sorted(set(groups))]


def _hull_distance(vertices: Floats, point: Floats) -> float:
    """Return the least largest error of a mixture of vertices, by a linear program."""
    count, dimension = vertices.shape
    cost = np.append(np.zeros(count), 1.0)
    errors = np.hstack([vertices.T, -np.ones((dimension, 1))])
    minus = np.hstack([-vertices.T, -np.ones((dimension, 1))])
    one = np.append(np.ones(count), 0.0)[None]
    found = linprog(cost, np.vstack([errors, minus]), np.append(point, -point), one, np.ones(1))
    assert found.fun is not None
    return float(found.fun)


def _moved(oracle: Oracle, factor: float, shift: Floats) -> Oracle:
    return Oracle(
        f"moved {oracle.name}",
        Moved(oracle.made, factor, shift),
        lambda g: factor * oracle.support(g) + float(g @ shift),
        lambda x: factor * oracle.outside((x - shift) / factor),
    )


def sets(d: int) -> list[Oracle]:
    """Return one of each kind, in an even number of dimensions."""
    drawn = simulation.generator(d)
    low, high = -drawn.uniform(0.1, 1, d), drawn.uniform(0.1, 1, d)
    groups = np.arange(d) // 2
    around = drawn.standard_normal((3 * d, d))
    away = drawn.standard_normal((d, d)) + 4
    plain = [
        Oracle(
            "l1",
            L1Ball(d, 1.5),
            lambda g: 1.5 * float(np.abs(g).max()),
            lambda x: float(np.abs(x).sum()) - 1.5,
        ),
        Oracle(
            "l2",
            L2Ball(d, 0.7),
            lambda g: 0.7 * float(np.linalg.norm(g)),
            lambda x: float(np.linalg.norm(x)) - 0.7,
        ),
        Oracle(
            "simplex",
            Simplex(d, 2.0),
            lambda g: 2.0 * float(g.max()),
            lambda x: max(-float(x.min()), abs(float(x.sum()) - 2)),
        ),
        Oracle(
            "group",
            GroupBall(groups, 1.2),
            lambda g: 1.2 * max(_groups(groups, g)),
            lambda x: math.fsum(_groups(groups, x)) - 1.2,
        ),
        Oracle(
            "box",
            Box(low, high),
            lambda g: float(np.maximum(g * low, g * high).sum()),
            lambda x: float(np.maximum(low - x, x - high).max()),
        ),
        Oracle(
            "polytope",
            Polytope(around),
            lambda g: float((around @ g).max()),
            lambda x: _hull_distance(around, x),
        ),
        Oracle(
            "polytope away",
            Polytope(away),
            lambda g: float((away @ g).max()),
            lambda x: _hull_distance(away, x),
        ),
    ]
    small = drawn.uniform(-0.05, 0.05, d)
    return plain + [_moved(oracle, 1.7, small) for oracle in plain]
