"""The error of a private logistic regression: a curve of rows·μ for each coefficient, simulated.

Log-odds have a variance of 3 and a start of 1/2, of normal rows; what privacy adds to the excess
log-loss depends on x = rows·μ/(columns + 1) as for least squares, so a few sizes make the curve.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from dplinear.arrays import Floats
from dplinear.descent.logistic import LogisticDescent
from dplinear.noise import simulation
from dplinear.planner.errors.curves import NODES, Size, abscissa, far_bounds, fit_curve
from dplinear.planner.errors.lookup import curve_at, error_table
from dplinear.planner.facts import Facts
from dplinear.planner.populations import Kind, Population, seed_of
from dplinear.planner.questions import (
    Prediction,
    Question,
    Refusal,
    in_a_set,
    lognormal,
    refusal_reason,
    terms,
)
from dplinear.planner.simulated import SimulatedRows, plain_design
from dplinear.privacy.guarantees import GDP, ApproxDP
from dplinear.privacy.neighbours import Neighbours

VARIANCE, START = 3.0, 0.5
COLUMNS = (4, 24)
ROWS_A_COLUMN = (30, 300)
CONDITIONS = (1.0, 100.0)
MUS = (0.02, 0.05, 0.125, 0.3, 0.8, 2.0)
REPETITIONS = 3
DELTA = 1e-6
FRESH = 4_000  # rows that a model is judged on
_LEAST = 0.15  # as in `simulated_errors`
_SEEN = 1.8
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_CAPPED = 0.3  # the standard deviation of a curve's natural logarithm
_ONE_KIND = "simulated for normal rows and log-odds of variance 3"
_OTHER = "heavy tails are not simulated"


@dataclass(frozen=True)
class LogisticSpot:
    """One simulated table of labels, fitted at every budget."""

    columns: int
    rows: int
    condition: float
    repetition: int


def logistic_spots() -> list[LogisticSpot]:
    """Return all tables, small ones first."""
    found = [
        LogisticSpot(d, d * ratio, condition, repetition)
        for d in COLUMNS
        for ratio in ROWS_A_COLUMN
        for condition in CONDITIONS
        for repetition in range(REPETITIONS)
    ]
    return sorted(found, key=lambda spot: spot.rows * spot.columns)


@cache
def base_distance() -> float:
    """Return the mean distance of true chances from the base rate, in nats."""
    odds = START + math.sqrt(VARIANCE) * _POINTS
    weights = _WEIGHTS / _WEIGHTS.sum()
    probabilities = expit(odds)
    rate = float(weights @ probabilities)
    flat = math.log(rate / (1 - rate))
    return float(weights @ _distance(np.full_like(odds, flat), odds))


def _distance(found: Floats, true: Floats) -> Floats:
    """Return the Kullback-Leibler distance of chances, given as log-odds."""
    gap = np.logaddexp(0, found) - np.logaddexp(0, true)
    return np.asarray(gap - expit(true) * (found - true))


def simulate_logistic(spot: LogisticSpot) -> list[float | None]:
    """Return the excess log-loss at each μ, as a share of the base rate's; None if not telling."""
    seed = seed_of("logistic table", spot)
    generator = simulation.generator(seed)
    kind = Kind(spot.columns, condition=spot.condition)
    population = Population.draw(kind, generator)
    rows = _cells(population, spot.rows, generator)
    labels = generator.uniform(size=spot.rows) < expit(_odds(population, rows))
    table = np.column_stack([np.ones(spot.rows), rows, np.where(labels, 1.0, -1.0)])
    fresh = _cells(population, FRESH, generator)
    true, design = _odds(population, fresh), plain_design(spot.columns)
    found: list[float | None] = []
    for mu in MUS:
        x = abscissa(LogisticDescent.name, Size(spot.rows, spot.columns, mu, 0.0))
        if not 0.4 <= x <= _SEEN * math.sqrt(spot.rows / spot.columns):
            found.append(None)
            continue
        guarantee = GDP(mu).to(ApproxDP, delta=DELTA)
        prepared = LogisticDescent(guarantee=guarantee).prepare(design)
        entropy = simulation.entropy(seed_of(seed, mu))
        model = prepared.run(SimulatedRows(design.shape, iter([table])), entropy).coefficients
        lost = _distance(model[0] + fresh @ model[1:], true)
        found.append(float(lost.mean()) / base_distance())
    return found


