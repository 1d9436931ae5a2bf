"""Means, covariances, correlations, synthetic rows, and what a release says of itself."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from dplinear.analyst.noise_models.matrices import SymmetricGaussian, WishartNoise
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.noise import simulation
from dplinear.schema import Schema
from refusals import refused

from .tables import EVERYTHING, certificate, exact, people, raw

TABLE = people()
MOMENTS = exact(EVERYTHING, TABLE)
ROWS = raw(EVERYTHING, TABLE)
NAMES = ["age", "bmi", "smoker=yes", "visit", "bmi^2"]
FALSE_ALARM = 1e-6


def test_means_are_those_of_the_rows() -> None:
    found = MOMENTS.mean()
    assert found.names == EVERYTHING.names[1:]
    assert found.values == pytest.approx(ROWS.mean(0), rel=1e-10)
    assert MOMENTS.mean(["ward"]).names == ("ward=b", "ward=c", "ward=other")


def test_covariances_and_correlations_are_those_of_the_rows() -> None:
    some = raw(EVERYTHING, TABLE, NAMES)
    size = np.sqrt(np.outer(some.var(0), some.var(0)))
    found = MOMENTS.covariance(NAMES)
    assert found.values / size == pytest.approx(np.cov(some.T) / size, abs=1e-8)
    assert found["age", "visit"] == found.values[0, 3]
    correlation = MOMENTS.correlation(NAMES)
    assert correlation.values == pytest.approx(np.corrcoef(some.T), abs=1e-8)
    assert np.diag(correlation.values).tolist() == [1.0] * len(NAMES)
    assert np.asarray(correlation) is correlation.values
    with refused("name", "a result", hint="did you mean 'age'"):
        correlation["ages", "bmi"]


def test_results_print_in_text_and_in_notebooks() -> None:
    schema = Schema({"a<b": (0, 10), "c": ["x", "y"]})
    moments = MomentsRelease(schema, 4.0 * np.eye(4), SymmetricGaussian(1e-9, 1e-9), certificate())
    assert "a&lt;b" in moments.mean()._repr_html_()
    assert ">a&lt;b</th>" in moments.covariance()._repr_html_()
    assert repr(moments.mean()).splitlines()[0].split() == ["a<b", "5"]
    assert len(repr(MOMENTS.covariance()).splitlines()) == 13
    wide = Schema({f"x{i}": (0, 1) for i in range(20)})
    many = MomentsRelease(wide, 9 * np.eye(21), SymmetricGaussian(1e-9, 1e-9), certificate())
    assert repr(many.correlation()).endswith("(8 more columns: see .values)")


def test_the_count_is_public_or_estimated_or_unknown() -> None:
    assert MOMENTS.count == pytest.approx(400)
    assert exact(EVERYTHING, TABLE, rows=400).count == 400.0
    assert exact(Schema(age=(0, 100), intercept=False), TABLE).count is None
    assert exact(Schema(age=(0, 100), row_norm=1.1), TABLE).count is None
    shifted = WishartNoise(50, 2.0)
    released = MOMENTS.values + 100 * np.eye(13)
    assert replace(MOMENTS, values=released, noise_model=shifted).count == pytest.approx(400)


def test_a_public_count_replaces_the_noisy_one_in_means() -> None:
    values = MOMENTS.values.copy()
    values[0, 0] += 40
    noisy = replace(MOMENTS, values=values)
    assert noisy.mean()["age"] != pytest.approx(ROWS[:, 0].mean(), rel=1e-3)
    assert replace(noisy, rows=400).mean()["age"] == pytest.approx(ROWS[:, 0].mean())


def test_means_stay_within_the_bounds() -> None:
    values = np.array([[10.0, 30.0], [30.0, 10.0]])
    law = SymmetricGaussian(100, 100)
    moments = MomentsRelease(Schema(age=(0, 100)), values, law, certificate())
    assert moments.mean()["age"] == 100.0


def test_a_table_lost_in_noise_is_said_to_be() -> None:
    values = np.diag([-3.0, 5.0])
    law = SymmetricGaussian(100, 100)
    moments = MomentsRelease(Schema(age=(0, 100)), values, law, certificate())
    assert moments.count == 0.0
    with refused("rows", "mean", hint="the noise is larger than the table"):
        moments.mean()
    with refused("rows", "covariance", hint="the noise is larger than the table"):
        moments.covariance()


def test_a_covariance_is_positive_semidefinite_unless_asked_otherwise() -> None:
    law = SymmetricGaussian(4e4, 2e4)
    noisy = replace(
        MOMENTS, values=law.draw(MOMENTS.values, simulation.generator(5)), noise_model=law
    )
    noisy = replace(noisy, rows=400)
    width = np.array([float(feature.half_width) for feature in EVERYTHING.features[1:]])
    cells = noisy.covariance().values / np.outer(width, width)
    assert np.linalg.eigvalsh(cells)[0] >= -1e-12 * np.linalg.eigvalsh(cells)[-1]
    honest = noisy.covariance(repair="none").values / np.outer(width, width)
    assert np.linalg.eigvalsh(honest)[0] < 0
    known = noisy.correlation().values
    assert np.nanmax(np.abs(known)) <= 1 + 1e-9
    assert np.isfinite(noisy.pca(3, scaled=True).components).all()


def test_a_feature_without_variance_has_no_correlation() -> None:
    table = TABLE.set_column(0, "age", [np.full(400, 30.0)])
    # A noise law of no size, and bounds that make the constant exact in binary.
    moments = exact(Schema({"age": (0, 60), "stay": (-5, 90)}), table)
    assert math.isnan(moments.correlation(repair="none")["age", "stay"])
    assert moments.correlation(repair="none")["stay", "stay"] == 1.0


def test_synthetic_rows_have_the_released_moments() -> None:
    count, names = 20_000, ["age", "bmi", "stay", "charges"]
    schema = Schema(dict.fromkeys(names, (-100_000, 100_000)))
    table = TABLE.select(names).set_column(1, "bmi", [raw(EVERYTHING, TABLE, ["bmi"])[:, 0]])
    moments = exact(schema, table)
    drawn = moments.sample(count, seed=4)
    assert drawn.column_names == names
    rows = np.column_stack([drawn[name].to_numpy() for name in names])
    covariance = moments.covariance().values
    half = np.linalg.inv(np.linalg.cholesky(covariance))
    even = (rows - moments.mean().values) @ half.T  # independent standard normals
    z = NormalDist().inv_cdf(1 - FALSE_ALARM / 2 / 14)
    assert np.abs(even.mean(0)).max() < z / math.sqrt(count)
    # A product of two independent standard normals has variance 1, a square 2.
    second = (even.T @ even / count - np.eye(4)) * math.sqrt(count)
    assert np.abs(second / np.sqrt(1 + np.eye(4))).max() < 1.05 * z
    assert drawn.equals(moments.sample(count, seed=4))
    assert not moments.sample(5).equals(moments.sample(5))
    assert moments.sample(0).num_rows == 0
    with refused("n", "sample"):
        moments.sample(-1)


def test_the_gram_matrix_is_repaired_as_asked() -> None:
    assert MOMENTS.gram("none") is not MOMENTS.values
    assert (MOMENTS.gram("none") == MOMENTS.values).all()
    assert (MOMENTS.gram() == MOMENTS.values).all()
    law = WishartNoise(50, 2.0)
    noisy = replace(MOMENTS, values=MOMENTS.values + 100 * np.eye(13), noise_model=law)
    assert noisy.gram("released") == pytest.approx(noisy.values)
    assert noisy.gram("none") == pytest.approx(MOMENTS.values)
    with refused("repair", "gram", "one of"):
        MOMENTS.gram("glue")
    with pytest.raises(ValueError, match="read-only"):
        MOMENTS.values[0, 0] = 1.0


def test_a_release_says_what_it_is() -> None:
    text = repr(MOMENTS)
    assert text == MOMENTS.describe()
    assert text.startswith("Second moments of 13 features, from about 400 rows\nfeatures: ")
    assert "no formal guarantee" in text
    assert "SIMULATED" in text
    assert "from 400 rows" in exact(EVERYTHING, TABLE, rows=400).describe()
    unknown = exact(Schema(age=(0, 100), intercept=False), TABLE)
    assert "a number of rows that was not released" in unknown.describe()
    assert unknown.dimension == 1
    assert unknown.names == ("age",)
