"""Losses against 40 digits: values, slopes by differences, curvatures, and the steepest slope."""

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from dplinear.convex.losses import LOSSES, HingeLoss, HuberLoss, Loss, SquaredLoss

Seeded = Callable[[int], Any]
KNEE = 0.25
MARGINS = (-40.0, -3.7, -1.0, -0.26, -0.1, 0.0, 0.2, 0.74, 1.0, 1.1, 31.0)
LABELS = (-1.0, -0.3, 0.0, 0.4, 1.0)
TRIPLE = mpmath.mpf(10) ** -12


def sign(label: float) -> int:
    return 1 if label > 0 else -1


def huber(error: Any) -> Any:
    size = abs(error)
    return error**2 / 2 if size <= KNEE else KNEE * (size - mpmath.mpf(KNEE) / 2)


TRUTHS: dict[str, Callable[[Any, float], Any]] = {
    "squared": lambda eta, y: (eta - y) ** 2,
    "huber": lambda eta, y: huber(eta - y),
    "logistic": lambda eta, y: mpmath.log1p(mpmath.exp(-sign(y) * eta)),
    "hinge": lambda eta, y: max(mpmath.mpf(0), 1 - sign(y) * eta),
}
KINKS: dict[str, Callable[[float, float], bool]] = {
    "hinge": lambda eta, y: sign(y) * eta == 1,
    "huber": lambda eta, y: abs(abs(eta - y) - KNEE) < 1e-9,
}


def differences(truth: Callable[[Any, float], Any], eta: float, y: float) -> tuple[Any, Any]:
    """The first and second derivative by central differences."""
    step, at = TRIPLE, mpmath.mpf(eta)
    low, middle, high = truth(at - step, y), truth(at, y), truth(at + step, y)
    return (high - low) / (2 * step), (high - 2 * middle + low) / step**2


@pytest.mark.parametrize("name", LOSSES)
def test_values_slopes_and_curvatures(name: str) -> None:
    loss, truth = LOSSES[name](), TRUTHS[name]
    with mpmath.workdps(60):
        for eta, y in itertools.product(MARGINS, LABELS):
            margins, labels = np.array([eta]), np.array([y])
            value = truth(mpmath.mpf(eta), y)
            assert loss.values(margins, labels)[0] == pytest.approx(float(value), rel=1e-12)
            if name in KINKS and KINKS[name](eta, y):
                continue
            first, second = differences(truth, eta, y)
            # Beyond 32 the logistic slope is that at 32, which is 1.3e-14.
            slope = loss.slopes(margins, labels)[0]
            assert slope == pytest.approx(float(first), rel=1e-10, abs=2e-14)
            if name != "hinge":
                curvature = loss.curvatures(margins, labels)[0]
                assert curvature == pytest.approx(float(second), rel=1e-9, abs=2e-14)
                assert curvature <= loss.smoothness


def test_a_hinge_has_no_curvature() -> None:
    with pytest.raises(NotImplementedError):
        HingeLoss().curvatures(np.zeros(1), np.ones(1))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reach", [0.05, 1.0, 7.5])
def test_no_slope_is_steeper_than_the_steepest_and_one_is_as_steep(name: str, reach: float) -> None:
    loss = LOSSES[name]()
    ends = np.linspace(-reach, reach, 1001)
    margins, labels = (axis.ravel() for axis in np.meshgrid(ends, np.linspace(-1, 1, 41)))
    largest = np.abs(loss.slopes(margins, labels)).max()
    assert largest == pytest.approx(loss.steepest(reach), rel=1e-12)


@pytest.mark.parametrize("loss", [*(loss() for loss in LOSSES.values()), HuberLoss(3.0)])
def test_a_slope_is_the_same_bits_wherever_its_row_stands(loss: Loss, generator: Seeded) -> None:
    random = generator(1)
    margins = random.normal(0, 1, 999) * 10 ** random.uniform(-9, 3, 999)
    labels = random.uniform(-1, 1, 999)
    whole = loss.slopes(margins, labels)
    order = random.permutation(999)
    assert (loss.slopes(margins[order], labels[order]) == whole[order]).all()
    for start, stop in ((0, 1), (1, 4), (3, 20), (500, 999), (998, 999)):
        part = loss.slopes(margins[start:stop].copy(), labels[start:stop].copy())
        assert (part == whole[start:stop]).all()


@pytest.mark.parametrize("knee", [0.0, -1.0, float("nan"), True])
def test_a_knee_is_above_zero(knee: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="'knee' parameter of HuberLoss"):
        HuberLoss(knee)


def test_names_and_kinds() -> None:
    assert {name: loss.classes for name, loss in LOSSES.items()} == {
        "squared": False,
        "huber": False,
        "logistic": True,
        "hinge": True,
    }
    assert SquaredLoss.name == "squared"
