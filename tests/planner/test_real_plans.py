"""Plans of tables that look real: beside what real tables gave, told or not, and out of reach."""

import math
import re
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.planner.auto import Asked, choose
from dplinear.planner.errors.lookup import real_like_table
from dplinear.planner.plan import Plan
from dplinear.privacy import ApproxDP
from dplinear.privacy.neighbours import Neighbours

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
# Rows, columns, ε, the median excess risk of four mechanisms in five tables of benchmarks/
# real_plans.py, all of the half that was looked at; and what a plan may be told.
MECHANISMS = ("whitened_descent", "adassp", "analyze_gauss", "coinpress")
CELLS: tuple[tuple[int, int, float, tuple[float, ...], tuple[Any, ...]], ...] = (
    (8_000, 9, 1.0, (0.2, 6.5, 0.65, 0.21), (0.05, 0.56, "counts", 8.0)),  # visits
    (8_000, 9, 0.3, (0.059, 2.1, 0.74, 0.07), (0.15, 0.44, "skewed", 4.0)),  # earnings
    (8_000, 8, 1.0, (0.02, 0.21, 0.38, 0.012), (0.2, 0.62, "even", 8.0)),  # log wages
    (32_000, 6, 1.0, (0.039, 0.031, 0.046, 0.14), (0.2, 0.5, "long", 8.0)),  # savings
    (32_000, 7, 0.3, (0.0035, 0.052, 0.057, 0.0015), (0.5, 0.43, "even", 6.0)),  # log expenses
    (32_000, 13, 1.0, (0.018, 0.19, 0.082, 0.047), (0.1, 0.69, "counts", 8.0)),  # visits
    (32_000, 16, 3.0, (0.11, 0.19, 0.15, 0.41), (0.05, 0.5, "long", 8.0)),  # medical costs
    (8_000, 16, 3.0, (0.061, 2.9, 0.74, 0.097), (0.1, 0.5, "counts", 12.0)),  # contacts
    (32_000, 5, 0.3, (0.0039, 0.016, 0.0066, 0.0058), (0.3, 0.6, "skewed", 4.0)),  # wages
)
FACTS = ("explained", "zero_one", "target_shape", "target_width")


def told(cell: tuple[Any, ...]) -> Plan:
    rows, columns, epsilon, _, facts = cell
    known = dict(zip(FACTS, facts, strict=True))
    return dpl.plan(rows, columns, epsilon=epsilon, delta=1e-6, **known)


def test_predictions_are_near_what_real_tables_gave() -> None:
    """Those of normal rows are four to six times too hopeful for descents, and would fail."""
    for index, name in enumerate(MECHANISMS):
        ratios = [cell[3][index] / told(cell)[name].error for cell in CELLS]
        assert 1 / 1.8 < float(np.median(ratios)) < 1.8, name
        if name in {"whitened_descent", "coinpress"}:
            near = sum(0.5 <= ratio <= 2 for ratio in ratios)
            assert near >= 6, name
    hopeful = [
        cell[3][0]
        / dpl.plan(
            *cell[:2],
            epsilon=cell[2],
            delta=1e-6,
            explained=cell[4][0],
            condition=100.0,
            tails="normal",
        )["whitened_descent"].error
        for cell in CELLS
    ]
    assert float(np.median(hopeful)) > 1.8


def test_what_is_not_told_widens_the_range() -> None:
    for cell in CELLS[:3]:
        little = dpl.plan(*cell[:2], epsilon=cell[2], delta=1e-6)
        for line in told(cell).lines:
            other = little[line.mechanism]
            assert other.high / other.low > line.high / line.low
            assert "the shape of the target and the share that a line explains" in other.note
            assert "did not give" not in line.note


def test_a_better_line_and_an_even_target_err_less() -> None:
    every = [
        [
            dpl.plan(20_000, 8, **BUDGET, explained=share, target_shape=shape)[name].error
            for share in (0.1, 0.3, 0.7)
        ]
        for name in ("whitened_descent", "coinpress")
        for shape in ("even", "long")
    ]
    assert all(errors == sorted(errors, reverse=True) for errors in every)
    assert every[0][1] < every[1][1]
    assert every[2][1] < every[3][1]


