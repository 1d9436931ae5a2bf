"""How far released second moments are from the true ones, in closed form, for every mechanism.

Each mechanism's law is built from its exact calibration, and its variance taken at the matrix that
is expected: `rows` rows of uncorrelated columns, each with a standard deviation of 1/width of half
its range. What is counted is the error of a correlation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    NoiseModel,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.arguments import ArgumentError
from dplinear.arrays import Floats
from dplinear.mechanisms import MECHANISMS
from dplinear.mechanisms.moments.additive_wishart import AdditiveWishart
from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss
from dplinear.mechanisms.moments.inverse_wishart import InverseWishart
from dplinear.mechanisms.moments.sketch import GaussianSketch
from dplinear.planner.facts import Facts
from dplinear.planner.questions import (
    Prediction,
    Question,
    Refusal,
    absolute,
    refusal_reason,
    terms,
)
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours


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


def symmetric_gaussian(public: Public) -> SymmetricGaussian:
    """Return the law of Analyze Gauss: one row changes the matrix by `square`, or √2 times that."""
    twice = public.neighbours is Neighbours.REPLACE and public.dimension > 1
    sensitivity = public.square * math.sqrt(1 + twice)
    variance = calibrate.gaussian(public.guarantee, sensitivity) ** 2
    return SymmetricGaussian(variance, variance / (2 if public.dimension > 1 else 1))


@lru_cache(maxsize=512)
def wishart_noise(public: Public) -> WishartNoise:
    """Return the law of additive Wishart noise, at the mechanism's own cap of degrees."""
    mechanism = AdditiveWishart(guarantee=public.guarantee, neighbours=public.neighbours)
    degrees, scale = calibrate.additive_wishart(
        public.guarantee,
        public.dimension,
        math.sqrt(public.square),
        public.neighbours,
        most_degrees=mechanism.cap,
    )
    return WishartNoise(degrees, scale**2)


@lru_cache(maxsize=512)
def sketch(public: Public) -> SketchNoise:
    """Return the law of a sketch of twice as many rows as there are features."""
    rows = 2 * public.dimension
    bound = math.sqrt(public.square)
    return SketchNoise(rows, calibrate.sketch(public.guarantee, rows, bound, public.neighbours))


@lru_cache(maxsize=512)
def inverse_wishart(public: Public) -> InverseWishartNoise:
    """Return the law of an inverse-Wishart draw of the default degrees."""
    degrees = max(2 * public.dimension, public.dimension + 4)
    bound = math.sqrt(public.square)
    ridge = calibrate.inverse_wishart(public.guarantee, degrees, bound, public.neighbours)
    return InverseWishartNoise(degrees, ridge)


LAWS: dict[str, Callable[[Public], NoiseModel]] = {
    AnalyzeGauss.name: symmetric_gaussian,
    AdditiveWishart.name: wishart_noise,
    GaussianSketch.name: sketch,
    InverseWishart.name: inverse_wishart,
}


def noise_size(law: NoiseModel) -> float:
    """Return one number that grows with a law's noise: a standard deviation, or a ridge."""
    match law:
        case SymmetricGaussian():
            return math.sqrt(law.off_diagonal)
        case WishartNoise():
            return law.scale * math.sqrt(law.degrees)
        case SketchNoise() | InverseWishartNoise():
            return law.ridge
    raise TypeError(type(law).__name__)


def expected_block(facts: Facts) -> Floats:
    """Return the second moments of the constant and two uncorrelated columns, in cells."""
    each = facts.rows / facts.width**2
    return np.diag([float(facts.rows), each, each])


def entry_variance(law: NoiseModel, dimension: int, block: Floats, row: int, column: int) -> float:
    """Return the variance of an entry of the unbiased matrix, in a block of `dimension` sides."""
    if dimension < len(block):
        block = block[:dimension, :dimension]
        row, column = min(row, dimension - 1), min(column, dimension - 1)
    direction = np.zeros(block.shape)
    direction[row, column] += 0.5
    direction[column, row] += 0.5
    part = law.part(dimension, range(len(block)))
    return float(part.variance(direction, block))


class Moments(Question):
    """All second moments, for any number of regressions."""

    name: ClassVar[str] = "moments"
    measure: ClassVar[str] = (
        "root mean square error of a correlation of two uncorrelated columns, sampling included"
    )
    ways: ClassVar[tuple[str, ...]] = tuple(LAWS)
    trivial: ClassVar[float | None] = 1.0

    def floor(self, facts: Facts) -> float:
        """Return the sampling error."""
        return 1 / math.sqrt(facts.rows)

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
    found = refusal_reason(MECHANISMS[name], facts)
    if found is not None:
        return found
    try:
        LAWS[name](Public.of(facts))
    except ArgumentError as error:
        return Refusal.of(error)
    return None


def correlation_error(name: str, facts: Facts) -> float:
    """Return the standard deviation of a released correlation of two uncorrelated columns."""
    law = LAWS[name](Public.of(facts))
    variance = entry_variance(law, facts.dimension, expected_block(facts), 1, 2)
    return math.sqrt(variance) * facts.width**2 / facts.rows


def mean_error(name: str, facts: Facts) -> float:
    """Return the standard deviation of a released mean, in standard deviations of the column."""
    law = LAWS[name](Public.of(facts))
    variance = entry_variance(law, facts.dimension, expected_block(facts), 0, 1)
    return math.sqrt(variance) * facts.width / facts.rows
