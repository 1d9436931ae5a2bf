"""The parts of the integrals, each against its definition in high precision."""

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb

from dplinear.arrays import Floats
from dplinear.noise.simulation import generator
from dplinear.privacy import hockey_stick

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

HAIR = 2.0**-50
SHAPES = [0.5, 1.5, 3.0, 11.99, 12.0, 40.0, 1e3, 5e6]


@pytest.mark.parametrize("size", [1e-9, 0.0019, 0.002, 0.03, 0.05, 0.051, 0.2, 0.25, 0.26, 3.0, 40])
def test_the_exponential_less_its_line_loses_no_digits(size: float) -> None:
    at = np.array([-size, -size / 3, 0.0, size / 7, size])
    with mpmath.workdps(50):
        exact = [mpmath.exp(mpmath.mpf(x)) - 1 - mpmath.mpf(x) for x in at]
        for found, wanted in zip(hockey_stick.exp_minus_linear(at), exact, strict=True):
            assert abs(found - wanted) <= HAIR * wanted
    assert hockey_stick.exp_minus_linear(1e9) == math.inf


@pytest.mark.parametrize("x", [-0.99, -0.41, -0.4, -0.2, -1e-7, 1e-12, 0.01, 0.39, 0.4, 0.41, 9.0])
def test_the_logarithm_less_its_line_loses_no_digits(x: float) -> None:
    with mpmath.workdps(50):
        wanted = mpmath.log(1 + mpmath.mpf(x)) - mpmath.mpf(x)
        assert abs(hockey_stick.log1p_minus_linear(x) - wanted) <= HAIR * abs(wanted)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_height_of_a_gamma_density(shape: float) -> None:
    with mpmath.workdps(50):
        a = mpmath.mpf(shape)
        wanted = a * mpmath.log(a) - a - mpmath.loggamma(a)
        assert abs(hockey_stick.log_gamma_scale(shape) - wanted) <= 24 * 2.0**-52


def test_quotients_in_two_floats_have_twice_the_digits() -> None:
    drawn = generator(3).lognormal(0, 5, (50, 2))
    for a, b in drawn:
        quotient, missing = hockey_stick._quotient(np.array([a]), float(b))
        exact = Fraction(float(a)) / Fraction(float(b))
        rest = exact - Fraction(float(quotient[0])) - Fraction(float(missing[0]))
        assert abs(rest) <= abs(exact) / 2**100
        assert abs(exact - Fraction(float(quotient[0]))) <= abs(exact) / 2**53


@pytest.mark.parametrize(
    ("plus", "minus"),
    [(0.3, 0.1), (1e-9, 3e-9), (0.6, 0.1), (0.1, 0.61), (40.0, 39.7), (7.0, 1.0), (0.0, 0.999999)],
)
def test_thresholds_are_as_close_as_they_say(plus: float, minus: float) -> None:
    mean = 1 + plus - minus
    found = hockey_stick.threshold(np.array([mean]), np.array([plus]), np.array([minus]))
    near = abs(plus - minus) < 0.5
    with mpmath.workdps(40):
        exact = mpmath.log(1 + mpmath.mpf(plus) - mpmath.mpf(minus)) if near else mpmath.log(mean)
        # The difference itself is rounded once where it is used, and the logarithm once more.
        assert abs(found.xi[0] - exact) <= (found.doubt[0] + 1) * 2.0**-53
    assert 0 < found.doubt[0] <= (1 + plus + minus) * 2 / min(mean, 1.0)


@pytest.mark.parametrize(
    ("plus", "minus"), [(0.0, 0.45), (0.3, 0.1), (3.0, 3.4), (0.8, 0.4), (90.0, 90.49), (7.0, 1.0)]
)
@pytest.mark.parametrize("doubt", [1.0, 9.0])
def test_thresholds_doubt_what_their_parts_leave_open(
    plus: float, minus: float, doubt: float
) -> None:
    """Each part may be off by a unit in the last place, a mean by as many as are said."""
    mean = 1 + plus - minus
    found = hockey_stick.threshold(np.array([mean]), np.array([plus]), np.array([minus]), doubt)
    near = abs(plus - minus) < 0.5
    # The logarithm of a mean is rounded itself.
    units = (plus + minus) / mean if near else doubt + abs(math.log(mean))
    assert found.doubt[0] == pytest.approx(units, rel=1e-12)


@pytest.mark.parametrize("shape", [12.0, 12.5, 14.0, 19.0, 60.0, 1e3, 1e6])
def test_the_remainder_of_stirling_is_right_to_the_last_digits(shape: float) -> None:
    with mpmath.workdps(50):
        a = mpmath.mpf(shape)
        whole = mpmath.loggamma(a) - (a - 0.5) * mpmath.log(a) + a - mpmath.log(2 * mpmath.pi) / 2
        assert abs(hockey_stick._log_stirling(shape) - whole) <= 1.5e-16
    assert abs(hockey_stick._log_stirling(11.999) - hockey_stick._log_stirling(12.0)) < 1e-5


