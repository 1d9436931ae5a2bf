"""The mechanisms of Sheffet 2015 with its own constants: as printed, and honest of what holds."""

import math

import numpy as np
import pyarrow as pa
import pytest

from dplinear.analyst.noise_models.matrices import WishartNoise
from dplinear.mechanisms import AnalyzeGauss
from dplinear.papers import constants
from dplinear.papers.sheffet import release_moments
from dplinear.papers.sheffet.published import (
    PreparedPosterior,
    PublishedAdditiveWishart,
    PublishedAnalyzeGauss,
    PublishedInverseWishart,
    PublishedSketch,
)
from dplinear.privacy import ApproxDP, Neighbours
from dplinear.schema import Schema
from mechanisms.tables import UNIT, released
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def test_published_constants() -> None:
    asked = ApproxDP(0.1, 1e-6)
    log = math.log(4e6)
    gauss = released(PublishedAnalyzeGauss(guarantee=asked), UNIT[40])
    sigma = math.sqrt(2 * math.log(2e6)) / 0.1
    assert math.sqrt(gauss.noise_model.diagonal) == pytest.approx(sigma, rel=1e-12)
    assert gauss.noise_model.off_diagonal == gauss.noise_model.diagonal
    exact = released(AnalyzeGauss(guarantee=asked), UNIT[40])
    ratio = math.sqrt(gauss.noise_model.off_diagonal / exact.noise_model.off_diagonal)
    assert ratio == pytest.approx(2.1, abs=0.02)

    wishart = released(PublishedAdditiveWishart(guarantee=asked), UNIT[40])
    assert wishart.noise_model == WishartNoise(42605, 1.0)
    at_one = PublishedAdditiveWishart(guarantee=ApproxDP(1, 1e-6))
    assert released(at_one, UNIT[5]).noise_model.degrees == 430
    assert "below 1" in released(at_one, UNIT[5]).account.notes[0]

    sketch = released(PublishedSketch(guarantee=asked, rows=80), UNIT[40])
    ridge = 4 * (math.sqrt(160 * log) + log) / 0.1
    assert sketch.noise_model.ridge == pytest.approx(ridge, rel=1e-14)
    inverse = PublishedInverseWishart(guarantee=asked, neighbours=REPLACE)
    measured = released(inverse, UNIT[40], rows=1000)
    assert measured.noise_model.degrees == 1040
    psi = 2 * (2 * math.sqrt(2 * 1040 * log) + 2 * log) / 0.1
    assert measured.noise_model.ridge == pytest.approx(psi, rel=1e-14)
    for one in (gauss, wishart, sketch, measured):
        assert one.account.asked == asked
        assert 0 < one.account.holds.epsilon < 0.1  # the papers' constants are on the safe side
        assert one.account.profile.delta(one.account.holds.epsilon) <= 1e-6


def test_a_published_sigma_that_does_not_suffice_says_so() -> None:
    mechanism = PublishedAnalyzeGauss(guarantee=ApproxDP(8, 1e-6), neighbours=REPLACE)
    account = released(mechanism, UNIT[5]).account
    assert isinstance(account.holds, ApproxDP)
    assert account.holds.epsilon > 8
    assert "does not keep" in account.notes[-1]


def test_published_degrees_need_a_public_number_of_rows() -> None:
    asked = ApproxDP(1, 1e-6)
    mechanism = PublishedInverseWishart(guarantee=asked)
    prepared = mechanism.prepare(UNIT[5])
    assert isinstance(prepared, PreparedPosterior)
    measured = released(mechanism, UNIT[5], rows=100)
    assert measured.noise_model.degrees == 105
    assert measured.account.holds is None
    assert measured.account.profile is None
    assert "No formal guarantee" in measured.account.notes[0]
    with pytest.raises(ValueError, match=r"'degrees' parameter of .* must be given"):
        released(mechanism, UNIT[5])
    huge = PublishedInverseWishart(guarantee=ApproxDP(1e3, 1e-6), neighbours=REPLACE)
    with refused("guarantee", "PublishedInverseWishart", "of at most 41·ln(4/δ)"):
        huge.prepare(UNIT[5])
    explicit = PublishedInverseWishart(guarantee=asked, degrees=20)
    assert not isinstance(explicit.prepare(UNIT[5]), PreparedPosterior)
    assert released(explicit, UNIT[5]).account.holds is not None


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.1])
@pytest.mark.parametrize("degrees", [2, 40, 10**4, 10**8])
@pytest.mark.parametrize("share", [1e-3, 0.03, 1.0])
def test_published_ridges_are_kept_up_to_a_large_epsilon(
    delta: float, degrees: int, share: float
) -> None:
    asked = ApproxDP(share * 41 * math.log(4 / delta), delta)
    for relation in (ADD, REPLACE):
        profile = constants.inverse_wishart(asked, degrees, 1.0, relation).profile
        assert profile is not None
        assert profile.delta(asked.epsilon) <= delta


def test_the_published_ridge_is_not_kept_beyond() -> None:
    profile = constants.inverse_wishart(ApproxDP(1e4, 1e-6), 10**6, 1.0, REPLACE).profile
    assert profile is not None
    assert profile.delta(1e4) > 0.5


def test_moments_of_units_are_measured_in_the_units_of_weighted_sums() -> None:
    """A unit moves weighted sums by 2^24 times as much as a row moves plain ones."""
    ids = pa.array(np.arange(900) // 3)
    table = pa.table({"x": np.ones(900), "y": np.zeros(900), "id": ids})
    schema = Schema({"x": (-1, 1), "y": (-1, 1)}, unit="id")
    moments = release_moments(table, schema, epsilon=1.0, delta=1e-6)
    sigma = moments.certificate.parameters["sigma"]
    assert isinstance(sigma, float)
    assert abs(moments.values[0, 0] - 300) < 6 * sigma  # a false alarm in 500 million runs
    assert sigma < 20
