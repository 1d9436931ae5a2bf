"""Estimators of models in a constraint set: scikit-learn's suite, sparse tables, privacy."""

import pickle
import warnings
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.arguments import ArgumentError
from dplinear.convex.sets import L1Ball, L2Ball
from dplinear.estimators import (
    PrivateConstrainedClassifier,
    PrivateConstrainedRegressor,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateSVM,
)
from dplinear.ledger import tally
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, PureDP
from refusals import refused
from services import library

from .test_check_estimator import HIDDEN, REFUSALS, REFUSALS_OF_LABELS, may_skip, statuses
from .test_privacy import CELLS, OBJECTS, Purse, RefusedError, Untouchable, observed

pytestmark = pytest.mark.heavy  # our own rules, whatever the versions

CLASSIFIERS = (PrivateConstrainedClassifier, PrivateSVM)
WIDE = (PrivateConstrainedRegressor, *CLASSIFIERS)
BOUNDED = (PrivateLasso, PrivateLogisticRegression)
# A row of half the largest weight counts as half a row: noise stays what it is, so that these see
# other models for weighted rows and for repeated ones.
NOISE = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "fits weighted rows, and repeated ones",
)


def face(kind: Any, **arguments: Any) -> Any:
    """Return an estimator with all that is public."""
    public: dict[str, Any] = {"row_norm": 2.0}
    if kind in BOUNDED:
        public = {"bounds": (-1, 1), "constraint": 2.0}
    if kind is PrivateLasso:
        public["pure"] = True
    if kind in {PrivateConstrainedRegressor, PrivateLasso}:
        public["target_bounds"] = (-10, 10)
    else:
        public["classes"] = (0, 1)
    return kind(**(public | arguments))


def table(rows: int = 300, seed: int = 0) -> tuple[Any, Any]:
    """Return rows with many zeros, and 0 or 1."""
    generator = simulation.generator(seed)
    X = generator.uniform(-1, 1, (rows, 4)) * (generator.uniform(size=(rows, 4)) < 0.6)
    return X, (X @ [2.0, -1.0, 0.5, 0.0] > 0).astype(int)


@pytest.mark.parametrize("kind", [*WIDE, *BOUNDED])
def test_within_the_door_only_what_would_leak_is_not_done(kind: Any) -> None:
    """Without δ, as the learners for that take the fewest steps."""
    expected = dict(REFUSALS)
    if kind not in {PrivateConstrainedRegressor, PrivateLasso}:
        expected |= REFUSALS_OF_LABELS | HIDDEN
    given: dict[str, Any] = {"delta": None, "weight_bound": 5}
    if kind is PrivateSVM:
        given["mechanism"] = "output_perturbation"  # in a ball, by name
    with simulation.door(0):
        found = statuses(face(kind, **given), expected | NOISE)
    assert found["failed"] == set()
    assert found["skipped"] <= may_skip()
    assert len(found["passed"]) > 35


@pytest.mark.parametrize("kind", WIDE)
def test_the_tags_say_what_is_true(kind: Any) -> None:
    tags = face(kind).__sklearn_tags__()
    assert tags.input_tags.sparse
    assert tags.input_tags.allow_nan
    assert not tags.target_tags.multi_output


@pytest.mark.parametrize(
    ("kind", "fit_intercept"), [*((kind, True) for kind in WIDE), (PrivateSVM, False)]
)
def test_sparse_tables_give_the_same_bits(kind: Any, fit_intercept: bool) -> None:
    X, y = table()
    for projection in (None, "sparse"):
        model = face(kind, fit_intercept=fit_intercept, projection=projection)
        with simulation.door(1):
            dense = clone(model).fit(X, y)
            found = clone(model).fit(sparse.coo_matrix(X), y)
        np.testing.assert_array_equal(found.coef_, dense.coef_)
        np.testing.assert_array_equal(found.intercept_, dense.intercept_)
        np.testing.assert_allclose(found.predict(sparse.csr_array(X)), dense.predict(X))
    assert isinstance(dense.fit_result_, ConstrainedRelease)
    assert np.shape(dense.coef_) == ((4,) if kind is PrivateConstrainedRegressor else (1, 4))


def test_a_wide_sparse_table_is_no_trouble() -> None:
    """In an array the table would take 16 GB."""
    rows = sparse.csr_array(
        (np.ones(60_000), np.arange(60_000) * 33 % 199_999, np.arange(0, 60_001, 6)),
        shape=(10_000, 200_000),
    )
    model = face(PrivateConstrainedClassifier, row_norm=6.0, projection="very_sparse", dimension=10)
    model.set_params(mechanism="noisy_gradient", fit_intercept=False)
    with simulation.door(2):
        model.fit(rows, np.arange(10_000) % 2)
    assert model.coef_.shape == (1, 200_000)
    assert model.predict(rows).shape == (10_000,)


