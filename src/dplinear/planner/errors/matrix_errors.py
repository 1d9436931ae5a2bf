"""How far released second moments are from the true ones, in closed form, for every mechanism.

Each mechanism calibrates itself, and the variance of its noise is taken at the matrix that is
expected: `rows` rows of uncorrelated columns, each with a standard deviation of 1/width of half
its range. What is counted is the error of a correlation.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dplinear.analyst.noise_models.matrices import NoiseModel
from dplinear.arguments import ArgumentError, rejection
from dplinear.arrays import Floats
from dplinear.exact.grid import plain_shape
from dplinear.mechanisms.contract import MomentsMechanism
from dplinear.planner.facts import WHERE, Facts
from dplinear.planner.questions import (
    Prediction,
    Question,
    Refusal,
    absolute,
    refusal_reason,
    terms,
)
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MOMENTS


@dataclass(frozen=True)
class Public:
    """What a mechanism's noise depends on: a guarantee, neighbours, a dimension, a squared norm."""

    guarantee: Guarantee
    neighbours: Neighbours
    dimension: int
    square: float

    @classmethod
    def of(cls, facts: Facts) -> "Public":
        """Return what the noise of a table's moments depends on."""
        return cls(facts.guarantee, facts.neighbours, facts.dimension, facts.square)


@lru_cache(maxsize=512)
def noise_of(kind: type[MomentsMechanism], public: Public) -> NoiseModel:
    """Return the noise model of a mechanism with its default options, as it calibrates itself.

    Raises: ArgumentError where the mechanism refuses, or cannot know its noise beforehand.
    """
    mechanism = kind(guarantee=public.guarantee, neighbours=public.neighbours)
    model = mechanism.prepare(plain_shape(public.dimension, public.square)).noise_model
    if model is None:
        rule = "one whose noise is known before the table is read"
        raise rejection("mechanism", WHERE, rule, kind.name)
    return model


def noise_size(model: NoiseModel) -> float:
    """Return one number that grows with the noise: the deviation of an entry of an empty table."""
    return math.sqrt(entry_variance(model, 2, np.zeros((2, 2)), 0, 1))


def expected_block(facts: Facts) -> Floats:
    """Return the second moments of the constant and two uncorrelated columns, in cells."""
    each = facts.counted / facts.width**2
    return np.diag([float(facts.counted), each, each])


def entry_variance(
    model: NoiseModel, dimension: int, block: Floats, row: int, column: int
) -> float:
    """Return the variance of an entry of the unbiased matrix, in a block of `dimension` sides."""
    if dimension < len(block):
        block = block[:dimension, :dimension]
        row, column = min(row, dimension - 1), min(column, dimension - 1)
    direction = np.zeros(block.shape)
    direction[row, column] += 0.5
    direction[column, row] += 0.5
    part = model.part(dimension, range(len(block)))
    return float(part.variance(direction, block))


class Moments(Question):
    """All second moments, for any number of regressions."""

    name: ClassVar[str] = "moments"
    measure: ClassVar[str] = (
        "root mean square error of a correlation of two uncorrelated columns, sampling included"
    )
    trivial: ClassVar[float | None] = 1.0
    adds_squares: ClassVar[bool] = True

    @property
    def ways(self) -> tuple[str, ...]:
        """Every mechanism for second moments."""
        return tuple(MOMENTS)

    def floor(self, facts: Facts) -> float:
        """Return the sampling error."""
        return 1 / math.sqrt(facts.sample)

    def predict(self, way: str, facts: Facts) -> Prediction:
        """Return the law's own standard deviation, beside that of sampling."""
        error = math.hypot(correlation_error(way, facts), self.floor(facts))
        return absolute(error)

    def call(self, way: str, facts: Facts) -> str:
        """Return a release of moments."""
        return f'dpl.release_moments(data, schema, {terms(facts)}, mechanism="{way}")'

    def refusal(self, way: str, facts: Facts) -> Refusal | None:
        """Return the mechanism's own sentence."""
        return why_refused(way, facts)


def why_refused(name: str, facts: Facts) -> Refusal | None:
    """Return why a mechanism cannot keep a guarantee, or cannot be calibrated for it."""
    found = refusal_reason(MOMENTS[name], facts)
    if found is not None:
        return found
    try:
        noise_of(MOMENTS[name], Public.of(facts))
    except ArgumentError as error:
        return Refusal.of(error)
    return None


def correlation_error(name: str, facts: Facts) -> float:
    """Return the standard deviation of a released correlation of two uncorrelated columns."""
    model = noise_of(MOMENTS[name], Public.of(facts))
    variance = entry_variance(model, facts.dimension, expected_block(facts), 1, 2)
    return math.sqrt(variance) * facts.width**2 / facts.counted


def mean_error(name: str, facts: Facts) -> float:
    """Return the standard deviation of a released mean, in standard deviations of the column."""
    model = noise_of(MOMENTS[name], Public.of(facts))
    variance = entry_variance(model, facts.dimension, expected_block(facts), 0, 1)
    return math.sqrt(variance) * facts.width / facts.counted
