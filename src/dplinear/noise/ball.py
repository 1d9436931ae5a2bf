"""Normal distributions that are cut off at a ball, by exact rejection: idealised numerics."""

import math

import numpy as np
from scipy.optimize import brentq

from dplinear.arrays import Floats
from dplinear.noise.entropy import Entropy, system
from dplinear.noise.wishart import chi_square, standard_normal

_AT_ONCE = 64


def truncated_normal(
    curvatures: Floats, slopes: Floats, radius: float, *, entropy: Entropy | None = None
) -> Floats:
    """Draw u with ‖u‖ ≤ radius and density ∝ exp(−Σ (curvature·u² − 2·slope·u)).

    Requires: curvatures of at least 0. They may be private; so may the time that this takes be.
    Promises: exactly that law. Proposals come from the normal law with t·‖u‖² added to the exponent
    and are accepted with probability exp(−t·(radius² − ‖u‖²)), which is at most 1 in the ball. Any
    t ≥ 0 is right; with the one at which E‖u‖² = radius², or 0 if that is less, tries are fewest.
    """
    bits = entropy or system()
    tilt = _tilt(curvatures, slopes, radius)
    raised = curvatures + tilt
    middle, sigma = slopes / raised, np.sqrt(0.5 / raised)
    while True:
        tries = middle + sigma * standard_normal((_AT_ONCE, len(middle)), entropy=bits)
        short = radius**2 - np.einsum("ij,ij->i", tries, tries)
        # Half a chi-square of two degrees is exponential.
        patience = chi_square(2.0, _AT_ONCE, entropy=bits) / 2
        accepted = np.flatnonzero((short >= 0) & (patience >= tilt * short))
        if len(accepted):
            return np.asarray(tries[accepted[0]])


def _tilt(curvatures: Floats, slopes: Floats, radius: float) -> float:
    """Return the t ≥ 0 at which E‖u‖² = radius², or 0 if it is less without any."""

    def excess(log_tilt: float) -> float:
        raised = curvatures + math.exp(log_tilt)
        return math.log(float((0.5 / raised + (slopes / raised) ** 2).sum()) / radius**2)

    # Here E‖u‖² ≤ m/2t + ‖slopes‖²/t² is no more than radius².
    high = math.log(len(slopes) / radius**2 + 2 * float(np.linalg.norm(slopes)) / radius)
    low = high - 80.0
    if excess(low) <= 0:
        return 0.0 if float(curvatures.min()) > 0 else math.exp(low)
    return math.exp(float(brentq(excess, low, high + 1e-9, xtol=1e-6)))
