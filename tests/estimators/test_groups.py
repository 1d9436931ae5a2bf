"""`fit(X, y, groups=ids)`: all rows of one id are protected together."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import dplinear as dpl
from dplinear.arguments import ArgumentError
from dplinear.estimators import (
    PrivateCovariance,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivatePCA,
    PrivateProjection,
    PrivateRidge,
    regression,
)
from dplinear.noise import simulation
from refusals import refused
from services import library

from .faces import ALL, PREDICTORS, REGRESSORS, face, released, table

TAKE = (*ALL, PrivateMean, PrivateCovariance)
ROWS = 400
IDS = np.arange(ROWS) % 40  # ten rows each


def numbers(model: Any) -> Any:
    mean = getattr(getattr(model, "release_", None), "mean", None)
    return released(model) if mean is None or callable(mean) else mean.values


def fitted(kind: Any, groups: Any = IDS, **arguments: Any) -> Any:
    X, y = table(ROWS)
    with simulation.door(3):
        return face(kind, **arguments).fit(X, y, groups=groups)


@pytest.mark.parametrize("kind", TAKE)
def test_certificates_name_the_unit(kind: Any) -> None:
    model = fitted(kind, rows_per_unit=4)
    assert (model.certificate_.unit, model.certificate_.rows_per_unit) == ("groups", 4)
    assert fitted(kind).certificate_.rows_per_unit == 1
    alone = fitted(kind, groups=None)
    assert alone.certificate_.unit is None
    assert "unit" not in alone.schema_.to_dict()


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateLinearRegression])
def test_what_is_released_is_what_the_gate_releases_for_the_unit(kind: Any) -> None:
    X, y = table(ROWS)
    columns = {f"x{i}": X[:, i] for i in range(3)} | {"y": y, "groups": IDS.astype(str)}
    bounds = dict.fromkeys(("x0", "x1", "x2", "y"), (-10, 10))
    given: dict[str, Any] = {"unit": "groups", "rows_per_unit": 3, "epsilon": 1.0, "delta": 1e-6}
    with simulation.door(3):
        if kind is PrivateRidge:
            expected = dpl.release_moments(pa.table(columns), bounds, **given).values
        else:
            made = dpl.release_model(pa.table(columns), bounds, "y", **given)
            expected = np.append(made.coefficients.values, made.intercept)
    assert (released(fitted(kind, rows_per_unit=3)) == expected).all()


@pytest.mark.parametrize("kind", ALL)
def test_ids_are_of_any_type_in_any_container(kind: Any) -> None:
    expected = numbers(fitted(kind))
    texts = [f"patient {i}" for i in IDS]
    days = np.datetime64("2020-01-01") + IDS
    for ids in (
        *(IDS.tolist(), IDS.astype(np.int8), IDS.astype(float), (IDS * 7).astype(str)),
        *(texts, tuple(texts), np.array(texts), pa.array(texts), pa.chunked_array([texts])),
        *(pa.array(texts).dictionary_encode(), days, days.astype(object).tolist()),
    ):
        assert (numbers(fitted(kind, ids)) == expected).all()


@pytest.mark.engine
def test_series_are_ids() -> None:
    frames = library("pandas")
    expected = numbers(fitted(PrivateRidge))
    for ids in (
        frames.Series(IDS, name="patient"),
        frames.Series(IDS.astype(str), dtype="category"),
        frames.DataFrame({"patient": IDS}),
    ):
        assert (numbers(fitted(PrivateRidge, ids)) == expected).all()


@pytest.mark.parametrize("kind", [PrivateRidge, PrivatePCA])
def test_a_person_of_many_rows_counts_once(kind: Any) -> None:
    strong = {"epsilon": 100.0}
    people, rows = fitted(kind, **strong), fitted(kind, groups=None, **strong)
    assert abs(count_of(people) - 40) < 10
    assert abs(count_of(rows) - ROWS) < 10


def count_of(model: Any) -> float:
    if hasattr(model, "moments_"):
        return float(model.moments_.unbiased_estimate[0, 0])
    return float(model.release_.count)


def test_rows_without_an_id_do_not_count() -> None:
    ids: list[Any] = IDS.tolist()
    X, y = table(ROWS)
    wild = np.vstack([X, np.full((300, 3), 10.0)]), np.append(y, np.full(300, 10.0))
    with simulation.door(3):
        more = face(PrivateRidge).fit(*wild, groups=ids + [None, np.nan, ""] * 100)
    assert (released(more) == released(fitted(PrivateRidge))).all()


@pytest.mark.engine
def test_spans_of_time_are_ids() -> None:
    known = released(fitted(PrivateRidge))
    spans = IDS.astype("m8[s]")
    pandas, polars = library("pandas"), library("polars")
    for groups in (
        *(spans, spans.astype("m8[ns]"), pa.array(spans), spans.tolist(), pa.table({"id": spans})),
        *(
            pandas.Series(spans),
            pandas.Series(spans).astype("category"),
            pandas.Series(list(spans)),
        ),
        *(polars.Series(spans.tolist()), polars.DataFrame({"id": spans.tolist()})),
    ):
        assert (released(fitted(PrivateRidge, groups)) == known).all()


def lists_of_ids() -> list[Any]:
    pandas, polars = library("pandas"), library("polars")
    lists = [[each] for each in IDS.tolist()]
    arrow = pa.array(lists)
    return [
        *(arrow, pa.chunked_array([arrow]), pa.array([{"id": 1}] * ROWS), pa.table({"id": arrow})),
        *(polars.Series(lists), polars.DataFrame({"id": lists})),
        pandas.Series(arrow, dtype=pandas.ArrowDtype(arrow.type)),
        pandas.DataFrame({"id": pandas.Series(arrow, dtype=pandas.ArrowDtype(arrow.type))}),
    ]


@pytest.mark.engine
def test_containers_of_lists_are_refused_before_the_spend(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("dplinear.curator.passage.Passage._spend", spend)
    for groups in lists_of_ids():
        with refused("groups", "PrivateRidge", got="lists, structs") as caught:
            fitted(PrivateRidge, groups)
        assert caught.value.parameter == "groups"


@pytest.mark.engine
def test_a_list_among_objects_is_nobody() -> None:
    """No cell says what a column of objects holds, so that none may raise."""
    mixed: Any = np.empty(ROWS, object)
    mixed[:] = IDS.tolist()
    mixed[7] = None
    known = released(fitted(PrivateRidge, mixed))
    mixed[7] = [7]
    for groups in (mixed, library("pandas").Series(mixed), list(mixed)):
        assert (released(fitted(PrivateRidge, groups)) == known).all()


@pytest.mark.engine
def test_the_column_of_ids_has_a_name_that_no_feature_has() -> None:
    X, y = table(ROWS, 2)
    frame = library("pandas").DataFrame(X, columns=["groups", "age"])
    with simulation.door(3):
        model = face(PrivateRidge).fit(frame, y, groups=IDS)
    assert list(model.schema_.columns) == ["groups", "age", "y"]
    assert model.certificate_.unit == model.schema_.unit == "unit groups"


@pytest.mark.parametrize("kind", TAKE)
@pytest.mark.parametrize("groups", [IDS[:-1], IDS.tolist()[1:], np.zeros((ROWS, 2)), "all", 7])
def test_wrong_groups_are_named(kind: Any, groups: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        fitted(kind, groups)
    assert (caught.value.parameter, caught.value.where) == ("groups", kind.__name__)


@pytest.mark.parametrize("kind", TAKE)
def test_rows_per_unit_needs_groups(kind: Any) -> None:
    with pytest.raises(ArgumentError, match="groups") as caught:
        fitted(kind, groups=None, rows_per_unit=2)
    assert caught.value.parameter == "rows_per_unit"
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(ArgumentError) as caught:
            fitted(kind, rows_per_unit=wrong)
        assert (caught.value.parameter, caught.value.where) == ("rows_per_unit", kind.__name__)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (
            PrivateLogisticRegression,
            {"constraint": 1.0, "mechanism": "objective_perturbation"},
        ),
        (PrivateRidge, {"mechanism": "sketch"}),
        (PrivatePCA, {"mechanism": "additive_wishart"}),
        (PrivateLinearRegression, {"mechanism": "inverse_wishart"}),
    ],
)
def test_what_has_no_proof_for_units_says_so(kind: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError) as caught:
        fitted(kind, **arguments)
    assert (caught.value.parameter, caught.value.where) == ("groups", kind.__name__)


def test_released_rows_take_no_groups() -> None:
    """How many rows a unit has would be seen."""
    with pytest.raises(TypeError, match="groups"):
        PrivateProjection().fit(*table(10), groups=IDS[:10])  # type: ignore[call-arg]
    assert "rows_per_unit" not in PrivateProjection().get_params()


def test_under_replace_the_number_of_rows_of_units_decides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is private: only their number is public there."""
    seen: list[Any] = []
    gate: Any = dpl.release_model

    def kept(*table: Any, **given: Any) -> Any:
        seen.append(given["expected_rows"])
        return gate(*table, **given)

    monkeypatch.setattr(regression, "release_model", kept)
    fitted(PrivateLinearRegression, neighbours="replace")
    fitted(PrivateLinearRegression, groups=None, neighbours="replace")
    assert seen == [None, ROWS]


