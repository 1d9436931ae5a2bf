"""How much variance private principal components lose, drawn from the noise models.

There is no closed form, but a draw takes no table: the exact calibration gives the law of the
released matrix, and a few seeded draws of it, at the spectrum that is assumed, give the error.
"""

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dplinear.analyst.noise_models.matrices import NoiseModel
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.planner.errors.matrix_errors import Public, noise_of, why_refused
from dplinear.planner.facts import Facts
from dplinear.planner.populations import seed_of
from dplinear.planner.questions import Prediction, Question, Refusal, terms
from dplinear.registry import MOMENTS

DRAWS = 11
MOST_COLUMNS = 128  # that are drawn; more are as many in proportion
CONDITION = 100.0
_TINY = 1e-12


class PrincipalComponents(Question):
    """The first few principal components of all columns."""

    name: ClassVar[str] = "pca"
    measure: ClassVar[str] = (
        "share of the variance along the best components that the released ones miss"
    )
    alike: ClassVar[float] = 1.3  # what a few draws can tell apart

    @property
    def ways(self) -> tuple[str, ...]:
        """Every mechanism for second moments."""
        return tuple(MOMENTS)

    def floor(self, facts: Facts) -> float:
        """Return what the components of a sample miss."""
        return _sampling_loss(
            facts.columns, facts.components, facts.condition or CONDITION, facts.sample
        )

    def predict(self, way: str, facts: Facts) -> Prediction:
        """Draw released matrices, and look how much variance their components miss."""
        noise_model = noise_of(MOMENTS[way], Public.of(facts))
        found = self.floor(facts) + lost_variance(noise_model, facts)
        low, middle, high = (float(end) for end in np.quantile(found, [0.05, 0.5, 0.95]))
        notes = []
        if facts.condition is None:
            notes.append(f"for a condition number of {CONDITION:g}, as none was given")
        if facts.columns > MOST_COLUMNS:
            notes.append(f"drawn for {MOST_COLUMNS} columns, with noise in proportion")
        return Prediction(middle, low, high, "; ".join(notes))

    def call(self, way: str, facts: Facts) -> str:
        """Return a release of moments, and components of it."""
        asked = f'{terms(facts)}, mechanism="{way}"'
        return f"dpl.release_moments(data, schema, {asked}).pca({facts.components})"

    def refusal(self, way: str, facts: Facts) -> Refusal | None:
        """Return the mechanism's own sentence."""
        return why_refused(way, facts)


def spectrum(columns: int, condition: float) -> Floats:
    """Return the eigenvalues that are assumed, evenly in logarithms, of mean 1."""
    values = np.geomspace(1.0, 1 / condition, columns)
    return np.asarray(values / values.mean())


def lost_variance(noise_model: NoiseModel, facts: Facts) -> Floats:
    """Return the share of variance that each draw misses, falling with the noise on average."""
    columns = min(facts.columns, MOST_COLUMNS)
    values = spectrum(columns, facts.condition or CONDITION)
    components = min(facts.components, columns)
    best = float(values[:components].sum())
    # The spectral norm of noise on so many columns grows as their square root.
    stretch = math.sqrt(facts.columns / columns)
    generator = simulation.generator(seed_of("components", facts.columns, facts.components))
    turn = np.linalg.qr(generator.standard_normal((columns, columns)))[0]
    each = facts.counted / facts.width**2
    gram = (turn * values) @ turn.T * each
    part = noise_model.part(facts.dimension, range(columns))
    found = []
    for _ in range(DRAWS):
        released = part.unbiased_estimate(part.draw(gram, generator))
        noisy = gram + stretch * (released - gram)
        _, vectors = np.linalg.eigh((noisy + noisy.T) / 2)
        top = turn.T @ vectors[:, -components:]
        found.append(max(1 - float((values[:, None] * top**2).sum()) / best, _TINY))
    return np.array(found)


@lru_cache(maxsize=128)
def _sampling_loss(columns: int, components: int, condition: float, rows: float) -> float:
    """Return the first-order loss of the components of normal rows.

    Each pair of a kept and a left direction turns by λᵢλⱼ/(n(λᵢ − λⱼ)²), and loses λᵢ − λⱼ of it.
    """
    values = spectrum(min(columns, MOST_COLUMNS), condition)
    kept, left = values[:components, None], values[None, components:]
    if not left.size:
        return _TINY
    turned = kept * left / np.maximum((kept - left) * rows, _TINY)
    most = float(1 - components * values.mean() / values[:components].sum())
    return min(max(float(turned.sum() / values[:components].sum()), _TINY), max(most, _TINY))
