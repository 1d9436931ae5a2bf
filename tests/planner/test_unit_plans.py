"""Plans for people with several rows: the error model beside whole matrices, and the chosen k."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.arguments import ArgumentTypeError
from dplinear.cli.main import main
from dplinear.exact.weights import WHOLE, shared_weights
from dplinear.noise import simulation
from dplinear.planner.commands import as_command
from dplinear.planner.plan import Plan
from dplinear.planner.units import CANDIDATES, CORRELATIONS, UnitRows, read_rows_each
from refusals import refused

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
SIZES = (1, 1, 2, 5, 20)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_the_model_is_the_variance_of_a_weighted_mean(k: int, correlation: float) -> None:
    """By the whole covariance matrix of all rows, and the weights that sums are made with."""
    weights = np.concatenate(
        [np.full(size, shared_weights(np.array([size]), k)[0] / WHOLE) for size in SIZES]
    )
    units = np.repeat(np.arange(len(SIZES)), SIZES)
    covariance = np.where(units[:, None] == units[None, :], correlation, 0.0)
    np.fill_diagonal(covariance, 1.0)
    variance = weights @ covariance @ weights / weights.sum() ** 2
    shares = read_rows_each(list(SIZES), "plan")
    assumed = UnitRows(tuple(shares), tuple(shares.values()), k, correlation)
    rounded = 2.0**-10  # weights have 12 bits
    assert assumed.counted(sum(SIZES)) == pytest.approx(weights.sum(), rel=rounded)
    assert assumed.sample(sum(SIZES)) == pytest.approx(1 / variance, rel=rounded)


@pytest.mark.parametrize("learn", ["regression", "moments", "mean", "covariance", "pca"])
def test_units_of_one_row_are_rows(learn: str) -> None:
    plain = dpl.plan(5_000, 6, **BUDGET, learn=learn)
    units = dpl.plan(5_000, 6, **BUDGET, learn=learn, rows_each=1)
    for line in units.lines:
        assert line.error == pytest.approx(plain[line.mechanism].error, rel=1e-12)
    assert units.rows_per_unit == 1
    assert plain.rows_per_unit is None
    assert "rows_per_unit" not in plain.recommended.call


@pytest.mark.parametrize("learn", ["regression", "moments", "mean"])
def test_the_choice_goes_from_one_row_to_many_as_theory_says(learn: str) -> None:
    def best(epsilon: float, correlation: float) -> int:
        made = dpl.plan(
            100_000,
            5,
            epsilon=epsilon,
            delta=1e-6,
            learn=learn,
            rows_each={1: 0.5, 34: 0.5},
            correlation=correlation,
        )
        errors = {line.rows_per_unit: line.error for line in made.by_rows_per_unit}
        assert tuple(errors) == tuple(k for k in CANDIDATES if k <= 34)
        assert made.rows_per_unit is not None
        assert errors[made.rows_per_unit] == min(errors.values())
        assert made.recommended.error == errors[made.rows_per_unit]
        return made.rows_per_unit

    assert best(0.05, 0.0) == 1  # noise is all there is
    assert best(300.0, 1.0) == 1  # rows of a unit say the same
    assert best(300.0, 0.0) >= 13  # all rows say as much
    assert 1 < best(300.0, 0.25) < 13


def test_noise_and_sampling_make_the_error() -> None:
    made = dpl.plan(50_000, 5, **BUDGET, learn="regression", rows_each=(1, 20))
    for line in made.by_rows_per_unit:
        assert line.noise + line.sampling == pytest.approx(line.error)
    noises = [line.noise for line in made.by_rows_per_unit]
    assert noises == sorted(noises)
    made = dpl.plan(50_000, 5, **BUDGET, learn="moments", rows_each=(1, 20))
    for line in made.by_rows_per_unit:
        assert line.noise**2 + line.sampling**2 == pytest.approx(line.error**2)


def test_units_that_are_replaced_have_the_noise_of_replaced_rows() -> None:
    asked: dict[str, Any] = BUDGET | {"learn": "moments", "rows_each": (1, 20)}
    added = dpl.plan(50_000, 5, **asked).by_rows_per_unit
    replaced = dpl.plan(50_000, 5, **asked, neighbours="replace").by_rows_per_unit
    for one, other in zip(added, replaced, strict=True):
        assert other.noise == pytest.approx(np.sqrt(2) * one.noise, rel=1e-3)


def test_units_that_are_replaced_are_counted_with_noise_where_means_are_planned() -> None:
    """Of single rows the count is public, and its share of the budget goes to the steps."""
    asked: dict[str, Any] = BUDGET | {"learn": "mean", "neighbours": "replace"}
    alone = dpl.plan(50_000, 5, **asked).recommended.error
    units = dpl.plan(50_000, 5, **asked, rows_each=1).recommended.error
    assert alone < units < 1.02 * alone


def test_open_correlations_are_thirds_of_products_of_two() -> None:
    """P(a·b ≤ c) = c·(1 − ln c) for a and b that are even on [0, 1]."""
    thirds = [c * (1 - np.log(c)) for c in CORRELATIONS]
    assert thirds == pytest.approx([1 / 6, 1 / 2, 5 / 6], abs=0.01)


def test_an_open_correlation_is_the_geometric_mean_of_several() -> None:
    shares = read_rows_each((1, 20), "plan")
    units = UnitRows(tuple(shares), tuple(shares.values()), 3)
    each = [replace(units, correlation=c).sample(9_000) for c in CORRELATIONS]
    assert units.sample(9_000) == pytest.approx(np.exp(np.mean(np.log(each))))
    assert units.counted(9_000) == replace(units, correlation=1.0).counted(9_000)


# Ranges of rows and budgets that no benchmark has.
OPEN = [
    (4_000, (1, 30), 3.0),
    (50_000, (1, 200), 6.0),
    (15_000, (1, 9), 20.0),
    (200_000, (1, 200), 8.0),
]


@pytest.mark.parametrize(("rows", "each", "epsilon"), OPEN)
def test_no_correlation_makes_the_choice_a_bad_one(
    rows: int, each: tuple[int, int], epsilon: float
) -> None:
    """By the plan's own errors, for correlations that were not told."""

    def made(correlation: float | None) -> Plan:
        return dpl.plan(
            rows, 5, epsilon=epsilon, delta=1e-6, rows_each=each, correlation=correlation
        )

    chosen = made(None).rows_per_unit or 0
    for correlation in (0.02, 0.1, 0.25, 0.5, 0.8):
        errors = {line.rows_per_unit: line.error for line in made(correlation).by_rows_per_unit}
        assert errors[chosen] <= 1.2 * min(errors.values())


