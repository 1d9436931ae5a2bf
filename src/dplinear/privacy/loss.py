"""Privacy-loss distributions of profiles, for the composition of fixed mixtures.

A profile becomes a discrete distribution of losses that dominates it (Doroshenko et al. 2022,
arXiv 2207.04380v1, "connect the dots"), and dp-accounting convolves these. A true profile is
convex in e^ε, so the lower convex hull of upper bounds on it is an upper bound again: that makes
a valid dominating pair of any profile here, two-step bounds included.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile

# Beyond this δ a profile is cut off: what is left counts as certain loss.
_TAIL = 1e-15
_LARGEST_LOSS = 300.0
_FEW_POINTS, _MANY_POINTS = 400, 20_000
# dp-accounting convolves by Fourier transforms in floats; their noise is far below this.
_CONVOLUTION_NOISE = 1e-13


@dataclass(frozen=True)
class ComposedProfile(Profile):
    """The profile of a fixed list of mechanisms: an upper bound, tight up to its discretisation."""

    loss: Any  # a dp_accounting PrivacyLossDistribution, which has no types of its own
    parts: int
    neighbours: Neighbours

    def directions(self, epsilon: Floats) -> Directions:
        """Return the composed curves; the library keeps only the larger of the two."""
        noise = self.parts * _CONVOLUTION_NOISE
        delta = np.array([float(self.loss.get_delta_for_epsilon(float(e))) for e in epsilon])
        upper = np.minimum(1.0, delta + noise)
        return Directions(upper, upper)


def compose_profiles(parts: Sequence[Profile], interval: float | None) -> ComposedProfile:
    """Return the composition of profiles, on one grid of losses."""
    if interval is None:
        interval = default_interval(parts)
    total = loss_distribution(parts[0], interval)
    for part in parts[1:]:
        total = total.compose(loss_distribution(part, interval), tail_mass_truncation=_TAIL)
    return ComposedProfile(total, len(parts), parts[0].neighbours)


def default_interval(parts: Sequence[Profile]) -> float:
    """Return a grid spacing: a power of two, 1/500 of the narrowest profile's usual loss."""
    narrowest = min(part.epsilon(1e-9) for part in parts)
    widest = max(part.epsilon(1e-9) for part in parts)
    return 2.0 ** math.floor(math.log2(max(narrowest / 500, widest / 200_000, 1e-9)))


def loss_distribution(profile: Profile, interval: float) -> Any:
    """Return a dp_accounting distribution of losses that dominates the profile, both directions."""
    try:
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError as error:
        raise ImportError(
            "Composing a mixture of mechanisms needs dp-accounting.\n\n"
            "Hint: pip install 'dplinear[accounting]'"
        ) from error
    top = min(profile.epsilon(_TAIL), _LARGEST_LOSS)
    steps = max(math.ceil(top / interval), 1)
    # A coarser set of losses is still pessimistic, and many curves are smooth enough for it.
    stride = max(steps // (_FEW_POINTS if profile.slow else _MANY_POINTS), 1)
    positive = np.arange(0, steps + stride, stride)
    chunks = np.array_split(positive * interval, math.ceil(positive.size / 256))
    removing, adding = (
        np.concatenate(curves)
        for curves in zip(*(profile.directions(chunk) for chunk in chunks), strict=True)
    )
    pmfs = []
    for curve, reverse in ((removing, adding), (adding, removing)):
        # H at −ε follows from the other direction: 1 − e^{−ε} + e^{−ε}·H(ε).
        shrink = np.exp(-positive[:0:-1] * interval)
        negative = 1 - shrink + shrink * reverse[:0:-1] * (1 + 1e-15)
        losses = np.concatenate([-positive[:0:-1], positive])
        deltas = np.minimum(np.concatenate([negative, curve]), 1.0)
        kept = _lower_hull(losses * interval, deltas)
        pmfs.append(
            pld_pmf.create_pmf_pessimistic_connect_dots(interval, losses[kept], deltas[kept])
        )
    return pld.PrivacyLossDistribution(*pmfs)


def _lower_hull(losses: Floats, deltas: Floats) -> list[int]:
    """Return the indices of the lower convex hull of δ over e^ε."""
    x = np.exp(losses)
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            before = (deltas[b] - deltas[a]) / (x[b] - x[a])
            after = (deltas[i] - deltas[b]) / (x[i] - x[b])
            if before < after:
                break
            kept.pop()
        kept.append(i)
    return kept