def test_a_schema_tells_of_its_categories() -> None:
    schema = dpl.Schema({"y": (0, 1), "age": (0, 100), "town": ["a", "b", "c"]})
    known = dpl.plan(10_000, schema, **BUDGET).given
    assert known.zero_one == pytest.approx(3 / 4)  # two levels and "other", and an age
    assert not known.levels
    assert dpl.plan(10_000, schema, **BUDGET, zero_one=0.1).given.zero_one == 0.1
    assert dpl.plan(10_000, 4, **BUDGET).given.zero_one is None


def test_many_levels_are_planned_as_they_came() -> None:
    """`benchmarks/real_plans.py --levels`: 1,500 levels came to .07, beside .5 explained."""
    schema = dpl.Schema({"y": (-6, 6), "place": [f"p{index}" for index in range(1_500)]})
    plan = dpl.plan(50_000, schema, **BUDGET, explained=0.5)
    assert plan.given.levels
    assert 0.035 < plan["whitened_descent"].error < 0.14
    assert plan.beyond is None
    more = dpl.Schema({"y": (-6, 6), "place": [f"p{index}" for index in range(1_600)]})
    assert dpl.plan(50_000, more, **BUDGET).beyond is not None


@pytest.mark.parametrize(
    ("rows", "columns", "assumed", "words"),
    [
        (20_000, 300, {}, "columns were not simulated"),
        (20_000, 300, {"tails": "normal"}, "more than 128 columns were not simulated"),
        (20_000, 8, {"condition": 1e3}, "condition number above 40"),
        (10**11, 3, {}, r"no table of more than [\d,]+ rows was simulated"),
        (10**11, 3, {"tails": "heavy"}, r"no table of more than [\d,]+ rows was simulated"),
    ],
)
def test_nothing_is_recommended_beyond_what_was_simulated(
    rows: int, columns: int, assumed: dict[str, Any], words: str
) -> None:
    plan = dpl.plan(rows, columns, **BUDGET, **assumed)
    assert re.search(f"Nothing is recommended. .*{words}", str(plan))
    assert "release_model" not in str(plan)
    assert plan.facts()["recommended"] is None
    assert plan.budget_for(1.2 * plan.lines[0].error) > 0
    with pytest.raises(ValueError, match=words):
        _ = plan.recommended


def test_the_hint_can_be_followed() -> None:
    said = str(dpl.plan(10**11, 3, **BUDGET).beyond)
    found = re.search(r"more than ([\d,]+) rows", said)
    assert found is not None
    assert dpl.plan(int(found[1].replace(",", "")), 3, **BUDGET).beyond is None


def test_auto_is_the_usual_way_beyond_what_was_simulated() -> None:
    ways = ("whitened_descent", "adassp", "coinpress")
    asked = Asked(ApproxDP(1.0, 1e-6), Neighbours.ADD_REMOVE, 300, 302, 302.0)
    found = choose("regression", ways, asked, 10_000)
    assert found.name == "whitened_descent"
    assert "no table like it was simulated" in found.note


def test_without_privacy_is_compared_with_what_it_names() -> None:
    plan = dpl.plan(20_000, 8, **BUDGET, explained=0.3, target_shape="even")
    best = plan.recommended
    times = best.error / plan.floor
    assert f"has {plan.floor:.2g}, {times:.3g} times less than {best.mechanism}." in plan.reason


@pytest.mark.parametrize(
    ("assumed", "words"),
    [
        ({"zero_one": 1.5}, "'zero_one' parameter of plan"),
        ({"target_shape": "round"}, "one of 'even', 'skewed', 'counts', 'long'"),
        ({"target_width": 0.5}, "'target_width' parameter of plan"),
        ({"explained": 0.0}, "'explained' parameter of plan"),
    ],
)
def test_nonsense_is_refused(assumed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dpl.plan(1_000, 4, **BUDGET, **assumed)


def test_errors_are_finite_for_any_facts() -> None:
    for shape in real_like_table().targets:
        for rows in (1, 100, 10**12):
            plan = dpl.plan(rows, 1, **BUDGET, target_shape=shape, zero_one=1.0, target_width=1.0)
            assert all(math.isfinite(line.error) and line.error > 0 for line in plan.lines)
