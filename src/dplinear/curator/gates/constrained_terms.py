"""What a caller asks of a model in a constraint set, checked before any table is seen."""

from dataclasses import dataclass
from typing import Any

from dplinear.analyst.releases.units import read_bounds
from dplinear.arguments import choice, integer, positive, rejection
from dplinear.convex.compression.projections import KINDS
from dplinear.convex.losses import LOSSES, Loss
from dplinear.convex.sets import ConvexSet
from dplinear.convex.sets.given import Constraint, check_constraint, set_of
from dplinear.curator.labels import read_labels
from dplinear.curator.row_weights import RowWeights
from dplinear.planner.compression import Situation
from dplinear.planner.simulated_dimension import SIMULATE
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import CONSTRAINED

LIFTS = ("auto", "carried", "gauge")


@dataclass(frozen=True, eq=False)
class Terms:
    """What a caller asks for, as far as no table need be seen for it."""

    where: str
    loss: Loss
    target_bounds: tuple[float, float] | None
    classes: tuple[Any, Any] | None
    learner: str
    lift: str
    rows: float | None
    constraint: Constraint

    @classmethod
    def of(
        cls,
        where: str,
        *,
        loss: object,
        target_bounds: object,
        classes: object,
        constraint: Constraint,
        row_norm: object,
        mechanism: object,
        lift: object = "auto",
        expected_rows: object = None,
    ) -> "Terms":
        """Check the arguments."""
        if not isinstance(loss, Loss):
            loss = LOSSES[choice(loss, "loss", where, LOSSES)]()
        hint = "row_norm is public: it comes from what rows can be, never from the rows."
        positive(row_norm, "row_norm", where, hint=hint)
        unused = ("target_bounds", target_bounds) if loss.classes else ("classes", classes)
        if unused[1] is not None:
            raise rejection(unused[0], where, f"None for a {loss.name} loss", unused[1])
        check_constraint(constraint, where)
        return cls(
            where=where,
            loss=loss,
            target_bounds=None if loss.classes else read_bounds(target_bounds, where),
            classes=read_labels(classes, where) if loss.classes else None,
            learner=choice(mechanism, "mechanism", where, ("auto", *CONSTRAINED)),
            lift=choice(lift, "lift", where, LIFTS),
            rows=None if expected_rows is None else positive(expected_rows, "expected_rows", where),
            constraint=constraint,
        )

    def base(self, dimension: int) -> ConvexSet:
        """Return the set, in so many dimensions."""
        return set_of(self.constraint, dimension, self.where)

    @property
    def label_rules(self) -> dict[str, Any]:
        """How labels are read."""
        if self.classes is None:
            return {"target_bounds": self.target_bounds}
        numbers = [int(label) if isinstance(label, bool) else label for label in self.classes]
        return {"classes": tuple(numbers)}

    def situation(
        self,
        base: ConvexSet,
        asked: Guarantee,
        table: Any,
        relation: Neighbours,
        weights: RowWeights,
    ) -> Situation:
        """Return what the planner is told: of k rows of a unit, that they count as one.

        How many rows units have is private, whatever neighbours are.
        """
        rows = self.rows
        if rows is None and relation.rows_are_public and not weights.weighted:
            rows = float(max(table.shape[0], 1))
        if rows is not None and weights.rows_per_unit > 1:
            rows = max(rows / weights.rows_per_unit, 1.0)
        return Situation(base.dimension, asked, self.loss.name, base.atoms is not None, rows)


def read_projection(projection: object, dimension: object, where: str) -> str | None:
    """Return the kind of a projection, if it and its dimension go together."""
    if isinstance(dimension, str):
        choice(dimension, "dimension", where, (SIMULATE,))
    elif dimension is not None:
        integer(dimension, "dimension", where, low=1)
    if projection is None:
        if dimension is not None:
            raise rejection("dimension", where, "None without a projection", dimension)
        return None
    return choice(projection, "projection", where, ("auto", *KINDS))
