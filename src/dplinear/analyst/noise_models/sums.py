"""The noise of sums of released matrices, where it is of a kind that is known."""

import math
from collections.abc import Sequence

from dplinear.analyst.noise_models.matrices import NoiseModel, SymmetricGaussian, WishartNoise
from dplinear.arguments import rejection


def add_noise(
    models: Sequence[NoiseModel], scales: Sequence[float], parameter: str, where: str
) -> NoiseModel:
    """Return the noise model of Σ scaleᵢ·Mᵢ, the noise of the Mᵢ being independent.

    Gaussian variances add up, each times scale²; Wishart matrices of one scale, added as they are,
    have the degrees of all. Other noise depends on each of the tables: a sum of it raises.
    """
    gaussian = [model for model in models if isinstance(model, SymmetricGaussian)]
    if len(gaussian) == len(models):
        squares = [scale**2 for scale in scales]
        return SymmetricGaussian(
            _weighted(squares, [model.diagonal for model in gaussian]),
            _weighted(squares, [model.off_diagonal for model in gaussian]),
        )
    wishart = {model.scale for model in models if isinstance(model, WishartNoise)}
    alike = [model for model in models if isinstance(model, WishartNoise)]
    if len(alike) == len(models) and len(wishart) == 1 and set(scales) == {1.0}:
        return WishartNoise(math.fsum(model.degrees for model in alike), wishart.pop())
    kinds = sorted({model.kind for model in models})
    rule = "of Gaussian noise, or of Wishart noise of one scale"
    hint = (
        "the sum of other noise has no law that is known here, as it depends on each of the "
        "tables; release them with mechanism='analyze_gauss'."
    )
    raise rejection(parameter, where, rule, " and ".join(kinds), hint)


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True))
