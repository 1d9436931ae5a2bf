"""Principal components, against NumPy's decomposition of the rows and scikit-learn's PCA."""

from typing import Any

import numpy as np
import pytest

from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.schema import Schema
from refusals import refused
from services import library

from .tables import EVERYTHING, certificate, exact, people, raw

TABLE = people()
MOMENTS = exact(EVERYTHING, TABLE)
NAMES = ["age", "bmi", "stay", "ward=b", "age*smoker=yes"]
ROWS = raw(EVERYTHING, TABLE, NAMES)


def rows_components(rows: Any, k: int) -> tuple[Any, Any]:
    values, directions = np.linalg.svd(rows - rows.mean(0))[1:]
    directions = directions[:k]
    largest = np.abs(directions).argmax(1)
    signs = np.sign(directions[range(k), largest])
    return directions * signs[:, None], values[:k] ** 2 / (len(rows) - 1)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_components_are_those_of_the_rows(k: int) -> None:
    found = MOMENTS.pca(k, NAMES)
    components, variances = rows_components(ROWS, k)
    assert found.components == pytest.approx(components, abs=1e-8)
    assert found.explained_variance == pytest.approx(variances, rel=1e-9)
    total = ROWS.var(0, ddof=1).sum()
    assert found.explained_variance_ratio == pytest.approx(variances / total, rel=1e-9)
    assert found.mean.values == pytest.approx(ROWS.mean(0), rel=1e-10)
    assert found.names == tuple(NAMES)


@pytest.mark.oracle
def test_scikit_learn_agrees() -> None:
    decomposition = library("sklearn.decomposition")
    oracle = decomposition.PCA(3).fit(ROWS)
    found = MOMENTS.pca(3, NAMES)
    assert found.components == pytest.approx(oracle.components_, abs=1e-8)
    assert found.explained_variance == pytest.approx(oracle.explained_variance_, rel=1e-9)
    shares = oracle.explained_variance_ratio_
    assert found.explained_variance_ratio == pytest.approx(shares, rel=1e-9)
    assert found.transform(ROWS) == pytest.approx(oracle.transform(ROWS), abs=1e-6)


def test_scaled_components_are_those_of_standardised_rows() -> None:
    found = MOMENTS.pca(2, NAMES, scaled=True)
    even = (ROWS - ROWS.mean(0)) / ROWS.std(0, ddof=1)
    components, variances = rows_components(even, 2)
    assert found.components == pytest.approx(components, abs=1e-8)
    assert found.explained_variance == pytest.approx(variances, rel=1e-9)
    assert found.explained_variance_ratio == pytest.approx(variances / len(NAMES), rel=1e-9)
    assert found.transform(ROWS) == pytest.approx(even @ components.T, abs=1e-8)


def test_all_features_but_the_intercept_by_default() -> None:
    found = MOMENTS.pca(2)
    assert found.names == EVERYTHING.names[1:]
    assert repr(found).startswith("2 principal components of 12 features\n1: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "'k' parameter of pca must be an integer in"),
        ({"k": 99}, "'k' parameter of pca"),
        ({"k": 1.5}, "'k' parameter of pca"),
        ({"scaled": 1}, "'scaled' parameter of pca must be True or False"),
        ({"features": ["agee"]}, "did you mean 'age'"),
        ({"repair": "glue"}, "'repair' parameter of pca"),
    ],
)
def test_bad_arguments_get_the_one_sentence(arguments: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"k": 2} | arguments
    with pytest.raises((ValueError, TypeError), match=message):
        MOMENTS.pca(**call)


def test_rows_of_the_wrong_shape_are_refused() -> None:
    with refused("data", "transform", "of shape"):
        MOMENTS.pca(1, ["age", "bmi"]).transform([[1.0, 2.0, 3.0]])


def test_without_an_intercept_there_is_no_covariance() -> None:
    moments = exact(Schema({"age": (0, 100), "stay": (-5, 90)}, intercept=False), TABLE)
    for ask in (lambda: moments.pca(1), moments.mean, moments.covariance, moments.correlation):
        with pytest.raises(ValueError, match="only moments about zero"):
            ask()


def test_noise_gives_no_negative_variance() -> None:
    values = np.array([[100.0, 0, 0, 0], [0, 5.0, 9, 0], [0, 9, 5.0, 0], [0, 0, 0, 2.0]])
    law = SymmetricGaussian(0.5, 0.25)
    schema = Schema(dict.fromkeys("abc", (-1, 1)))
    moments = MomentsRelease(schema, values, law, certificate())
    found = moments.pca(3, repair="none")
    assert found.explained_variance == pytest.approx(np.array([14, 2, 0]) / 99)
    assert found.explained_variance_ratio.sum() == pytest.approx(1.0)
    # What scaling leaves negative is clipped, so that no correlation is beyond 1.
    assert moments.repaired("scaled").positive_definite is False
    assert np.abs(moments.correlation().values).max() <= 1 + 1e-12
    assert moments.correlation(repair="none")["a", "b"] == pytest.approx(1.8)
