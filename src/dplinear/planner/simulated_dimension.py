"""How many dimensions to project to, by simulation rather than by rule."""

from dplinear.convex.losses import Loss
from dplinear.convex.sets import ConvexSet
from dplinear.planner.compressed_forecast import forecast_compressed
from dplinear.planner.compression import Situation, choose_learner
from dplinear.privacy.neighbours import Neighbours

SIMULATE = "simulate"  # what a caller writes for a dimension
_TABLES = 2
_NONZEROS = 50.0


def simulated_dimension(
    situation: Situation,
    base: ConvexSet,
    loss: Loss,
    neighbours: Neighbours,
    *,
    learner: str,
    sparse: bool,
    clip: float | None,
) -> int | None:
    """Return the dimension in which a learner does best; None where the set has too few for that.

    Requires: public facts alone; whether a table is sparse is one, how many cells it has is not.
    Promises: the same facts give the same dimension. It may take half a minute.
    """
    found = forecast_compressed(
        max(2, round(situation.size)),
        base.dimension,
        constraint=base,
        loss=loss,
        nonzeros=min(_NONZEROS, base.dimension / 2) if sparse else None,
        guarantee=situation.guarantee,
        neighbours=neighbours,
        mechanisms=[choose_learner(situation) if learner == "auto" else learner],
        clip=clip,
        repetitions=_TABLES,
    )
    best = found.compressed
    return None if best is None else best.dimension