def test_upper_ends_of_integrals() -> None:
    value = np.array([0.0, -1e-30, 1e-290, 0.3, 0.9, 1e-3, np.nan])
    scale = np.array([0.0, 5.0, -200.0, 0.0, 1.0, -2.0, 0.0])
    error = np.array([0.1, 0.1, 0.1, 0.25, 0.1, 0.5, 0.0])
    found = hockey_stick.Integral(value, scale, error, value).upper()
    wanted = [0.0, 0.0, 1e-300, 0.375, 1.0, 1e-3 * math.exp(-2) * 1.5, 1.0]
    assert found == pytest.approx(wanted, rel=1e-15, abs=0.0)
    logs = hockey_stick.Integral(value[2:6], scale[2:6], error[2:6], value[2:6]).log_upper()
    exact = np.log(value[2:6]) + scale[2:6] + error[2:6]
    assert (logs >= exact - 1e-15).all()
    assert (logs <= exact + 1e-15 * np.abs(scale[2:6]) + 1e-15).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_integrals_reach_where_the_density_has_gone(shape: float) -> None:
    fall = hockey_stick._DEPTH

    def density(xi: Floats) -> Floats:
        return shape * (np.expm1(xi) - xi)

    up = np.array([0.0, 1e-3, 0.1, 1.0, 5.0])
    ends = up + hockey_stick._reach_up(shape, up)
    lost = density(ends) - density(up)
    assert (lost >= fall * (1 - 1e-6)).all()
    assert (lost[density(up) < 1e6] <= 6 * fall).all()
    down = -up
    ends = down - hockey_stick._reach_down(shape, down)
    lost = density(ends) - density(down)
    assert (lost >= fall * (1 - 1e-6)).all()
    assert (lost[density(down) < 1e6] <= 6 * fall).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_integrals_reach_no_further_than_they_must(shape: float) -> None:
    """A longer range would spread the nodes that count; the limits are as measured, with room."""
    xi = np.array([0.0, 1e-3, 0.1, 1.0, 3.0])

    def fall(start: Floats, end: Floats) -> Floats:
        gone: Floats = hockey_stick.exp_minus_linear(end) - hockey_stick.exp_minus_linear(start)
        return shape * gone / hockey_stick._DEPTH

    upwards = fall(xi, xi + hockey_stick._reach_up(shape, xi))
    assert (upwards <= (1.15 if shape >= 1e3 else 2.05)).all()
    downwards = fall(-xi, -xi - hockey_stick._reach_down(shape, -xi))
    assert (downwards <= 1.15).all()


CURVES: dict[str, tuple[Callable[[Floats], Floats], float]] = {
    "constant": (np.ones_like, 1.0),
    "logarithm": (np.log, -1.0),
    "arctangent": (lambda x: 1 / (1 + x * x), math.pi / 4),
    "steep": (lambda x: 46 * np.exp(-46 * x), -math.expm1(-46)),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_rule_integrates_over_the_unit_interval(name: str) -> None:
    curve, wanted = CURVES[name]
    left, right, weights = hockey_stick._LEFT, hockey_stick._RIGHT, hockey_stick._WEIGHTS
    assert weights @ curve(left) == pytest.approx(wanted, rel=3e-15)
    assert np.abs(left + right - 1).max() < 3e-16
    assert weights @ curve(left) == pytest.approx(weights[::-1] @ curve(right), rel=1e-15)


@pytest.mark.parametrize(("centre", "width"), [(0.0, 1e-3), (-0.3, 0.1), (-4.9, 0.2), (-2.0, 30.0)])
def test_the_essential_part_of_a_normal_law(centre: float, width: float) -> None:
    def exponent(x: Floats) -> Floats:
        return 0.5 * ((x - centre) / width) ** 2

    points, weights = hockey_stick.essential_rule(exponent, -5.0, width / 3)
    total = weights @ np.exp(-exponent(points))
    assert total == pytest.approx(width * math.sqrt(2 * math.pi), rel=1e-12)
    assert points.size < 250


@pytest.mark.parametrize("shape", [0.05, 0.5, 3.0, 500.0])
def test_the_essential_part_of_a_lopsided_law(shape: float) -> None:
    def exponent(x: Floats) -> Floats:
        return shape * hockey_stick.exp_minus_linear(x)

    points, weights = hockey_stick.essential_rule(exponent, -1.0, 0.1 / math.sqrt(shape))
    total = weights @ np.exp(-exponent(points))
    exact = arb(shape).gamma() * (arb(shape) * (1 - arb(shape).log())).exp()
    assert total == pytest.approx(float(exact.mid()), rel=1e-10)
    assert points.size < 250
