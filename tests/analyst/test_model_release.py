"""A released model: what it says, what it predicts, and its file."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear import ReleaseError, Schema, load
from dplinear.analyst.releases import container, files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.model import ModelKind, ModelRelease
from dplinear.analyst.results import NamedVector
from dplinear.privacy import ApproxDP, Neighbours
from refusals import refused

SCHEMA = Schema({"age": (0, 100), "smoker": ["no", "yes"], "charges": (0, 400)})
NAMES = ("age", "smoker=yes", "smoker=other")
LABELS = ("intercept", *NAMES)
CERTIFICATE = Certificate(
    mechanism="adassp",
    parameters={"ridge": 0.5},
    neighbours=Neighbours.ADD_REMOVE,
    asked=ApproxDP(1.0, 1e-6),
    holds=ApproxDP(1.0, 1e-6),
    curve=((1.0, 1e-6),),
    numerics="exact",
    calibration="exact",
    simulated=False,
    request="8f3a",
)


def model(**changes: Any) -> ModelRelease:
    built = ModelRelease(
        schema=SCHEMA,
        target="charges",
        coefficients=NamedVector(NAMES, np.array([2.0, 30.0, 0.1 + 0.2])),
        intercept=5.0,
        certificate=CERTIFICATE,
        count=1234.5,
        privacy_errors=NamedVector(LABELS, np.array([1.0, 0.1, 2.0, 3.0])),
        unknown="Nothing is known of the rows.",
    )
    return dataclasses.replace(built, **changes)


def test_numbers_have_names() -> None:
    release = model()
    assert release.names == NAMES
    assert release.labels == LABELS
    assert (release["age"], release["intercept"]) == (2.0, 5.0)
    with refused("name", "a model", hint="did you mean 'age'"):
        release["agee"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.intercept = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        release.coefficients.values[0] = 1.0
    assert "Model of charges, about 1,23" in repr(release)
    assert "adassp: ε = 1, δ = 1e-06 (add_remove neighbours)" in repr(release)
    assert "1,234 rows" in repr(model(rows=1234))


def test_predictions_of_tables_and_of_arrays() -> None:
    table = pa.table({"smoker": ["yes", "no", "pipe"], "age": [50.0, 500.0, None]})
    expected = [135.0, 205.0, 105.0 + 0.3]
    assert model().predict(table) == pytest.approx(expected)
    rows = np.array([[50.0, 1.0, 0.0]])
    assert model().predict(rows) == pytest.approx([135.0])
    assert model().to_sklearn(feature_names=False).predict(rows) == pytest.approx([135.0])
    with refused("data", "predict", got="one without age"):
        model().predict(table.select(["smoker"]))


def test_log_odds_have_probabilities_and_predict_labels() -> None:
    logistic = model(loss="logistic", coefficients=NamedVector(NAMES, np.array([0.1, -1.0, 2.0])))
    rows = np.array([[10.0, 1.0, 0.0], [-60.0, 0.0, 0.5], [1e9, 0, 0], [-1e9, 0, 0]])
    assert logistic.decision_function(rows[:2]) == pytest.approx([5.0, 0.0])
    probabilities = logistic.predict_proba(rows)
    assert probabilities[:, 1] == pytest.approx([1 / (1 + np.exp(-5.0)), 0.5, 1.0, 0.0])
    assert probabilities.sum(1) == pytest.approx(1)
    assert logistic.predict(rows).tolist() == [1, 0, 1, 0]
    assert model().decision_function(rows) == pytest.approx(model().predict(rows))
    fitted = logistic.to_sklearn(feature_names=False)
    assert fitted.predict_proba(rows) == pytest.approx(probabilities)
    assert fitted.predict(rows).tolist() == logistic.predict(rows).tolist()
    assert list(logistic.to_sklearn().feature_names_in_) == list(NAMES)
    text = str(logistic.summary())
    assert "Logistic model of charges" in text
    assert "Coefficients are log-odds" in text
    assert "Logistic model of charges" in repr(logistic)
    assert "Logistic model of" in logistic._repr_html_()


def test_files_from_before_losses_are_squared(tmp_path: Path) -> None:
    assert "loss" not in ModelKind().to_parts(model()).facts
    model().save(tmp_path / "model.json")
    assert load(tmp_path / "model.json", kind="model").loss == "squared"


def test_without_standard_errors_the_summary_says_why() -> None:
    text = str(model().summary())
    assert "Linear model of charges" in text
    assert "rows: about 1,23" in text
    assert "Nothing is known of the rows." in text
    assert "due to the noise alone: intercept 1.0; age 0.10" in text
    assert max(map(len, text.splitlines())) <= 100
    assert model()._repr_html_().startswith("<div")
    assert np.isnan(model().intervals().standard_errors).all()


def test_with_standard_errors_there_are_intervals() -> None:
    errors = NamedVector(LABELS, np.array([2.0, 0.5, 2.0, 3.0]))
    found = model(standard_errors=errors, unknown=None).intervals(0.9)
    assert found.swamped is None
    assert found.low[1] == pytest.approx(2.0 - 1.6448536269514722 * 0.5)
    assert found.high[0] == pytest.approx(5.0 + 1.6448536269514722 * 2.0)
    assert found.privacy_share == pytest.approx([0.25, 0.04, 1.0, 1.0])
    assert "90% low" in str(model(standard_errors=errors, unknown=None).summary(0.9))
    alone = model(standard_errors=errors, privacy_errors=None, unknown=None)
    assert "95% low" in str(alone.summary())
    with refused("level", "intervals"):
        model().intervals(1.0)


def test_summaries_warn() -> None:
    simulated = model(certificate=dataclasses.replace(CERTIFICATE, simulated=True))
    assert "SIMULATED" in str(simulated.summary())
    clipped = Schema.from_dict(SCHEMA.to_dict() | {"row_norm": 0.5})
    assert "clipped" in str(model(schema=clipped).summary())
    unproved = model(certificate=dataclasses.replace(CERTIFICATE, holds=None))
    assert "no formal guarantee" in str(unproved.summary())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rows": 7, "count": 7.0},
        {"count": None, "privacy_errors": None, "unknown": None},
        {"standard_errors": NamedVector(LABELS, np.arange(4.0)), "unknown": None},
        {"loss": "logistic"},
        {"loss": "huber"},
        {
            "schema": Schema.from_dict(SCHEMA.to_dict() | {"intercept": False}),
            "intercept": 0.0,
            "privacy_errors": None,
        },
    ],
)
def test_files_bring_back_every_bit(changes: dict[str, Any], tmp_path: Path) -> None:
    release = model(**changes)
    release.save(tmp_path / "model.json")
    read = load(tmp_path / "model.json", kind="model")
    assert isinstance(read, ModelRelease)
    for name in (
        "schema",
        "target",
        "intercept",
        "certificate",
        "rows",
        "count",
        "unknown",
        "loss",
    ):
        assert getattr(read, name) == getattr(release, name)
    for name in ("coefficients", "standard_errors", "privacy_errors"):
        one, other = getattr(read, name), getattr(release, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.names == other.names
            assert np.array_equal(one.values, other.values)
    read.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({"target": "age"}, {}),
        ({"target": "smoker"}, {}),
        ({"target": 3}, {}),
        ({"features": ["age", "smoker"]}, {}),
        ({"features": ["age", "charges", "smoker=yes"]}, {}),
        ({"features": 5}, {}),
        ({"rows": -1}, {}),
        ({"count": -0.5}, {}),
        ({"count": "many"}, {}),
        ({"unknown": "line\nbreak"}, {}),
        ({"unknown": 4}, {}),
        ({"loss": "squared"}, {}),
        ({"loss": "hinge"}, {}),
        ({"loss": 4}, {}),
        ({"more": 4}, {}),
        ({}, {"estimates": np.ones((1, 3))}),
        ({}, {"privacy_errors": np.ones((4, 1))}),
        ({}, {"privacy_errors": -np.ones((1, 4))}),
        ({}, {"others": np.ones((1, 4))}),
    ],
)
def test_files_with_other_content_are_refused(
    facts: dict[str, Any], arrays: dict[str, Any], tmp_path: Path
) -> None:
    parts = ModelKind().to_parts(model())
    changed = files.Parts("model", {**parts.facts, **facts}, {**parts.arrays, **arrays})
    path = tmp_path / "model.json"
    path.write_bytes(container.write(changed))
    with pytest.raises(ReleaseError, match="sound content"):
        load(path)
