"""Names, frames, outputs, pipelines: what scikit-learn's users are used to."""

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

import refusals
from dplinear.estimators import (
    PrivateConstrainedClassifier,
    PrivateConstrainedRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivatePCA,
    PrivateProjection,
    PrivateRidge,
    PrivateSVM,
)
from dplinear.ledger import tally
from dplinear.noise import simulation
from services import library

from .faces import ALL, PREDICTORS, face, table
from .test_privacy import Untouchable

CLASSIFIERS = (PrivateLogisticRegression, PrivateConstrainedClassifier, PrivateSVM)


def frame(columns: list[str], rows: int = 400) -> Any:
    return library("pandas").DataFrame(table(rows, len(columns))[0], columns=columns)


@pytest.mark.parametrize("kind", ALL)
def test_arguments_come_back_as_they_were_given(kind: Any) -> None:
    bounds = [[-1, 1], (np.float32(0), 3)]
    odd = face(kind, bounds=bounds, epsilon="?", ledger=object(), neighbours=7)
    assert odd.get_params()["bounds"] is bounds
    twin = clone(odd)
    assert twin.get_params().keys() == odd.get_params().keys()
    assert twin.ledger is odd.ledger
    assert twin.bounds == bounds


@pytest.mark.parametrize("kind", ALL)
def test_bounds_have_many_forms(kind: Any) -> None:
    X, y = table()
    forms: list[Any] = [(-1, 1), [-1, 1], np.array([-1, 1]), [(-1, 1)] * 3, np.array([[-1, 1]] * 3)]
    schemas = [face(kind, bounds=form).fit(X, y).schema_ for form in forms]
    assert all(schema == schemas[0] for schema in schemas)
    assert schemas[0].declared["x2"].low == -1


def test_bounds_keep_their_order() -> None:
    model = face(PrivateRidge, bounds=[(0, 1), (0, 2), (0, 3)]).fit(*table())
    highs = [float(column.high) for column in model.schema_.declared.values()]
    assert highs == [1, 2, 3, 10]


def test_nothing_is_fitted_before_fit() -> None:
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(face(PrivatePCA))
    with pytest.raises(Exception, match="not fitted"):
        face(PrivatePCA).inverse_transform([[1.0]])


@pytest.mark.parametrize("columns", [1, 3])
def test_a_column_of_targets_keeps_its_second_dimension(columns: int) -> None:
    X, y = table()
    Y = np.column_stack([y] * columns)
    model = face(PrivateLinearRegression).fit(X, Y)
    assert model.coef_.shape == (columns, 3)
    assert model.intercept_.shape == (columns,)
    assert model.predict(X).shape == Y.shape
    flat = face(PrivateLinearRegression).fit(X, y)
    assert flat.coef_.shape == (3,)
    assert isinstance(flat.intercept_, float)
    assert flat.fit_result_.names == ("x0", "x1", "x2")


def test_pipelines_of_private_steps_spend_once_for_each() -> None:
    X, y = table()
    pipeline = make_pipeline(PrivatePCA(2, bounds=(-1, 1)), face(PrivateRidge))
    with tally() as spent:
        pipeline.fit(X, y)
    assert len(spent) == 2
    assert pipeline.predict(X).shape == y.shape
    assert list(pipeline[:1].get_feature_names_out()) == ["privatepca0", "privatepca1"]


def test_more_components_than_columns_are_refused() -> None:
    with refusals.refused(
        "n_components", "PrivatePCA", "at most 3, the number of columns", got="4"
    ):
        PrivatePCA(4, bounds=(-1, 1)).fit(table()[0])
    fitted = PrivatePCA(2, bounds=(-1, 1)).fit(table()[0])
    with refusals.refused("X", "PrivatePCA.inverse_transform", "a table of 2 column"):
        fitted.inverse_transform(np.ones((4, 3)))


