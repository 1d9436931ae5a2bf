"""Forecasts: seeded, read nothing, say what the gate then does, and refuse nonsense."""

import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dplinear
from dplinear.curator import Schema, release_model
from dplinear.noise import simulation
from dplinear.planner.forecast import FLOOR, forecast
from dplinear.planner.populations import Kind, Population
from dplinear.privacy import GDP, ZCDP, ApproxDP
from dplinear.registry import MODELS
from refusals import refused

pytestmark = pytest.mark.heavy

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
RATE = 1e-6


def test_it_forecasts_what_the_gate_offers() -> None:
    found = forecast(300, 2, **BUDGET, tables=1)
    assert {line.mechanism for line in found.lines} == {*MODELS["squared"], FLOOR}
    assert dplinear.forecast is forecast


def test_the_same_arguments_give_the_same_numbers() -> None:
    first, again, other = (forecast(300, 2, **BUDGET, tables=3, seed=seed) for seed in (5, 5, 6))
    assert first == again
    for line, another in zip(first.lines, other.lines, strict=True):
        assert not set(line.risks) & set(another.risks)
    alone = forecast(300, 2, **BUDGET, tables=3, seed=5, mechanisms=["adassp"])
    assert alone["adassp"] == first["adassp"]
    assert alone.best == "adassp"


def test_nothing_is_spent() -> None:
    with dplinear.tally() as spent:
        forecast(100, 1, **BUDGET, tables=1)
    assert len(spent) == 0


@pytest.mark.parametrize("method", MODELS["squared"])
def test_it_agrees_with_releases_through_the_gate(method: str) -> None:
    """Two samples of 40 tables; the rank test raises a false alarm at a rate of 1e-6."""
    rows, tables, kind = 1_000, 40, Kind(3, explained=0.6, condition=20.0)
    expected = forecast(
        rows,
        3,
        **BUDGET,
        explained=0.6,
        condition=20.0,
        width=3.0,
        tables=tables,
        mechanisms=[method],
    )[method]
    found = []
    for table in range(tables):
        generator = simulation.generator(10_000 + table)
        population = Population.draw(kind, generator)
        features = generator.standard_normal((rows, 3)) @ population.root.T
        target = features @ population.best + np.sqrt(4 / 6) * generator.standard_normal(rows)
        covariance = population.root @ population.root.T
        bounds = {f"x{place}": 3 * covariance[place, place] ** 0.5 for place in range(3)}
        bounds["y"] = 3 * np.sqrt(1 / 0.6)
        schema = Schema({name: (-bound, bound) for name, bound in bounds.items()})
        with simulation.door(table):
            release = release_model(
                np.column_stack((features, target)), schema, "y", mechanism=method, **BUDGET
            )
        wrong = np.asarray(release.coefficients.values) - population.best
        found.append(wrong @ covariance @ wrong + release.intercept**2)
    assert stats.mannwhitneyu(expected.risks, found, method="exact").pvalue > RATE


def test_the_numbers_of_a_line_are_those_of_its_risks() -> None:
    line = forecast(300, 4, **BUDGET, explained=0.4, tables=9)["adassp"]
    assert len(line.risks) == 9
    assert line.excess == np.median(line.risks)
    assert (line.low, line.high) == tuple(np.quantile(line.risks, [0.05, 0.95]))
    assert line.r_squared == pytest.approx(0.4 * (1 - line.excess))
    assert line.worse == np.mean(np.array(line.risks) > 1)
    assert 0 < line.worse < 1


def test_a_budget_without_end_leaves_least_squares() -> None:
    found = forecast(500, 3, guarantee=ZCDP(1e12), tables=3)
    assert found["adassp"].risks == pytest.approx(found[FLOOR].risks, rel=1e-4)


def test_the_best_is_first_and_least_squares_last() -> None:
    """Where the risks are far apart, more than twofold: of 3 columns the first two are even."""
    found = forecast(1_000, 10, **BUDGET, tables=15)
    assert found.best == "whitened_descent"
    order = ["whitened_descent", "coinpress", "adassp", FLOOR]
    assert [line.mechanism for line in found.lines] == order
    assert found.lines[0].excess < found.lines[1].excess


def test_it_prints_as_a_table() -> None:
    guarantee = ZCDP(0.5)
    found = forecast(2_000, 3, guarantee=guarantee, neighbours="replace", tails="heavy", tables=2)
    lines = str(found).splitlines()
    assert repr(found) == str(found)
    assert max(map(len, lines)) <= 100
    assert lines[0] == "Forecast for 2,000 rows, 3 columns, from 2 simulated tables"
    assert lines[1] == "ρ = 0.5 (replace neighbours)"
    assert "heavy tails" in lines[2]
    assert re.split(r"\s{2,}", lines[4]) == [
        *("mechanism", "excess risk", "90% of tables", "R²", "worse than mean", "seconds")
    ]
    assert [line.split()[0] for line in lines[6:10]] == [line.mechanism for line in found.lines]
    assert len(set(map(len, lines[3:11]))) == 1
    assert "No mechanism" not in str(found)


def test_it_says_when_a_budget_buys_nothing() -> None:
    """A tiny budget, and nine tables: the median of three is a matter of luck."""
    assert "No mechanism can be expected" in str(
        forecast(100, 5, epsilon=0.01, delta=1e-6, tables=9)
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            {"expected_rows": 0},
            ValueError,
            "'expected_rows' parameter of forecast must be an integer",
        ),
        ({"expected_rows": 2.5}, TypeError, "'expected_rows'"),
        ({"expected_rows": 2_000_001}, ValueError, "at most 2,000,000 for 3 columns"),
        ({"columns": 998, "expected_rows": 100_001}, ValueError, "ask for 100,000"),
        ({"columns": 0}, ValueError, "'columns'"),
        ({"epsilon": None, "delta": None}, TypeError, "no default privacy"),
        ({"guarantee": ApproxDP(1, 1e-6)}, ValueError, "left out where epsilon"),
        ({"delta": None}, ValueError, "ApproxDP"),
        ({"epsilon": None, "delta": None, "guarantee": GDP(1)}, TypeError, "not μ-GDP"),
        ({"neighbours": "edges"}, ValueError, "'neighbours'"),
        ({"explained": 0}, ValueError, r"'explained' .* in \(0, 1\)"),
        ({"explained": 1}, ValueError, "'explained'"),
        ({"condition": 0.5}, ValueError, "'condition'"),
        ({"width": 0.9}, ValueError, "'width'"),
        ({"tails": "long"}, ValueError, "one of 'normal', 'heavy'"),
        ({"mechanisms": "adassp"}, TypeError, "a list of at least one mechanism"),
        ({"mechanisms": []}, TypeError, "a list of at least one mechanism"),
        ({"mechanisms": ["ols"]}, ValueError, "one of 'whitened_descent', 'adassp', 'coinpress'"),
        ({"tables": 0}, ValueError, "'tables'"),
        ({"seed": -1}, ValueError, "'seed'"),
    ],
)
def test_nonsense_is_refused(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        forecast(**({"expected_rows": 50, "columns": 3, "tables": 1, **BUDGET} | change))


def test_a_line_that_was_not_asked_for_is_refused() -> None:
    found = forecast(50, 1, **BUDGET, tables=1, mechanisms=["adassp"])
    with refused("mechanism", "Forecast"):
        found["whitened_descent"]
