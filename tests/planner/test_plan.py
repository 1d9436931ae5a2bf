"""`dpl.plan`: closed forms beside real mechanisms, monotone, invertible, of public facts only."""

import builtins
import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.arguments import ArgumentTypeError
from dplinear.exact.shape import Statistic
from dplinear.noise import simulation
from dplinear.planner.auto import Asked, choose
from dplinear.planner.contest import plain_schema
from dplinear.planner.errors.matrix_errors import correlation_error
from dplinear.planner.facts import Facts
from dplinear.planner.plan import QUESTIONS
from dplinear.planner.plan_table import plan_table
from dplinear.planner.questions import Prediction, is_exact
from dplinear.planner.simulated import plain_design
from dplinear.privacy import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MOMENTS
from refusals import refused

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
LEARN = tuple(QUESTIONS)


@pytest.mark.parametrize("learn", LEARN)
def test_errors_fall_with_the_budget_and_with_rows(learn: str) -> None:
    every: tuple[dict[str, Any], ...] = ({"condition": 10.0, "tails": "heavy"}, {})
    for assumed in every[: 1 + (learn == "regression")]:
        by_budget = [
            dpl.plan(3_000, 7, epsilon=epsilon, delta=1e-6, learn=learn, **assumed)
            for epsilon in (0.1, 1.0, 4.0, 16.0)
        ]
        by_rows = [
            dpl.plan(rows, 7, **BUDGET, learn=learn, **assumed) for rows in (200, 3_000, 1e5, 10**7)
        ]
        for plans in (by_budget, by_rows):
            for line in plans[0].lines:
                errors = [plan[line.mechanism].error for plan in plans]
                assert errors == sorted(errors, reverse=True), line.mechanism
            assert all(line.low <= line.error <= line.high for line in plans[0].lines)


@pytest.mark.parametrize("learn", LEARN)
def test_the_inverses_are_inverses(learn: str) -> None:
    plan = dpl.plan(5_000, 6, **BUDGET, learn=learn)
    line = plan.recommended
    wanted = 1.2 * line.error
    epsilon = plan.budget_for(wanted)
    there = dpl.plan(5_000, 6, epsilon=epsilon, delta=1e-6, learn=learn)
    assert there[line.mechanism].error == pytest.approx(wanted, rel=1e-3)
    assert epsilon < 1
    if learn == "distances":  # whatever the number of rows
        return
    rows = plan.rows_for(wanted)
    assert dpl.plan(rows, 6, **BUDGET, learn=learn)[line.mechanism].error <= wanted
    assert dpl.plan(rows - 1, 6, **BUDGET, learn=learn)[line.mechanism].error > wanted
    assert rows < 5_000
    other = plan.lines[-1]
    if learn != "regression":  # its curves have plateaus, on which many budgets have one error
        assert plan.budget_for(other.error, other.mechanism) == pytest.approx(1.0, rel=1e-2)


@pytest.mark.heavy
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", MOMENTS)
def test_the_error_of_a_correlation_is_that_of_the_real_mechanism(
    mechanism: str, neighbours: str
) -> None:
    # The mean square over 150 releases is within five of its standard errors of the closed form:
    # 6e-7 by the normal law. With 10 columns an inverse-Wishart draw has the moments it takes.
    rows, columns = 2_000, 10
    plan = dpl.plan(rows, columns, **BUDGET, neighbours=neighbours, learn="regression").given
    design = plain_design(columns)
    kind = MOMENTS[mechanism](guarantee=plan.guarantee, neighbours=plan.neighbours)
    prepared = kind.prepare(design.shape)
    diagonal = [rows, *([rows / 16] * (columns + 1))]
    exact = np.diag([round(value * design.shape.unit) for value in diagonal]).astype(object)
    statistic = Statistic(design.shape, exact, rows=None if neighbours == "add_remove" else rows)
    entropy = simulation.entropy(7)
    upper = np.triu_indices(columns + 1, 1)
    squares = []
    for _ in range(150):
        measured = prepared.run(statistic, entropy)
        block = measured.noise_model.unbiased_estimate(measured.values)[1:, 1:]
        squares.append(float(np.mean((block[upper] * 16 / rows) ** 2)))
    wanted = correlation_error(mechanism, plan) ** 2
    error = float(np.std(squares, ddof=1)) / math.sqrt(len(squares))
    assert abs(float(np.mean(squares)) - wanted) < 5 * error
    assert error < 0.2 * wanted


