"""Intervals by simulation: draw the rows and the noise again, many times, and fit each time.

The features are kept as estimated and the errors of the target are drawn again as normal ones, so a
constant column (the intercept) stays constant; then the law draws fresh noise on every cell. The
studentised errors of the simulated estimates take the place of the normal law.
"""

import numpy as np

from dplinear.analyst.inference import Intervals, estimate, intervals, refusal, swamped
from dplinear.analyst.laws import Matrix
from dplinear.analyst.problem import Problem
from dplinear.arguments import integer, real
from dplinear.noise import simulation


def bootstrap(
    problem: Problem, level: float = 0.95, *, draws: int = 499, seed: int = 0
) -> Intervals:
    """Return studentised parametric bootstrap intervals.

    Requires: `problem.whole` unbiased, not repaired. Rows independent, errors of equal variance.
    Promises: the same intervals for the same seed; none where the noise swamps the features.
    """
    level = real(level, "level", "bootstrap", low=0, high=1, open_low=True, open_high=True)
    draws = integer(draws, "draws", "bootstrap", low=99)
    generator = simulation.generator(seed)
    words = swamped(problem)
    if words is not None:
        return refusal(problem, level, "bootstrap", words)
    found = estimate(problem, problem.whole)
    again = estimate(problem, redraw(problem, float(found.residual), draws, generator))
    errors = (again.estimates - found.estimates) / again.errors
    below, above = tails(errors, level)
    ends = found.estimates - above * found.errors, found.estimates - below * found.errors
    return intervals(problem, found, ends, level, "bootstrap")


def tails(errors: Matrix, level: float) -> tuple[Matrix, Matrix]:
    """Return the quantiles that leave (1 − level)/2 on either side of a further draw."""
    count = errors.shape[0]
    # Of count + 1 exchangeable values, the last is below the k-th of the others with chance
    # k/(count + 1); Weibull's plotting positions interpolate that.
    tail = max((1 - level) / 2, 1 / (count + 1))
    low, high = np.quantile(errors, (tail, 1 - tail), axis=0, method="weibull")
    return np.asarray(low), np.asarray(high)


def redraw(
    problem: Problem, residual: float, draws: int, generator: simulation.Generator
) -> Matrix:
    """Draw estimates of G as another table with the same features, and other noise, would give."""
    law, whole = problem.law, problem.whole
    lift = np.linalg.pinv(problem.transform)
    tables = whole + lift @ _errors(problem, residual, draws, generator) @ lift.T
    around = np.broadcast_to(_positive(whole), tables.shape)
    return np.asarray(tables + law.unbiased(law.draw(around, generator)) - around)


def _errors(
    problem: Problem, residual: float, draws: int, generator: simulation.Generator
) -> Matrix:
    """Draw what new errors of the target change in the working moments: its row and column."""
    gram = problem.gram
    features = gram[:-1, :-1]
    p = features.shape[0]
    values, vectors = np.linalg.eigh(features)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    solution = np.linalg.solve(features + np.diag(problem.penalty), gram[:-1, -1])
    scale = np.sqrt(residual)
    drawn = scale * generator.standard_normal((draws, p))
    crossed = drawn @ half.T
    rest = residual * generator.chisquare(max(problem.count - p, 1.0), draws)
    squares = np.square(drawn).sum(-1) + rest - residual * problem.count
    change = np.zeros((draws, p + 1, p + 1))
    change[:, :-1, -1] = change[:, -1, :-1] = crossed
    change[:, -1, -1] = squares + 2 * crossed @ solution
    return change


def _positive(whole: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(whole)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
