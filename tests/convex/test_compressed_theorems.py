"""The calculators of compressed learning against the paper's formulas, and each other."""

import dataclasses
import math

import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.convex.compression import theorems
from dplinear.convex.compression.theorems import Setting
from dplinear.privacy import GDP, ApproxDP, PureDP
from refusals import refused

SETTING = Setting(rows=20_000, width=4.0, size=1.5, lipschitz=2.0, subgaussian=1.3)
PURE, APPROXIMATE = PureDP(0.7), ApproxDP(0.7, 1e-5)
SPENT = 20_000 * 0.7
SPREAD = (4 + math.sqrt(math.log(20_000))) ** 2 * math.log(20_000 / 0.05)


def test_the_dimension_of_theorem_3_11() -> None:
    first = 1.3**2 * SPENT * SPREAD / 4
    second = 1.3 ** (4 / 3) * SPENT ** (2 / 3) * SPREAD / 4 ** (4 / 3)
    assert abs(theorems.projected_dimension(SETTING, APPROXIMATE, 0.05) - first) <= 1
    assert abs(theorems.projected_dimension(SETTING, PURE, 0.05) - second) <= 1
    same = theorems.projected_dimension(SETTING, ApproxDP(0.7, 0.0), 0.05)
    assert same == theorems.projected_dimension(SETTING, PURE, 0.05)


def test_the_dimension_that_is_asked_for_is_never_within_reach() -> None:
    """n = 20,000, d = 10,000, the L1 ball: more dimensions than there are."""
    setting = Setting(rows=20_000, width=math.sqrt(2 * math.log(20_000)), size=1.0)
    for guarantee in (PureDP(1.0), ApproxDP(1.0, 1e-6)):
        assert theorems.projected_dimension(setting, guarantee, 0.05) > 10_000


def test_lemma_3_10_and_corollary_3_9() -> None:
    needed = 1.3**4 / 0.1**2 * SPREAD
    assert abs(theorems.preserving_dimension(SETTING, 0.1, 0.05) - needed) <= 1
    assert theorems.preserved_distortion(SETTING, round(needed), 0.05) == pytest.approx(0.1)
    assert theorems.risk_gap(SETTING, 0.1) == pytest.approx(2 * 0.1 * 1.5)
    expected = 1.3**4 * (4 / 20 + 1.5 * math.sqrt(math.log(20)) / 20)
    assert theorems.lift_distance(SETTING, 400, 0.05) == pytest.approx(expected)


def test_the_rates_of_table_1() -> None:
    pure = 1.3 ** (4 / 3) * 2 * 4 ** (2 / 3) * 1.5 / SPENT ** (1 / 3)
    approximate = 1.3 * 2 * math.sqrt(4) * 1.5 * math.log(1e5) ** 2 / math.sqrt(SPENT)
    assert theorems.compressed_rate(SETTING, PURE) == pytest.approx(pure)
    assert theorems.compressed_rate(SETTING, APPROXIMATE) == pytest.approx(approximate)
    assert theorems.traditional_rate(SETTING, PURE) == pytest.approx(pure / 1.3 ** (4 / 3))
    wolfe = 3 ** (1 / 3) * 8 ** (2 / 3) * math.log(1e5) ** 2 / SPENT ** (2 / 3)
    assert theorems.traditional_rate(SETTING, APPROXIMATE, 3.0) == pytest.approx(wolfe)


def test_the_private_lasso_grows_as_the_paper_says() -> None:
    """c^(8/3) for the ball of radius c: twice as wide, as long, and as steep a squared loss."""
    twice = dataclasses.replace(SETTING, width=8.0, size=3.0, lipschitz=4.0)
    ratio = theorems.traditional_rate(twice, PURE) / theorems.traditional_rate(SETTING, PURE)
    assert ratio == pytest.approx(2 ** (8 / 3))


def test_the_balance_balances() -> None:
    """Noise costs what distortion costs, for as many dimensions as the distortion needs."""
    for guarantee, power in ((PURE, 1.0), (APPROXIMATE, 0.5)):
        gamma = theorems.balanced_distortion(SETTING, guarantee)
        dimension = 1.3**4 * 4**2 / gamma**2
        assert dimension**power / SPENT == pytest.approx(gamma)


def test_validity_is_checked() -> None:
    with refused("rows", "Setting"):
        Setting(rows=1, width=1.0, size=1.0)
    with refused("width", "Setting"):
        Setting(rows=10, width=0.0, size=1.0)
    with refused("failure", "theorems.preserving_dimension"):
        theorems.projected_dimension(SETTING, PURE, 1.0)
    with refused("epsilon", "theorems.balanced_distortion"):
        theorems.compressed_rate(SETTING, ApproxDP(0.0, 1e-5))
    with refused("curvature", "theorems.traditional_rate", kind=ArgumentTypeError):
        theorems.traditional_rate(SETTING, APPROXIMATE)
    with refused("guarantee", "theorems.balanced_distortion", kind=ArgumentTypeError):
        theorems.compressed_rate(SETTING, GDP(1.0))  # type: ignore[arg-type]
