"""Tables of Figures 1 and 2: cells uniform in [−1, 1], and two responses, as the paper names none.

`signal`: y = (Xβ + e)/4, where β has a random direction and explains four fifths of the variance,
e is normal, and Xβ + e has variance 1; clamped to [−1, 1], which is four standard deviations.
`noise`: y uniform in [−1, 1] and independent of X, so that there is nothing to learn.
"""

import math
from collections.abc import Iterator

import numpy as np

from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.papers.showkatbakhsh.draws import Sums

SIGNAL = "signal"
NONE = "noise"
RESPONSES = {SIGNAL: "y a linear model, R² = 0.8", NONE: "y independent of X"}
EXPLAINED = 0.8
WIDTH = 4.0


def growing(
    unit: int, features: int, steps: int, source: simulation.Generator
) -> Iterator[dict[str, Sums]]:
    """Yield the sums of tables of unit, 2·unit, … rows, each with `unit` rows more, by response.

    So a trial draws the rows of its largest table once; each table has the law that it should.
    """
    direction = source.standard_normal(features)
    # A cell that is uniform in [−1, 1] has variance 1/3.
    beta = direction * math.sqrt(3 * EXPLAINED) / np.linalg.norm(direction)
    gram = np.zeros((features + 2, features + 2))
    largest = np.zeros(features)
    for step in range(1, steps + 1):
        X = source.uniform(-1.0, 1.0, (unit, features))
        error = math.sqrt(1 - EXPLAINED) * source.standard_normal(unit)
        signal = np.clip((X @ beta + error) / WIDTH, -1.0, 1.0)
        block = np.column_stack([X, signal, source.uniform(-1.0, 1.0, unit)])
        gram += block.T @ block
        largest = np.maximum(largest, (X * X).max(axis=0))
        sum_of_squares = float((np.diag(gram)[:features] - largest).min())
        yield {
            response: Sums(_with_response(gram, features, index), step * unit, sum_of_squares)
            for index, response in enumerate(RESPONSES)
        }


def _with_response(gram: Floats, features: int, index: int) -> Floats:
    kept = [*range(features), features + index]
    return np.asarray(gram[np.ix_(kept, kept)])
