"""The nearest point of the image of a group-L1 ball: few groups at a time.

Most groups are zero at the nearest point. So the problem is solved for some of them, by gradients
in few coordinates, and those that would pull hardest join, until none would.
"""

from dataclasses import dataclass

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.compression.nearest import Nearest, Stop, by_gradient, certify_nearest
from dplinear.convex.sets.group import GroupBall

_ROUNDS = 50
_JOINING = 10
_STALLS = 1


@dataclass(frozen=True, eq=False)
class _Part:
    """Some groups of a ball, and their columns of Φ."""

    base: GroupBall
    matrix: Floats

    def forward(self, source: Floats) -> Floats:
        return np.asarray(self.matrix @ source)

    def adjoint(self, direction: Floats) -> Floats:
        return np.asarray(direction @ self.matrix)


def by_groups(ball: GroupBall, matrix: Floats, point: Floats, start: Floats, stop: Stop) -> Nearest:
    """Return a point of Φ·ball near to the nearest, Φ = `matrix`; `stop.cap` is for each part."""
    image = _Part(ball, matrix)
    source = ball.project(start)
    best = certify_nearest(image, source, point)
    working = ball.group_norms(source) > 0
    stalls = 0
    for _ in range(_ROUNDS):
        if best.gap <= stop.reach or stalls > _STALLS:
            break
        pulls = ball.group_norms(np.asarray(image.adjoint(best.point - point)))
        joining = np.argsort(np.where(working, -1.0, pulls))[-_JOINING:]
        working[joining] = True
        here = working[ball.groups]
        part = _Part(GroupBall(ball.groups[here], ball.radius), matrix[:, here])
        steepest = float(np.linalg.eigvalsh(part.matrix @ part.matrix.T)[-1]) * (1 + 1e-9)
        inner = Stop(max(stop.reach / 2, best.gap / 50), stop.cap)
        found = by_gradient(part, point, best.source[here], steepest, inner)
        source = np.zeros(ball.dimension)
        source[here] = found.source
        now = certify_nearest(image, source, point)
        working = ball.group_norms(source) > 0
        stalls = 0 if now.gap < 0.9 * best.gap else stalls + 1
        best = now if now.gap < best.gap else best
    return best
