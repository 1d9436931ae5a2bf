"""What "auto" stands for: the planner's choice of public arguments, named on certificates."""

from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.estimators import PrivateLinearRegression
from dplinear.noise import simulation
from dplinear.planner.auto import Asked, choose
from dplinear.privacy import MIDP, ZCDP, ApproxDP, Neighbours
from dplinear.registry import MOMENTS
from refusals import refused

SCHEMA = dpl.Schema({"a": (-1, 1), "b": (-1, 1), "y": (-1, 1)})
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def table(rows: int = 60) -> np.ndarray:
    return simulation.generator(3).uniform(-1, 1, size=(rows, 3))


def test_moments_are_the_least_noise_that_keeps_the_guarantee() -> None:
    for expected in (None, 10_000):
        release = dpl.release_moments(
            table(), SCHEMA, **BUDGET, mechanism="auto", expected_rows=expected
        )
        assert release.certificate.mechanism == "analyze_gauss"
        assert any("'auto'" in note for note in release.certificate.notes)
    plain = dpl.release_moments(table(), SCHEMA, **BUDGET)
    assert not any("'auto'" in note for note in plain.certificate.notes)


@pytest.mark.parametrize("expected", [None, 100, 20_000, 10**7])
def test_a_model_is_what_the_plan_recommends(expected: int | None) -> None:
    release = dpl.release_model(
        table(), SCHEMA, "y", **BUDGET, mechanism="auto", expected_rows=expected
    )
    plan = dpl.plan(expected or 1, SCHEMA, **BUDGET)
    solvers = ("whitened_descent", "adassp", "coinpress")
    best = min(plan[name].error for name in solvers)
    chosen = release.certificate.mechanism
    assert chosen == "whitened_descent" if expected is None else chosen in solvers
    if plan.beyond is not None:
        assert chosen == "whitened_descent"
        assert any("was simulated" in note for note in release.certificate.notes)
    elif expected is not None:
        assert plan[chosen].error <= 1.05 * best
        assert any(f"{expected:,} rows" in note for note in release.certificate.notes)


def test_the_choice_follows_predictions_and_never_the_table() -> None:
    asked = Asked(ApproxDP(1.0, 1e-6), Neighbours.ADD_REMOVE, 8, 10, 10.0)
    names = ("adassp", "whitened_descent")
    assert choose("regression", names, asked, 10_000).name == "whitened_descent"
    assert choose("regression", names, asked, None).name == "adassp"  # the first is the usual
    strict = Asked(ZCDP(0.1), Neighbours.ADD_REMOVE, 8, 10, 10.0)
    assert choose("moments", ("sketch", *MOMENTS), strict, 1_000).name == "analyze_gauss"
    for rows in (3, 60, 600):
        release = dpl.release_model(table(rows), SCHEMA, "y", **BUDGET, mechanism="auto")
        assert release.certificate.mechanism == "whitened_descent"


def test_other_losses_have_one_method() -> None:
    release = dpl.release_model(table(), SCHEMA, "y", **BUDGET, loss="huber", mechanism="auto")
    assert release.certificate.mechanism == "huber_descent"
    with refused("expected_rows", "release_model"):
        dpl.release_model(table(), SCHEMA, "y", **BUDGET, mechanism="auto", expected_rows=0)


def test_a_sketch_counts_as_its_guarantee_does() -> None:
    by_row = dpl.release_sketch(table(), SCHEMA, mechanism="auto", **BUDGET)
    assert by_row.certificate.mechanism == "sketch"
    for asked in ({"bits": 0.5}, {"guarantee": MIDP(0.5)}):
        by_cell = dpl.release_sketch(table(), SCHEMA, mechanism="auto", **asked)
        assert by_cell.certificate.mechanism == "mi_projection"


def test_an_estimator_uses_the_number_of_rows_only_where_it_is_public() -> None:
    rows = table(400)
    given: dict[str, Any] = {"bounds": (-1, 1), "target_bounds": (-1, 1), **BUDGET}
    notes = {}
    for neighbours in ("add_remove", "replace"):
        model = PrivateLinearRegression(neighbours=neighbours, **given)
        model.fit(rows[:, :2], rows[:, 2])
        notes[neighbours] = " ".join(model.certificate_.notes)
    assert "400 rows" in notes["replace"]
    assert "400" not in notes["add_remove"]
    model = PrivateLinearRegression(expected_rows=1_000, **given).fit(rows[:, :2], rows[:, 2])
    assert "1,000 rows" in " ".join(model.certificate_.notes)
