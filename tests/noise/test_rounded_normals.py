"""Rounded normal noise: its law, and ball arithmetic on the same bits."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dplinear.noise import simulation
from dplinear.noise.normals import normals
from dplinear.noise.rounded_normals import rounded_normals
from noise.laws import FALSE_ALARM
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 3), 40.0])
def test_integers_have_the_mass_of_their_cells(scale: Fraction | float) -> None:
    count = 40_000
    drawn = rounded_normals(scale, count, entropy=simulation.entropy(3)).astype(int)
    reach = max(int(2 * scale), 1)
    edges = (np.arange(-reach, reach + 2) - 0.5) / float(scale)
    inner = np.diff(stats.norm.cdf(edges))
    cells = np.concatenate([[stats.norm.cdf(edges[0])], inner, [stats.norm.sf(edges[-1])]])
    found = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1, minlength=len(cells))
    assert stats.chisquare(found, count * cells).pvalue > FALSE_ALARM


@pytest.mark.oracle
@pytest.mark.parametrize("scale", [Fraction(1, 10**9), Fraction(22, 7), Fraction(3**200)])
def test_they_are_the_normal_numbers_of_the_same_bits_rounded(scale: Fraction) -> None:
    import flint

    drawn = rounded_normals(scale, 200, entropy=simulation.entropy(4))
    # Digits are appended, so those that settled a rounding are the first of these.
    longer = normals(200, entropy=simulation.entropy(4)).integers(68)
    with flint.ctx.workprec(900):
        for number, whole in zip(drawn, longer, strict=True):
            near = flint.arb(int(whole), 1) / flint.arb(2) ** 68
            exact = near * scale.numerator / scale.denominator + flint.arb("0.5")
            assert exact.floor().overlaps(flint.arb(int(number)))


def test_arguments_are_checked() -> None:
    with refused("scale", "rounded_normals.rounded_normals"):
        rounded_normals(0.0, 3)
