"""PrivateProjection: rows for scikit-learn, each release paid for."""

import pickle
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline

from dplinear.estimators import PrivateProjection
from dplinear.ledger import tally
from dplinear.noise import simulation
from refusals import refused
from services import library

from .faces import table
from .test_check_estimator import may_skip, statuses

FRESH = "each row gets noise of its own, in the order of the rows"
REFUSALS = {
    "check_estimators_empty_data_messages": "an empty table has no rows to release",
    "check_methods_sample_order_invariance": FRESH,
    "check_methods_subset_invariance": FRESH,
}
REFITS = dict.fromkeys(
    (
        "check_fit_idempotent",
        "check_pipeline_consistency",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
    ),
    "compares two releases",
)


def face(**arguments: Any) -> PrivateProjection:
    public: dict[str, Any] = {"bounds": (-1, 1), "epsilon": 1.0}
    return PrivateProjection(**(public | arguments))


def test_within_the_door_only_what_noise_forbids_is_not_done() -> None:
    with simulation.door(0):
        found = statuses(face(bounds=(-10, 10)), REFUSALS)
    assert found["failed"] == set()
    assert found["xfail"] == set(REFUSALS)
    assert found["skipped"] <= may_skip()
    assert len(found["passed"]) > 35


def test_with_real_noise_only_identical_releases_are_missing() -> None:
    found = statuses(face(bounds=(-10, 10), epsilon=1e8), REFUSALS | REFITS)
    assert found["failed"] == set()
    assert len(found["passed"]) > 30


def test_fitting_is_free_and_reads_nothing_and_every_release_is_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, _ = table()
    with tally() as spent, monkeypatch.context() as patch:
        patch.setattr("dplinear.estimators.projection.release_rows", None)
        model = face().fit(X)
    assert not spent
    assert not hasattr(model, "release_")
    with tally() as spent:
        model.transform(X)
        model.transform(X[:5])
        model.fit_transform(X)
    assert [request.mechanism for request in spent.requests] == ["projection"] * 3
    assert {str(request.guarantee) for request in spent.requests} == {str(model.certificate_.holds)}
    assert "RowMap" in spent.requests[0].parameters["drawn"]  # that there was one, not what it was


@pytest.mark.parametrize("projection", ["gaussian", "rademacher", "orthonormal"])
def test_further_rows_go_through_the_same_projection(projection: str) -> None:
    X, _ = table(300, 4)
    model = face(n_components=3, epsilon=1e7, projection=projection)
    first, second = model.fit_transform(X[:200]), model.transform(X[200:])
    P = np.linalg.lstsq(X[:200], first, rcond=None)[0]
    np.testing.assert_allclose(X[200:] @ P, second, atol=1e-3)
    again = model.fit_transform(X[:200])
    assert np.abs(again - first).max() > 0.1 or projection == "rademacher"
    assert model.release_.distances(0, 1).squared.shape == ()


def test_releases_of_the_same_rows_have_fresh_noise() -> None:
    X, _ = table()
    model = face().fit(X)
    one, two = model.transform(X), model.transform(X)
    assert (one != two).all(axis=1).all()
    release = model.release(X)
    assert release.certificate.request != model.release(X).certificate.request
    np.testing.assert_array_equal(release.values.shape, one.shape)


def test_a_quantile_promise_is_for_one_table() -> None:
    X, _ = table()
    model = face(noise="quantile", delta=1e-6, neighbours="row_l2")
    assert model.fit_transform(X).shape == (400, 2)
    assert "fixed before the projection was drawn" in str(model.certificate_)
    with (
        tally() as spent,
        refused("noise", "PrivateProjection.transform", hint="fit_transform releases a table"),
    ):
        model.transform(X)
    assert not spent
    with refused("noise", "PrivateProjection.transform", "whose promise is for one table alone"):
        clone(model).fit(X).transform(X)


def test_auto_never_picks_a_promise_that_forbids_another_table() -> None:
    # Where rows change at will in L2, quantile noise would be the least.
    X, _ = table()
    model = face(n_components=6, delta=1e-2, neighbours="row_l2", noise="auto", epsilon=4.0)
    kinds = {str(model.fit(X).release(X).certificate.parameters["noise"]) for _ in range(3)}
    assert "quantile" not in kinds


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"bounds": None}, "'bounds' parameter of PrivateProjection"),
    ({"n_components": 0}, "'n_components' parameter of PrivateProjection"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"noise": "loud"}, "'noise' parameter"),
    ({"projection": "sparse"}, "'projection' parameter"),
    ({"neighbours": "twins"}, "'neighbours' parameter"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[str(case[0]) for case in WRONG])
