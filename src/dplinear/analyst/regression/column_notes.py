"""Columns whose declaration does not fit what was released: free, as it looks at the release alone.

Two things are told, and only where noise cannot be the reason: most rows hold no declared level of
a category, or most of a column lies at a bound. A release that says neither proves neither: from
two moments nobody sees how many rows a bound has clipped.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dplinear.arrays import Floats
from dplinear.schema.columns import Category, Numeric
from dplinear.schema.describe import describe_value
from dplinear.schema.factors import Level

if TYPE_CHECKING:
    from dplinear.analyst.releases.moments import MomentsRelease

_CLEAR = 3.0  # standard errors of the noise: one false alarm in 700 for a column just at the limit
_NEAR = 0.01  # of the width of the bounds
_EDGE = 1 - (1 - 2 * _NEAR) ** 2  # what 1 − t² exceeds for cells t that are farther from ±1


def column_notes(release: "MomentsRelease") -> Mapping[str, str]:
    """Return a sentence for each column of which most rows hold no level, or lie at a bound.

    Requires: nothing; without an intercept, where rows were clipped, or where the size of the noise
    is not public, there are none.
    """
    schema = release.schema
    if not (schema.has_intercept and schema.row_norm is None and release.noise_model.known):
        return {}
    found: dict[str, str] = {}
    for name, column in schema.declared.items():
        if isinstance(column, Category):
            told = _of_levels(release, name)
        elif column.type != "boolean":
            told = _of_bounds(release, name, column)
        else:
            told = None
        if told is not None:
            found[name] = told
    return found


def _of_levels(release: "MomentsRelease", name: str) -> str | None:
    """Return a sentence if more than half of the rows hold no level: Σ other − n/2 > 0."""
    features = release.schema.features
    other = [
        index
        for index in release.schema.own_features(name)
        if features[index].factors == (Level(name, -1),)
    ]
    if not other:
        return None
    direction = np.array([[-0.5, 0.5], [0.5, 0.0]])
    if not _is_clear(release, other[0], direction):
        return None
    share = float(release.unbiased_estimate[0, other[0]]) / float(release.unbiased_estimate[0, 0])
    return (
        f"Most rows{_weighed(release)} (about {min(share, 1.0):.0%}) hold none of the declared "
        f"levels of {name!r}, "
        f"and count as {features[other[0]].name!r}: look for levels that are missing or spelt "
        "otherwise, or for empty cells."
    )


def _of_bounds(release: "MomentsRelease", name: str, column: Numeric) -> str | None:
    """Return a sentence if at least half of the rows are near a bound, by Markov's inequality.

    With E[1 − t²] < `_EDGE`/2, fewer than half of the cells t have 1 − t² ≥ `_EDGE`, and all others
    are within `_NEAR` of the width from −1 or 1.
    """
    index = release.schema.own_features(name)[0]
    feature = release.schema.features[index]
    if feature.low + feature.high != 2 * feature.centre:
        return None
    direction = np.diag([_EDGE / 2 - 1, 1.0])
    if not _is_clear(release, index, direction):
        return None
    mean = float(release.unbiased_estimate[0, index] / release.unbiased_estimate[0, 0])
    if abs(mean) < 0.5:
        where = "one of its bounds"
    else:
        side, value = ("upper", column.high) if mean > 0 else ("lower", column.low)
        where = f"its {side} bound, {describe_value(column, value)},"
    return (
        f"At least half of {name!r}{_weighed(release)} lies at {where} or within {_NEAR:.0%} of "
        "their width from it: cells beyond a bound are clipped to it, so the bounds may be too "
        "narrow, or far too wide."
    )


def _weighed(release: "MomentsRelease") -> str:
    """Return what half of the rows means where a unit with many of them counts as few."""
    unit = release.certificate.unit
    return "" if unit is None else f", weighed by {unit!r},"


def _is_clear(release: "MomentsRelease", index: int, direction: Floats) -> bool:
    """Return whether ⟨direction, moments⟩ of the intercept and a feature is clearly above 0."""
    chosen = [0, index]
    whole = release.unbiased_estimate
    block = whole[np.ix_(chosen, chosen)]
    model = release.noise_model.part(len(whole), chosen)
    variance = float(model.variance(direction, block))
    value = float(np.sum(direction * block))
    return bool(block[0, 0] > 1 and variance >= 0 and value > _CLEAR * math.sqrt(variance))