@pytest.mark.engine
@pytest.mark.parametrize("kind", ALL)
def test_frames_give_their_names(kind: Any) -> None:
    X, y = frame(["age", "bmi", "y"]), table()[1]
    model = face(kind).fit(X, library("pandas").Series(y))
    assert list(model.feature_names_in_) == ["age", "bmi", "y"]
    assert model.schema_.columns[:3] == ("age", "bmi", "y")
    method = model.predict if kind in PREDICTORS else model.transform
    with pytest.raises(ValueError, match="feature names"):
        method(X[["bmi", "age", "y"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        method(X.to_numpy())
    if kind in PREDICTORS:
        assert model.schema_.columns[3] == "target y"
        assert model.fit_result_.names == ("age", "bmi", "y")


@pytest.mark.engine
@pytest.mark.parametrize("names", [["intercept", "b"], ["a\n", "b"], [" ", "b"]])
def test_names_that_a_schema_cannot_have_are_replaced(names: list[str]) -> None:
    model = PrivatePCA(bounds=(-1, 1)).fit(frame(names))
    assert model.schema_.columns == ("x0", "x1")
    assert list(model.feature_names_in_) == names


@pytest.mark.engine
def test_frames_of_any_library_and_type_are_read_alike() -> None:
    pandas, polars = library("pandas"), library("polars")
    X = np.round(table()[0] * 8)
    plain = pandas.DataFrame(X, columns=["a", "b", "c"])
    kinds = [
        plain,
        plain.astype("Int64"),
        plain.astype({"a": "float32", "b": "int64"}),
        plain.astype({"a": "str"}),
        plain.astype({"a": "object"}),
        polars.DataFrame(X, schema=["a", "b", "c"]),
        polars.DataFrame(X, schema=["a", "b", "c"]).cast(polars.Int64),
    ]
    with simulation.door(0):
        found = [PrivatePCA(bounds=(-9, 9)).fit(kind) for kind in kinds]
    first: Any = found[0].release_
    for model in found:
        release: Any = model.release_
        one, other = release.covariance.values, first.covariance.values
        np.testing.assert_array_equal(one, other)
        assert list(model.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.engine
def test_a_frame_of_dates_is_a_frame_of_missing_cells() -> None:
    dates = library("pandas").DataFrame({"a": np.array([1, 2, 3], "datetime64[s]")})
    model = PrivatePCA(bounds=(-1, 1), epsilon=1e8).fit(dates)
    assert model.mean_[0] == pytest.approx(0, abs=0.1)


@pytest.mark.engine
def test_components_come_out_as_frames_when_asked() -> None:
    X = frame(["age", "bmi"])
    model = PrivatePCA(bounds=(-1, 1)).set_output(transform="pandas")
    scores = clone(model).fit_transform(X)
    assert list(scores.columns) == ["privatepca0", "privatepca1"]


def test_importing_the_library_does_not_import_scikit_learn() -> None:
    code = "import sys, dplinear.curator.gates.moments; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.engine
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_bounds_go_by_the_names_of_a_frame(kind: Any, name: str) -> None:
    X, y = table()
    held = library(name).DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    named = {"c": (-3, 3), "a": (-1, 1), "b": (-2, 2)}
    with simulation.door(3):
        by_name = face(kind, bounds=named).fit(held, y)
    with simulation.door(3):
        listed = face(kind, bounds=[(-1, 1), (-2, 2), (-3, 3)]).fit(held, y)
    assert by_name.schema_ == listed.schema_
    assert by_name.schema_.declared["c"].high == 3
    assert clone(by_name).bounds == named


@pytest.mark.engine
def test_names_that_a_schema_cannot_have_may_name_bounds() -> None:
    X = frame([" ", "b"])
    model = PrivatePCA(bounds={"b": (-2, 2), " ": (-1, 1)}).fit(X)
    declared: Any = model.schema_.declared
    assert [float(column.high) for column in declared.values()] == [1, 2]


NAMED: dict[str, tuple[dict[str, Any], str]] = {
    "one is missing": ({"a": (-1, 1)}, "every column of X. Got no bounds for 'b'"),
    "one is unknown": ({"a": (0, 1), "b": (0, 1), "z": (0, 1)}, "columns of X. Got 'z'"),
}


@pytest.mark.engine
@pytest.mark.parametrize("how", NAMED)
@pytest.mark.parametrize("kind", [*ALL, PrivateMean, PrivateProjection])
def test_bounds_of_other_names_are_refused(kind: Any, how: str) -> None:
    bounds, words = NAMED[how]
    with tally() as spent, pytest.raises(ValueError, match=re.escape(words)):
        face(kind, bounds=bounds).fit(frame(["a", "b"]), table()[1])
    assert not len(spent)


@pytest.mark.parametrize("kind", ALL)
def test_columns_of_arrays_have_no_names_to_bound(kind: Any) -> None:
    X, y = table()
    with pytest.raises(ValueError, match="where X is no data frame") as refused:
        face(kind, bounds={"x0": (-1, 1), "x1": (-1, 1), "x2": (-1, 1)}).fit(X, y)
    assert "no names" in str(refused.value)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_there_are_no_default_classes(kind: Any) -> None:
    public = {"bounds": (-1, 1)} if kind is PrivateLogisticRegression else {"row_norm": 1.0}
    with pytest.raises(TypeError) as refused:
        kind(**public).fit(Untouchable(), Untouchable())
    sentence = f"The 'classes' parameter of {kind.__name__} must be"
    assert str(refused.value).startswith(sentence)
    assert "write classes=(no, yes)" in str(refused.value)


def test_one_argument_names_the_way_of_learning() -> None:
    for kind in (*ALL, *CLASSIFIERS, PrivateConstrainedRegressor):
        names = set(kind().get_params())
        assert "mechanism" in names
        assert not names & {"solver", "learner", "method", "rows"}
    X, y = table()
    for mechanism in ("adassp", "whitened_descent", "analyze_gauss", "additive_wishart"):
        model = face(PrivateLinearRegression, mechanism=mechanism).fit(X, y)
        assert model.certificate_.mechanism == mechanism
    with pytest.raises(ValueError, match=r"'y' parameter .* one target for adassp"):
        face(PrivateLinearRegression, mechanism="adassp").fit(X, np.column_stack([y, y]))
