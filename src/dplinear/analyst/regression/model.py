"""Which linear model an analyst asks for, and which part of it the noise leaves to estimate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dplinear.analyst.noise_models.matrices import NoiseModel
from dplinear.analyst.regression import names as naming
from dplinear.arguments import real, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.schema import Schema

WHERE = "regress"
_DEVIATIONS = 3.0


@dataclass(frozen=True)
class Model:
    """Which features explain which targets, by their places in the schema.

    `named` are the features the caller means; `features` those of them that are estimated: the rest
    are levels that no row seems to hold, and their coefficients are 0.
    """

    schema: Schema
    named: tuple[int, ...]
    features: tuple[int, ...]
    targets: tuple[int, ...]
    intercept: bool
    ridge: float
    l1: float

    @property
    def base(self) -> tuple[int, ...]:
        """The place of the constant, where the model needs it."""
        shifted = any(self.schema.features[i].centre for i in self.features + self.targets)
        return (0,) if self.intercept or shifted else ()

    def used_indices(self, target: int) -> list[int]:
        """The places whose moments decide the model of one target, the target last."""
        return [*self.base, *self.features, target]


def read_model(
    schema: Schema,
    target: object,
    features: object,
    *,
    ridge: float = 0.0,
    l1: float = 0.0,
    intercept: bool = True,
    where: str = WHERE,
) -> Model:
    """Return the model that the arguments describe, or raise."""
    targets = (
        [naming.single(schema, target, where)]
        if isinstance(target, str)
        else naming.targets(schema, target, where)
    )
    if not isinstance(intercept, bool):
        raise wrong_type("intercept", where, "True or False", intercept)
    if intercept and not schema.has_intercept:
        hint = "the schema has no column of ones; pass intercept=False."
        raise rejection("intercept", where, "False for this schema", intercept, hint)
    known = schema.features
    if features is None:
        terms = {known[each].term for each in targets}
        own = naming.own_features(schema)
        chosen = [index for index in own if known[index].term not in terms]
        if not chosen:
            rule = "a target that leaves features to explain it"
            raise rejection("target", where, rule, target)
    else:
        chosen = naming.indices_of(schema, features, "features", where)
    both = ", ".join(known[index].name for index in chosen if index in targets)
    if both:
        raise rejection("features", where, "free of the target", both)
    ridge = real(ridge, "ridge", where, low=0)
    l1 = real(l1, "l1", where, low=0)
    named = tuple(chosen)
    return Model(schema, named, named, tuple(targets), intercept, ridge, l1)


def without_empty(model: Model, unbiased: Floats, noise_model: NoiseModel) -> Model:
    """Return the model without indicators that cannot be told from ones that no row holds.

    A category declared without `other` has a level for unseen cells, which most tables do not hold.
    Its moments are noise alone; dividing by them would spoil every other coefficient. A level that
    some rows do hold is left out only where they are as few as a few deviations of the noise. If
    nothing else is left, everything stays.
    """
    kept = tuple(
        index
        for index in model.features
        if not model.schema.features[index].is_indicator
        or _stands_out(index, unbiased, noise_model)
    )
    return replace(model, features=kept) if kept else model


def _stands_out(index: int, unbiased: Floats, noise_model: NoiseModel) -> bool:
    """Return whether a feature's own moment stands out from the noise."""
    own = unbiased[index : index + 1, index : index + 1]
    variance = float(noise_model.part(len(unbiased), [index]).variance(np.ones((1, 1)), own))
    return not np.isfinite(variance) or float(own[0, 0]) > _DEVIATIONS * variance**0.5


def scales(schema: Schema, indices: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the centres and half-widths of features, as floats."""
    features = schema.features
    chosen = [features[index] for index in indices]
    centre = np.array([float(feature.centre) for feature in chosen])
    return centre, np.array([float(feature.half_width) for feature in chosen])


def readout(
    schema: Schema, indices: Sequence[int], *, intercept: bool, odds: bool = False
) -> tuple[Floats, Floats]:
    """Return R and o with coefficients in the columns' own units = o + R @ those of the cells.

    `indices` are the features, the intercept first if there is one, and the target last. Without an
    intercept, cells are those of columns divided by their half-widths, not shifted. Log-odds
    (`odds`) have no units of the target's.
    """
    centre, width = scales(schema, indices)
    if odds:
        centre[-1], width[-1] = 0.0, 1.0
    matrix = np.diag(width[-1] / width[:-1])
    offset = np.zeros(len(indices) - 1)
    if intercept:
        matrix[0] -= width[-1] * centre[:-1] / width[:-1]
        offset[0] = centre[-1]
    return matrix, offset
