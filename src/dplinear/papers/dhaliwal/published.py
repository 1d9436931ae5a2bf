"""Projected rows with the noise of Dhaliwal, So, Parker-Wood and Beck 2019, Theorems 3 and 5.

Its scale ignores the matrix that was drawn, and may fail with a probability that is often 1.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from dplinear import arguments
from dplinear.exact.shape import Shape
from dplinear.mechanisms import ProjectedRows
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.rows.projection import PreparedProjection
from dplinear.mechanisms.rows.row_changes import Changes
from dplinear.mechanisms.rows.row_maps import RowMap, grid_cost
from dplinear.mechanisms.rows.row_noise import RowNoise, Setting
from dplinear.noise.entropy import Entropy
from dplinear.papers import constants
from dplinear.papers.accounts import NOT_KEPT
from dplinear.privacy.guarantees import ZCDP, ApproxDP, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.rounding import up
from dplinear.schema import Schema

_WHERE = "PublishedProjectedRows"


@dataclass(frozen=True, kw_only=True)
class PublishedProjectedRows(ProjectedRows):
    """Laplace noise of the published scale; the certificate says what is left of the promise."""

    calibration: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = {
            "projection": self.projection != "gaussian",
            "noise": self.noise not in {"auto", "laplace"},
            "label": self.label is not None,
            "guarantee": isinstance(self.guarantee, ZCDP),
            "drawn": self.drawn is not None,
        }
        for name in (name for name, given in wrong.items() if given):
            rule = "what the paper has: a new Gaussian projection, Laplace noise, ε, no label"
            hint = "the library's own projection has the others."
            raise arguments.rejection(name, _WHERE, rule, getattr(self, name), hint)

    def prepare(self, schema: Schema, shape: Shape, entropy: Entropy) -> PreparedProjection:
        """Draw the matrix, and take the noise as printed."""
        made = super().prepare(schema, shape, entropy)
        rows = made.projection
        failure = published_delta(rows.dimension, rows.k, self.neighbours)
        made.parameters = {**made.parameters, "published_delta": failure}
        return made

    def _choose_noise(
        self,
        schema: Schema,
        changes: Changes,
        rows: RowMap,
        trial: RowMap | None,
    ) -> tuple[RowNoise, Account]:
        """Return the paper's noise, and what is left of its promise.

        c bounds ‖vA‖₁ if no row of A is longer than 2√k·2^digits; a rounded entry adds half a step.
        """
        guarantee = self.guarantee
        assert isinstance(guarantee, PureDP | ApproxDP)  # noqa: S101 - checked when it was made
        by_cell = self.neighbours is Neighbours.ELEMENT
        constant = (
            constants.projected_rows(rows.dimension, self.k)
            if by_cell
            else constants.projected_whole_rows(self.k)
        )
        reach = changes.l1 if by_cell else changes.l2
        steps = constant.value * math.sqrt(self.k) * 2.0**rows.digits + self.k / 2
        setting = Setting(guarantee, self.neighbours, changes, rows)
        noise = setting.laplace_noise(up(reach * steps, 8), guarantee.epsilon)
        if noise is None:
            raise arguments.rejection("guarantee", _WHERE, "within reach", guarantee)
        cost = grid_cost(rows.dimension, self.k)
        delta = up(published_delta(rows.dimension, self.k, self.neighbours) + cost, 8)
        real = up(changes.image_l1(rows.integers) / (noise.scale * 2.0**noise.step), 8)
        drawn = f"The projection that was drawn makes it ε = {real:.3g}, as it happens."
        holds = ApproxDP(guarantee.epsilon, delta) if delta < 1 else None
        kept = holds is not None and delta <= getattr(guarantee, "delta", 0.0)
        notes = (drawn,) if kept else (drawn, NOT_KEPT)
        return noise, Account(guarantee, holds, None, notes)


def published_delta(dimension: int, k: int, neighbours: Neighbours) -> float:
    """Return the probability with which the paper's scale may fail: nothing is left from 1 on.

    Theorem 3: d·e^{−k/2} where one cell changes. Theorem 5: 1 where a row does.
    """
    return dimension * math.exp(-k / 2) if neighbours is Neighbours.ELEMENT else 1.0
