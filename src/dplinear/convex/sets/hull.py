"""The nearest point of a convex hull of finitely many atoms, to the last digits.

Wolfe 1976, "Finding the nearest point in a polytope": a few atoms at a time, the nearest point of
the flat through them, and the atom that promises most. It ends after finitely many steps, with the
atom that proves how near it is.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dplinear.arrays import Floats
from dplinear.convex.sets.contract import Atoms

# Weights below this are rounding, and their atoms leave.
_NOTHING = 1e-14
_STALLS = 5

Start = tuple[list[int], Floats]


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of atoms; `gap` bounds how far it is from the nearest point of the hull."""

    indices: tuple[int, ...]
    weights: Floats
    point: Floats
    gap: float


def nearest_mixture(
    atoms: Atoms, point: Floats, *, tolerance: float, cap: int, start: Start | None = None
) -> Mixture:
    """Return the mixture of atoms nearest to a point.

    Promises: a gap of at most `tolerance`, unless `cap` steps have passed or rounding forbids it; a
    mixture of atoms no one of which is in the flat of the others. `start` is a mixture to begin
    with: different atoms and weights.
    """
    members, weights = start or ([], np.zeros(0))
    if not members:
        members, weights = [atoms.lowest(-point)], np.ones(1)
    columns = atoms.columns(members)
    members, columns, weights = _settle(members, columns, weights, point)
    best = Mixture((), weights, point, np.inf)
    shortest, stalls = np.inf, 0
    for _ in range(cap):
        reached = columns @ weights
        offset = reached - point
        newcomer = atoms.lowest(offset)
        column = atoms.columns([newcomer])
        # ‖reached − nearest‖² ≤ ⟨offset, reached − nearest⟩ − ⟨nearest − point, reached − nearest⟩,
        # of which the second is not negative and the first at most what the best atom promises.
        gap = float(np.sqrt(max(float(offset @ (reached - column[:, 0])), 0.0)))
        if gap < best.gap:
            best = Mixture(tuple(members), weights, reached, gap)
        length = float(np.linalg.norm(offset))
        stalls = stalls + 1 if length >= shortest else 0
        shortest = min(shortest, length)
        if gap <= tolerance or newcomer in members or stalls > _STALLS:
            break
        members = [*members, newcomer]
        columns = np.hstack([columns, column])
        weights = np.append(weights, 0.0)
        members, columns, weights = _settle(members, columns, weights, point)
    return best


def _settle(
    members: list[int], columns: Floats, weights: Floats, point: Floats
) -> tuple[list[int], Floats, Floats]:
    """Return the atoms and weights of the nearest point of a flat that is also a mixture."""
    while True:
        wish = _flat(columns, point)
        leaving = wish <= _NOTHING
        if not leaving.any() or len(members) == 1:
            return members, columns, np.maximum(wish, 0.0) / np.maximum(wish, 0.0).sum()
        # As far towards the wish as all weights allow; whoever has none left then leaves.
        shares = weights[leaving] / np.maximum(weights[leaving] - wish[leaving], _NOTHING)
        share = min(float(shares.min()), 1.0)
        weights = weights + share * (wish - weights)
        gone = weights <= _NOTHING
        gone[np.flatnonzero(leaving)[int(shares.argmin())]] = True
        members = [member for member, out in zip(members, gone, strict=True) if not out]
        columns, weights = columns[:, ~gone], weights[~gone]
        weights = weights / weights.sum()


def _flat(columns: Floats, point: Floats) -> Floats:
    """Return the weights, which add up to 1, of the nearest point of the flat through columns."""
    if columns.shape[1] == 1:
        return np.ones(1)
    first = columns[:, 0]
    edges = columns[:, 1:] - first[:, None]
    aim = point - first
    if edges.shape[1] <= edges.shape[0]:
        basis, upper = np.linalg.qr(edges)
        pivots = np.abs(np.diag(upper))
        if pivots.min() > 1e-11 * pivots.max():
            rest = solve_triangular(upper, basis.T @ aim)
            return np.concatenate([[1 - rest.sum()], rest])
    rest = np.linalg.lstsq(edges, aim, rcond=1e-11)[0]
    return np.concatenate([[1 - rest.sum()], rest])
