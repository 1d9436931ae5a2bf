"""The rule of thumb for learners and dimensions."""

from typing import Any

import pytest

from dplinear.planner.compression import Choice, Situation, choose
from dplinear.privacy import ZCDP, ApproxDP, PureDP

USUAL = Situation(5000, ApproxDP(1.0, 1e-6), "squared", listed=True, rows=2e4)
PURE = Situation(5000, PureDP(1.0), "squared", listed=True, rows=2e4)


def test_what_is_given_stays() -> None:
    for learner in ("whitened", "mirror_descent"):
        made = choose(USUAL, learner=learner, projection="sparse", dimension=7)
        assert made == Choice(learner, "sparse", 7)
    assert choose(USUAL, projection=None).projection is None
    assert choose(USUAL, dimension=7).projection == "gaussian"
    assert choose(USUAL, projection="rademacher").dimension == 1000
    assert choose(USUAL, learner="whitened").dimension == 100
    assert choose(USUAL, learner="objective_perturbation", projection="sparse").dimension == 50


def test_gradients_need_no_projection() -> None:
    assert choose(USUAL) == Choice("noisy_gradient", None, None, {"steps": 30})
    few = Situation(5000, ApproxDP(0.1, 1e-6), "squared", listed=False, rows=2e4)
    assert choose(few).options == {"steps": 6}  # 2e4·0.0275/100
    hinge = choose(Situation(5000, ZCDP(0.5), "hinge", listed=False, rows=500))
    assert hinge == Choice("noisy_gradient", None, None, {"steps": 15, "rate": 24.0})


@pytest.mark.parametrize(
    ("loss", "rows"), [("squared", 3_500), ("logistic", 3_500), ("hinge", 2_000)]
)
def test_few_rows_are_for_mirror_descent(loss: str, rows: float) -> None:
    # μ = 1.
    for part, learner in ((0.99, "mirror_descent"), (1.01, "noisy_gradient")):
        made = choose(Situation(5000, ZCDP(0.5), loss, listed=True, rows=part * rows))
        assert (made.learner, made.projection) == (learner, None)


def test_pure_guarantees_choose_extreme_points_where_there_are_some() -> None:
    assert choose(PURE) == Choice("frank_wolfe", None, None, {"steps": 6, "stride": 0.05})
    few = Situation(5000, PureDP(0.1), "squared", listed=True, rows=2e4)
    assert choose(few).options == {"steps": 1, "stride": 0.03}
    plenty = Situation(5000, PureDP(1.0), "squared", listed=True, rows=1e8)
    assert choose(plenty).options == {"steps": 200, "stride": None}
    blunt = Situation(5000, PureDP(1.0), "squared", listed=False)
    assert choose(blunt) == Choice("output_perturbation", "gaussian", 50)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)], ids=str)
def test_small_sets_are_not_projected(guarantee: Any) -> None:
    assert choose(Situation(20, guarantee, "hinge", listed=False)).projection is None
