"""`fit(X, y, sample_weight=w)`: rows count by weights, within a public bound."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

import dplinear as dpl
import refusals
from dplinear.arguments import ArgumentError
from dplinear.estimators import (
    PrivateCovariance,
    PrivateLinearRegression,
    PrivateMean,
    PrivatePCA,
    PrivateRidge,
)
from dplinear.noise import simulation

from .faces import ALL, face, released, table

TAKE = (*ALL, PrivateMean, PrivateCovariance)
ROWS = 400
WEIGHTS = simulation.generator(1).uniform(0, 6, ROWS)
IDS = np.arange(ROWS) % 40


def numbers(model: Any) -> Any:
    return model.release_.mean.values if hasattr(model, "release_") else released(model)


def fitted(kind: Any, sample_weight: Any = WEIGHTS, groups: Any = None, **arguments: Any) -> Any:
    X, y = table(ROWS)
    given = {"weight_bound": 5.0} | arguments
    with simulation.door(3):
        return face(kind, **given).fit(X, y, groups=groups, sample_weight=sample_weight)


@pytest.mark.parametrize("kind", TAKE)
def test_weights_are_in_the_schema_with_their_bound(kind: Any) -> None:
    model = fitted(kind)
    assert model.schema_.weight.written() == ["sample_weight", 0, 5]
    assert fitted(kind, None).schema_.weight is None
    both = fitted(kind, groups=IDS, rows_per_unit=2)
    assert (both.schema_.weight.column, both.schema_.unit) == ("sample_weight", "groups")


@pytest.mark.parametrize("groups", [None, IDS])
@pytest.mark.parametrize("kind", [PrivateRidge, PrivateLinearRegression])
def test_what_is_released_is_what_the_gate_releases(kind: Any, groups: Any) -> None:
    X, y = table(ROWS)
    columns = {f"x{i}": X[:, i] for i in range(3)} | {"y": y, "w": WEIGHTS, "id": IDS}
    bounds = dict.fromkeys(("x0", "x1", "x2", "y"), (-10, 10))
    unit: Any = {} if groups is None else {"unit": "id"}
    schema = dpl.Schema(bounds, weight=("w", 0, 5), **unit)
    with simulation.door(3):
        if kind is PrivateRidge:
            made = dpl.release_moments(pa.table(columns), schema, epsilon=1.0, delta=1e-6)
            expected = made.values
        else:
            model = dpl.release_model(pa.table(columns), schema, "y", epsilon=1.0, delta=1e-6)
            expected = np.append(model.coefficients.values, model.intercept)
    assert (released(fitted(kind, groups=groups)) == expected).all()


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateMean])
def test_weights_come_in_any_container(kind: Any) -> None:
    expected = numbers(fitted(kind))
    texts = [repr(float(value)) for value in WEIGHTS]
    for other in (WEIGHTS.tolist(), pa.array(WEIGHTS), texts, WEIGHTS[:, None]):
        assert (numbers(fitted(kind, other)) == expected).all()


@pytest.mark.parametrize("kind", TAKE)
def test_weights_need_a_public_bound(kind: Any) -> None:
    with pytest.raises(ArgumentError, match="weight_bound") as caught:
        fitted(kind, weight_bound=None)
    assert caught.value.parameter == "weight_bound"
    for wrong in (0, -1, float("nan"), "5"):
        with pytest.raises(ArgumentError, match="weight_bound"):
            fitted(kind, weight_bound=wrong)


def test_weights_that_cannot_be_had_are_refused_by_their_name() -> None:
    refused: list[tuple[Any, dict[str, Any]]] = [
        (PrivateRidge, {"mechanism": "additive_wishart"}),
        (PrivatePCA, {"mechanism": "sketch"}),
    ]
    for kind, arguments in refused:
        with pytest.raises(ArgumentError) as caught:
            fitted(kind, **arguments)
        assert caught.value.parameter == "sample_weight"
    with refusals.refused("sample_weight", "PrivateRidge", "as long as X"):
        fitted(PrivateRidge, WEIGHTS[:-1])


def test_bad_weights_neither_raise_nor_count() -> None:
    bad = ["nan", None, "heavy", -3.0, float("-inf")] * (ROWS // 10)
    rows = np.r_[np.zeros(ROWS // 2, bool), np.ones(ROWS // 2, bool)]
    mixed = [*bad, *WEIGHTS[rows]]
    silent = np.where(rows, WEIGHTS, 0.0)
    assert (numbers(fitted(PrivateRidge, mixed)) == numbers(fitted(PrivateRidge, silent))).all()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(PrivateRidge, Ridge(alpha=50.0)), (PrivateLinearRegression, LinearRegression())],
)
def test_without_noise_it_is_scikit_learns(ours: Any, theirs: Any) -> None:
    X, y = table(2_000)
    weights = simulation.generator(2).uniform(0.5, 4, len(X))
    y = y + 2 * X[:, 0] * (weights > 2)  # so that weights matter
    own: dict[str, Any] = {"alpha": 50.0} if ours is PrivateRidge else {}
    own |= {"mechanism": "analyze_gauss", "guarantee": dpl.ZCDP(1e9), "weight_bound": 4.0}
    model = face(ours, epsilon=None, delta=None, **own)
    model.fit(X, y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    assert np.allclose(model.coef_, theirs.coef_, atol=0.01)
    assert not np.allclose(theirs.coef_, clone(theirs).fit(X, y).coef_, atol=0.05)


def test_small_weights_are_no_sign_of_an_empty_table(recwarn: pytest.WarningsRecorder) -> None:
    X, _ = table(2_000)
    face(PrivateMean, weight_bound=1e-3, epsilon=4).fit(X, sample_weight=np.full(2_000, 1e-3))
    assert not recwarn.list