def test_wrong_arguments_raise_before_the_table_is_touched(
    arguments: dict[str, Any], message: str
) -> None:
    class Untouchable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    with pytest.raises((ValueError, TypeError), match=message):
        face(**arguments).fit(Untouchable())


def test_relations_of_other_gates_are_refused_before_anything_is_spent() -> None:
    X, _ = table()
    with tally() as spent, refused("neighbours", "PrivateProjection"):
        face(neighbours="add_remove").fit(X)
    assert not spent


def test_a_pipeline_clusters_private_rows() -> None:
    X, _ = table()
    pipeline = make_pipeline(face(epsilon=50.0), KMeans(2, n_init=1, random_state=0))
    with tally() as spent:
        labels = pipeline.fit_predict(X)
    assert len(spent) == 1
    assert labels.shape == (400,)
    assert list(pipeline[:1].get_feature_names_out()) == [
        "privateprojection0",
        "privateprojection1",
    ]


def test_a_pickle_goes_on_with_the_same_projection() -> None:
    X, _ = table()
    model = face(epsilon=1e7).fit(X)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(twin.transform(X), model.transform(X), atol=1e-3)


@pytest.mark.parametrize("cell", [np.nan, np.inf, 1e300, -0.25])
def test_one_cell_changes_no_other_row(cell: float) -> None:
    X, _ = table(50)
    other = X.copy()
    other[7, 1] = cell
    with simulation.door(3):
        one, two = face().fit_transform(X), face().fit_transform(other)
    changed = (one != two).any(axis=1)
    assert set(np.flatnonzero(changed)) <= {7}


def test_a_fit_forgets_the_release_of_another_projection() -> None:
    model = PrivateProjection(2, bounds=(-1, 1))
    model.fit_transform(np.zeros((3, 2)))
    assert model.certificate_ is model.release_.certificate
    model.fit(np.zeros((3, 2)))
    assert not hasattr(model, "release_")
    assert not hasattr(model, "certificate_")


def _asked(model: PrivateProjection, output: str, how: str) -> tuple[Any, Any]:
    """Return a model whose output was asked for in one of scikit-learn's ways, and a context."""
    if how == "everywhere":
        return model, config_context(transform_output=output)
    if how == "of a copy":
        return clone(model.set_output(transform=output)), nullcontext()
    whole: Any = model if how == "of it" else make_pipeline(model)
    return whole.set_output(transform=output), nullcontext()


@pytest.mark.engine
@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize("how", ["of it", "of a copy", "of a pipeline", "everywhere"])
def test_released_rows_carry_no_label_of_the_tables(output: str, how: str) -> None:
    """The index of a frame holds names and moments, and a release holds what it says."""
    pandas, made = library("pandas"), library(output)
    rows = {"age": [30.0, 41, 52], "bmi": [20.0, 25, 30]}
    frame = pandas.DataFrame(rows, index=["Ada Secret", "Bob Hidden", "Eve"])
    model, context = _asked(face(bounds=(0, 100)), output, how)
    with context:
        for found in (model.fit_transform(frame), model.fit(frame).transform(frame)):
            assert isinstance(found, made.DataFrame)
            assert list(found.columns) == ["privateprojection0", "privateprojection1"]
            if output == "pandas":
                assert isinstance(found.index, pandas.RangeIndex)
                assert list(found.index) == [0, 1, 2]
    assert isinstance(face(bounds=(0, 100)).fit_transform(frame), np.ndarray)


@pytest.mark.parametrize("last", [[0.3, 0.4], [0.3, 0.4, 0.5], [0.3], "?"])
def test_fit_says_how_many_columns_a_list_has(last: Any) -> None:
    model = face(bounds=[(0, 1), (0, 1)]).fit([[0.1, 0.2], [0.3, 0.4]])
    assert model.transform([[0.1, 0.2], last]).shape == (2, 2)
