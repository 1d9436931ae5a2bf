"""TukeyEM: many models on disjoint groups of rows, and a private point deep among them.

Amin, Joseph, Ribero and Vassilvitskii 2022 (arXiv 2208.07353v1). A test (propose-test-release)
checks that the set of points of depth at least t does not shrink away when a few models change;
then the exponential mechanism, restricted to that set, draws a point by its depth.

Where it holds: the paper cuts n rows into m groups of n // m. Under add_remove that cut moves with
n, so one row changes many groups. Here each row draws its group by itself, uniformly among a public
number m: a row more or less changes one group, so one model, and the m models are neighbours in the
sense of one replaced. The guarantee then holds under add_remove (and at 2ε under replace).

Constants, for m models of which one may change. Depth is the least number of models on either side
over all coordinates; it moves by at most one. V_i is the volume of depth ≥ i, a box between order
statistics, with V_{i+1}(D) ≤ V_i(D') ≤ V_{i−1}(D). Let C_k(D) say that for some g ≥ 1
V_{t−k−1}/V_{t+k+g+1}·e^{−ag/2} ≤ c, a the mechanism's budget. C_k(D) implies C_{k−1}(D'), so the
largest such k (−1 if none) moves by at most one: Laplace noise of scale 1/b makes the test b-DP.
C_0(D) implies that the mechanism's draws on D and any neighbour are (a, c(1 + e^{a/2}))-close:
normalisers differ by at most a factor e^{a/2}(1 + c·e^{−a/2}), and at most c of either's mass has
depth below t for the other. With a = b = ε/2 and c = δ/(1 + e^{a/2}) the whole is (ε, δ): if C_0
fails the test passes with probability at most δ once it asks for ln(1/2δ)/b.
Noise of the test is therefore Lap(2/ε); a public implementation with Lap(ε/2) is not private.
"""

import itertools
import math

import numpy as np

from benchmarks.rivals.common import Array, Line, line, with_constant
from dplinear.noise.simulation import Generator
from dplinear.privacy import ApproxDP, Guarantee

MODELS = 1000


def group_models(rows: Array, target: Array, groups: Array, models: int) -> Array:
    """Return the least-squares model of each group; a group's model depends on its rows alone."""
    order = np.argsort(groups, kind="stable")
    wide, goal = with_constant(rows)[order], target[order]
    ends = np.searchsorted(groups[order], np.arange(models + 1))
    size = wide.shape[1]
    grams, moments = np.zeros((models, size, size)), np.zeros((models, size))
    for place, (start, end) in enumerate(itertools.pairwise(ends)):
        part = wide[start:end]
        grams[place] = part.T @ part
        moments[place] = part.T @ goal[start:end]
    grams += 1e-9 * np.eye(size)  # a group may have fewer rows than columns
    return np.asarray(np.linalg.solve(grams, moments[:, :, None])[:, :, 0])


def log_volumes(ordered: Array) -> Array:
    """Return ln V_i for i = 0 … ⌊m/2⌋: models sorted by coordinate; V_0 is all of space."""
    models = len(ordered)
    deepest = models // 2
    with np.errstate(divide="ignore"):
        widths = np.log(ordered[::-1][:deepest] - ordered[:deepest])
    return np.concatenate([[math.inf], widths.sum(1)])


def safe_steps(volumes: Array, threshold: int, budget: float, log_mass: float) -> int:
    """Return the largest k with C_k, or −1: how many models may change before safety is lost.

    `log_mass` is ln c.
    """
    deepest = len(volumes) - 1
    largest = -1
    for k in range(min(threshold, deepest - threshold - 1)):
        outer = volumes[threshold - k - 1]
        gaps = np.arange(1, deepest - threshold - k)
        inner = volumes[threshold + k + 1 + gaps]
        if not len(gaps) or not math.isfinite(outer):
            break
        if not np.any(outer - inner - budget * gaps / 2 <= log_mass):
            break
        largest = k
    return largest


def draw(
    ordered: Array, volumes: Array, threshold: int, budget: float, generator: Generator
) -> Array:
    """Return a point of depth at least `threshold`, with density ∝ e^{budget·depth/2}."""
    deepest = len(volumes) - 1
    depths = np.arange(threshold, deepest + 1)
    outer, inner = volumes[depths], np.append(volumes[depths[:-1] + 1], -math.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        shells = np.where(outer > inner, outer + np.log1p(-np.exp(inner - outer)), -math.inf)
    weights = shells + budget * depths / 2
    chances = np.exp(weights - weights.max())
    depth = int(generator.choice(depths, p=chances / chances.sum()))
    low, high = ordered[depth - 1], ordered[len(ordered) - depth]
    while True:
        point = low + (high - low) * generator.random(ordered.shape[1])
        if depth == deepest:
            return np.asarray(point)
        within = (point >= ordered[depth]) & (point <= ordered[len(ordered) - depth - 1])
        if not within.all():
            return np.asarray(point)


def laplace_scale(guarantee: ApproxDP) -> float:
    """Return the scale of the test's Laplace noise: half of ε, sensitivity one."""
    return 2 / guarantee.epsilon


def fit(
    rows: Array,
    target: Array,
    guarantee: Guarantee,
    generator: Generator,
    *,
    models: int = MODELS,
) -> Line:
    """Return a deep model, or a flat line at the middle of the bounds where the test fails.

    Requires: an (ε, δ) guarantee; a public number of models, at least 8. It needs no bounds.
    Promises: the guarantee, add_remove.
    Departs from the paper: groups drawn row by row; constants as derived above.
    """
    if not isinstance(guarantee, ApproxDP):
        raise TypeError("TukeyEM's test needs (ε, δ).")
    groups = generator.integers(0, models, len(rows)).astype(np.float64)
    ordered = np.sort(group_models(rows, target, groups, models), axis=0)
    volumes = log_volumes(ordered)
    half = guarantee.epsilon / 2
    threshold = models // 4
    log_mass = math.log(guarantee.delta) - half / 2 - math.log1p(math.exp(-half / 2))
    steps = safe_steps(volumes, threshold, half, log_mass)
    noisy = steps + laplace_scale(guarantee) * generator.laplace()
    passed = noisy >= laplace_scale(guarantee) * math.log(1 / (2 * guarantee.delta))
    if not passed or volumes[threshold] == -math.inf:
        return Line(0.0, np.zeros(rows.shape[1]))
    return line(draw(ordered, volumes, threshold, half, generator))
