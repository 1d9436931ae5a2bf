"""Huber's line: one clip of residuals, no levelling, the budget of any descent."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dplinear.descent.common import PreparedDescent
from dplinear.descent.huber import CLIP, HuberDescent
from dplinear.exact.residual_sums import Gradient, Residuals
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, ApproxDP

from .descents import ADD_REMOVE, REPLACE, Rows, design, integer_rows, normal_rows, recorded

pytestmark = pytest.mark.heavy

SMALL = design(3)


def prepared(guarantee: Any = None, relation: Any = ADD_REMOVE) -> PreparedDescent:
    asked = ApproxDP(1.0, 1e-6) if guarantee is None else guarantee
    return HuberDescent(guarantee=asked, neighbours=relation).prepare(SMALL)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("count", [0, 50, 5000])
def test_residuals_are_clipped_at_one_width_and_never_levelled(count: int, relation: Any) -> None:
    ready = prepared(relation=relation)
    found = recorded(ready, normal_rows(1, SMALL, count), seed=2)
    kinds = [type(query.statistic) for query in found.asked]
    assert Gradient in kinds
    assert Residuals not in kinds
    assert found.solution.parameters["residual_clip"] == CLIP
    assert found.chain.spent <= ready.budget.square
    assert 0.97 < found.solution.parameters["spent"] <= 1


def line_of(rows: Any, scale: float) -> Any:
    """Minimise Huber's loss with this scale, by a general optimiser."""
    cells = rows / SMALL.shape.steps_per_unit
    features, target = cells[list(SMALL.features)].T, cells[SMALL.target]

    def loss(line: Any) -> float:
        sizes = np.abs(target - features @ line) / scale
        return float(np.where(sizes < CLIP, sizes**2 / 2, CLIP * sizes - CLIP**2 / 2).sum())

    return minimize(loss, np.zeros(SMALL.dimension), method="BFGS", options={"gtol": 1e-6}).x


def test_without_noise_it_is_hubers_line_though_errors_are_skewed() -> None:
    """Exponential errors, whose mean is not where Huber's line goes.

    Residuals of long rows are clipped sooner, which moves the level of skewed errors by less than a
    tenth of their standard deviation; the slopes, by a fiftieth.
    """
    random = simulation.generator(3)
    cells = random.normal(size=(3, 20_000)) / 4
    target = cells.sum(axis=0) / 3 + 0.1 * (random.exponential(size=20_000) - 1)
    rows = integer_rows(SMALL, cells, target)
    found = prepared(ZCDP(1e6)).run(Rows(rows), simulation.entropy(4))
    line = line_of(rows, found.parameters["residual_scale"])
    assert found.coefficients[0] == pytest.approx(line[0], abs=0.01)
    np.testing.assert_allclose(found.coefficients[1:], line[1:], atol=0.004)
    assert found.coefficients[0] < -0.01
