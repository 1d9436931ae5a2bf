"""Scores of predicted probabilities: from sums of bounded terms, and from two histograms."""

import math

import numpy as np

from dplinear.analyst.scores.sums import ReleasedSums, Score, hidden
from dplinear.arrays import Floats

_CLEAR = 4.0  # deviations of its noise that the number of rows of a label must be above
_NO_LABELS = (
    "The noise hides how many rows one of the labels has: ask for a larger ε, or score more rows."
)


def accuracy(found: ReleasedSums) -> Score:
    """Return the share of rows whose likelier label, by the model, is theirs."""
    share = found.mean("right")
    variance = min(max(share * (1 - share), 1 / found.rows), 0.25)
    return _mean(found, "accuracy", "right", variance, most=1.0)


def log_loss(found: ReleasedSums, unit: float) -> Score:
    """Return the mean log loss, in nats; a row counts as at most `unit`."""
    variance = found.variance("loss", "loss²")
    return _mean(found, "log_loss", "loss", variance, unit=unit)


def brier(found: ReleasedSums) -> Score:
    """Return the mean squared distance of probabilities from labels."""
    return _mean(found, "brier", "brier", found.variance("brier", "brier²"))


def calibration(found: ReleasedSums) -> Score:
    """Return by how much labels are more frequent than predicted: mean of y − p."""
    value = found.mean("y") - found.mean("p")
    privacy = math.hypot(found.noise("y"), found.noise("p"))
    privacy = math.hypot(privacy, value * found.count_deviation / found.rows)
    sampling = math.sqrt(max(found.mean("brier") + found.noise("brier"), 0.0) / found.rows)
    return Score("calibration", value, math.hypot(sampling, privacy), privacy)


def auc(found: ReleasedSums) -> Score:
    """Return the chance that a row of label 1 is given higher odds than one of label 0.

    Rows of one bin are ties, which count a half. With noise on every count the sum of products is
    unbiased. A row of label 1 moves it by (V − A)/n₁, V being the share of label 0 below it: so do
    the noises, to first order, and σ⁴ for each product is the second (DeLong's variance, on bins).
    """
    zeros, ones = np.split(found.histogram, 2)
    sigma, bins = found.histogram_deviation, len(zeros)
    counts = float(zeros.sum()), float(ones.sum())
    if not min(counts) > _CLEAR * sigma * math.sqrt(bins):
        return hidden("auc", _NO_LABELS)
    below = (np.cumsum(zeros) - zeros / 2) / counts[0]
    above = (ones.sum() - np.cumsum(ones) + ones / 2) / counts[1]
    value = float(ones @ below) / counts[1]
    moved_by = (below - value) / counts[1], (above - value) / counts[0]
    sampling = _variance(ones, moved_by[0]) + _variance(zeros, moved_by[1])
    first = sigma**2 * float((moved_by[0] ** 2).sum() + (moved_by[1] ** 2).sum())
    second = sigma**4 * (bins * (bins - 1) / 2 + bins / 4) / (counts[0] * counts[1]) ** 2
    privacy = first + second
    return Score("auc", value, math.sqrt(sampling + privacy), math.sqrt(privacy), 0.0, 1.0)


def _variance(counts: Floats, moved: Floats) -> float:
    """Return Σ of squared moves over rows; where noise makes it less than nothing, 0."""
    return max(float(counts @ moved**2), 0.0)


def _mean(
    found: ReleasedSums,
    name: str,
    term: str,
    variance: float,
    *,
    unit: float = 1.0,
    most: float = math.inf,
) -> Score:
    privacy = unit * found.noise_with_count(term)
    sampling = unit * math.sqrt(variance / found.rows)
    errors = math.hypot(sampling, privacy), privacy
    return Score(name, unit * found.mean(term), *errors, least=0.0, most=most)
