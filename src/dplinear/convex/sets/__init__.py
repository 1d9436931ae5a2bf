"""Constraint sets: what a model is known to be like, before any row is read.

`contract` says what a set can do; `l1`, `l2`, `simplex`, `group`, `polytope` and `box` are the
sets, and `moved` scales and shifts any of them. `norms`, `widths` and `multiples` have the bounds,
Gaussian widths and gauges that they share, `hull` the nearest point of a hull of atoms.
"""

from dplinear.convex.sets.box import Box
from dplinear.convex.sets.contract import Atoms, ConvexSet, Width
from dplinear.convex.sets.group import GroupBall
from dplinear.convex.sets.l1 import L1Ball
from dplinear.convex.sets.l2 import L2Ball
from dplinear.convex.sets.moved import Moved
from dplinear.convex.sets.polytope import Polytope
from dplinear.convex.sets.simplex import Simplex

__all__ = [
    "Atoms",
    "Box",
    "ConvexSet",
    "GroupBall",
    "L1Ball",
    "L2Ball",
    "Moved",
    "Polytope",
    "Simplex",
    "Width",
]
