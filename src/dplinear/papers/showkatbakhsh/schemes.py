"""The four schemes of the paper's figures, and three ways to calibrate their noise."""

import math
from dataclasses import dataclass

from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.papers.showkatbakhsh import draws
from dplinear.papers.showkatbakhsh.draws import Noise, Sums
from dplinear.papers.showkatbakhsh.theorems import printed_variance
from dplinear.privacy.bits import variance_for

ADDITIVE = "additive noise"
LOGARITHMIC = "logarithmic n'"
LINEAR = "linear n'"
FULL = "full n' = n"
PROJECTIONS = (LOGARITHMIC, LINEAR, FULL)
SCHEMES = (ADDITIVE, *PROJECTIONS)

PAPER = "paper"
SOUND = "sound"
PUBLIC = "public"
# What is protected, by which noise.
CALIBRATIONS = {
    PAPER: "the paper's noise: not private",
    SOUND: "sound noise, X and y protected",
    PUBLIC: "sound noise, y public",
}


@dataclass(frozen=True)
class Setting:
    """One place of a figure: ε in bits, and the k and unit of the rules for n'."""

    bits: float
    unit: int
    k: int

    def sketch_rows(self, scheme: str, rows: int) -> int:
        """Return the n' of a projection, for a table of `rows`."""
        if scheme == LOGARITHMIC:
            # The paper does not say which logarithm.
            return round(self.unit * (math.log(self.k) + 1))
        return self.unit * (self.k + 1) // 2 if scheme == LINEAR else rows


def noise_for(calibration: str, bits: float, rows: int, sum_of_squares: float) -> Noise:
    """Return the noise in n' = `rows` projected rows, f² = `sum_of_squares`; if additive, 1 and 0.

    `paper`: (13), which takes the table's own f² off and leaves y as it is. `sound`: variance
    n'/(2^{2ε} − 1) in X and in y. `public`: the same in X alone, so that y is not protected.
    """
    if calibration == PAPER:
        return Noise(printed_variance(sum_of_squares, bits, rows), 0.0)
    variance = rows * variance_for(bits)
    return Noise(variance, variance if calibration == SOUND else 0.0)


def solution(
    sums: Sums, scheme: str, calibration: str, setting: Setting, source: simulation.Generator
) -> Floats:
    """Draw the least-squares solution on what a scheme would release."""
    if scheme == ADDITIVE:
        return draws.draw_perturbed(sums, noise_for(calibration, setting.bits, 1, 0.0), source)
    own = setting.sketch_rows(scheme, sums.rows)
    noise = noise_for(calibration, setting.bits, own, sums.sum_of_squares)
    return draws.draw_projected(sums, own, noise, source)