WRONG: list[tuple[Any, dict[str, Any]]] = [
    *((kind, {"row_norm": value}) for kind in WIDE for value in (None, 0, "long")),
    *((kind, {"constraint": value}) for kind in [*WIDE, *BOUNDED] for value in (0, "small")),
    *((kind, {"projection": "magic"}) for kind in WIDE),
    *((kind, {"dimension": 0}) for kind in WIDE),
    *((kind, {"mechanism": "magic"}) for kind in [*WIDE, PrivateLogisticRegression]),
    *((kind, {"expected_rows": -1}) for kind in WIDE),
    *((kind, {"fit_intercept": "yes"}) for kind in [*WIDE, *BOUNDED]),
    *((kind, {"epsilon": -1}) for kind in WIDE),
    *((kind, {"guarantee": ZCDP(0.1)}) for kind in WIDE),
    *((kind, {"classes": value}) for kind in CLASSIFIERS for value in (None, (1, 1))),
    *((kind, {"row_norm": value}) for kind in BOUNDED for value in (0, 1e9, 1e-9)),
    (PrivateConstrainedClassifier, {"loss": "squared"}),
    (PrivateConstrainedRegressor, {"loss": "hinge"}),
    (PrivateConstrainedRegressor, {"target_bounds": None}),
    (PrivateLasso, {"pure": "yes"}),
    (PrivateLasso, {"epsilon": None, "delta": None, "guarantee": ZCDP(0.1)}),
]


@pytest.mark.parametrize(("kind", "arguments"), WRONG)
def test_wrong_arguments_raise_before_the_table_is_touched(kind: Any, arguments: Any) -> None:
    sentence = f"parameter of ({kind.__name__}|PureDP|ApproxDP) must be"
    with pytest.raises((TypeError, ValueError), match=sentence):
        face(kind, **arguments).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize("kind", [*WIDE, *BOUNDED])
def test_every_fit_is_told_to_the_ledger_first(kind: Any) -> None:
    purse = Purse(1)
    model = face(kind, ledger=purse, dataset="texts")
    model.fit(*table())
    assert [request.dataset for request in purse.requests] == ["texts"]
    with tally() as spent, pytest.raises(RefusedError):
        clone(model).fit(*table())
    assert len(spent) == 0


@pytest.mark.parametrize("kind", [*WIDE, *BOUNDED])
def test_neighbours_look_the_same(kind: Any) -> None:
    X, y = table(30)
    wanted = observed(face(kind), X, y)
    for cell in CELLS[::2]:
        spoilt, target = X.copy(), y.astype(float)
        spoilt[3], target[3] = cell, cell
        assert observed(face(kind), spoilt, target) == wanted
    holders, plain = X.astype(object), y.astype(object)
    wanted = observed(face(kind), holders, plain)
    for thing in OBJECTS[1::3]:
        spoilt, target = holders.copy(), plain.copy()
        spoilt[3, 1] = target[3] = thing
        assert observed(face(kind), spoilt, target) == wanted
    assert observed(face(kind), np.empty((0, 4)), np.empty(0))[0] == wanted[0]


@pytest.mark.parametrize("kind", WIDE)
def test_sparse_neighbours_look_the_same(kind: Any) -> None:
    X, y = table(60)
    rows = sparse.csr_array(X)
    wanted = observed(face(kind), rows, y)
    for cell in CELLS:
        spoilt = rows.copy()
        spoilt.data[7] = cell
        assert observed(face(kind), spoilt, y) == wanted
    assert observed(face(kind), sparse.csr_array((0, 4)), y[:0])[0] == wanted[0]


@pytest.mark.parametrize("kind", WIDE)
def test_errors_quote_no_cell_and_no_number_of_rows(kind: Any) -> None:
    X, y = np.full((777, 3), 123.456), np.full(777, 123.456)
    wrong: list[tuple[Any, Any]] = [
        (X[:, 0], y),
        (X.astype(complex), y),
        (sparse.csr_array(X.astype(complex)), y),
        (X, y[:-1]),
        (X, sparse.csr_array(X)),
        (X, X),
    ]
    for features, targets in wrong:
        with pytest.raises((TypeError, ValueError), match=r"^The '[Xy]' parameter") as caught:
            face(kind).fit(features, targets)
        for word in ("123", "456", "77"):
            assert word not in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataConversionWarning):
            face(kind).fit(X, y[:, None])


def test_chances_are_there_for_the_logistic_loss_alone() -> None:
    X, y = table()
    model = face(PrivateConstrainedClassifier).fit(X, y)
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(1), 1)
    np.testing.assert_allclose(np.log(chances), model.predict_log_proba(X))
    assert not hasattr(face(PrivateConstrainedClassifier, loss="hinge"), "predict_proba")
    assert not hasattr(face(PrivateSVM), "predict_proba")


def test_models_survive_pickling_and_clones_keep_sets() -> None:
    ball = L1Ball(5, 3.0)
    model = clone(face(PrivateSVM, constraint=ball)).fit(*table())
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(table()[0]), model.predict(table()[0]))
    assert model.fit_result_.constraint["set"] == "l1"
    assert face(PrivateSVM).fit(*table()).fit_result_.constraint["set"] == "l2"
    made = face(PrivateConstrainedClassifier, constraint=L2Ball).fit(*table())
    assert made.fit_result_.constraint["set"] == "l2"
    assert "constraint" in signature(PrivateSVM).parameters


