"""Axes and pictures: places are right, ticks are round, and odd numbers do no harm."""

import math
import re

import pytest

from dplinear.privacy.guarantees import ApproxDP, PureDP
from dplinear.report.curve import curve_pictures, curve_table
from dplinear.report.forest import MOST, Line, forests
from dplinear.report.scales import Axis, decades, plain_label, power_label, spread
from dplinear.report.words import format_value, guarantee_label, significant

from .samples import certificate

pytestmark = pytest.mark.heavy


def test_an_axis_places_values_by_their_share_or_their_logarithm() -> None:
    straight = Axis(-10.0, 30.0, 100.0, 500.0)
    assert [straight.position(value) for value in (-10, 0, 30)] == [100.0, 200.0, 500.0]
    falling = Axis(1e-6, 1.0, 300.0, 0.0, logarithmic=True)
    assert [falling.position(value) for value in (1e-6, 1e-3, 1.0)] == [300.0, 150.0, 0.0]


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 26_000.0, ["0", "10,000", "20,000"]),
        (-0.9, 0.1, ["−0.8", "−0.6", "−0.4", "−0.2", "0"]),
        (0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_ticks_of_a_straight_axis_are_round(low: float, high: float, labels: list[str]) -> None:
    assert [tick.label for tick in Axis(low, high, 0.0, 1.0).ticks(6)] == labels


def test_ticks_of_a_logarithmic_axis_are_powers_or_a_few_of_them() -> None:
    many = [tick.label for tick in Axis(1e-18, 1.0, 0.0, 1.0, logarithmic=True).ticks(7)]
    assert many == ["10⁻¹⁸", "10⁻¹⁵", "10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "1"]
    few = [tick.label for tick in Axis(0.3, 4.0, 0.0, 1.0, logarithmic=True).ticks(6)]
    assert few == ["0.5", "1", "2"]


@pytest.mark.parametrize("values", [[], [0.0], [0.0, 0.0], [5.0], [-3.0], [math.nan], [1e-300]])
def test_any_values_have_an_axis(values: list[float]) -> None:
    low, high = spread(values, zero=True)
    assert low < high
    assert low <= 0 <= high
    assert len(Axis(low, high, 0.0, 1.0).ticks(6)) >= 1


def test_numbers_are_read_as_people_write_them() -> None:
    assert [plain_label(value) for value in (0, -2.5, 12_000, 1e-6, 2e9)] == [
        "0", "−2.5", "12,000", "10⁻⁶", "2·10⁹"
    ]  # fmt: skip
    assert power_label(1e-3) == "10⁻³"
    assert [significant(value) for value in (21_604.3, 0.00021234, 5.2e-5, 0.0, -1.5)] == [
        "21,600", "0.0002123", "5.2·10⁻⁵", "0", "−1.500"
    ]  # fmt: skip
    assert guarantee_label(ApproxDP(1.0, 1e-6)) == "ε = 1, δ = 10⁻⁶"
    assert guarantee_label(None) == "none that is proved"
    assert [format_value(value) for value in (None, True, 3.0, 12_000, "a")] == [
        "none", "yes", "3", "12,000", "a"
    ]  # fmt: skip
    assert decades([0.01, 10.0])[0] < 0.01


def test_a_forest_keeps_order_and_says_what_is_left_out() -> None:
    lines = [Line(f"feature {place}", place - 3.0, place - 4.0, place - 2.0) for place in range(40)]
    wide, narrow = forests([*lines, Line("broken", math.nan)], "title", "axis")
    assert len(wide.lines) == MOST
    assert wide.left_out == 40 - MOST
    for picture in (wide, narrow):
        for line in picture.lines:
            assert line.low is not None
            assert line.high is not None
            assert picture.left - 0.1 <= line.low < line.value < line.high <= picture.right + 0.1
        downs = [line.down for line in picture.lines]
        assert downs == sorted(downs)
        assert downs[-1] < picture.bottom
    assert [line.tone for line in wide.lines[:5]] == [
        "clear",
        "clear",
        "unclear",
        "unclear",
        "unclear",
    ]
    assert forests([Line("broken", math.inf)], "", "") == ()


def test_the_curve_marks_what_was_asked_for_and_tells_all_points() -> None:
    wide, narrow = curve_pictures(certificate())
    assert wide.mark is not None
    across, down, label, _ = wide.mark
    assert (across, down) in {(x, y) for x, y, told in wide.dots if told.startswith("δ(1) ≤ ")}
    assert label == "ε = 1, δ = 10⁻⁶"
    assert narrow.narrow
    steps = [float(pair.split(",")[1]) for pair in re.split("[ML]", wide.line)[1:]]
    assert steps == sorted(steps)
    assert len(curve_table(certificate()).rows) == len(certificate().curve)
    assert curve_pictures(certificate(curve=())) == ()
    pure = certificate(asked=PureDP(1.0), holds=PureDP(1.0), curve=((0.1, 0.3), (0.5, 0.1)))
    mark = curve_pictures(pure)[0].mark
    assert mark is not None
    assert mark[1] is None
    assert mark[2] == "ε = 1, δ = 0"
