"""Objective perturbation: the minimiser of a loss of linear margins plus a random linear term.

As in Redberg, Koskela and Wang 2023 (arXiv 2401.00583v1), by Gaussian profiles, but with bounds and
proofs of our own; the output noise that makes up for an inexact minimum is that of Iyengar et al.
2019, Algorithm 1.

docs/theory/objective-perturbation.md has the proofs. In short: across a row the gradient is the
same with it and without it, so one number is left, along the row. The row's own gradient s falls
with that number u, at a bounded rate, and stays within ±L. If the row was absent, the loss is at
most μ²/2 + μ|u|: two Gaussian losses, and no Jacobian. If it was present, the Jacobian costs
ln(1 + κ), but a falling s cannot be against u on both sides: one Gaussian loss.
"""

import math
from dataclasses import dataclass

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.hockey_stick import normal_tail
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.roots import largest_private
from dplinear.privacy.rounding import ULP, up

_RELATIONS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
_ROUNDED = 1 + 16 * ULP


@dataclass(frozen=True)
class Objective(Profile):
    """The minimiser of a loss with a normal linear term, released with normal noise.

    Requires: convex losses of margins, each with a gradient of norm at most L and a Lipschitz
    slope; `mu` ≥ L/σ; `ratio` ≥ βc²/Λ, β the slope's Lipschitz constant and c the rows' norm; what
    is released is normal with standard deviation s about a point no farther from the minimum than
    a public r, and `output_mu` ≥ 2r/s (0: the exact minimum).
    Promises: an upper bound on δ(ε), by Gaussian profiles D: 2·D(ε; ν) for a row that was absent,
    D(e; ν) + D(e; output_mu) for one that was present, where ν² = mu² + output_mu² and
    e = ε − ln(1 + ratio); 2·D(e; ν₄) + 2·D(e; ν₂) with νₖ² = k·mu² + output_mu² for a replaced one.
    Departs from the paper: a bound for each direction, and one for replaced rows. The loss need not
    have a second derivative everywhere.
    """

    mu: float
    ratio: float
    output_mu: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        where = "profiles.Objective"
        arguments.positive(self.mu, "mu", where)
        arguments.real(self.ratio, "ratio", where, low=0)
        arguments.real(self.output_mu, "output_mu", where, low=0)
        relation = Neighbours.parse(self.neighbours, where, _RELATIONS)
        object.__setattr__(self, "neighbours", relation)

    def directions(self, epsilon: Floats) -> Directions:
        """Return the bounds for a row that was present, and for one that was absent."""
        bent = math.log1p(self.ratio) * _ROUNDED
        left = epsilon - bent - 2 * ULP * (epsilon + bent)
        if self.neighbours is Neighbours.REPLACE:
            both = 2 * (_tail(left, self._joint(4)) + _tail(left, self._joint(2)))
            delta = np.minimum(both * _ROUNDED, 1.0)
            return Directions(delta, delta)
        removing = _tail(left, self._joint(1)) + _tail(left, self.output_mu)
        adding = 2 * _tail(epsilon, self._joint(1))
        return Directions(np.minimum(removing * _ROUNDED, 1.0), np.minimum(adding, 1.0))

    def _joint(self, steps: int) -> float:
        return up(math.hypot(math.sqrt(steps) * self.mu, self.output_mu), 8)


def _tail(epsilon: Floats, mu: float) -> Floats:
    """Return the Gaussian profile at ε of either sign, rounded up: D(−ε) = 1 − e^−ε·(1 − D(ε))."""
    size = np.abs(epsilon)
    beyond = normal_tail(size, mu).upper() if mu else np.zeros_like(size)
    below = 1 - np.exp(-size) * (1 - beyond)
    return np.where(epsilon >= 0, beyond, np.minimum(below * _ROUNDED + 4 * ULP, 1.0))


def largest_mu(
    guarantee: ApproxDP,
    ratio: float,
    output_share: float,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> float:
    """Return the largest μ = L/σ that is private when `output_mu` is that share of it.

    Requires: δ above 0. Raises where ln(1 + ratio) is not below ε: then no noise is enough.
    """
    where = "objective.largest_mu"
    if math.log1p(ratio) * _ROUNDED >= guarantee.epsilon * (1 - 8 * ULP):
        rule = f"below e^ε − 1 = {math.expm1(guarantee.epsilon):g}"
        hint = "more regularisation makes it smaller."
        raise arguments.rejection("ratio", where, rule, ratio, hint)

    def delta(mu: float) -> float:
        return Objective(mu, ratio, up(output_share * mu), neighbours).delta(guarantee.epsilon)

    z = math.sqrt(2 * math.log(4 / guarantee.delta))
    left = guarantee.epsilon - math.log1p(ratio)
    return largest_private(delta, guarantee.delta, left / (z + math.sqrt(left)))