def _cells(population: Population, rows: int, generator: simulation.Generator) -> Floats:
    features = generator.standard_normal((rows, population.kind.columns)) @ population.root.T
    return np.clip(features / population.half_widths, -1, 1)


def _odds(population: Population, cells: Floats) -> Floats:
    slopes = math.sqrt(VARIANCE) * population.best * population.half_widths
    return np.asarray(START + cells @ slopes)


def sampling_error(rows: float, columns: int) -> float:
    """Return the excess log-loss of the likeliest model: half a nat by rows, each coefficient."""
    return min((columns + 1) / (2 * max(rows - columns - 2, 1)) / base_distance(), 1.0)


def logistic_content(results: Iterable[tuple[LogisticSpot, list[float | None]]]) -> dict[str, Any]:
    """Return the part of the table of errors that is about log-odds, as plain JSON."""
    given = list(results)
    curves = []
    for condition in CONDITIONS:
        points = []
        for spot, risks in given:
            if spot.condition != condition:
                continue
            floor = sampling_error(spot.rows, spot.columns)
            for mu, risk in zip(MUS, risks, strict=True):
                if risk is not None:
                    x = abscissa(LogisticDescent.name, Size(spot.rows, spot.columns, mu, 0.0))
                    points.append((x, max(risk - floor, _LEAST * floor), 1.0))
        curves.append([round(float(value), 3) for value in fit_curve(LogisticDescent.name, points)])
    return {
        "tables": len(given),
        "conditions": list(CONDITIONS),
        "nodes": [round(float(node), 3) for node in NODES],
        "added": curves,
    }


class LogisticRegression(Question):
    """One logistic regression of one label."""

    name: ClassVar[str] = "logistic"
    measure: ClassVar[str] = (
        "excess log-loss on new rows, as a share of the base rate's: "
        "0 has the true chances, 1 is the base rate"
    )
    target: ClassVar[bool] = True
    trivial: ClassVar[float | None] = 1.0

    @property
    def ways(self) -> tuple[str, ...]:
        """Those whose errors were simulated."""
        return (LogisticDescent.name,)

    def floor(self, facts: Facts) -> float:
        """Return the error of the likeliest model."""
        return sampling_error(facts.sample, facts.columns)

    def predict(self, way: str, facts: Facts) -> Prediction:
        """Look the error up; of both condition numbers where none was given."""
        table = error_table().content[self.name]
        mu = facts.mu * (0.5 if facts.neighbours is Neighbours.REPLACE else 1.0)
        size = Size(facts.counted, facts.columns, mu, 0.0, facts.width)
        x, far = abscissa(way, size), far_bounds(size)
        nodes, curves = np.asarray(table["nodes"]), np.asarray(table["added"])
        asked = CONDITIONS if facts.condition is None else (facts.condition,)
        each = []
        for condition in asked:
            share = min(math.log(condition) / math.log(CONDITIONS[-1]), 1.0)
            added = curve_at(x, nodes, curves[0] * (1 - share) + curves[1] * share)
            each.append(self.floor(facts) + added + far)
        error = math.exp(sum(map(math.log, each)) / len(each))
        spread = math.hypot(_CAPPED, math.sqrt(2 / (facts.columns + 1)))
        found = lognormal(error, spread)
        heavy = facts.tails == "heavy"
        note = "; ".join([_ONE_KIND, *([_OTHER] if heavy else [])])
        low, high = min(each) / error, max(each) / error
        return Prediction(error, found.low * low, found.high * high, note)

    def call(self, way: str, facts: Facts) -> str:
        """Return a release of one model."""
        return f'dpl.release_model(data, schema, target, {terms(facts)}, loss="logistic")'

    def refusal(self, way: str, facts: Facts) -> Refusal | None:
        """Return the method's own sentence."""
        return refusal_reason(LogisticDescent, facts)

    def elsewhere(self, facts: Facts) -> str:
        """Return how a classifier is learnt in a set."""
        return in_a_set(facts, "classes=(0, 1)", ', loss="logistic"')
