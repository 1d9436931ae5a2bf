"""Distances between rows that were released through a projection, with what the noise did to them.

Dhaliwal et al. 2019, Algorithm 2: D = |Zᵢ − Zⱼ|² − 2kσ², unbiased for the squared distance of the
rows before they were projected, in the cells' units. Its variance is
`DistanceErrorModel.variances`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform

from dplinear.analyst.rows.distance_errors import DistanceErrorModel, Quadratic
from dplinear.arguments import choice, integer, real, rejection, wrong_type
from dplinear.arrays import Booleans, Floats, Integers
from dplinear.noise import simulation

METHODS = ("simulated", "chebyshev")

_BLOCK = 2**22  # distances held at once, where not all are asked for
_DRAWS = 40_000
_NODES = 160
_SEED = 1  # one table for all: an interval is a function of what was released


class Interval(NamedTuple):
    """The ends of confidence intervals."""

    low: Floats
    high: Floats


class Nearest(NamedTuple):
    """Rows by their distance from another: `indices` and, estimated, `squared` distances."""

    indices: Integers
    squared: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """Estimates of squared distances, in the cells' units.

    `squared` is unbiased over the draws of P and of the noise, and can be negative. A row's
    distance from itself is 0, which is known. Where the noise was scaled to the P that was drawn,
    that scale says a little of P: unbiased over all, `squared` is not so given the scale.
    """

    error_model: DistanceErrorModel
    noisy: Floats = field()
    same: Booleans = field()

    @property
    def squared(self) -> Floats:
        """The estimates D."""
        return np.where(self.same, 0.0, self.noisy - self.error_model.offset)

    @property
    def lengths(self) -> Floats:
        """√max(D, 0): a plug-in, not unbiased."""
        return np.sqrt(np.maximum(self.squared, 0))

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of `squared`, at max(D, 0) in place of the true distance."""
        variance = self.error_model.variances.at(np.maximum(self.squared, 0))
        return np.where(self.same, 0.0, np.sqrt(variance))

    def interval(self, confidence: float = 0.95, method: str = "simulated") -> Interval:
        """Return the squared distances at which what was released is not surprising.

        Over releases, for one pair: in one release all pairs share P, and miss together.
        Promises: "chebyshev" covers at least so often, for any pair chosen before the release,
        if the scale does not depend on P; its upper end is infinite where k is too small to say
        more. "simulated" inverts quantiles of |U|² drawn from the law: approximate (by the draws;
        by the normal limit for sign projections; for rows apart in a random direction where
        they were perturbed first; and by the scale's dependence on P), and far shorter.
        """
        where = "Distances.interval"
        miss = 1 - real(
            confidence, "confidence", where, low=0, high=1, open_low=True, open_high=True
        )
        if choice(method, "method", where, METHODS) == "chebyshev":
            low, high = chebyshev(self.squared, self.error_model.variances, miss)
        else:
            low, high = simulated_interval(self.noisy, self.error_model, miss)
        return Interval(np.where(self.same, 0.0, low), np.where(self.same, 0.0, high))

    def __repr__(self) -> str:
        return f"{self.noisy.size} estimated squared distance(s), k = {self.error_model.k}"


