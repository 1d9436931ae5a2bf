"""How well distances between rows survive a release of rows, by the variance of their estimate.

The law of the noise comes from the mechanism itself, prepared with a seeded draw; the variance of a
squared distance is `DistanceErrorModel`'s, or that of independent normal noise.
"""

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dplinear.analyst.noise_models import rows as row_models
from dplinear.analyst.noise_models.rows import AdditiveRows
from dplinear.analyst.rows.distance_errors import DistanceErrorModel, Quadratic
from dplinear.mechanisms import AdditiveNoise, ProjectedRows
from dplinear.noise import simulation
from dplinear.planner.contest import plain_schema
from dplinear.planner.facts import Facts
from dplinear.planner.questions import (
    Prediction,
    Question,
    Refusal,
    absolute,
    refusal_reason,
    terms,
)
from dplinear.planner.simulated import plain_design
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours

KEPT = (2, 10, 50)  # numbers that a row may be projected to
_MANY = 100  # columns, beyond which many numbers take long to calibrate
_SEED = 7
_WIDE = "the numbers that a row is projected to were chosen for the least error: {}"


class Distances(Question):
    """Squared distances between rows, from a release of the rows."""

    name: ClassVar[str] = "distances"
    measure: ClassVar[str] = (
        "standard error of the squared distance of two typical rows, as a share of it"
    )
    relations: ClassVar[tuple[Neighbours, ...]] = (
        Neighbours.ELEMENT,
        Neighbours.ROW_L1,
        Neighbours.ROW_L2,
    )
    trivial: ClassVar[float | None] = 1.0

    @property
    def ways(self) -> tuple[str, ...]:
        """Those whose errors were derived."""
        return (AdditiveNoise.name, ProjectedRows.name)

    def floor(self, facts: Facts) -> float:
        """Return 0: without privacy, distances are what they are."""
        return 0.0

    def predict(self, way: str, facts: Facts) -> Prediction:
        """Return the standard error at the mean squared distance of two rows, 2·columns/width²."""
        if way == AdditiveNoise.name:
            return absolute(_relative(noise_variance(facts), facts))
        best, error = _best(facts)
        return absolute(error, _WIDE.format(best))

    def call(self, way: str, facts: Facts) -> str:
        """Return a release of rows."""
        asked = terms(facts, usual=Neighbours.ELEMENT)
        if way == AdditiveNoise.name:
            return f'dpl.release_rows(data, schema, {asked}, mechanism="{way}")'
        best, _ = _best(facts)
        return f'dpl.release_rows(data, schema, {asked}, mechanism="{way}", k={best})'

    def refusal(self, way: str, facts: Facts) -> Refusal | None:
        """Return the mechanism's own sentence."""
        if way == AdditiveNoise.name:
            return refusal_reason(AdditiveNoise, facts)
        return refusal_reason(ProjectedRows, facts, k=1)


def noise_variance(facts: Facts) -> Quadratic:
    """Return the variance of |U|² − 2Σσ², U the difference of two rows with normal noise."""
    noise_model = _additive(facts.columns, facts.guarantee)
    own = noise_model.variances[1:]
    mean = sum(own) / len(own)
    return Quadratic(0.0, 8 * mean, 8 * sum(variance**2 for variance in own))


@lru_cache(maxsize=256)
def _additive(columns: int, guarantee: Guarantee) -> AdditiveRows:
    schema, shape = plain_schema(columns - 1), plain_design(max(columns - 1, 1)).shape
    built = AdditiveNoise(guarantee=guarantee)
    return built.prepare(schema, shape, simulation.entropy(_SEED)).noise_model


def _relative(variance: Quadratic, facts: Facts) -> float:
    """Return the standard error at the mean squared distance of two rows, as a share of it."""
    squared = 2 * facts.columns / facts.width**2
    return math.sqrt(float(variance.at(np.array(squared)))) / squared


def _best(facts: Facts) -> tuple[int, float]:
    """Return the number of numbers with the least error, and that error."""
    found = {}
    most = facts.columns if facts.columns <= _MANY else KEPT[1]
    for k in [k for k in KEPT if k <= most] or [1]:
        noise_model = _projection_noise(facts.columns, facts.guarantee, facts.neighbours, k)
        found[k] = _relative(DistanceErrorModel.of(noise_model).variances, facts)
    best = min(found, key=lambda k: found[k])
    return best, found[best]


@lru_cache(maxsize=256)
def _projection_noise(
    columns: int, guarantee: Guarantee, neighbours: Neighbours, k: int
) -> row_models.ProjectedRows:
    schema, shape = plain_schema(columns - 1), plain_design(max(columns - 1, 1)).shape
    built = ProjectedRows(guarantee=guarantee, neighbours=neighbours, k=k)
    return built.prepare(schema, shape, simulation.entropy(_SEED)).noise_model
