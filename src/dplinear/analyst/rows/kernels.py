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
from dplinear.arguments import choice, positive, rejection
from dplinear.arrays import Floats, Integers

METHODS = ("plug-in", "unbiased")


def amplification(error_model: DistanceErrorModel, bandwidth: float) -> float:
    """Return what the unbiased estimate multiplies cosines by: it says nothing if far above 1."""
    where = "amplification"
    wide = error_model.k / positive(bandwidth, "bandwidth", where) ** 2
    if error_model.projection != "gaussian" or error_model.before:
        rule = "one with a normal projection, and noise added after it"
        hint = "use method='plug-in', and mind its bias."
        raise rejection(
            "noise_model",
            where,
            rule,
            f"{error_model.noise} noise, {error_model.projection} projection",
            hint,
        )
    if error_model.normal:
        return _exponential(error_model.variance * wide)
    return (1 + error_model.variance / 2 * wide) ** 2


def kernel(
    rows: Floats,
    error_model: DistanceErrorModel,
    bandwidth: float,
    indices: tuple[Integers, Integers],
    method: str = "plug-in",
) -> Floats:
    """Return estimates of exp(−s/2h²) between each row of the first indices and of the second.

    Promises: "plug-in" lies in [0, 1] and is biased, however many rows there are; "unbiased" has
    the kernel as its mean over P and the noise, lies in ±`amplification`, and can be negative.
    Each row's kernel with itself is 1.
    """
    where = "kernel"
    positive(bandwidth, "bandwidth", where)
    these, those = (rows[chosen] for chosen in indices)
    if choice(method, "method", where, METHODS) == "plug-in":
        squared = np.maximum(cdist(these, those, "sqeuclidean") - error_model.offset, 0)
        found = np.exp(-squared / (2 * bandwidth**2))
    else:
        found = amplification(error_model, bandwidth) * _cosines(
            these, those, error_model, bandwidth
        )
    return np.where(np.equal.outer(*indices), 1.0, found)


def _cosines(
    these: Floats, those: Floats, error_model: DistanceErrorModel, bandwidth: float
) -> Floats:
    """Return the average of cos(ω·U), |ω| = √k/h, over axes or over all directions."""
    frequency = math.sqrt(error_model.k) / bandwidth
    if error_model.normal:
        squared = cdist(these, those, "sqeuclidean")
        return np.asarray(hyp0f1(error_model.k / 2, -(frequency**2) * squared / 4))
    one, two = frequency * these, frequency * those
    return np.asarray((np.cos(one) @ np.cos(two).T + np.sin(one) @ np.sin(two).T) / error_model.k)


def _exponential(power: float) -> float:
    return math.exp(power) if power < 700 else math.inf
