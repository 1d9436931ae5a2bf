"""DP-SGD: clipped gradients of rows drawn by chance, summed, with Gaussian noise at each step.

Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang 2016 (arXiv 1607.00133v2), Algorithm 1:
each step takes a row with the chance q (Poisson sampling), clips its gradient at C and adds noise
σC to the sum. For both losses the gradient of a row is a residual times the row.

Sensitivities under add_remove: a row adds at most C to a step's sum, and only if it was drawn. The
account is that of privacy-loss distributions (the package dp-accounting, connected dots, rounded up
on a grid), much tighter than the paper's moments; with q = 1 it is μ = √T/σ, exactly. The number
of rows is private, and nothing divides by it: steps have the length 1/(qλ), λ the curvature.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.rivals import noisy_gd
from benchmarks.rivals.common import TYPICAL, Array, Line, clipped, line, mu_of, with_constant
from dplinear.noise.simulation import Generator
from dplinear.privacy import ApproxDP, Guarantee

INTERVALS = 1000  # of the grid of losses below ε; ten times as many change the noise by 1e-3
ACCURACY = 1e-3  # of the noise, relative


Indices = np.ndarray[Any, np.dtype[np.intp]]


class MissingError(RuntimeError):
    """The account cannot be made here."""


@dataclass(frozen=True)
class Setting:
    """What is fixed beforehand: the chance of a row, the steps, and their length in 1/(qλ)."""

    rate: float
    steps: int
    pace: float


USUAL, LONG, SHORT = Setting(0.3, 100, 2.0), Setting(0.2, 300, 2.0), Setting(0.3, 50, 1.0)
LABEL_SETTINGS = (
    Setting(0.5, 12, 1.0),
    Setting(0.5, 25, 1.0),
    Setting(0.5, 25, 4.0),
    Setting(0.2, 100, 4.0),
    Setting(0.2, 300, 1.0),
    Setting(0.2, 300, 4.0),
    Setting(0.2, 300, 8.0),
    Setting(0.1, 1000, 8.0),
)


def library() -> Any:
    """Return dp-accounting; raise MissingError where it is not installed."""
    try:
        import dp_accounting
        import dp_accounting.pld
    except ImportError:
        raise MissingError("dp-accounting is not installed") from None
    return dp_accounting


def composed_delta(epsilon: float, rate: float, steps: int, noise: float, beside: float) -> float:
    """Return δ(ε), rounded up, of `steps` sampled Gaussian sums beside a GDP mechanism.

    `noise` is σ a unit of sensitivity, `beside` the other's μ, 0 if there is none.
    """
    accounting = library()
    accountant = accounting.pld.PLDAccountant(
        accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        value_discretization_interval=epsilon / INTERVALS,
    )
    if beside:
        accountant.compose(accounting.GaussianDpEvent(1 / beside))
    event = accounting.PoissonSampledDpEvent(rate, accounting.GaussianDpEvent(noise))
    accountant.compose(event, steps)
    return float(accountant.get_delta(epsilon))


@lru_cache(maxsize=64)
def noise_scale(guarantee: Guarantee, setting: Setting, share: float) -> float:
    """Return σ a unit of the clip, where all else has the μ² that `share` leaves.

    Requires: an (ε, δ) guarantee, but for a rate of 1.
    Promises: all of it keeps the guarantee; with `ACCURACY` less noise the account would not.
    """
    mu, steps = mu_of(guarantee), setting.steps
    whole = math.sqrt(steps / share) / mu
    if setting.rate == 1:
        return whole
    if not isinstance(guarantee, ApproxDP):
        raise TypeError("Sampled steps are calibrated for (ε, δ).")
    beside = mu * math.sqrt(1 - share)

    def keeps(noise: float) -> bool:
        found = composed_delta(guarantee.epsilon, setting.rate, steps, noise, beside)
        return found <= guarantee.delta

    high = setting.rate * whole
    while not keeps(high):
        high *= 1.05
    low = high / 1.05
    while keeps(low):
        low /= 1.05
    while high > low * (1 + ACCURACY):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Descent:
    """A table with the constant column, each row's largest residual, and the noise of a sum."""

    wide: Array
    residuals: Callable[[Array, Indices], Array]  # of a place, for rows of some indices
    most: Array
    sigma: float

    def gradient(self, place: Array, rate: float, generator: Generator) -> Array:
        """Return the noisy sum of clipped gradients over rows that chance chose."""
        chosen = np.flatnonzero(generator.random(len(self.wide)) < rate)
        part, most = self.wide[chosen], self.most[chosen]
        residuals = np.clip(self.residuals(place, chosen), -most, most)
        noise = self.sigma * generator.standard_normal(len(place))
        return np.asarray(part.T @ residuals + noise)

    def average(self, setting: Setting, curvature: float, generator: Generator) -> Array:
        """Return the mean of the later half of the places."""
        length = setting.pace / (setting.rate * curvature)
        place, total = np.zeros(self.wide.shape[1]), np.zeros(self.wide.shape[1])
        for step in range(setting.steps):
            place = place + length * self.gradient(place, setting.rate, generator)
            if step >= setting.steps // 2:
                total = total + place
        return np.asarray(total / (setting.steps - setting.steps // 2))


def _line_residuals(wide: Array, target: Array, place: Array, chosen: Indices) -> Array:
    return np.asarray(target[chosen] - wide[chosen] @ place)


def _label_residuals(wide: Array, labels: Array, place: Array, chosen: Indices) -> Array:
    return np.asarray(labels[chosen] - expit(wide[chosen] @ place))


def fit(
    rows: Array,
    target: Array,
    guarantee: Guarantee,
    generator: Generator,
    *,
    setting: Setting = USUAL,
    clip: float = 0.4,
) -> Line:
    """Return the line of the averaged steps.

    Requires: cells and targets in [-1, 1]; the setting and the clip, in typical gradients, are
    fixed beforehand.
    Promises: the guarantee, add_remove: 5% of μ² buy the curvature and the rows' size, as for full
    batches (`noisy_gd`).
    """
    wide, before = with_constant(rows), noisy_gd.noise_scales(guarantee, 1)
    length, curvature = noisy_gd.measured(wide, before, generator)
    limit = clip * length * TYPICAL
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    share = (mu_of(guarantee) * before.step) ** -2
    sigma = limit * noise_scale(guarantee, setting, share)
    residuals = partial(_line_residuals, wide, target)
    way = Descent(wide, residuals, limit / lengths, sigma)
    return line(way.average(setting, curvature, generator))


def fit_long(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return what more steps find: better where the columns are ill-conditioned."""
    return fit(rows, target, guarantee, generator, setting=LONG, clip=0.6)


def fit_short(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return what fewer and shorter steps find: better where the budget is small."""
    return fit(rows, target, guarantee, generator, setting=SHORT, clip=0.6)


def fit_labels(
    rows: Array,
    labels: Array,
    guarantee: Guarantee,
    generator: Generator,
    *,
    bound: float,
    setting: Setting,
) -> Line:
    """Return the log-odds of the averaged steps.

    Requires: labels of 0 and 1; rows, with the constant column, are clipped at `bound`, and so are
    gradients.
    Promises: the guarantee, add_remove, but for the largest eigenvalue, which it is told.
    """
    wide = with_constant(rows)
    short = clipped(wide, bound)
    curvature = float(np.linalg.eigvalsh(wide.T @ wide)[-1])
    sigma = bound * noise_scale(guarantee, setting, 1.0)
    residuals = partial(_label_residuals, wide, labels)
    way = Descent(short, residuals, np.ones(len(wide)), sigma)
    return line(way.average(setting, curvature, generator))