def test_a_schema_with_a_unit_asks_how_many_rows_it_has() -> None:
    schema = dpl.Schema({"x": (0, 1), "y": (0, 1)}, unit="p")
    with refused("rows_each", "plan", kind=ArgumentTypeError):
        dpl.plan(1_000, schema, **BUDGET)
    assert dpl.plan(1_000, schema, **BUDGET, rows_each=1).rows_per_unit == 1


def test_the_plan_says_which_correlation_it_assumed() -> None:
    given = dpl.plan(50_000, 5, **BUDGET, rows_each=(1, 20), correlation=0.3)
    left_open = dpl.plan(50_000, 5, **BUDGET, rows_each=(1, 20))
    assert "0.3" in given.unit_advice
    assert all(f"{c:g}" in left_open.unit_advice for c in (CORRELATIONS[0], CORRELATIONS[-1]))


def test_guesses_of_rows() -> None:
    assert read_rows_each(7, "plan") == {7: 1.0}
    assert read_rows_each(np.array([1, 1, 4]), "plan") == {1: pytest.approx(2 / 3), 4: 1 / 3}
    assert read_rows_each({20: 1, 1: 3}, "plan") == {1: 0.75, 20: 0.25}
    spread = read_rows_each((1, 20), "plan")
    assert (min(spread), max(spread)) == (1, 20)
    assert sum(spread.values()) == pytest.approx(1)
    assert sum(size * share for size, share in spread.items()) == pytest.approx(
        19 / np.log(20), rel=0.02
    )  # the mean of a logarithm's even spread


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"rows_per_unit": 3}, "rows_per_unit"),
    ({"correlation": 0.5}, "correlation"),
    ({"rows_each": (20, 1)}, "rows_each"),
    ({"rows_each": 0}, "rows_each"),
    ({"rows_each": "many"}, "rows_each"),
    ({"rows_each": []}, "rows_each"),
    ({"rows_each": {}}, "rows_each"),
    ({"rows_each": {1: -1.0}}, "rows_each"),
    ({"rows_each": Fraction(1, 2)}, "rows_each"),
    ({"rows_each": 3, "rows_per_unit": 0}, "rows_per_unit"),
    ({"rows_each": 3, "rows_per_unit": []}, "rows_per_unit"),
    ({"rows_each": 3, "rows_per_unit": "all"}, "rows_per_unit"),
    ({"rows_each": 3, "correlation": 1.5}, "correlation"),
    ({"rows_each": 3, "learn": "distances"}, "learn"),
]


@pytest.mark.parametrize(("given", "named"), WRONG)
def test_what_means_nothing_is_refused_by_name(given: dict[str, Any], named: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"'{named}' parameter of plan"):
        dpl.plan(1_000, 4, **BUDGET, **given)


def test_the_call_of_a_plan_makes_the_release() -> None:
    columns = {"x": (0, 1), "y": (0, 1)}
    made = dpl.plan(1_000, 1, **BUDGET, rows_each=(1, 5), rows_per_unit=[2, 3])
    assert "unit=unit" in made.recommended.call
    assert "--unit COLUMN --rows-per-unit" in as_command(made.recommended.call)
    data = pa.table({"x": [0.1, 0.5] * 50, "y": [0.2, 0.6] * 50, "p": [i % 30 for i in range(100)]})
    names = {"dpl": dpl, "data": data, "schema": columns, "target": "y", "unit": "p"}
    with simulation.door(1):
        released = eval(made.recommended.call, names)
    assert released.certificate.unit == "p"
    assert released.certificate.rows_per_unit == made.rows_per_unit
    schema = dpl.Schema(columns, unit="p")
    made = dpl.plan(1_000, schema, **BUDGET, rows_each=1)
    assert "unit=" not in made.recommended.call.replace("rows_per_unit=", "")
    assert "one row" in str(made)
    assert {name for name, _ in made.refused} >= {"sketch", "additive_wishart"}


def test_the_command_line_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--expected-rows", "60000", "--columns", "5", "--epsilon", "3"]
    words += ["--delta", "1e-6", "--learn", "moments", "--rows-each", "1,20"]
    expected = dpl.plan(
        60_000, 5, epsilon=3.0, delta=1e-6, learn="moments", rows_each=(1, 20), rows_per_unit=[1, 4]
    )
    assert main([*words, "--rows-per-unit", "1,4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(expected.facts()))
    assert main([*words, "--rows-per-unit", "auto"]) == 0
    shown = capsys.readouterr().out
    assert "take rows_per_unit=" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
    assert all(heading in str(expected) for heading in ("rows_per_unit", "noise", "sampling"))
    assert "sampling" in expected._repr_html_()