def distances(rows: Floats, error_model: DistanceErrorModel, i: Any, j: Any) -> Distances:
    """Return the distances between rows i and rows j, indices or arrays of them."""
    one, two = np.broadcast_arrays(
        indices_of(i, "i", "distances", len(rows)), indices_of(j, "j", "distances", len(rows))
    )
    noisy = np.empty(one.shape)
    step = max(1, _BLOCK // error_model.k)
    flat = noisy.reshape(-1)
    pairs = (one.reshape(-1), two.reshape(-1))
    for start in range(0, flat.size, step):
        these, those = (indices[start : start + step] for indices in pairs)
        flat[start : start + step] = ((rows[these] - rows[those]) ** 2).sum(-1)
    return Distances(error_model, noisy, np.equal(one, two))


def distance_matrix(
    rows: Floats, error_model: DistanceErrorModel, *, condensed: bool = False
) -> Floats:
    """Return all estimated squared distances: n x n, or as SciPy condenses them."""
    flat = pdist(rows, "sqeuclidean") if len(rows) > 1 else np.empty(0)
    flat -= error_model.offset
    if condensed:
        return np.asarray(flat)
    return np.asarray(squareform(flat)) if len(rows) > 1 else np.zeros((len(rows),) * 2)


def distance_blocks(rows: Floats, error_model: DistanceErrorModel) -> Iterator[tuple[int, Floats]]:
    """Yield the n x n matrix in blocks of whole rows, with each block's first row."""
    step = max(1, _BLOCK // max(len(rows), 1))
    for start in range(0, len(rows), step):
        block = cdist(rows[start : start + step], rows, "sqeuclidean") - error_model.offset
        here = np.arange(len(block))
        block[here, start + here] = 0.0
        yield start, block


def nearest(rows: Floats, error_model: DistanceErrorModel, i: Any, count: int = 1) -> Nearest:
    """Return the `count` rows that seem nearest to each row i, the nearest first.

    Of rows that seem equally near, those that come first; never the row itself.
    """
    where = "nearest"
    asked = indices_of(i, "i", where, len(rows))
    if len(rows) < 2:
        raise rejection("rows", where, "at least two, for one to be near another", len(rows))
    count = integer(count, "count", where, low=1, high=len(rows) - 1)
    queries = asked.reshape(-1)
    found = np.empty((len(queries), count), np.int64)
    squared = np.empty((len(queries), count))
    step = max(1, _BLOCK // len(rows))
    for start in range(0, len(queries), step):
        these = queries[start : start + step]
        block = cdist(rows[these], rows, "sqeuclidean")
        block[np.arange(len(these)), these] = np.inf
        chosen = np.argsort(block, axis=1, kind="stable")[:, :count]
        found[start : start + step] = chosen
        squared[start : start + step] = np.take_along_axis(block, chosen, axis=1)
    shape = (*asked.shape, count)
    return Nearest(found.reshape(shape), squared.reshape(shape) - error_model.offset)


def chebyshev(squared: Floats, variances: Quadratic, miss: float) -> Interval:
    """Return the s ≥ 0 with (D − s)² ≤ Var(s)/miss, or the least interval that holds them.

    A quadratic inequality in s. Where the leading term 1 − square/miss is not positive, the
    projection alone spreads so far that no s is too large.
    """
    lead = 1 - variances.square / miss
    middle = squared + variances.linear / (2 * miss)
    last = squared**2 - variances.constant / miss
    root = np.sqrt(np.maximum(middle**2 - lead * last, 0))
    if lead <= 0:
        # Of lead·s² − 2·middle·s + last ≤ 0 the lower end is last/(middle + root), if positive.
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(last > 0, last / (middle + root), 0.0)
        # D far below zero: no s explains it, and every bound below is a bound.
        low = np.where(np.isfinite(low) & (low > 0), low, 0.0)
        return Interval(low, np.full_like(squared, np.inf))
    return Interval(np.maximum((middle - root) / lead, 0), np.maximum((middle + root) / lead, 0))


def simulated_interval(noisy: Floats, error_model: DistanceErrorModel, miss: float) -> Interval:
    """Return the s ≥ 0 for which |U|² lies between its law's quantiles miss/2 and 1 − miss/2."""
    # All scales in proportion, so one table of unit noise serves every release of its kind.
    nodes, lower, upper = _quantiles(replace(error_model, variance=1.0), miss)
    length = np.sqrt(noisy / error_model.variance)
    low = _inverse(length, nodes, upper)
    high = np.maximum(_inverse(length, nodes, lower), low)
    return Interval(error_model.variance * low**2, error_model.variance * high**2)


@lru_cache(maxsize=32)
def _quantiles(error_model: DistanceErrorModel, miss: float) -> tuple[Floats, Floats, Floats]:
    """Return distances, and the two quantiles of |U| at each, increasing."""
    unit = math.sqrt(error_model.offset)
    nodes = np.concatenate([[0.0], np.geomspace(0.02, 1e3, _NODES)]) * unit
    parts = error_model.parts(_DRAWS, simulation.generator(_SEED))
    ends = np.empty((2, len(nodes)))
    for index, node in enumerate(nodes.tolist()):
        drawn = node * (node * parts.own + 2 * parts.cross) + parts.noise
        ends[:, index] = np.quantile(drawn, [miss / 2, 1 - miss / 2])
    lower, upper = np.maximum.accumulate(np.sqrt(np.maximum(ends, 0)), axis=1)
    return nodes, lower, upper


def _inverse(length: Floats, nodes: Floats, quantiles: Floats) -> Floats:
    """Return the distance whose quantile is `length`: 0 below all, in proportion above all."""
    inside = np.interp(length, quantiles, nodes)
    beyond = length * (nodes[-1] / quantiles[-1])
    return np.asarray(np.where(length > quantiles[-1], beyond, inside))


def indices_of(value: Any, parameter: str, where: str, rows: int) -> Integers:
    """Return indices of released rows, counted from 0, or from the end where negative."""
    found = np.asarray(value)
    if found.dtype.kind not in "iu":
        raise wrong_type(parameter, where, "a row's index, or an array of indices", value)
    if found.size and (found.min() < -rows or found.max() >= rows):
        raise rejection(parameter, where, f"in [{-rows}, {rows - 1}]: there are {rows} rows", value)
    indices = found.astype(np.int64)
    return np.where(indices < 0, indices + rows, indices)
