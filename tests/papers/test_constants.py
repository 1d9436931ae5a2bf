"""The published constants, and what they really guarantee."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.papers import constants
from dplinear.privacy import MIDP, ApproxDP, Neighbours, calibrate
from dplinear.privacy.profiles import Gaussian, Sketch
from refusals import refused

GUARANTEES = [ApproxDP(0.1, 1e-6), ApproxDP(1, 1e-6), ApproxDP(0.5, 1e-9)]


@pytest.mark.parametrize(("epsilon", "dimension", "k"), [(0.1, 40, 42605), (1, 5, 430)])
def test_additive_wishart_degrees_as_printed(epsilon: float, dimension: int, k: int) -> None:
    assert constants.additive_wishart(ApproxDP(epsilon, 1e-6), dimension).value == k


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_published_noise_is_sound_but_loose(guarantee: ApproxDP) -> None:
    published = [
        (constants.analyze_gauss(guarantee, 1.0), calibrate.gaussian(guarantee, 1.0)),
        (constants.sketch(guarantee, 80, 1.0), calibrate.sketch(guarantee, 80, 1.0)),
        (
            constants.inverse_wishart(guarantee, 80, 1.0),
            calibrate.inverse_wishart(guarantee, 80, 1.0),
        ),
        (
            constants.additive_wishart(guarantee, 40),
            calibrate.additive_wishart(guarantee, 40, 1.0, scale=1.0)[0],
        ),
    ]
    for constant, exact in published:
        held = constant.holds()
        assert held is not None
        assert held.epsilon < guarantee.epsilon
        assert constant.value > 1.2 * exact


def test_ridges_are_five_to_ten_times_too_large() -> None:
    for guarantee in GUARANTEES[:2]:
        ratio = constants.sketch(guarantee, 80, 1.0).value / calibrate.sketch(guarantee, 80, 1.0)
        assert 5 < ratio < 10


def test_replacing_a_row_is_further_than_adding_one() -> None:
    guarantee = ApproxDP(1, 1e-6)
    one = constants.analyze_gauss(guarantee, 1.0).holds()
    two = constants.analyze_gauss(guarantee, 1.0, Neighbours.REPLACE).holds()
    assert one is not None
    assert two is not None
    assert two.epsilon > one.epsilon


def test_cells_in_bits() -> None:
    assert constants.mutual_information(1.5).value == pytest.approx(1 / 7, rel=1e-14)
    profile = constants.mutual_information(1.5).profile
    assert isinstance(profile, Gaussian)
    assert profile.mu == pytest.approx(2 * math.sqrt(7), rel=1e-14)
    constant = constants.mutual_information(0.5)
    assert constant.value == pytest.approx(1.0)
    assert constant.profile is not None
    assert constant.profile.neighbours is Neighbours.ELEMENT
    assert math.sqrt(constant.value) == pytest.approx(calibrate.gaussian(MIDP(0.5), 2.0), rel=1e-12)


@pytest.mark.parametrize(
    ("dimension", "k", "failure"), [(3, 2, 1.10), (10, 3, 2.23), (50, 10, 0.34), (100, 20, 0.0045)]
)
def test_projected_rows_claim_nothing_where_their_delta_exceeds_one(
    dimension: int, k: int, failure: float
) -> None:
    constant = constants.projected_rows(dimension, k)
    assert constant.value == pytest.approx(2 * math.sqrt(k))
    assert constant.profile is None
    assert constant.holds() is None
    if failure >= 1:
        assert constant.claimed is None
    else:
        assert constant.claimed is not None
        assert constant.claimed.delta == pytest.approx(failure, rel=0.02)
        assert constant.claimed.epsilon == 1.0


def test_coinpress_spends_less_than_it_is_given() -> None:
    assert {k: round(v, 3) for k, v in constants.COINPRESS_SPENDS.items()} == {
        3: 0.55,
        5: 0.567,
        6: 0.7,
    }


def test_bad_arguments_get_the_sentence() -> None:
    with refused("guarantee", "constants.sketch"):
        constants.sketch(ApproxDP(1, 0), 80, 1.0)
    with refused("guarantee", "constants.sketch", kind=ArgumentTypeError):
        constants.sketch("1", 80, 1.0)  # type: ignore[arg-type]


def test_constants_as_printed_in_high_precision() -> None:
    """Each formula of the papers, typed anew, at settings where no factor is 1."""
    guarantee, bound = ApproxDP(0.7, 1e-5), 1.3
    with mpmath.workdps(30):
        e, d, b = mpmath.mpf(0.7), mpmath.mpf(1e-5), mpmath.mpf(1.3)
        printed = {
            "analyze_gauss": b**2 * mpmath.sqrt(2 * mpmath.log(2 / d)) / e,
            "sketch": 4 * b**2 * (mpmath.sqrt(160 * mpmath.log(4 / d)) + mpmath.log(4 / d)) / e,
            "inverse_wishart": 2
            * b**2
            / e
            * (2 * mpmath.sqrt(180 * mpmath.log(4 / d)) + 2 * mpmath.log(4 / d)),
            "adassp": mpmath.sqrt(mpmath.log(6 / d)) * 3 / e,
            "projected": mpmath.sqrt(2 * mpmath.log(14) / 7) * 7,
        }
    made = {
        "analyze_gauss": constants.analyze_gauss(guarantee, bound),
        "sketch": constants.sketch(guarantee, 80, bound),
        "inverse_wishart": constants.inverse_wishart(guarantee, 90, bound),
        "adassp": constants.adassp(guarantee),
        "projected": constants.projected_whole_rows(7),
    }
    for name, constant in made.items():
        assert constant.value == pytest.approx(float(printed[name]), rel=1e-14)
    assert made["projected"].holds() is None
    assert made["projected"].claimed is None


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_the_profile_is_that_of_the_printed_noise(neighbours: Neighbours) -> None:
    guarantee, bound = ApproxDP(0.7, 1e-5), 1.3
    apart = 2 if neighbours is Neighbours.REPLACE else 1
    gauss = constants.analyze_gauss(guarantee, bound, neighbours)
    assert isinstance(gauss.profile, Gaussian)
    wanted = math.sqrt(apart) * bound**2 / gauss.value
    assert wanted <= gauss.profile.mu <= wanted * (1 + 1e-14)
    adassp = constants.adassp(guarantee, neighbours)
    assert isinstance(adassp.profile, Gaussian)
    wanted = math.sqrt(5.5 if apart == 2 else 3) / adassp.value
    assert wanted <= adassp.profile.mu <= wanted * (1 + 1e-14)
    for constant in (
        constants.sketch(guarantee, 80, bound, neighbours),
        constants.inverse_wishart(guarantee, 80, bound, neighbours),
    ):
        assert isinstance(constant.profile, Sketch)
        ratio = bound**2 / constant.value
        assert ratio <= constant.profile.ratio <= ratio * (1 + 1e-14)
        assert constant.profile.neighbours is neighbours


@pytest.mark.parametrize("bits", [1e-4, 0.1, 1 / 3, 0.5, 0.8, 1.5, 2.9, 7.0])
def test_bits_are_as_private_as_the_printed_variance_or_less(bits: float) -> None:
    constant = constants.mutual_information(bits)
    assert isinstance(constant.profile, Gaussian)
    square = Fraction(constant.profile.mu) ** 2 * Fraction(constant.value)
    assert 4 <= square <= 4 * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("bound", [1.0, 1.3, 0.1, 7.7])
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_profiles_err_to_the_side_of_less_privacy(guarantee: ApproxDP, bound: float) -> None:
    """In exact arithmetic on the printed constants, whatever their floats are."""
    room = 1 + Fraction(1, 10**14)
    square = Fraction(bound) ** 2
    for relation, apart in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, 2)):
        gauss = constants.analyze_gauss(guarantee, bound, relation)
        assert isinstance(gauss.profile, Gaussian)
        moved = (Fraction(gauss.profile.mu) * Fraction(gauss.value)) ** 2
        assert apart * square**2 <= moved <= apart * square**2 * room**2
        adassp = constants.adassp(guarantee, relation)
        assert isinstance(adassp.profile, Gaussian)
        moved = (Fraction(adassp.profile.mu) * Fraction(adassp.value)) ** 2
        wanted = Fraction(11, 2) if apart == 2 else Fraction(3)
        assert wanted <= moved <= wanted * room**2
        for constant in (
            constants.sketch(guarantee, 7, bound, relation),
            constants.inverse_wishart(guarantee, 7, bound, relation),
        ):
            assert isinstance(constant.profile, Sketch)
            assert square <= Fraction(constant.profile.ratio) * Fraction(constant.value)
            assert Fraction(constant.profile.ratio) * Fraction(constant.value) <= square * room
            assert constant.profile.inverse is (constant.source == "Sheffet 2015, Theorem 5.1")


def test_one_dimension_is_enough() -> None:
    guarantee = ApproxDP(1, 1e-6)
    assert constants.additive_wishart(guarantee, 1).value == 426
    assert constants.projected_rows(1, 1).value == 2
    assert constants.projected_whole_rows(1).value == pytest.approx(math.sqrt(2 * math.log(2)))
    calls: list[Any] = [
        lambda: constants.additive_wishart(guarantee, 0),
        lambda: constants.projected_rows(0, 1),
        lambda: constants.projected_rows(1, 0),
        lambda: constants.projected_whole_rows(0),
        lambda: constants.analyze_gauss(guarantee, 0.0),
        lambda: constants.mutual_information(0.0),
        lambda: constants.sketch(ApproxDP(0, 1e-6), 7, 1.0),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"parameter of constants\.\w+ must be"):
            call()
