"""What unequal survey weights do to sampling errors: Kish's factor, from noisy sums.

With weights v in [0, 1] and A = (Σ v·xxᵀ)⁻¹, a weighted estimate has the variance A(Σ v²·e²·xxᵀ)A.
Sums of weighted rows tell Σ v·e²·xxᵀ instead. Where weights are unrelated to e²·xxᵀ, one is
Σ v²/Σ v times the other; whatever they are, it is at most the other
(docs/theory/survey-weights.md).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dplinear.schema import Schema

SQUARES = "squared_weights"
LEFT_OUT = "rows_left_out"
POOLED = "pooled_groups"  # of how many groups such sums were added up


def noise_of(name: str) -> str:
    """Return the name of a released sum's standard deviation."""
    return f"{name}_noise"


def weight_scale(schema: Schema, rows_per_unit: int | None) -> float:
    """Return how much a weight of 1 in sums is in the scale of survey weights; 1 without any.

    Sums are of weights over the largest that a unit may have: `high`, for each of its rows.
    """
    return 1.0 if schema.weight is None else schema.weight.scale(rows_per_unit)


def weight_words(schema: Schema, effect: float | None, total: float | None) -> list[str]:
    """Return sentences on survey weights: what counts, and what sampling errors assume."""
    if schema.weight is None:
        return []
    facts = (
        f"Rows count by their survey weights ({schema.weight.column!r}), clamped to their bounds"
    )
    if effect is None or total is None or not total > 0:
        return [f"{facts}."]
    informative = f"as informative as about {total / effect:,.0f} rows of equal weight (Kish)"
    assumed = "Sampling errors take weights to be unrelated to features and squared residuals."
    return [f"{facts}: {informative}. {assumed}"]


def design_effect(squares: float, noise: float, total: float) -> float:
    """Return Σ v²/Σ v, biased up by one standard deviation of its noise, at most 1.

    Requires: released Σ v², with its `noise`, and Σ v, `total`.
    """
    if not total > 0:
        return 1.0
    return min((max(squares, 0.0) + noise) / total, 1.0)


def released_effect(parameters: Mapping[str, Any], total: float) -> float:
    """Return the factor that a certificate tells; 1 where it tells none."""
    squares, noise = parameters.get(SQUARES), parameters.get(noise_of(SQUARES))
    if not isinstance(squares, float) or not isinstance(noise, float):
        return 1.0
    return design_effect(squares, noise, total)


def add_side_sums(
    told: Sequence[Mapping[str, Any]], scales: Sequence[float]
) -> dict[str, str | int | float | bool | None]:
    """Return the sums, each with its noise, that several certificates tell, added up.

    Requires: what each table's weights are multiplied by; squares of them are by its square.
    Promises: the same to the bit in any order.
    """
    added: dict[str, str | int | float | bool | None] = {}
    for name in told[0]:
        if all(noise_of(name) in each for each in told):
            factors = [scale**2 if name == SQUARES else scale for scale in scales]
            parts = list(zip(factors, told, strict=True))
            added[name] = math.fsum(factor * each[name] for factor, each in parts)
            squares = ((factor * each[noise_of(name)]) ** 2 for factor, each in parts)
            added[noise_of(name)] = math.sqrt(math.fsum(squares))
    return added
