"""Predictions: arrays as they are, tables encoded as the private one was."""

import datetime as dt
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.analyst.regression.prediction import design
from dplinear.arguments import ArgumentTypeError
from dplinear.schema import Schema
from refusals import refused
from services import library

from .tables import COLUMNS, DERIVED, EVERYTHING, exact, people, raw

TABLE = people()
MOMENTS = exact(EVERYTHING, TABLE)
FIT = MOMENTS.regress("charges", ["age", "bmi", "smoker", "ward", "visit", "age*smoker"])
NEW = people(50, seed=9)
EXPECTED = raw(EVERYTHING, NEW, list(FIT.names)) @ FIT.coefficients.values + FIT.intercept


def test_an_array_is_used_as_it_is() -> None:
    rows = raw(EVERYTHING, NEW, list(FIT.names))
    assert FIT.predict(rows) == pytest.approx(EXPECTED, rel=1e-12)
    assert FIT.predict(rows.tolist()) == pytest.approx(EXPECTED, rel=1e-12)
    line = MOMENTS.regress("charges", ["age"])
    outside = line.predict([[1000]])  # no bounds for arrays
    assert outside == pytest.approx([line.intercept + 1000 * line["age"]])
    assert line.predict(np.empty((0, 1))).shape == (0,)


def shuffled(table: pa.Table) -> pa.Table:
    return table.select(list(reversed(table.column_names)))


@pytest.mark.parametrize(
    "table",
    [
        NEW,
        shuffled(NEW.drop_columns(["charges", "stay", "unused"])),
        NEW.combine_chunks().to_batches()[0],
        pa.concat_tables([NEW.slice(0, 20), NEW.slice(20)]),
        NEW.to_reader(max_chunksize=7).read_all(),
        NEW.to_pydict(),
        {name: NEW[name] for name in NEW.column_names},
        {name: NEW[name].to_numpy() for name in NEW.column_names},
    ],
    ids=["table", "narrow", "batch", "chunks", "slices", "lists", "arrow", "arrays"],
)
def test_a_table_is_encoded_as_the_private_one_was(table: Any) -> None:
    assert FIT.predict(table) == pytest.approx(EXPECTED, rel=1e-10)


def test_a_reader_and_a_structured_array_are_tables() -> None:
    assert FIT.predict(NEW.to_reader(max_chunksize=7)) == pytest.approx(EXPECTED, rel=1e-10)
    fit = MOMENTS.regress("charges", ["age", "stay"])
    fields = np.zeros(2, dtype=[("stay", "f8"), ("x", "i4"), ("age", "f4")])
    fields["age"], fields["stay"] = [30, 40], [1, 2]
    assert fit.predict(fields) == pytest.approx(fit.predict([[30, 1], [40, 2]]))


@pytest.mark.engine
def test_pandas_and_polars_frames_are_tables() -> None:
    pandas = library("pandas")
    polars = library("polars")
    frame = NEW.to_pandas()
    assert FIT.predict(frame) == pytest.approx(EXPECTED, rel=1e-10)
    frame["smoker"] = frame["smoker"].astype("category")
    frame["visit"] = pandas.to_datetime(frame["visit"])
    assert FIT.predict(frame) == pytest.approx(EXPECTED, rel=1e-10)
    odd = frame.assign(ward=[1, None, "b", b"c", 2.5] * 10)
    assert np.isfinite(FIT.predict(odd)).all()
    assert FIT.predict(polars.from_arrow(NEW)) == pytest.approx(EXPECTED, rel=1e-10)
    assert FIT.predict(polars.from_arrow(NEW).lazy()) == pytest.approx(EXPECTED, rel=1e-10)


def test_bad_cells_become_public_constants() -> None:
    fit = MOMENTS.regress("charges", ["age", "bmi", "ward"])
    base = {"age": [50.0], "bmi": [25.0], "ward": ["a"]}

    def one(**cells: Any) -> float:
        return float(fit.predict(base | {name: [cell] for name, cell in cells.items()})[0])

    assert one(bmi=None) == one(bmi=float("nan")) == pytest.approx(one())
    assert one(age=1e9) == pytest.approx(one(age=100))
    assert one(age=None) == pytest.approx(one(age=50))
    assert one(ward="unheard of") == one(ward=None) == pytest.approx(one() + fit["ward=other"])
    assert one(ward="b") == pytest.approx(one() + fit["ward=b"])


