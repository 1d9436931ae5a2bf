"""A released model of a constraint set: what it says, what it predicts, and its file."""

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dplinear import ReleaseError, load
from dplinear.analyst.releases import container, files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.constrained import ConstrainedKind, ConstrainedRelease
from dplinear.analyst.releases.sparse_vector import SparseVector
from dplinear.analyst.releases.units import UnitConversion, read_bounds, read_classes
from dplinear.arguments import ArgumentTypeError
from dplinear.privacy import Neighbours, PureDP
from refusals import refused

CERTIFICATE = Certificate(
    mechanism="frank_wolfe",
    parameters={"steps": 5},
    neighbours=Neighbours.ADD_REMOVE,
    asked=PureDP(1.0),
    holds=PureDP(1.0),
    curve=(),
    numerics="exact",
    calibration="exact",
    simulated=False,
    request="8f3a",
)
THETA = np.array([0.0, 0.5, 0.0, 0.0, -0.25, 0.0, 0.0, 0.1])
NUMBERS = UnitConversion(row_norm=2.0, scale=0.5, constant=1.0, target_bounds=(10.0, 30.0))
LABELS = UnitConversion(row_norm=2.0, scale=0.5, classes=("no", "yes"))
PROJECTION: dict[str, Any] = {"kind": "gaussian", "dimension": 2, "source": 8, "seed": 7}


def release(**changes: Any) -> ConstrainedRelease:
    built = ConstrainedRelease(
        source=SparseVector.of(THETA),
        loss="squared",
        units=NUMBERS,
        certificate=CERTIFICATE,
        constraint={"set": "l1", "radius": 1.0},
        projection=PROJECTION,
        compressed=np.array([0.25, 0.1 + 0.2]),
        lift={"method": "carried", "residual": 0.0, "gauge": 0.85},
        plan={"theorem_dimension": 123.5},
    )
    return dataclasses.replace(built, **changes)


CHANGES: list[dict[str, Any]] = [
    {},
    {"rows": 7},
    {"source": SparseVector.of(np.arange(1.0, 9.0))},
    {"source": SparseVector.of(np.zeros(8))},
    {"projection": None, "compressed": None, "lift": {}, "plan": {}},
    {"loss": "hinge", "units": LABELS},
    {"loss": "logistic", "units": dataclasses.replace(LABELS, classes=(0, 1.5))},
    {"loss": "huber"},
]


def test_predictions_are_in_the_tables_own_units() -> None:
    """By hand: 20 + 10·(½·(½·x1 − ¼·x4) + 0.1)."""
    X = np.zeros((3, 7))
    X[0, 1], X[1, 4], X[2, 2] = 2.0, 4.0, 9.0
    expected = [26.0, 16.0, 21.0]
    found = release()
    for rows in (X, X.tolist(), sparse.csr_array(X), sparse.coo_matrix(X), sparse.csc_array(X)):
        assert found.predict(rows) == pytest.approx(expected)
    assert X @ found.coefficients + found.intercept == pytest.approx(expected)
    assert found.features == 7
    assert found.intercept == pytest.approx(21.0)
    X[0, 4] = np.nan
    assert found.predict(X) == pytest.approx(expected)
    assert found.predict(sparse.csr_array(X)) == pytest.approx(expected)
    X[:, 3] = np.inf  # where the model has no coefficient
    assert found.predict(X) == pytest.approx(expected)


def test_labels_are_predicted_as_they_were_given() -> None:
    X = np.zeros((2, 8))
    X[0, 1], X[1, 4] = 2.0, 4.0
    logistic = release(loss="logistic", units=LABELS)
    assert logistic.decision_function(X) == pytest.approx([0.5, -0.5])
    assert logistic.predict(X).tolist() == ["yes", "no"]
    assert logistic.classes == ("no", "yes")
    second = [1 / (1 + np.exp(-0.5)), 1 / (1 + np.exp(0.5))]
    assert logistic.predict_proba(X)[:, 1] == pytest.approx(second)
    assert logistic.predict_proba(X)[:, 0] == pytest.approx(second[::-1])
    with refused("loss", "predict_proba", "logistic, to have probabilities"):
        release().predict_proba(X)
    with refused("X", "decision_function", "of shape (rows, 8)"):
        logistic.predict(X[:, :3])
    with refused("X", "decision_function", "an array of numbers", kind=ArgumentTypeError):
        logistic.predict([["a"] * 8])


