"""Predictions beside real releases of tables that nobody owns, at a few points.

Predictions are promised within a factor of two, so that is what is asked for; seeds are fixed.
"""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

import dplinear as dpl
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.planner.errors.locations import coinpress_covariance, coinpress_mean
from dplinear.planner.errors.logistic_errors import START, VARIANCE, base_distance
from dplinear.planner.errors.principal_components import spectrum
from dplinear.planner.facts import Facts
from dplinear.planner.plan import plan

pytestmark = pytest.mark.heavy
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def schema(columns: int) -> dpl.Schema:
    return dpl.Schema({f"x{place}": (-4, 4) for place in range(columns)})


def given(rows: int, columns: int, neighbours: str) -> Facts:
    return plan(rows, columns, **BUDGET, learn="mean", neighbours=neighbours).given


def rms(values: list[Floats]) -> float:
    return math.sqrt(float(np.mean(np.square(np.array(values)))))


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_coinpress_has_the_noise_of_its_closed_form(neighbours: str) -> None:
    rows, columns, means, products = 4_000, 4, [], []
    upper = np.triu_indices(columns, 1)
    for seed in range(4):
        table = simulation.generator(seed).standard_normal((rows, columns))
        asked = {**BUDGET, "neighbours": neighbours}
        with simulation.door(seed):
            found = dpl.release_mean(table, schema(columns), **asked).mean.values
            spread = dpl.release_covariance(table, schema(columns), **asked).covariance.values
        means.append(found - table.mean(axis=0))
        products.append((spread - np.cov(table.T))[upper])
    facts = given(rows, columns, neighbours)
    assert 0.5 < rms(means) / coinpress_mean(facts) < 2
    assert 0.5 < rms(products) / coinpress_covariance(facts) < 2


def test_components_miss_as_much_as_predicted() -> None:
    rows, columns, parts = 3_000, 8, 2
    values = spectrum(columns, 100.0)
    missed = []
    for seed in range(5):
        generator = simulation.generator(seed)
        turn = np.linalg.qr(generator.standard_normal((columns, columns)))[0]
        root = turn * np.sqrt(values)
        table = generator.standard_normal((rows, columns)) @ root.T
        with simulation.door(seed):
            release = dpl.release_moments(table, schema(columns), **BUDGET)
        found = np.linalg.qr(np.asarray(release.pca(parts).components).T)[0]
        kept = float(((turn.T @ found) ** 2 * values[:, None]).sum())
        missed.append(1 - kept / values[:parts].sum())
    expected = plan(rows, columns, **BUDGET, learn="pca", components=parts, condition=100.0)
    assert 0.5 < float(np.median(missed)) / expected["analyze_gauss"].error < 2


def test_log_odds_are_as_wrong_as_predicted() -> None:
    rows, columns, lost = 3_000, 5, []
    names = [f"x{place}" for place in range(columns)]
    declared = dpl.Schema({**dict.fromkeys(names, (-4, 4)), "y": "boolean"})
    for seed in range(5):
        generator = simulation.generator(seed)
        best = generator.standard_normal(columns)
        best *= math.sqrt(VARIANCE) / np.linalg.norm(best)
        cells, fresh = generator.standard_normal((2, rows, columns))
        labels = generator.uniform(size=rows) < expit(START + cells @ best)
        table = pa.table({**dict(zip(names, cells.T, strict=True)), "y": labels})
        with simulation.door(seed):
            model = dpl.release_model(table, declared, "y", **BUDGET, loss="logistic")
        true = START + fresh @ best
        found = model.intercept + fresh @ np.asarray(model.coefficients.values)
        gap = np.logaddexp(0, found) - np.logaddexp(0, true) - expit(true) * (found - true)
        lost.append(float(gap.mean()) / base_distance())
    expected = plan(rows, columns, **BUDGET, learn="logistic", condition=1.0)
    assert 0.5 < float(np.median(lost)) / expected.recommended.error < 2


def test_wide_bounds_are_left_to_coinpress() -> None:
    usual = plan(20_000, 8, **BUDGET, condition=1.0, tails="normal")
    wide = plan(20_000, 8, **BUDGET, condition=1.0, tails="normal", width=1_000.0)
    assert usual.recommended.mechanism == "whitened_descent"
    assert wide.recommended.mechanism == "coinpress"
    assert wide["whitened_descent"].error > 0.5
    assert wide["coinpress"].error == pytest.approx(usual["coinpress"].error)
    assert "scaled" in wide.recommended.note