def test_dates_are_read_as_dates() -> None:
    fit = MOMENTS.regress("stay", ["visit"])
    days = (dt.date(2024, 5, 6) - dt.date(1970, 1, 1)).days
    for day in (dt.date(2024, 5, 6), "2024-05-06", np.datetime64("2024-05-06")):
        assert fit.predict({"visit": [day]}) == pytest.approx(fit.predict([[days]]))


def test_only_the_columns_of_the_model_are_asked_for() -> None:
    fit = MOMENTS.regress("charges", ["age*smoker", "age>=65"])
    found = fit.predict({"age": [70.0, 20.0], "smoker": ["yes", "yes"]})
    assert found == pytest.approx(fit.predict([[70, 1], [20, 0]]))
    part = EVERYTHING.select(["age*smoker=yes", "bmi^2"])
    assert part.columns == ("age", "bmi", "smoker")
    for name in ("age*smoker=yes", "bmi^2"):
        place, whole = part.names.index(name), EVERYTHING.names.index(name)
        assert part.features[place] == EVERYTHING.features[whole]


def test_row_clipping_is_for_private_rows_only() -> None:
    schema = Schema(COLUMNS, derived=DERIVED, row_norm=0.5)
    rows = design(schema, ["age", "stay"], {"age": [95.0], "stay": [80.0]})
    assert rows == pytest.approx(np.array([[95.0, 80.0]]))


def test_a_schema_without_an_intercept_predicts_through_the_origin() -> None:
    schema = Schema({"age": (20, 100), "stay": (-5, 90)}, intercept=False)
    fit = exact(schema, TABLE).regress("stay", intercept=False)
    assert fit.predict({"age": [40.0]}) == pytest.approx([40 * fit["age"]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"age": [1.0]}, "Got 'one without bmi, smoker, ward, visit'"),
        (NEW.drop_columns(["age"]), "Got 'one without age'"),
        (np.zeros((3, 2)), r"must be of shape \(rows, 8\): age, bmi, smoker=yes"),
        (np.zeros(8), "must be of shape"),
        ([["a"] * 8], "categories and dates go by name"),
        ([[1.0], [1.0, 2.0]], "must be an array of numbers"),
        (7, "or a table with its source columns"),
        (None, "or a table with its source columns"),
        ("people.csv", "or a table with its source columns"),
    ],
)
def test_bad_data_gets_the_one_sentence(data: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        FIT.predict(data)


def test_columns_of_a_mapping_are_alike() -> None:
    fit = MOMENTS.regress("charges", ["age", "stay"])
    with refused("data", "predict", "columns of one length", got="'age: 2, stay: 1'"):
        fit.predict({"age": [1, 2], "stay": [1]})
    for column in (5, "text"):
        with refused(
            "data", "predict", "a mapping of names to columns of values", kind=ArgumentTypeError
        ):
            fit.predict({"age": [1], "stay": column})


@pytest.mark.oracle
def test_scikit_learn_models_predict_the_same() -> None:
    library("sklearn")
    from sklearn.utils.validation import check_is_fitted

    rows = raw(EVERYTHING, NEW, list(FIT.names))
    model = FIT.to_sklearn(feature_names=False)
    check_is_fitted(model)
    assert model.predict(rows) == pytest.approx(FIT.predict(rows), rel=1e-12)
    assert model.n_features_in_ == 8
    named = FIT.to_sklearn()
    assert named.feature_names_in_.tolist() == list(FIT.names)
    model.coef_[0] = 0.0
    assert FIT["age"] != 0
    fits = MOMENTS.regress(["charges", "stay"], ["age", "ward"])
    several = fits.to_sklearn(feature_names=False)
    inner = raw(EVERYTHING, NEW, list(fits.names))
    assert several.predict(inner) == pytest.approx(fits.predict(inner), rel=1e-12)


@pytest.mark.oracle
@pytest.mark.engine
def test_scikit_learn_models_know_the_names() -> None:
    pandas = library("pandas")
    library("sklearn")
    frame = pandas.DataFrame(raw(EVERYTHING, NEW, list(FIT.names)), columns=list(FIT.names))
    assert FIT.to_sklearn().predict(frame) == pytest.approx(EXPECTED, rel=1e-10)


def test_a_missing_scikit_learn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ImportError, match="to_sklearn needs scikit-learn"):
        FIT.to_sklearn()