def test_the_pure_lasso_is_pure_and_right_without_noise() -> None:
    """In half-widths the coefficients are .8, −.2 and .15, and the intercept .35: together 1.5."""
    X, _ = table(2000)
    y = 3 + X @ [2.0, -1.0, 0.5, 0.0]
    public = {"bounds": [(-1, 3), (-1, 1), (-2, 1), (-1, 1)], "target_bounds": (-2, 8)}
    model = face(PrivateLasso, epsilon=1e9, constraint=1.5, **public).fit(X, y)
    assert model.certificate_.holds == PureDP(1e9)
    theirs = LinearRegression().fit(X, y)
    assert np.mean((model.predict(X) - theirs.predict(X)) ** 2) < 0.02 * np.var(y)
    named = face(PrivateLasso, epsilon=None, delta=None, guarantee=PureDP(2.0)).fit(X, y)
    assert named.certificate_.holds == PureDP(2.0)
    assert isinstance(named.fit_result_, ConstrainedRelease)
    with refused("y", "PrivateLasso", "of one column"):
        face(PrivateLasso).fit(X, np.column_stack([y, y]))


def test_constrained_log_odds_without_noise() -> None:
    X, _ = table(4000)
    generator = simulation.generator(3)
    chance = 1 / (1 + np.exp(-(X @ [1.0, -1.0, 0.5, 0.0] + 0.3)))
    y = (generator.uniform(size=4000) < chance).astype(int)
    theirs = LogisticRegression(C=1e8).fit(X, y)
    model = face(PrivateLogisticRegression, epsilon=1e9, delta=None, constraint=3.5).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=0.06)
    ball = face(PrivateLogisticRegression, constraint=L2Ball(5, 0.5), mechanism="noisy_gradient")
    ball.fit(X, y)
    whole = np.append(ball.coef_, ball.intercept_)  # bounds of ±1: cells are the columns
    assert np.linalg.norm(whole) <= 0.5 * (1 + 1e-8)


def test_the_svm_without_noise() -> None:
    """A line separates the labels, but no margin: the smallest hinge misses few of them."""
    X, y = table(2000)
    model = face(PrivateSVM, epsilon=1e7, constraint=20.0).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("kind", WIDE)
def test_how_one_row_is_stored_changes_no_other(kind: Any) -> None:
    """SciPy adds up entries of one place in another order if any row of the table is unsorted."""
    entries, seen = np.tile([1e16, 1.0, -1e16, 1.0], 10), []
    for first in ([0, 1], [1, 0]):
        rows, columns = [0, 0, *[1] * 40], [*first, *np.repeat(np.arange(10), 4)]
        values = np.concatenate((np.where(first, 0.1, 0.2), entries))
        X = sparse.coo_array((values, (rows, columns)), shape=(2, 10))
        with simulation.door(7):
            seen.append(face(kind, epsilon=1e6, projection=None).fit(X, np.array([0, 1])).coef_)
    assert (seen[0] == seen[1]).all()


LABELS: tuple[tuple[Any, tuple[list[Any], list[Any]]], ...] = (
    (("0", "1"), ([0, 1, 0, 1], [0, 1, 0, "?"])),
    ((0, 1), (["0", "1", "0", "1"], [0, 1, 0, 1])),
    (("False", "True"), ([True, False, True, True], [True, False, True, None])),
    (("no", "yes"), ([np.nan] * 4, [np.nan] * 3 + ["yes"])),
)


@pytest.mark.engine
@pytest.mark.parametrize("kind", [*CLASSIFIERS, PrivateLogisticRegression])
@pytest.mark.parametrize(("classes", "tables"), LABELS)
@pytest.mark.parametrize("hold", ["pandas", "polars", "pyarrow", "list"])
def test_the_type_of_a_frames_labels_is_not_refused(
    kind: Any, classes: Any, tables: Any, hold: str
) -> None:
    """A library finds it by looking at the labels, so that an error would tell of one of them."""
    makers: dict[str, Any] = {
        "pandas": lambda y: library("pandas").Series(y),
        "polars": lambda y: library("polars").Series(y, strict=False),
        "pyarrow": lambda y: pa.array(y if len({*map(type, y)}) == 1 else [*map(str, y)]),
        "list": list,
    }
    for y in tables:
        with simulation.door(3):
            fitted = face(kind, classes=classes).fit(np.ones((4, 2)), makers[hold](y))
        assert fitted.classes_.tolist() == list(classes)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(("classes", "y"), [(("a", "b"), [0, 1]), ((0, 1), ["0", "1"])])
def test_the_type_of_an_arrays_labels_is_refused_by_name(kind: Any, classes: Any, y: Any) -> None:
    words = f"The 'y' parameter of {kind.__name__}"
    with pytest.raises(ArgumentError, match=words):
        face(kind, classes=classes).fit(np.ones((2, 2)), np.array(y))
