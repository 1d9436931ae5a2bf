"""The best line of a population, exactly or from very many rows: least squares, or the likeliest.

A population is read in blocks of cells in [-1, 1] with their target. Lines have the intercept
first. Labels are targets of -1 and 1, as a schema with those bounds has them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from benchmarks.rivals.common import Array

Blocks = Callable[[], Iterator[tuple[Array, Array]]]

STEPS = 60  # of Newton's method, at most
PRECISION = 1e-14  # of the mean log-loss: far below what 2,000,000 rows tell
SHORTEST = 1e-6  # part of a step
FLAT = 1e-8  # a curvature beside the one at even chances
JUDGED = 100_000  # rows that log-losses are averaged over, at most
LOSSES = ("squared", "logistic")


class NoMaximumError(RuntimeError):
    """Labels that some columns part: the likelihood grows without end."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The best line, and how much worse others are.

    `wide` has the constant and the cells of the rows that log-losses are judged by; for squares the
    second moments say all.
    """

    loss: str
    line: Array
    moments: Array  # of the constant and the cells, divided by the rows
    variance: float  # of the target
    wide: Array
    target: Array

    def excess(self, line: Array) -> float:
        """Return the mean loss beyond that of the best line.

        Squares are relative to the variance of the target, log-losses are in nats.
        """
        if not np.isfinite(line).all():
            return float("inf")
        wrong = line - self.line
        if self.loss == "squared":
            return float(wrong @ self.moments @ wrong) / self.variance
        return log_loss(self.wide @ line, self.target) - log_loss(
            self.wide @ self.line, self.target
        )


def log_loss(odds: Array, target: Array) -> float:
    """Return the mean log-loss of log-odds, the labels being -1 and 1."""
    return float(np.logaddexp(0, -target * odds).mean())


def with_ones(rows: Array) -> Array:
    """Return the rows with a constant of 1 in front."""
    return np.column_stack([np.ones(len(rows)), rows])


def second_moments(blocks: Blocks) -> Array:
    """Return the sum of products of the constant, the cells and the target, over all rows."""
    total = np.zeros((1, 1))
    for rows, target in blocks():
        whole = np.column_stack([with_ones(rows), target])
        total = total + whole.T @ whole
    return total


def likeliest(blocks: Blocks, size: int) -> Array:
    """Return the maximum of the likelihood, by Newton's method with halved steps.

    Raises: NoMaximumError if there is none, or if it is not reached.
    """
    line = np.zeros(size)
    loss, gradient, curvature = start = _likelihood(blocks, line)
    for _ in range(STEPS):
        step = np.linalg.lstsq(curvature, gradient, rcond=1e-12)[0]
        if float(gradient @ step) < PRECISION:
            break
        factor = 1.0
        while factor > SHORTEST:
            found = _likelihood(blocks, line - factor * step)
            if found[0] <= loss:
                break
            factor /= 2
        else:
            break  # no descent is left but rounding's
        line = line - factor * step
        loss, gradient, curvature = found
    else:
        raise NoMaximumError("the likelihood does not come to rest")
    if _least_ratio(curvature, start[2]) < FLAT:
        raise NoMaximumError("the columns part the labels")
    return line


def _least_ratio(curvature: Array, first: Array) -> float:
    """Return the least curvature of any direction, divided by that at even chances.

    Where labels are parted, chances go to 0 and 1 along some direction, and the curvature to 0.
    Directions in which no row goes do not count.
    """
    values, vectors = np.linalg.eigh(first)
    there = values > 1e-12 * values[-1]
    whitened = vectors[:, there] / np.sqrt(values[there])
    return float(np.linalg.eigvalsh(whitened.T @ curvature @ whitened)[0])


def _likelihood(blocks: Blocks, line: Array) -> tuple[float, Array, Array]:
    """Return the mean log-loss, its gradient and its curvature."""
    count, loss = 0, 0.0
    gradient, curvature = np.zeros(len(line)), np.zeros((len(line), len(line)))
    for rows, target in blocks():
        wide = with_ones(rows)
        odds = wide @ line
        chances = expit(odds)
        loss += float(np.logaddexp(0, -target * odds).sum())
        gradient += wide.T @ (chances - (target > 0))
        curvature += (wide * (chances * (1 - chances))[:, None]).T @ wide
        count += len(rows)
    return loss / count, gradient / count, curvature / count


def truth(blocks: Blocks, loss: str) -> Truth:
    """Return the best line of a population for a loss."""
    total = second_moments(blocks)
    count, size = total[0, 0], len(total) - 1
    gram = total[:-1, :-1]
    if loss == "squared":
        line = np.asarray(np.linalg.solve(gram, total[:-1, -1]), np.float64)
        rows, target = np.zeros((0, size)), np.zeros(0)
    else:
        line = likeliest(blocks, size)
        found, target = _first(blocks, JUDGED)
        rows = with_ones(found)
    variance = total[-1, -1] / count - (total[0, -1] / count) ** 2
    return Truth(loss, line, gram / count, float(variance), rows, target)


def _first(blocks: Blocks, most: int) -> tuple[Array, Array]:
    """Return the first rows of a population."""
    kept: list[tuple[Array, Array]] = []
    have = 0
    for rows, target in blocks():
        kept.append((rows[: most - have], target[: most - have]))
        have += len(kept[-1][0])
        if have >= most:
            break
    return np.concatenate([each for each, _ in kept]), np.concatenate([each for _, each in kept])
