"""Releases of sketches whose ridges differ from feature to feature, or are not known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear import Schema, load
from dplinear.analyst.noise_models.matrices import ProjectionNoise
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.files import ReleaseError
from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.arrays import Floats
from dplinear.noise.simulation import generator
from dplinear.privacy import MIDP, Neighbours
from refusals import refused

SCHEMA = Schema({"a": (0, 4), "b": (-1, 1), "c": (-2, 2), "y": (-10, 10)})
NOISE = (0.0, 3.0, 50.0, 1.0, 8.0)
CERTIFICATE = Certificate(
    mechanism="mi_projection",
    parameters={"rows": 30},
    neighbours=Neighbours.ELEMENT,
    asked=MIDP(0.5),
    holds=MIDP(0.5),
    curve=((0.0, 0.78),),
    numerics="idealised",
    calibration="exact",
    simulated=True,
    request="1",
)


def table(count: int, seed: int) -> Floats:
    """Return cells with an intercept: y = 1 + 2a + 3b + 0c in the columns' own units."""
    random = generator(seed)
    cells = random.uniform(-1, 1, (count, 3))
    own = 1 + 2 * (2 + 2 * cells[:, 0]) + 3 * cells[:, 1] + 0.5 * random.standard_normal(count)
    return np.column_stack([np.ones(count), cells, own / 10])


def sketch(
    rows: int = 300, noise: tuple[float, ...] | None = NOISE, count: int = 5000, seed: int = 1
) -> SketchRelease:
    cells = table(count, seed)
    whole = cells.T @ cells + np.diag(NOISE)
    drawn = generator(seed + 10**6).standard_normal((rows, 5)) @ np.linalg.cholesky(whole).T
    return SketchRelease(SCHEMA, drawn, ProjectionNoise(rows, noise), CERTIFICATE, count)


@pytest.mark.parametrize("features", [["b"], ["b", "c"], ["c", "a", "b"]])
def test_each_feature_keeps_its_own_ridge_when_others_are_left_out(features: list[str]) -> None:
    release = sketch()
    fit = release.regress("y", features, repair="none")
    places = [0, *(SCHEMA.names.index(name) for name in features)]
    values = release.values
    gram = values.T @ values / len(values) - np.diag(NOISE)
    solved = np.linalg.solve(gram[np.ix_(places, places)], gram[places, 4])
    widths = np.array([float(SCHEMA.features[place].half_width) for place in places])
    assert np.allclose(fit.coefficients.values, 10 * (solved / widths)[1:], rtol=1e-9)
    assert fit.intervals().swamped is None


def test_least_squares_on_the_rows_leaves_the_ridges_in() -> None:
    release = sketch()
    fit = release.regress("y", ["b"])
    solved = np.linalg.lstsq(release.values[:, [0, 2]], release.values[:, 4], rcond=None)[0]
    assert fit["b"] == pytest.approx(10 * solved[1])
    assert fit.repair == "released"


@pytest.mark.heavy
def test_intervals_cover_the_line() -> None:
    truth = {"intercept": 1.0, "a": 2.0, "b": 3.0, "c": 0.0}
    draws = 300
    hits = dict.fromkeys(truth, 0)
    for seed in range(draws):
        found = sketch(rows=80, count=1500, seed=seed).regress("y", repair="none").intervals()
        assert found.swamped is None
        for name, low, high in zip(found.names, found.low, found.high, strict=True):
            hits[name] += low <= truth[name] <= high
    # Two-sided, 1e-6 over four coefficients, around 95% give or take 2% of approximation.
    low = stats.binom.ppf(1e-6 / 8, draws, 0.93)
    high = stats.binom.isf(1e-6 / 8, draws, 0.97)
    assert all(low <= count <= high for count in hits.values())


def test_without_known_ridges_there_is_least_squares_and_nothing_more() -> None:
    release = sketch(noise=None)
    for repair in ("auto", "released"):
        fit = release.regress("y", ["b"], repair=repair)
        assert fit["b"] == sketch().regress("y", ["b"])["b"]
    assert fit.r_squared is None
    assert fit.residual_variance is None
    words = fit.intervals().swamped
    assert words is not None
    assert "not public" in words
    assert "not public" in str(fit.summary())
    moments: Any = release.moments
    for repair in ("none", "scaled", "clipped", "shrunk", "floor"):
        with refused("repair", "regress", "one of 'released'"):
            release.regress("y", ["b"], repair=repair)
    for ask in (moments.gram, moments.covariance, moments.correlation):
        with pytest.raises(ValueError, match="must be one of 'released'"):
            ask()
    with refused("noise", "ProjectionNoise", "public for this"):
        moments.mean()
    assert np.array_equal(moments.gram("released"), moments.values)


@pytest.mark.parametrize("noise", [NOISE, None], ids=["known", "unknown"])
def test_what_is_saved_comes_back(noise: tuple[float, ...] | None, tmp_path: Path) -> None:
    release = sketch(noise=noise)
    release.save(tmp_path / "sketch.json")
    loaded = load(tmp_path / "sketch.json", kind="sketch")
    assert loaded.noise_model == release.noise_model
    assert loaded.certificate == release.certificate
    assert np.array_equal(loaded.values, release.values)
    assert loaded.rows == 5000


def test_ridges_for_other_features_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="of 5 features, as its schema says"):
        sketch(noise=(1.0, 2.0)).save(tmp_path / "sketch.json")