def test_a_budget_of_units_is_spent(tmp_path: Any) -> None:
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("visits", dpl.ZCDP(1), unit="groups")
    model = face(PrivateRidge, ledger=ledger, dataset="visits")
    with simulation.door(3):
        model.fit(*table(ROWS), groups=IDS)
    with pytest.raises(dpl.LedgerError, match="groups"):
        model.fit(*table(ROWS))
    assert [status.releases for status in ledger.status()] == [1]


def test_a_budget_of_patients_admits_those_who_name_them(tmp_path: Any) -> None:
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("visits", dpl.ZCDP(1), unit="patient")
    model = face(PrivateRidge, ledger=ledger, dataset="visits", unit="patient")
    with simulation.door(3):
        model.fit(*table(ROWS), groups=IDS)
    with pytest.raises(dpl.LedgerError, match="patient"):
        model.set_params(unit=None).fit(*table(ROWS), groups=IDS)
    assert [status.releases for status in ledger.status()] == [1]


@pytest.mark.parametrize("kind", TAKE)
def test_a_named_unit_changes_the_name_alone(kind: Any) -> None:
    named = fitted(kind, unit="patient")
    assert named.certificate_.unit == "patient"
    assert (numbers(named) == numbers(fitted(kind))).all()


@pytest.mark.parametrize("kind", TAKE)
def test_wrong_names_of_units_are_refused(kind: Any) -> None:
    for wrong, groups in (("", IDS), (7, IDS), ("a\nb", IDS), ("patient", None), ("x0", IDS)):
        with pytest.raises(ArgumentError) as caught:
            fitted(kind, groups=groups, unit=wrong)
        assert (caught.value.parameter, caught.value.where) == ("unit", kind.__name__)


@pytest.mark.parametrize("kind", PREDICTORS)
def test_searches_hand_on_the_groups(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    check = kind._check_rows

    def counted(model: Any, groups: Any, sample_weight: Any) -> None:
        seen.append(len(set(groups.tolist())))
        check(model, groups, sample_weight)

    monkeypatch.setattr(kind, "_check_rows", counted)
    X, y = table(ROWS)
    with sklearn.config_context(enable_metadata_routing=True), simulation.door(1):
        model = face(kind, rows_per_unit=2).set_fit_request(groups=True)
        assert clone(model).get_metadata_routing().fit.requests["groups"] is True
        search = GridSearchCV(model, {"epsilon": [1.0, 2.0]}, cv=GroupKFold(2), error_score="raise")
        search.fit(X, y if kind in REGRESSORS else y > 0, groups=IDS)
    assert sorted(seen) == [20] * 4 + [40]
    assert search.best_estimator_.certificate_.unit == "groups"
