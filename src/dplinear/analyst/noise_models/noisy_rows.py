"""The noise model of the second moments of rows that carry independent normal noise.

M = Σ (x + n)(x + n)ᵀ with n ~ N(0, D), D diagonal, has mean G + rows·D.
docs/theory/additive-noise.md has the second moments.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dplinear.analyst.noise_models.contract import (
    NoiseModel,
    bartlett,
    quadratic,
    size,
    weighted_products,
)
from dplinear.arguments import integer, real, wrong_type
from dplinear.arrays import Floats
from dplinear.noise.simulation import Generator


@dataclass(frozen=True)
class NoisyRows(NoiseModel):
    """Second moments of `rows` rows plus noise; `variances` has one for each feature, or 0."""

    variances: tuple[float, ...]
    rows: int
    kind: ClassVar[str] = "noisy rows"

    def __post_init__(self) -> None:
        where = "NoisyRows"
        integer(self.rows, "rows", where, low=0)
        if not isinstance(self.variances, list | tuple):  # files hold lists
            raise wrong_type("variances", where, "a number for each feature", self.variances)
        read = tuple(real(variance, "variances", where, low=0) for variance in self.variances)
        object.__setattr__(self, "variances", read)

    @property
    def dimension(self) -> int | None:
        """The number of variances."""
        return len(self.variances)

    @property
    def _noise(self) -> Floats:
        return np.diag(self.variances)

    def unbiased_estimate(self, released: Floats) -> Floats:
        """Return the matrix less rows·D."""
        return np.asarray(released - self.rows * self._noise)

    def positive(self, released: Floats) -> Floats:
        """Return the released matrix: that of the noisy rows as they are."""
        return released

    def variance(self, direction: Floats, gram: Floats) -> Floats:
        """Return 4·tr(ADAG) + 2·rows·tr(ADAD)."""
        noise = self._noise
        cross = np.einsum("...ij,...ji->...", direction @ noise, direction @ gram)
        return np.asarray(4 * cross + 2 * self.rows * quadratic(direction, noise))

    def sandwich(self, middle: Floats, gram: Floats) -> Floats:
        """Return GCD + DCG + tr(CD)·G + tr(CG)·D + rows·(tr(CD)·D + DCD)."""
        noise = self._noise
        cross = gram @ middle @ noise
        by_noise = np.trace(middle @ noise, axis1=-2, axis2=-1)[..., None, None]
        by_gram = np.trace(middle @ gram, axis1=-2, axis2=-1)[..., None, None]
        trace, outer = weighted_products(middle, noise)
        both = cross + np.swapaxes(cross, -1, -2) + by_noise * gram + by_gram * noise
        return np.asarray(both + self.rows * (trace + outer))

    def spread(self, gram: Floats) -> float:
        """Return 2√|E[N²]| + tr(D): the semicircle's edge, and what a Wishart matrix has beyond it.

        Twice the truth where one direction of G dominates.
        """
        square, _ = size(self.sandwich(np.eye(gram.shape[-1]), gram))
        return 2 * math.sqrt(square) + sum(self.variances)

    def draw(self, gram: Floats, generator: Generator) -> Floats:
        """Draw the noise of rows with these second moments.

        Noise in the span of the rows and noise outside it are independent: the first is added to a
        factor F of G = FᵀF, with as many rows as G has at most, the second is a Wishart matrix.
        """
        d = int(gram.shape[-1])
        inside = min(self.rows, d)
        deviations = np.sqrt(self.variances)
        values, vectors = np.linalg.eigh(gram)
        half = np.sqrt(np.maximum(values, 0.0))[..., None] * np.swapaxes(vectors, -1, -2)
        half = half[..., d - inside :, :]
        noisy = half + generator.standard_normal(half.shape) * deviations
        outside = self.rows - inside
        if outside >= d:
            rest = np.swapaxes(bartlett(gram.shape, outside, generator), -1, -2)
        else:
            rest = generator.standard_normal((*gram.shape[:-2], outside, d))
        rest *= deviations
        return np.asarray(np.swapaxes(noisy, -1, -2) @ noisy + np.swapaxes(rest, -1, -2) @ rest)

    def part(self, dimension: int, kept: Sequence[int]) -> "NoisyRows":
        """Return the law with the variances of the features that are kept."""
        return NoisyRows(tuple(self.variances[index] for index in kept), self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain JSON."""
        return {"kind": self.kind, "variances": list(self.variances), "rows": self.rows}
