"""Losses with bounded slopes that never jump."""

import numpy as np
import pytest

from dplinear.convex.losses import LOSSES
from dplinear.convex.smooth_losses import SmoothLoss

MARGINS = np.linspace(-6, 6, 24_001)


@pytest.mark.parametrize("label", [-1.0, 0.3, 1.0])
@pytest.mark.parametrize("name", LOSSES)
def test_slopes_rise_stay_within_bounds_and_never_jump(name: str, label: float) -> None:
    for slope in (0.2, 0.9, 3.0):
        loss = SmoothLoss(LOSSES[name](), slope)
        slopes = loss.slopes(MARGINS, np.full_like(MARGINS, label))
        rises = np.diff(slopes)
        assert np.abs(slopes).max() <= slope
        assert rises.min() >= -1e-12
        assert rises.max() <= loss.smoothness * np.diff(MARGINS).max() * (1 + 1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_curvatures_are_the_derivatives_of_slopes(name: str) -> None:
    loss = SmoothLoss(LOSSES[name](), 0.4)
    labels = np.full_like(MARGINS, 0.5)
    curvatures = loss.curvatures(MARGINS, labels)
    h = 1e-6
    change = (loss.slopes(MARGINS + h, labels) - loss.slopes(MARGINS - h, labels)) / (2 * h)
    # Where a slope bends, it has two derivatives.
    bends = np.abs(curvatures - change) > 1e-6
    assert bends.sum() <= 4
    assert curvatures.max() > 0


def test_a_wide_clip_and_a_short_ramp_change_nothing() -> None:
    labels = np.where(MARGINS > 1, -1.0, 1.0)
    for name, kind in LOSSES.items():
        plain, smooth = kind().slopes(MARGINS, labels), SmoothLoss(kind(), 99.0, 1e-4)
        where = np.abs(labels * MARGINS - 1) > 1e-3 if name == "hinge" else slice(None)
        assert np.array_equal(smooth.slopes(MARGINS, labels)[where], plain[where])


def test_arguments_are_checked() -> None:
    hinge = LOSSES["hinge"]()
    for settings in ((0.0,), (1.0, 0.0)):
        with pytest.raises(ValueError, match="SmoothLoss"):
            SmoothLoss(hinge, *settings)
