"""What every kind of release has, whoever made it and whatever it holds."""

import inspect
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.analyst.regression.classes import log_probabilities, probabilities
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.noise import simulation
from refusals import refused
from report.samples import BUDGET, KINDS, NUMBERS, numbers, sample

PUBLIC_ROWS = {"rows": 50, "projected": 50}
SUFFIX = {"rows": ".parquet", "projected": ".arrow"}


def kind_of(name: str) -> str:
    return "rows" if name == "projected" else name


def test_there_is_a_sample_of_every_kind() -> None:
    assert {kind_of(name) for name in KINDS} == set(files._kind_names())


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_a_release(name: str) -> None:
    release: Any = sample(name)
    assert release.kind == type(release).kind == kind_of(name)
    assert issubclass(type(release.certificate), Certificate)
    assert release.rows == PUBLIC_ROWS.get(name)
    assert release.describe().endswith(str(release.certificate))
    assert len(release.describe()) < 20_000
    assert repr(release) in release.describe()
    assert "<" in release._repr_html_()
    with pytest.raises((AttributeError, FrozenInstanceError)):
        release.certificate = None
    assert isinstance(release, dpl.Release)
    assert not isinstance(release.certificate, dpl.Release)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_saved_and_loaded_alike(name: str, tmp_path: Path) -> None:
    release = sample(name)
    path = tmp_path / f"release{SUFFIX.get(name, '.json')}"
    release.save(path)
    for again in (dpl.load(path), dpl.load(path, kind=release.kind)):
        assert type(again) is type(release)
        assert again.certificate == release.certificate
        assert again.rows == release.rows
    with pytest.raises(dpl.ReleaseError, match="overwrite=True"):
        release.save(path)
    release.save(path, overwrite=True)
    other = "mean" if release.kind != "mean" else "moments"
    with pytest.raises(dpl.ReleaseError, match="release"):
        dpl.load(path, kind=other)
    assert str(inspect.signature(release.save)).startswith("(path: ")
    assert inspect.signature(release.save).parameters["overwrite"].kind.name == "KEYWORD_ONLY"


def test_the_number_of_rows_stands_on_a_release_where_it_is_public() -> None:
    replaced = dpl.release_moments(numbers(), NUMBERS, neighbours="replace", **BUDGET)
    assert replaced.rows == len(numbers())


# One meaning of predict.


def table() -> tuple[Any, Any]:
    X = simulation.generator(5).uniform(-1, 1, (400, 3))
    return X, (X[:, 0] > 0).astype(int)


def learnt(loss: str) -> Any:
    X, y = table()
    facts: dict[str, Any] = {"row_norm": 2.0, "constraint": 20.0, "epsilon": 1e6, "delta": 1e-6}
    facts |= {"target_bounds": (0, 1)} if loss in {"squared", "huber"} else {"classes": ("n", "y")}
    labels = np.array(["n", "y"])[y] if "classes" in facts else y
    return dpl.release_model(X, target=labels, loss=loss, **facts)


def modelled(loss: str) -> Any:
    X, y = table()
    schema = dpl.Schema(dict.fromkeys("abc", (-1, 1)) | {"y": (0, 1)})
    asked: dict[str, Any] = {"epsilon": 1e6, "delta": 1e-6, "loss": loss}
    return dpl.release_model(np.column_stack([X, y]), schema, "y", **asked)


@pytest.mark.parametrize("make", [learnt, modelled])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_models_of_values_predict_values(make: Any, loss: str) -> None:
    X, _ = table()
    model = make(loss)
    assert model.classes is None
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X))
    assert len(set(model.predict(X).tolist())) > 2
    with refused("loss", "predict_proba", "logistic"):
        model.predict_proba(X)


@pytest.mark.parametrize(
    ("make", "loss", "classes"),
    [
        (learnt, "logistic", ("n", "y")),
        (learnt, "hinge", ("n", "y")),
        (modelled, "logistic", (0, 1)),
    ],
)
def test_models_of_labels_predict_labels(make: Any, loss: str, classes: Any) -> None:
    X, y = table()
    model = make(loss)
    assert model.classes == classes
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), np.array(classes)[(scores > 0).astype(int)])
    assert np.mean(model.predict(X) == np.array(classes)[y]) > 0.9
    if loss == "hinge":
        with refused("loss", "predict_proba", "logistic"):
            model.predict_proba(X)
        return
    found = model.predict_proba(X)
    assert found.shape == (len(X), 2)
    np.testing.assert_allclose(found.sum(1), 1)
    np.testing.assert_array_equal(found[:, 1] > 0.5, scores > 0)


def test_estimators_predict_as_their_releases_do() -> None:
    X, y = table()
    words = np.array(["n", "y"])[y]
    public: dict[str, Any] = {"row_norm": 2.0, "classes": ("n", "y"), "epsilon": 1e3}
    model = dpl.PrivateConstrainedClassifier(20.0, **public).fit(X, words)
    np.testing.assert_array_equal(model.predict(X), model.fit_result_.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), model.fit_result_.predict_proba(X))
    np.testing.assert_array_equal(
        model.decision_function(X), model.fit_result_.decision_function(X)
    )
    logistic = dpl.PrivateLogisticRegression(bounds=(-1, 1), classes=("n", "y")).fit(X, words)
    released = logistic.fit_result_
    np.testing.assert_allclose(logistic.predict_proba(X), released.predict_proba(X))
    np.testing.assert_allclose(logistic.decision_function(X), released.decision_function(X))
    np.testing.assert_array_equal(logistic.predict(X), np.array(["n", "y"])[released.predict(X)])


def test_probabilities_of_far_scores_are_not_lost() -> None:
    scores = np.array([-800.0, 0.0, 800.0])
    expected = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(probabilities(scores), expected)
    assert log_probabilities(scores)[0, 1] == pytest.approx(-800)
    assert log_probabilities(scores)[2, 0] == pytest.approx(-800)
