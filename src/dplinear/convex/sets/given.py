"""How callers name a constraint: an L1 radius, a set, or what makes one of so many dimensions."""

from collections.abc import Callable
from numbers import Real

from dplinear.arguments import positive, rejection
from dplinear.convex.sets.contract import ConvexSet
from dplinear.convex.sets.l1 import L1Ball

Constraint = float | ConvexSet | Callable[[int], ConvexSet]

_SMALLEST = 1e-100  # so that squares, of losses or of sensitivities, are floats


def check_constraint(constraint: object, where: str) -> None:
    """Raise for what is neither a radius nor a set nor makes one."""
    if isinstance(constraint, ConvexSet) or callable(constraint):
        return
    hint = "write an L1 radius such as 1.0, a set such as L2Ball(d), or a class such as L2Ball."
    positive(constraint, "constraint", where, hint=hint)


def set_of(constraint: Constraint, dimension: int, where: str) -> ConvexSet:
    """Return the set, in so many dimensions."""
    made: object = constraint
    if isinstance(made, Real):
        made = L1Ball(dimension, float(made))
    if not isinstance(made, ConvexSet) and callable(made):
        try:
            made = made(dimension)
        except TypeError:  # a class that needs more than that, or a function of something else
            made = constraint
    if not isinstance(made, ConvexSet) or made.dimension != dimension:
        rule = f"a set in {dimension} dimensions: the features, and the intercept's if any"
        raise rejection("constraint", where, rule, made)
    if not _SMALLEST <= made.diameter <= 1 / _SMALLEST:
        rule = f"a set of a diameter from {_SMALLEST:g} to {1 / _SMALLEST:g}"
        raise rejection("constraint", where, rule, made)
    return made