def test_the_recommended_line_is_the_least_error_and_says_why() -> None:
    plan = dpl.plan(20_000, 8, **BUDGET, condition=1.0, tails="normal")
    assert plan.recommended.error <= 1.05 * min(line.error for line in plan.lines if line.exact)
    assert plan.recommended.mechanism in plan.reason
    assert plan.recommended.error > plan.floor > 0
    assert plan.worthwhile
    assert plan.recommended.call in str(plan)
    assert f"The usual answer without privacy has {plan.floor:.2g}" in plan.reason
    heavy = dpl.plan(20_000, 8, **BUDGET, condition=1.0, tails="heavy")
    assert heavy.recommended.error < heavy.floor  # clamped cells harm least squares
    assert heavy.reason.endswith("heavy tails harm it more.")
    hopeless = dpl.plan(100, 50, epsilon=0.1, delta=1e-6)
    assert not hopeless.worthwhile
    assert "without any data" in str(hopeless)


def flatter(learn: str, names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict an error of a millionth for some mechanisms."""
    question = QUESTIONS[learn]
    true = question.predict

    def flattering(way: str, facts: Facts) -> Prediction:
        found = true(way, facts)
        return replace(found, error=found.error / 1e6) if way in names else found

    monkeypatch.setattr(question, "predict", flattering)


@pytest.mark.parametrize("learn", ["regression", "moments", "pca"])
def test_noise_in_floating_point_is_shown_and_never_recommended(
    learn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    floating = {name for name in MOMENTS if name != "analyze_gauss"}
    flatter(learn, floating, monkeypatch)
    for name in floating:
        monkeypatch.setattr(MOMENTS[name], "numerics", "idealised")
    plan = dpl.plan(20_000, 8, **BUDGET, learn=learn)
    assert {line.mechanism for line in plan.lines if not line.exact} == floating
    assert [line.exact for line in plan.lines] == sorted([a.exact for a in plan.lines])[::-1]
    assert plan.recommended.exact
    assert not floating & set(re.findall(r"\w+", plan.reason))
    assert f"Not recommended: {plan.lines[-len(floating)].mechanism}" in str(plan)
    ways = tuple(MOMENTS)
    asked = Asked(ApproxDP(1.0, 1e-6), Neighbours.ADD_REMOVE, 8, 9, 9.0)
    for rows in (None, 100, 10**6):
        assert is_exact(choose(learn, ways, asked, rows).name)


@pytest.mark.parametrize("learn", ["regression", "moments", "pca"])
def test_whatever_is_exact_is_recommended_where_its_error_is_least(
    learn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flatter(learn, {"inverse_wishart"}, monkeypatch)
    plan = dpl.plan(20_000, 8, **BUDGET, learn=learn)
    assert all(line.exact for line in plan.lines)
    assert plan.recommended.mechanism == "inverse_wishart"
    asked = Asked(ApproxDP(1.0, 1e-6), Neighbours.ADD_REMOVE, 8, 9, 9.0)
    assert choose(learn, tuple(MOMENTS), asked, 10**6).name == "inverse_wishart"


def test_a_schema_counts_its_target_and_its_categories() -> None:
    schema = dpl.Schema({"a": (0, 1), "b": ["x", "y", "z"], "c": (0, 9)})
    plan = dpl.plan(1e5, schema, **BUDGET)
    assert plan.given.columns == schema.dimension - 2
    assert plan.given.square == pytest.approx(schema.bound**2)
    plain = dpl.plan(10**5, 3, **BUDGET)
    same = dpl.plan(10**5, plain_schema(3), **BUDGET)
    assert plain.lines == same.lines
    assert plain == dpl.plan(10**5, 3, **BUDGET)


def test_what_a_guarantee_cannot_have_is_left_out_with_its_reason() -> None:
    plan = dpl.plan(10_000, 5, guarantee=ZCDP(0.1), learn="moments")
    assert [line.mechanism for line in plan.lines] == ["analyze_gauss"]
    assert {name for name, _ in plan.refused} == set(MOMENTS) - {"analyze_gauss"}
    assert plan.budget_for(plan.recommended.error) == pytest.approx(0.1, rel=1e-3)
    assert "ρ" not in plan.recommended.call
    strict = dpl.plan(10_000, 5, epsilon=1e-5, delta=1e-6, learn="moments")
    assert [line.mechanism for line in strict.lines] == ["analyze_gauss"]  # others have limits
    with pytest.raises(ValueError, match=r"(?s)'guarantee' parameter of plan .*ZCDP"):
        dpl.plan(10_000, 5, guarantee=GDP(1.0))


def test_facts_are_plain_and_the_table_for_a_page_agrees_with_plans() -> None:
    plan = dpl.plan(10_000, 5, **BUDGET, condition=100.0, tails="normal")
    facts = json.loads(json.dumps(plan.facts()))
    assert facts["recommended"] == plan.recommended.mechanism
    assert [line["error"] for line in facts["lines"]] == [line.error for line in plan.lines]
    page = plan_table()
    place = [page[axis].index(value) for axis, value in _AT.items()]
    for line in plan.lines:
        found = page["errors"][line.mechanism][place[0]][place[1]][place[2]]
        assert found == pytest.approx(line.error, rel=1e-3)
    assert page["floor"][place[1]][place[2]] == pytest.approx(plan.floor, rel=1e-3)


_AT: dict[str, Any] = {"epsilon": 1.0, "rows": 10_000, "columns": 5}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"expected_rows": 0}, "expected_rows"),
        ({"expected_rows": 10.5}, "expected_rows"),
        ({"expected_rows": "many"}, "expected_rows"),
        ({"expected_rows": 10**13}, "expected_rows"),
        ({"columns": 0}, "columns"),
        ({"columns": 2.0}, "columns"),
        ({"columns": ["age"]}, "columns"),
        ({"columns": dpl.Schema({"a": (0, 1)})}, "columns"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": None}, "guarantee"),
        ({"guarantee": ZCDP(1.0)}, "guarantee"),
        ({"bits": 1.0}, "bits"),
        ({"neighbours": "element"}, "neighbours"),
        ({"learn": "everything"}, "learn"),
        ({"condition": 0.5}, "condition"),
        ({"tails": "fat"}, "tails"),
        ({"explained": 1.0}, "explained"),
        ({"width": 0.5}, "width"),
        ({"components": 9}, "components"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_arguments_get_one_sentence(change: dict[str, object], named: str) -> None:
    given = {"expected_rows": 1_000, "columns": 5, **BUDGET} | change
    with pytest.raises((TypeError, ValueError), match=rf"^The '{named}' parameter of \w+ must be "):
        dpl.plan(given.pop("expected_rows"), given.pop("columns"), **given)


def test_wrong_targets_get_one_sentence() -> None:
    plan = dpl.plan(1_000, 5, **BUDGET)
    for ask in (plan.budget_for, plan.rows_for):
        with pytest.raises((TypeError, ValueError), match="'error' parameter of Plan"):
            ask(0.0)
    with refused("error", "Plan.budget_for", "the least that can be had so"):
        plan.budget_for(plan.floor / 2)
    with refused("error", "Plan.rows_for", "the least that can be had so"):
        plan.rows_for(1e-14)
    with refused("mechanism", "Plan"):
        plan.budget_for(0.1, "magic")


def test_nothing_is_opened_once_the_table_of_errors_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = dpl.plan(1_000, 5, **BUDGET)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a plan opened a file")

    monkeypatch.setattr(builtins, "open", refuse)
    assert dpl.plan(1_000, 5, **BUDGET) == before


@pytest.mark.parametrize("learn", ["regression", "logistic"])
@pytest.mark.parametrize("guarantee", [PureDP(0.5), ApproxDP(0.5, 0.0)], ids=str)
def test_a_pure_guarantee_is_told_what_keeps_it(learn: str, guarantee: Guarantee) -> None:
    with refused("guarantee", "plan", hint="models in a constraint set") as told:
        dpl.plan(2_000, 3, guarantee=guarantee, learn=learn)
    release, forecast = re.findall(r"`dpl\.(.*?)`", str(told.value))
    found = eval(f"dpl.{forecast}", {"dpl": dpl})
    assert found.guarantee == PureDP(0.5)
    X = simulation.generator(1).uniform(-0.5, 0.5, (50, 3))
    y = (X[:, 0] > 0).astype(float)
    filled = release.replace("row_norm=...", "row_norm=1.0").replace("=...", "=(0, 1)")
    made = eval(f"dpl.{filled}", {"dpl": dpl, "X": X, "y": y})
    assert made.certificate.holds == PureDP(0.5)


def test_what_nothing_keeps_is_told_without_a_detour() -> None:
    for learn in ("moments", "mean", "covariance", "pca"):
        with refused("guarantee", "plan", hint="delta=1e-6") as told:
            dpl.plan(2_000, 3, guarantee=PureDP(0.5), learn=learn)
        assert "constraint" not in str(told.value)


def test_a_mapping_is_planned_for_as_its_schema() -> None:
    columns = {"age": (0, 100), "smoker": ["no", "yes", "never"], "charges": (0, 60_000)}
    assert dpl.plan(1e5, columns, **BUDGET) == dpl.plan(1e5, dpl.Schema(columns), **BUDGET)
    with refused("columns", "plan", "a target and at least one feature"):
        dpl.plan(1e5, {"charges": (0, 1)}, **BUDGET)
    with refused("age", "Schema", kind=ArgumentTypeError):
        dpl.plan(1e5, {"age": 3}, **BUDGET)
