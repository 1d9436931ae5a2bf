"""A private support vector machine for scikit-learn."""

from functools import partial
from numbers import Real
from typing import Any

from dplinear.arguments import positive
from dplinear.convex.sets import L2Ball
from dplinear.estimators.constrained import ConstrainedClassifier
from dplinear.ledger import AnyLedger
from dplinear.privacy.guarantees import Guarantee


class PrivateSVM(ConstrainedClassifier):
    """A linear support vector machine under differential privacy: the hinge loss in a ball.

    Requires: `constraint`, the radius of an L2 ball, or any set, on the coefficients of rows of
    norm 1: margins are at most this large, so a radius of some units lets the hinge bend. All else
    as `PrivateConstrainedClassifier` does.
    Promises: what scikit-learn's LinearSVC with the hinge loss would find within the set, but for
    the noise. After `fit`: `coef_`, `intercept_`, `classes_`, `fit_result_`, `certificate_`.
    """

    loss = "hinge"

    def __init__(
        self,
        constraint: Any = 5.0,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        row_norm: float | None = None,
        classes: Any = None,
        projection: str | None = "auto",
        dimension: int | str | None = None,
        mechanism: str = "auto",
        expected_rows: float | None = None,
        neighbours: str = "add_remove",
        fit_intercept: bool = True,
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        self.constraint = constraint
        self.epsilon = epsilon
        self.delta = delta
        self.row_norm = row_norm
        self.classes = classes
        self.projection = projection
        self.dimension = dimension
        self.mechanism = mechanism
        self.expected_rows = expected_rows
        self.neighbours = neighbours
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.guarantee = guarantee
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound

    def _constraint(self) -> Any:
        if isinstance(self.constraint, Real):
            return partial(L2Ball, radius=positive(self.constraint, "constraint", self._where))
        return self.constraint
