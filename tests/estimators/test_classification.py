"""The classifier: its limit, its labels, its chances."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression

import refusals
from dplinear.estimators import PrivateLogisticRegression
from dplinear.noise import simulation
from dplinear.privacy import ZCDP
from services import library

ROWS = 20_000
PUBLIC: dict[str, Any] = {"bounds": [(-1, 1), (-2, 1.5), (-1, 3)], "classes": (0, 1)}


def table(rows: int = ROWS, seed: int = 0) -> tuple[Any, Any]:
    """Return X in [−1, 1] and labels 0 and 1."""
    generator = simulation.generator(seed)
    X = generator.uniform(-1, 1, (rows, 3))
    chance = 1 / (1 + np.exp(-(X @ [2.0, -1.0, 0.5] + 0.4)))
    return X, (generator.uniform(size=rows) < chance).astype(int)


def likeliest(X: Any, y: Any, *, fit_intercept: bool = True) -> Any:
    """A penalty of 1e-8 of a unit stands for none, in every version of scikit-learn."""
    model = LogisticRegression(C=1e8, tol=1e-10, max_iter=10_000, fit_intercept=fit_intercept)
    return model.fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_with_a_budget_without_end_it_is_scikit_learns(
    neighbours: str, fit_intercept: bool
) -> None:
    """Sampling errors are 0.03; noise is below 1e-4 of that."""
    X, y = table()
    model = PrivateLogisticRegression(
        **PUBLIC, epsilon=1e6, neighbours=neighbours, fit_intercept=fit_intercept
    ).fit(X, y)
    theirs = likeliest(X, y, fit_intercept=fit_intercept)
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, atol=2e-3)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    logs = model.predict_log_proba(X)
    np.testing.assert_allclose(logs, np.log(model.predict_proba(X)), atol=1e-9)
    assert model.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)
    assert model.certificate_.mechanism == "logistic_descent"
    assert model.schema_.columns == ("x0", "x1", "x2", "y")


@pytest.mark.parametrize(
    ("classes", "holder"),
    [
        ((0, 1), np.asarray),
        ((1, 0), np.asarray),
        ((-1, 1.0), np.asarray),
        (("no", "yes"), np.asarray),
        (("no", "yes"), lambda y: np.asarray(y).astype(object)),
        (("no", "yes"), lambda y: np.asarray(y).astype("S")),
        (("no", "yes"), list),
        ((False, True), np.asarray),
        (np.array([3, 7]), list),
    ],
)
def test_labels_may_be_any_two(classes: Any, holder: Any) -> None:
    X, y = table()
    labels = holder(np.asarray(classes)[y])
    with simulation.door(1):
        plain = PrivateLogisticRegression(**PUBLIC).fit(X, y)
        model = PrivateLogisticRegression(**PUBLIC | {"classes": classes}).fit(X, labels)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert list(model.classes_) == list(classes)
    assert set(model.predict(X).tolist()) == set(np.asarray(classes).tolist())
    assert (model.predict(X) == np.asarray(classes)[plain.predict(X)]).all()


def test_other_labels_count_as_the_first_and_nothing_raises() -> None:
    class Hostile:
        def __eq__(self, _: object) -> bool:
            raise RuntimeError("a secret")

        __hash__ = None  # type: ignore[assignment]

    X, y = table()
    odd = y.astype(object)
    odd[:7] = [None, np.nan, "one", Hostile(), np.ones(3), 2, {}]
    by_hand = y.copy()
    by_hand[:7] = 0
    masked = np.ma.MaskedArray(y, mask=np.arange(ROWS) < 7)
    with simulation.door(2):
        models = [
            PrivateLogisticRegression(**PUBLIC).fit(X, labels)
            for labels in (by_hand, odd, odd.tolist(), masked, np.where(masked.mask, np.nan, y))
        ]
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_labels_that_no_cell_can_hold_are_refused_by_their_type() -> None:
    X, y = table(50)
    said = set()
    for wide in ("U1", "U50"):  # a dtype is as wide as the longest label: nothing of it is shown
        with refusals.refused(
            "y", "PrivateLogisticRegression", "labels such as 1", got="'text'"
        ) as refused:
            PrivateLogisticRegression(**PUBLIC).fit(X, y.astype(wide))
        said.add(str(refused.value))
    assert len(said) == 1
    with refusals.refused("y", "PrivateLogisticRegression", "labels such as 'yes'"):
        PrivateLogisticRegression(**PUBLIC | {"classes": ("no", "yes")}).fit(X, y)
    with refusals.refused("y", "PrivateLogisticRegression", "of one column of labels"):
        PrivateLogisticRegression(**PUBLIC).fit(X, np.column_stack([y, y]))
    X, y = table(2000)  # enough for the noise never to hide them
    with pytest.warns(DataConversionWarning):
        PrivateLogisticRegression(**PUBLIC).fit(X, y[:, None])


def test_other_guarantees_and_clipped_rows() -> None:
    X, y = table(2000)
    rho = ZCDP(0.5)
    model = PrivateLogisticRegression(
        **PUBLIC, epsilon=None, delta=None, guarantee=rho, row_norm=1.5
    ).fit(X, y)
    assert model.certificate_.holds == rho
    assert model.schema_.row_norm == 1.5
    assert model.fit_result_.loss == "logistic"


def test_a_usual_budget_predicts_nearly_as_well() -> None:
    """20,000 rows at ε = 1 cost less than a hundredth of accuracy: thirty standard deviations."""
    X, y = table()
    model = PrivateLogisticRegression(**PUBLIC).fit(X, y)
    fresh, labels = table(seed=3)
    assert model.score(fresh, labels) > likeliest(X, y).score(fresh, labels) - 0.01


AS_READ: dict[str, Any] = {
    "text": lambda y: y.astype(str).tolist(),
    "floats as text": lambda y: [f"{label}.0" for label in y],
    "truth values": lambda y: y.astype(bool).tolist(),
    "their words": lambda y: np.where(y == 1, "True", "FALSE").tolist(),
    "objects": lambda y: [label if place % 2 else str(label) for place, label in enumerate(y)],
}


@pytest.mark.parametrize("how", AS_READ)
def test_labels_are_what_they_mean_whatever_type_a_reader_gave_them(how: str) -> None:
    """One label that is a word makes text of a whole column that was read as integers."""
    X, y = table()
    with simulation.door(2):
        want = PrivateLogisticRegression(**PUBLIC).fit(X, y).coef_
    with simulation.door(2):
        found = PrivateLogisticRegression(**PUBLIC).fit(X, AS_READ[how](y)).coef_
    np.testing.assert_array_equal(found, want)


@pytest.mark.engine
def test_the_type_of_a_frames_labels_is_not_refused() -> None:
    """A column of integers becomes one of text beside one word, which an error would tell."""
    X, y = table()
    public = PUBLIC | {"classes": ("0", "spam")}
    series = library("pandas").Series(y)
    with simulation.door(2):
        PrivateLogisticRegression(**public).fit(X, series)
    with refusals.refused("y", "PrivateLogisticRegression"):
        PrivateLogisticRegression(**public).fit(X, y)