def test_it_says_what_it_is() -> None:
    text = repr(release(rows=1234))
    for words in (
        "Squared model of 7 features, 1,234 rows",
        "guarantee: ε = 1 (add_remove neighbours)",
        "set: set = l1, radius = 1",
        "seed = 7",
        "method = carried",
        "theorem_dimension = 123.5",
        "3 are not 0",
        "intercept  21",
        "x1         2.5",
    ):
        assert words in text
    assert "x2 " not in text
    assert "<caption" in release()._repr_html_()
    assert "SIMULATED" in str(
        release(certificate=dataclasses.replace(CERTIFICATE, simulated=True)).summary()
    )
    with pytest.raises(ValueError, match="read-only"):
        release().theta[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        release().loss = "hinge"  # type: ignore[misc]


@pytest.mark.parametrize("changes", CHANGES)
def test_files_bring_back_every_bit(changes: dict[str, Any], tmp_path: Path) -> None:
    made = release(**changes)
    made.save(tmp_path / "model.json")
    for read in (load(tmp_path / "model.json", kind="linear"), pickle.loads(pickle.dumps(made))):
        assert isinstance(read, ConstrainedRelease)
        for name in ("loss", "units", "certificate", "constraint", "projection", "lift", "plan"):
            assert getattr(read, name) == getattr(made, name)
        assert read.rows == made.rows
        assert np.array_equal(read.theta, made.theta)
        assert (read.compressed is None) == (made.compressed is None)
        if made.compressed is not None and read.compressed is not None:
            assert np.array_equal(read.compressed, made.compressed)
        assert ConstrainedKind().to_parts(read).facts == ConstrainedKind().to_parts(made).facts


def test_sparse_models_have_small_files(tmp_path: Path) -> None:
    wide = np.zeros(1_000_000)
    wide[[3, 999_999]] = 1.0
    units = dataclasses.replace(NUMBERS, constant=None)
    release(source=SparseVector.of(wide), units=units).save(tmp_path / "model.json")
    assert (tmp_path / "model.json").stat().st_size < 5_000
    assert load(tmp_path / "model.json", kind="linear").coefficients.shape == (1_000_000,)


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({"loss": "magic"}, {}),
        ({"loss": "hinge"}, {}),
        ({"reading": {}}, {}),
        ({"reading": {**NUMBERS.to_dict(), "row_norm": -1}}, {}),
        ({"reading": {**NUMBERS.to_dict(), "classes": [0, 1]}}, {}),
        ({"reading": {**NUMBERS.to_dict(), "target_bounds": [3, 1]}}, {}),
        ({"constraint": {"a": [1]}}, {}),
        ({"constraint": 3}, {}),
        ({"projection": None}, {}),
        ({"lift": {"method": "carried"}}, {}),
        ({"plan": {"a": "line\nbreak"}}, {}),
        ({"rows": -1}, {}),
        ({"size": 4}, {}),
        ({"size": 10**30}, {}),
        ({"more": 4}, {}),
        ({}, {"places": np.array([[1.0, 4.5, 7.0]])}),
        ({}, {"places": np.array([[4.0, 1.0, 7.0]])}),
        ({}, {"values": np.array([[0.5, 0.0, 0.1]])}),
        ({}, {"values": np.ones((3, 1))}),
        ({}, {"compressed": np.ones((2, 2))}),
        ({}, {"others": np.ones((1, 4))}),
    ],
)
def test_files_with_other_content_are_refused(
    facts: dict[str, Any], arrays: dict[str, Any], tmp_path: Path
) -> None:
    parts = ConstrainedKind().to_parts(release())
    changed = files.Parts("linear", {**parts.facts, **facts}, {**parts.arrays, **arrays})
    path = tmp_path / "model.json"
    path.write_bytes(container.write(changed))
    with pytest.raises(ReleaseError, match="sound content"):
        load(path)


def test_a_dense_vector_where_a_sparse_one_is_shorter_is_refused(tmp_path: Path) -> None:
    parts = ConstrainedKind().to_parts(release())
    arrays = {"theta": THETA[None, :], "compressed": parts.arrays["compressed"]}
    path = tmp_path / "model.json"
    path.write_bytes(container.write(files.Parts("linear", parts.facts, arrays)))
    with pytest.raises(ReleaseError, match="those that take less room"):
        load(path)


@pytest.mark.parametrize("value", [None, 2, "no", (0,), (1, 1), (0, "yes"), (0, 1, 2), (0, np.nan)])
def test_classes_are_two_labels_of_one_kind(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="'classes' parameter of here"):
        read_classes(value, "here")


def test_bounds_and_classes_are_plain() -> None:
    assert read_classes(np.array([3, 7]), "here") == (3, 7)
    assert read_classes((False, True), "here") == (False, True)
    with refused("target_bounds", "here", "low below high"):
        read_bounds((2, 1), "here")
    with refused("target_bounds", "here", "low below high", kind=ArgumentTypeError):
        read_bounds(3, "here")
