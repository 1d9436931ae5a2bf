"""Intervals by simulation: draw the rows and the noise again, many times, and fit each time.

The features are kept as estimated and the errors of the target are drawn again as normal ones, so a
constant column (the intercept) stays constant; then the law draws fresh noise on every cell. The
percentiles of the simulated estimates are the ends of the intervals.
"""

import numpy as np

from dplinear.analyst.regression.inference import (
    SINGULAR,
    Corrected,
    Intervals,
    correct_for_noise,
    debias_inverse,
    drop_unused,
    intervals,
    refusal,
    why_no_intervals,
)
from dplinear.analyst.regression.problem import Problem
from dplinear.arguments import integer, real
from dplinear.arrays import Floats
from dplinear.noise import simulation

# Simulated matrices are drawn this many cells at a time, so that memory stays modest.
CELLS = 1_000_000


def bootstrap(
    problem: Problem, level: float = 0.95, *, draws: int = 499, seed: int = 0
) -> Intervals:
    """Return percentile intervals of the parametric bootstrap.

    The draws are made around, and answered by, estimates free of the noise's bias, so little is
    left to correct: measured close to refusal, plain percentiles cover more evenly than the basic
    or the studentised variant. Where the size of the noise is itself estimated (laws with a pivot
    of finite freedom) the studentised variant is right, and used.

    Requires: `problem.whole` unbiased, not repaired. Rows independent, errors of equal variance.
    Promises: the same intervals for the same seed; none where the noise swamps the features.
    """
    level = real(level, "level", "bootstrap", low=0, high=1, open_low=True, open_high=True)
    draws = integer(draws, "draws", "bootstrap", low=99)
    generator = simulation.generator(seed)
    problem = drop_unused(problem)
    words = why_no_intervals(problem)
    if words is not None:
        return refusal(problem, level, "bootstrap", words)
    found = correct_for_noise(problem, problem.whole)
    errors, moved = _simulate(problem, found, draws, generator)
    if np.isfinite(problem.noise_model.pivot(len(problem.whole), len(problem.penalty)).freedom):
        below, above = tails(moved / errors, level)
        ends = found.coefficients - above * found.errors, found.coefficients - below * found.errors
    else:
        below, above = tails(moved, level)
        ends = found.coefficients + below, found.coefficients + above
    return intervals(problem, found, ends, level, "bootstrap")


def _simulate(
    problem: Problem, found: Corrected, draws: int, generator: simulation.Generator
) -> tuple[Floats, Floats]:
    """Return the standard errors of simulated releases, and how far their coefficients moved."""
    size = max(1, CELLS // problem.whole.size)
    batches = [min(size, draws - start) for start in range(0, draws, size)]
    again = [correct_for_noise(problem, redraw(problem, found, n, generator)) for n in batches]
    errors = np.concatenate([batch.errors for batch in again])
    errors = np.maximum(errors, SINGULAR * found.errors)
    moved = np.concatenate([batch.coefficients for batch in again]) - found.coefficients
    return errors, moved


def tails(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the quantiles that leave (1 − level)/2 on either side of a further draw."""
    count = drawn.shape[0]
    # Of count + 1 exchangeable values, the last is below the k-th of the others with chance
    # k/(count + 1); Weibull's plotting positions interpolate that.
    tail = max((1 - level) / 2, 1 / (count + 1))
    low, high = np.quantile(drawn, (tail, 1 - tail), axis=0, method="weibull")
    return np.asarray(low), np.asarray(high)


def redraw(
    problem: Problem, found: Corrected, draws: int, generator: simulation.Generator
) -> Floats:
    """Draw estimates of G as another table with the same features, and other noise, would give."""
    noise_model = problem.noise_model
    centre = debias_inverse(problem, problem.whole)
    lift = np.linalg.pinv(problem.transform)
    change = _change(problem, centre, float(found.residual), draws, generator)
    around = np.broadcast_to(_positive(centre), (draws, *centre.shape))
    noise = noise_model.unbiased_estimate(noise_model.draw(around, generator)) - around
    return np.asarray(centre + lift @ change @ lift.T + noise)


def _change(
    problem: Problem, centre: Floats, residual: float, draws: int, generator: simulation.Generator
) -> Floats:
    """Draw what new errors of the target change in the working moments: its row and column."""
    gram = problem.transform @ centre @ problem.transform.T
    features, p = gram[:-1, :-1], len(gram) - 1
    solution = np.linalg.solve(features + np.diag(problem.penalty), gram[:-1, -1])
    half = np.linalg.cholesky(_positive(features))
    drawn = np.sqrt(problem.repeats * residual) * generator.standard_normal((draws, p))
    rest = residual * generator.chisquare(max(problem.count - p, 1.0), draws)
    crossed = drawn @ half.T
    change = np.zeros((draws, p + 1, p + 1))
    change[:, :-1, -1] = change[:, -1, :-1] = crossed
    # y = x·b + e: its square gains 2b·(x·e) and the new sum of squared errors, and loses the old.
    squares = np.square(drawn).sum(-1) / problem.repeats + rest - residual * problem.count
    change[:, -1, -1] = squares + 2 * crossed @ solution
    return change


def _positive(matrix: Floats) -> Floats:
    """Return the nearest matrix that has a Cholesky factor, this one wherever it has."""
    values, vectors = np.linalg.eigh(matrix)
    least = SINGULAR * values[-1]
    return matrix if values[0] > least else (vectors * np.maximum(values, least)) @ vectors.T
