"""The nearest point of the image of a set, where it has no list of atoms to mix.

Both are about min ½‖Φθ − point‖² over θ ∈ C. Whatever θ is found, the best that a linear step can
promise bounds how far Φθ is from the nearest point of all: ‖Φθ − nearest‖² ≤ ⟨Φᵀ(Φθ − point), θ −
θ'⟩ for the minimiser θ' of the left factor over C.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.optimize import brentq

from dplinear.arrays import Floats
from dplinear.convex.sets.contract import ConvexSet

_LOOK = 10  # steps between two looks at the gap


class Stop(NamedTuple):
    """When to end: with a gap of at most `reach`, or after `cap` steps."""

    reach: float
    cap: int


class Mapped(Protocol):
    """A set and a linear map Φ."""

    @property
    def base(self) -> ConvexSet:
        """The set."""

    def forward(self, source: Floats) -> Floats:
        """Return Φθ."""

    def adjoint(self, direction: Floats) -> Floats:
        """Return Φᵀg."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """A point `point` = Φθ of an image, θ = `source`, at most `gap` away from the nearest one.

    `members` are the atoms that θ is mixed from, where it is.
    """

    point: Floats
    source: Floats
    gap: float
    members: tuple[int, ...] = ()


def certify_nearest(image: Mapped, source: Floats, point: Floats) -> Nearest:
    """Return Φθ with what is proved of its distance to the nearest point."""
    reached = np.asarray(image.forward(source))
    slope = np.asarray(image.adjoint(reached - point))
    promise = float(slope @ (source - image.base.minimiser(slope)))
    return Nearest(reached, source, math.sqrt(max(promise, 0.0)))


def in_ellipsoid(values: Floats, vectors: Floats, radius: float, point: Floats) -> Floats:
    """Return the u for which θ = Φᵀu, ‖θ‖ ≤ radius, brings Φθ nearest to a point.

    `values` and `vectors` are the eigenvalues and eigenvectors of ΦΦᵀ. θ solves a ridge regression,
    with the least penalty that makes it short enough.
    """
    inner = vectors.T @ point
    live = values > 1e-14 * values[-1]
    values, inner, vectors = values[live], inner[live], vectors[:, live]

    def excess(penalty: float) -> float:
        return float(np.linalg.norm(np.sqrt(values) * inner / (values + penalty))) - radius

    penalty = 0.0
    if len(values) and excess(0.0) > 0:
        high = float(np.linalg.norm(np.sqrt(values) * inner)) / radius
        penalty = float(brentq(excess, 0.0, high, xtol=1e-15 * high, rtol=1e-14))
    return np.asarray(vectors @ (inner / (values + penalty)))


def by_gradient(
    image: Mapped, point: Floats, start: Floats, steepest: float, stop: Stop
) -> Nearest:
    """Return a point near to the nearest by accelerated projected gradients.

    `steepest` is at least the largest eigenvalue of ΦΦᵀ. Nesterov's momentum starts anew where it
    points uphill (O'Donoghue and Candès 2015).
    """
    here = image.base.project(start)
    best = certify_nearest(image, here, point)
    ahead, momentum = here, 1.0
    for step in range(1, stop.cap + 1):
        if best.gap <= stop.reach:
            break
        slope = np.asarray(image.adjoint(np.asarray(image.forward(ahead)) - point))
        there = image.base.project(ahead - slope / steepest)
        if float((ahead - there) @ (there - here)) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum * momentum)) / 2
        ahead = there + (momentum - 1) / following * (there - here)
        here, momentum = there, following
        if step % _LOOK == 0 or step == stop.cap:
            now = certify_nearest(image, here, point)
            best = now if now.gap < best.gap else best
    return best
