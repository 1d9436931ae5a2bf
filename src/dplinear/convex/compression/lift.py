"""From the compressed domain back: of all θ with Φθ = ϑ, the one of the smallest gauge.

Step 2 of Mechanism ProjERM (Kasiviswanathan and Jin 2016): min ‖θ‖_C subject to Φθ = ϑ. Public
numbers in, public numbers out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from dplinear.arrays import Floats
from dplinear.convex.compression.images import TOLERANCE, Image
from dplinear.convex.compression.nearest import Nearest
from dplinear.convex.sets import Box, L2Ball, Moved

LARGE = 5e5  # numbers in Φ, beyond which a carried θ is kept rather than a smaller one sought
_STEPS = 30
_EXACT = 1e-10
_FINE = 1e-8  # what rounding allows a gap to prove
_CAP = 1_000
_PROGRAM = 3_000


@dataclass(frozen=True, eq=False)
class Lifted:
    """A θ of C, `source`, with ‖Φθ − ϑ‖ = `residual`.

    `gauge` bounds ‖θ‖_C from above, and `floor` that of every θ with Φθ = ϑ from below, so that
    both together prove the lift; they are for the set before it was moved, where it was. `method`
    is how θ was found:

    - "projection": there is no Φ, or ϑ is not in ΦC: θ is that of the nearest point;
    - "pseudo_inverse": the shortest θ, for the L2 ball;
    - "linear_program": boxes around the origin, of up to 3,000 coordinates;
    - "newton": other sets around the origin;
    - "mixture": sets away from the origin, for which the gauge says nothing: a θ of C with Φθ = ϑ,
      mixed from few atoms where C has a list of them;
    - "carried": the learner's own, of which no more is known.
    """

    source: Floats
    residual: float
    gauge: float
    floor: float
    method: str


def lift_point(image: Image, point: Floats, carried: Floats | None, how: str = "auto") -> Lifted:
    """Return the θ of C to release for a point of ΦC, of which a learner may have carried one.

    `how` is "carried", "gauge" for the least gauge, or "auto": the carried one if Φ is large.
    """
    if image.map is None:
        return Lifted(point, 0.0, 1.0, 0.0, "carried")
    large = image.map.source * image.map.target > LARGE
    if carried is not None and (how == "carried" or (how == "auto" and large)):
        gap = _distance(image, carried, point)
        return Lifted(carried, gap, image.base.gauge(carried), 0.0, "carried")
    return lift(image, point)


def lift(image: Image, point: Floats, near: Floats | None = None) -> Lifted:
    """Return the θ of C with Φθ = point whose gauge is least.

    Requires: `point` in ΦC to 1e-7 of its radius, or θ is that of the nearest point of ΦC. `near`
    is a θ to start from.
    Promises: θ ∈ C to 1e-8, whatever else.
    Departs from the paper: {θ : ‖θ‖_C ≤ 1} is C only where C has the origin in it. Elsewhere (the
    simplex) the least gauge may be that of a θ outside C; then any θ of C will do. A set that was
    moved is lifted as if it had not been.
    """
    base = image.base
    if isinstance(base, Moved):
        origin = np.asarray(image.forward(base.origin))
        start = None if near is None else base.inward(near)
        inner = lift(image.before, (point - origin) / base.factor, start)
        source = base.outward(inner.source)
        residual = _distance(image, source, point)
        return Lifted(source, residual, inner.gauge, inner.floor, inner.method)
    nearest = image.project(point, TOLERANCE / 10, near=near)
    missed = float(np.linalg.norm(nearest.point - point))
    if image.map is None or missed > TOLERANCE * image.radius:
        return Lifted(nearest.source, missed, 1.0, 0.0, "projection")
    if isinstance(base, L2Ball):
        return _shortest(image, point)
    away = float(np.linalg.norm(base.project(np.zeros(base.dimension))))
    if away > 1e-9 * base.radius:
        return Lifted(nearest.source, missed, 1.0, 0.0, "mixture")
    if isinstance(base, Box) and image.matrix is not None and base.dimension <= _PROGRAM:
        return _program(image, base, point, nearest)
    return _newton(image, point, nearest)


def _distance(image: Image, source: Floats, point: Floats) -> float:
    return float(np.linalg.norm(np.asarray(image.forward(source)) - point))


def _shortest(image: Image, point: Floats) -> Lifted:
    """Return the shortest θ."""
    source = image.base.project(_pseudo_inverse(image, point))
    gauge = image.base.gauge(source)
    return Lifted(source, _distance(image, source, point), gauge, gauge, "pseudo_inverse")


def _pseudo_inverse(image: Image, point: Floats) -> Floats:
    """Return the shortest θ with Φθ = point."""
    values, vectors = image.spectrum
    live = values > 1e-14 * values[-1]
    dual = vectors[:, live] @ ((vectors[:, live].T @ point) / values[live])
    return np.asarray(image.adjoint(dual))


def _program(image: Image, box: Box, point: Floats, nearest: Nearest) -> Lifted:
    """Minimise τ over θ and τ with τ·low ≤ θ ≤ τ·high and Φθ = point, by HiGHS."""
    count = box.dimension
    ends = sparse.csr_array(np.concatenate([-box.high, box.low])[:, None])
    unit = sparse.eye_array(count)
    sides: Any = sparse.hstack([sparse.vstack([unit, -unit]), ends])
    found = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=sides,
        b_ub=np.zeros(2 * count),
        A_eq=np.hstack([np.asarray(image.matrix), np.zeros((len(point), 1))]),
        b_eq=point,
        bounds=[(None, None)] * count + [(0, None)],
    )
    missed = float(np.linalg.norm(nearest.point - point))
    if found.x is None:
        return Lifted(nearest.source, missed, 1.0, 0.0, "mixture")
    slope = np.asarray(image.adjoint(found.eqlin.marginals))
    most = float(slope @ box.minimiser(-slope))
    floor = float(found.eqlin.marginals @ point) / most if most > 0 else 0.0
    source = box.project(found.x[:-1])
    corrected, gauge = _correct_residual(
        image, Nearest(point, source, 0.0), min(box.gauge(source), 1.0)
    )
    return Lifted(
        corrected, _distance(image, corrected, point), gauge, min(floor, gauge), "linear_program"
    )


def _newton(image: Image, point: Floats, nearest: Nearest) -> Lifted:
    """Find the least τ with point ∈ τ·ΦC by Newton's method on the distance, which is convex in τ.

    Van den Berg and Friedlander 2008. The steps come from below: each τ is the bound that the last
    residual r proves, ⟨r, point⟩ ≤ τ·max ⟨Φᵀr, θ⟩ over θ ∈ C, so that θ never leaves C. For sets
    with a list of atoms this solves a linear program, in finitely many steps.
    """
    source, residual, floor = np.zeros(image.base.dimension), point, 0.0
    members: tuple[int, ...] = ()
    for _ in range(_STEPS):
        length = float(np.linalg.norm(residual))
        slope = np.asarray(image.adjoint(residual))
        most = float(slope @ image.base.minimiser(-slope))
        if length <= _EXACT * image.radius or most <= 0:
            break
        bound = min(float(residual @ point) / most, 1.0)
        if bound <= floor * (1 + 1e-11):
            break
        start = None if floor == 0 else source / floor
        floor = bound
        tolerance = min(max(_FINE, 0.1 * length / (floor * image.radius)), TOLERANCE)
        found = image.project(point / floor, tolerance, near=start, cap=_CAP)
        source, residual = floor * found.source, point - floor * found.point
        members = found.members
    corrected, gauge = _correct_residual(image, Nearest(point, source, 0.0, members), floor)
    missed = _distance(image, corrected, point)
    if missed > 2 * float(np.linalg.norm(nearest.point - point)) + _EXACT * image.radius:
        missed = float(np.linalg.norm(nearest.point - point))
        corrected, gauge = nearest.source, 1.0
    return Lifted(corrected, missed, gauge, min(floor, gauge), "newton")


def _correct_residual(image: Image, found: Nearest, gauge: float) -> tuple[Floats, float]:
    """Return θ with what is left of the residual mended, if it stays in C."""
    if image.atoms is not None and image.base.atoms is not None:
        columns = image.atoms.columns(found.members)
        weights = np.asarray(np.linalg.lstsq(columns, found.point, rcond=None)[0], np.float64)
        reached = float(weights.sum()) if (weights >= 0).all() else np.inf
        corrected = image.base.atoms.mix(found.members, weights)
    else:
        rest = found.point - np.asarray(image.forward(found.source))
        corrected = found.source + _pseudo_inverse(image, rest)
        reached = image.base.gauge(corrected)
    # A hair outside is scaled back, which moves Φθ by as little.
    if 1 < reached <= 1 + _FINE:
        corrected, reached = corrected / reached, 1.0
    return (corrected, reached) if reached <= 1 else (found.source, gauge)
