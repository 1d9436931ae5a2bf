"""Sentences on what a certificate tells beside the numbers: rows, cells, and survey weights."""

from collections.abc import Sequence

from dplinear.analyst.design_effect import (
    LEFT_OUT,
    SQUARES,
    noise_of,
    released_effect,
    weight_scale,
    weight_words,
)
from dplinear.analyst.filled_in import filled_notes, filled_shares
from dplinear.analyst.releases.certificate import Certificate
from dplinear.schema import Schema

_CLEAR = 3  # deviations of noise, from which rows that are left out are worth a word
_MODEL = "lack the target or a feature. They were left out of the model."
MOMENTS = "lack a number in a column that leaves such rows out of the moments."


def side_notes(
    schema: Schema,
    certificate: Certificate,
    count: float | None,
    lacking: str = _MODEL,
    features: Sequence[str] | None = None,
) -> list[str]:
    """Return sentences on rows that were left out, on cells filled in, and on survey weights.

    `count` is the number of rows that a release tells of, or the sum of their weights; `features`
    are those in use, by name (None: all of them).
    """
    scale = weight_scale(schema, certificate.rows_per_unit)
    total = None if count is None else count / scale
    told = total is not None and SQUARES in certificate.parameters
    effect = released_effect(certificate.parameters, total) if told and total is not None else None
    left = _left_out(schema, certificate, count, scale)
    shares = filled_shares(schema, certificate.parameters, count, scale)
    if features is not None:
        used = {
            factor.column
            for feature in schema.features
            if feature.name in features
            for factor in feature.factors
        }
        shares = [share for share in shares if share.column in used]
    filled = filled_notes(schema, shares)
    return [f"{size} {lacking}" for size in left] + filled + weight_words(schema, effect, total)


def _left_out(
    schema: Schema, certificate: Certificate, count: float | None, scale: float
) -> list[str]:
    """Return how many rows lack a number they need, in words, where there are any."""
    said = certificate.parameters
    left, noise = said.get(LEFT_OUT), said.get(noise_of(LEFT_OUT))
    if not isinstance(left, float) or not isinstance(noise, float) or left <= _CLEAR * noise:
        return []
    left, noise = left * scale, noise * scale
    share = left / (left + count) if count else 1.0
    rows = "rows" if certificate.unit is None else "units’ worth of rows"
    rows = rows if schema.weight is None else "in weights of rows"
    return [f"About {left:,.0f} {rows} ({share:.0%}; noise: ±{noise:,.0f})"]
