"""Radial kernels exp(−s/2h²) of rows that were released through a projection.

Plugging D into the kernel is biased: it is convex in D, and the projection and the noise spread D.
For a normal projection the characteristic function gives an estimate without bias: with |ω|² = k/h²

    E cos(ω·U) = E cos(ω·N) · exp(−s/2h²),

whatever the direction of ω, so that cos(ω·U)/E cos(ω·N) has the kernel as its mean. Laplace noise
is divided out most cheaply along the k axes; normal noise is the same in all directions, and the
average of the cosine over them is a Bessel function of |U|.
"""

import math

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import hyp0f1

from dplinear.analyst.rows.distance_errors import DistanceErrorModel
from dplinear.analyst.rows.distances import Places
from dplinear.arguments import choice, positive, rejection
from dplinear.arrays import Floats

METHODS = ("plug-in", "unbiased")


def amplification(law: DistanceErrorModel, bandwidth: float) -> float:
    """Return what the unbiased estimate multiplies cosines by: it says nothing if far above 1."""
    where = "amplification"
    wide = law.k / positive(bandwidth, "bandwidth", where) ** 2
    if law.projection != "gaussian" or law.before:
        rule = "one with a normal projection, and noise added after it"
        hint = "use method='plug-in', and mind its bias."
        raise rejection("law", where, rule, f"{law.noise} noise, {law.projection} projection", hint)
    if law.normal:
        return _exponential(law.variance * wide)
    return (1 + law.variance / 2 * wide) ** 2


def kernel(
    rows: Floats,
    law: DistanceErrorModel,
    bandwidth: float,
    places: tuple[Places, Places],
    method: str = "plug-in",
) -> Floats:
    """Return estimates of exp(−s/2h²) between each row of the first places and of the second.

    Promises: "plug-in" lies in [0, 1] and is biased, however many rows there are; "unbiased" has
    the kernel as its mean over P and the noise, lies in ±`amplification`, and can be negative.
    Each row's kernel with itself is 1.
    """
    where = "kernel"
    positive(bandwidth, "bandwidth", where)
    these, those = (rows[chosen] for chosen in places)
    if choice(method, "method", where, METHODS) == "plug-in":
        squared = np.maximum(cdist(these, those, "sqeuclidean") - law.offset, 0)
        found = np.exp(-squared / (2 * bandwidth**2))
    else:
        found = amplification(law, bandwidth) * _cosines(these, those, law, bandwidth)
    return np.where(np.equal.outer(*places), 1.0, found)


def _cosines(these: Floats, those: Floats, law: DistanceErrorModel, bandwidth: float) -> Floats:
    """Return the average of cos(ω·U), |ω| = √k/h, over axes or over all directions."""
    frequency = math.sqrt(law.k) / bandwidth
    if law.normal:
        squared = cdist(these, those, "sqeuclidean")
        return np.asarray(hyp0f1(law.k / 2, -(frequency**2) * squared / 4))
    one, two = frequency * these, frequency * those
    return np.asarray((np.cos(one) @ np.cos(two).T + np.sin(one) @ np.sin(two).T) / law.k)


def _exponential(power: float) -> float:
    return math.exp(power) if power < 700 else math.inf
