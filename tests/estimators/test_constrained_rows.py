"""`groups` and `sample_weight` of models in a constraint set."""

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import dplinear as dpl
from dplinear.arguments import ArgumentError
from dplinear.convex.sets import L2Ball
from dplinear.estimators import (
    PrivateConstrainedClassifier,
    PrivateConstrainedRegressor,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateSVM,
)
from dplinear.noise import simulation
from services import library

from .faces import table

ROWS = 400
IDS = np.arange(ROWS) % 40
WEIGHTS = simulation.generator(1).uniform(0, 6, ROWS)
SETS: dict[str, Any] = {
    "regressor": partial(PrivateConstrainedRegressor, row_norm=2.0, target_bounds=(-4, 4)),
    "classifier": partial(PrivateConstrainedClassifier, row_norm=2.0, classes=(0, 1)),
    "svm": partial(PrivateSVM, row_norm=2.0, classes=(0, 1)),
}
FACES: dict[str, Any] = SETS | {
    "pure lasso": partial(PrivateLasso, pure=True, bounds=(-1, 1), target_bounds=(-4, 4)),
    "logistic in a set": partial(
        PrivateLogisticRegression, constraint=2.0, bounds=(-1, 1), classes=(0, 1)
    ),
}


def fitted(
    name: str, groups: Any = IDS, sample_weight: Any = None, X: Any = None, **given: Any
) -> Any:
    cells, y = table(ROWS)
    labels = y if name in {"regressor", "pure lasso"} else (y > 0.5).astype(int)
    with simulation.door(3):
        model = FACES[name](**given)
        return model.fit(cells if X is None else X, labels, groups, sample_weight)


def numbers(model: Any) -> Any:
    return np.append(model.coef_, model.intercept_)


@pytest.mark.parametrize("name", FACES)
def test_certificates_name_the_unit(name: str) -> None:
    found = fitted(name, rows_per_unit=4, unit="patient").certificate_
    assert (found.unit, found.rows_per_unit) == ("patient", 4)
    assert fitted(name).certificate_.unit == "groups"
    assert fitted(name, groups=None).certificate_.unit is None


@pytest.mark.parametrize("name", FACES)
def test_each_row_its_own_unit_is_no_unit(name: str) -> None:
    alone = numbers(fitted(name, groups=None))
    assert (numbers(fitted(name, np.arange(ROWS))) == alone).all()
    ones = fitted(name, None, np.full(ROWS, 3.0), weight_bound=3)
    assert (numbers(ones) == alone).all()
    assert (numbers(fitted(name)) != alone).any()


@pytest.mark.parametrize("name", SETS)
def test_what_is_released_is_what_the_gate_releases(name: str) -> None:
    X, y = table(ROWS)
    given: dict[str, Any] = {"loss": "squared", "target_bounds": (-4, 4), "constraint": 1.0}
    if name != "regressor":
        y = (y > 0.5).astype(int)
        given = {"loss": "logistic", "classes": (0, 1), "constraint": 1.0}
    if name == "svm":
        given |= {"loss": "hinge", "constraint": partial(L2Ball, radius=5.0)}
    given |= {"row_norm": 2.0, "intercept": True, "epsilon": 1.0, "delta": 1e-6}
    given |= {"unit": "groups", "rows_per_unit": 3, "weight_bound": 5}
    with simulation.door(3):
        expected: Any = dpl.release_model(
            X, target=y, groups=IDS.astype(str), sample_weight=WEIGHTS, **given
        )
    found = fitted(name, IDS, WEIGHTS, rows_per_unit=3, weight_bound=5)
    assert (numbers(found) == np.append(expected.coefficients, expected.intercept)).all()


@pytest.mark.parametrize("name", FACES)
def test_ids_and_weights_come_in_any_container(name: str) -> None:
    expected = numbers(fitted(name, IDS, WEIGHTS, weight_bound=5))
    texts = [f"patient {i}" for i in IDS]
    for ids, weights in (
        (IDS.tolist(), WEIGHTS.tolist()),
        (texts, [repr(float(value)) for value in WEIGHTS]),
        (pa.array(texts), pa.array(WEIGHTS)),
        (np.array(texts), WEIGHTS[:, None]),
    ):
        assert (numbers(fitted(name, ids, weights, weight_bound=5)) == expected).all()


@pytest.mark.parametrize("name", SETS)
def test_sparse_rows_belong_to_units_too(name: str) -> None:
    X, _ = table(ROWS)
    found = fitted(name, X=sparse.csr_array(X), rows_per_unit=2)
    assert (numbers(found) == numbers(fitted(name, rows_per_unit=2))).all()


@pytest.mark.parametrize("name", FACES)
def test_rows_without_an_id_do_not_count(name: str) -> None:
    nobody = IDS.astype(object)
    nobody[:40] = None
    X, _ = table(ROWS)
    wild = np.where(np.arange(ROWS)[:, None] < 40, 1e9, X)
    assert (numbers(fitted(name, nobody)) == numbers(fitted(name, nobody, X=wild))).all()


@pytest.mark.parametrize("name", FACES)
def test_wrong_arguments_are_named(name: str) -> None:
    where = FACES[name].func.__name__
    for parameter, given in (
        ("groups", {"groups": IDS[:-1]}),
        ("groups", {"groups": 7}),
        ("rows_per_unit", {"groups": None, "rows_per_unit": 2}),
        ("rows_per_unit", {"rows_per_unit": 0}),
        ("unit", {"groups": None, "unit": "patient"}),
        ("unit", {"unit": ""}),
        ("sample_weight", {"sample_weight": WEIGHTS[:-1], "weight_bound": 5}),
        ("weight_bound", {"sample_weight": WEIGHTS}),
        ("weight_bound", {"sample_weight": WEIGHTS, "weight_bound": -1}),
    ):
        arguments: Any = given
        with pytest.raises(ArgumentError) as caught:
            fitted(name, **arguments)
        assert (caught.value.parameter, caught.value.where) == (parameter, where)


@pytest.mark.parametrize("name", [*SETS, "logistic in a set"])
def test_what_has_no_proof_for_units_says_so(name: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        fitted(name, mechanism="objective_perturbation")
    where = FACES[name].func.__name__
    assert (caught.value.parameter, caught.value.where) == ("groups", where)
    weighted = fitted(name, None, WEIGHTS, weight_bound=5, mechanism="objective_perturbation")
    assert weighted.certificate_.holds is not None


@pytest.mark.engine
def test_a_unit_is_not_called_what_a_column_is() -> None:
    frame = library("pandas").DataFrame(table(ROWS)[0], columns=["patient", "age", "bmi"])
    with pytest.raises(ArgumentError) as caught:
        fitted("regressor", X=frame, unit="patient")
    assert caught.value.parameter == "unit"


@pytest.mark.parametrize("name", SETS)
def test_searches_hand_on_the_groups(name: str) -> None:
    X, y = table(ROWS)
    with sklearn.config_context(enable_metadata_routing=True), simulation.door(1):
        model = FACES[name](rows_per_unit=2, weight_bound=5)
        model.set_fit_request(groups=True, sample_weight=True)
        assert clone(model).get_metadata_routing().fit.requests["groups"] is True
        model.set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"epsilon": [1.0, 2.0]}, cv=GroupKFold(2), error_score="raise")
        labels = y if name == "regressor" else (y > 0.5).astype(int)
        search.fit(X, labels, groups=IDS, sample_weight=WEIGHTS)
    found = search.best_estimator_.certificate_
    assert (found.unit, found.rows_per_unit) == ("groups", 2)
    assert found.parameters["weight_bound"] == 5
