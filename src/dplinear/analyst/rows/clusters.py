"""Clusters of rows that were released with noise.

`kmeans` is scikit-learn's, on the rows as they are. The noise-aware variant is a mixture of normal
laws with one covariance S + σ²I for all clusters, S ⪰ 0, started from k-means. A projection makes
round clusters oblong, which a mixture allows for and k-means does not; but with many coordinates
and clusters that overlap it finds clusters in anything. So it is kept only where Schwarz's
criterion is for it, and it explains the rows three times better than it explains simulated tables
of one cluster under the same noise, whose tails are not normal.
"""

import math
import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from dplinear.analyst.rows.distance_errors import DistanceErrorModel
from dplinear.arguments import integer
from dplinear.arrays import Floats, Integers
from dplinear.noise import simulation

_STARTS = 5
_STEPS = 100
_SETTLED = 1e-4  # of the mean log-likelihood, in one step
_TABLES = 3
_CLEAR = 3.0  # times the gain by chance, from which on a mixture is believed
_DOUBT = 0.02  # that a row is not where k-means has it, at the start
_FLOOR = 1e-9  # of the spread, so that nothing is singular


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    """Which cluster each row is in, and the centres, in the released rows' coordinates.

    `kind` is "k-means" or "mixture". `inertia` is the rows' sum of squares around their centres,
    of which the noise is expected to be `noise`.
    """

    labels: Integers = field()
    centres: Floats
    kind: str
    inertia: float
    noise: float

    def __repr__(self) -> str:
        sizes = np.bincount(self.labels, minlength=len(self.centres)).tolist()
        return f"{len(self.centres)} clusters by {self.kind}, of {sizes} rows"


class _Mixture(NamedTuple):
    labels: Integers
    centres: Floats
    gain: float


def kmeans(
    rows: Floats,
    error_model: DistanceErrorModel,
    clusters: int,
    *,
    noise_aware: bool = False,
    seed: int = 0,
) -> Clusters:
    """Return clusters of released rows; equal for equal rows and seed."""
    where = "kmeans"
    clusters = integer(clusters, "clusters", where, low=1, high=len(rows))
    integer(seed, "seed", where, low=0, high=2**32 - 1)
    labels, centres = _kmeans(rows, clusters, seed)
    kind = "k-means"
    if noise_aware and clusters > 1 and len(rows) > error_model.k + clusters:
        found = _best_mixture(rows, error_model, clusters, labels, seed)
        if _is_clear(found.gain, rows, error_model, clusters, seed):
            labels, centres, kind = found.labels, found.centres, "mixture"
    inertia = float(((rows - centres[labels]) ** 2).sum())
    noise = error_model.k * error_model.variance * max(len(rows) - clusters, 0)
    return Clusters(labels, centres, kind, inertia, noise)


def _kmeans(rows: Floats, clusters: int, seed: int) -> tuple[Integers, Floats]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # Equal rows make fewer clusters than were asked for; the empty ones are what they are.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(clusters, n_init=_STARTS, random_state=seed).fit(rows)
    return found.labels_.astype(np.int64), np.asarray(found.cluster_centers_, np.float64)


def _best_mixture(
    rows: Floats, error_model: DistanceErrorModel, clusters: int, labels: Integers, seed: int
) -> _Mixture:
    """Fit from the clusters of the rows, and from those of the rows made round; return the better.

    Requires: at least two clusters.
    """
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(rows.T)))
    scale = np.sqrt(np.maximum(values, max(error_model.variance, _FLOOR * float(values.max()))))
    round_labels, _ = _kmeans(rows @ (vectors / scale), clusters, seed)
    starts = (labels, round_labels)
    fits = [_mixture(rows, error_model.variance, start, clusters) for start in starts]
    return max(fits, key=lambda fit: fit.gain)


def _is_clear(
    gain: float, rows: Floats, error_model: DistanceErrorModel, clusters: int, seed: int
) -> bool:
    """Say whether a mixture is to be believed: first by a formula, then by simulation."""
    further = (clusters - 1) * (error_model.k + 1)
    if gain <= further * math.log(len(rows)) / (2 * len(rows)):
        return False
    return gain > _CLEAR * _gain_without_clusters(rows, error_model, clusters, seed)


def _mixture(rows: Floats, variance: float, labels: Integers, clusters: int) -> _Mixture:
    """Fit the mixture by expectation and maximisation; gain is over one cluster, a row.

    The known noise enters as a floor: no direction has less variance than the noise.
    """
    centred = rows - rows.mean(0)
    members = np.eye(clusters)[labels] * (1 - _DOUBT) + _DOUBT / clusters
    moments = centred.T @ centred / len(rows)
    floor = max(variance, _FLOOR * float(np.trace(moments)))
    alone = _log_density(centred, np.zeros((1, rows.shape[1])), _floor_eigenvalues(moments, floor))[
        :, 0
    ]
    before = -np.inf
    for _ in range(_STEPS):
        weight = np.maximum(members.sum(0), 1e-12)
        centres = members.T @ centred / weight[:, None]
        shares = weight / weight.sum()
        within = moments - (centres.T * shares) @ centres
        joint = _log_density(centred, centres, _floor_eigenvalues(within, floor)) + np.log(shares)
        total = logsumexp(joint, axis=1)
        members = np.exp(joint - total[:, None])
        after = float(total.mean())
        if after - before < _SETTLED:
            break
        before = after
    gain = after - float(alone.mean())
    return _Mixture(members.argmax(1), centres + rows.mean(0), gain)


def _floor_eigenvalues(covariance: Floats, floor: float) -> tuple[Floats, Floats]:
    """Return eigenvalues, none below the floor, and eigenvectors."""
    values, vectors = np.linalg.eigh(covariance)
    return np.maximum(values, floor), vectors


def _log_density(rows: Floats, centres: Floats, covariance: tuple[Floats, Floats]) -> Floats:
    """Return log densities of normal laws, but for the constant that all share."""
    values, vectors = covariance
    white = vectors / np.sqrt(values)
    one, two = rows @ white, centres @ white
    squares = (one**2).sum(1)[:, None] - 2 * one @ two.T + (two**2).sum(1)
    return np.asarray(-0.5 * (squares + np.log(values).sum()))


def _gain_without_clusters(
    rows: Floats, error_model: DistanceErrorModel, clusters: int, seed: int
) -> float:
    """Return the best gain over simulated tables of one cluster, as spread out as the rows."""
    generator = simulation.generator(seed)
    covariance = np.atleast_2d(np.cov(rows.T))
    values, vectors = np.linalg.eigh(covariance - error_model.variance * np.eye(error_model.k))
    half = vectors * np.sqrt(np.maximum(values, 0))
    gains = []
    for _ in range(_TABLES):
        signal = generator.standard_normal(rows.shape) @ half.T
        table = signal + error_model.draw((len(rows), error_model.k), generator)
        labels, _ = _kmeans(table, clusters, seed)
        gains.append(_best_mixture(table, error_model, clusters, labels, seed).gain)
    return max(gains)
