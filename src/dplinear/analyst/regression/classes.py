"""From a linear score to one of two classes, and to their probabilities: for all models alike.

A score above 0 means the second class. Of a logistic model the score is the log-odds of the second
class, of a hinge loss the margin.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from dplinear.arguments import rejection
from dplinear.arrays import Array, Floats

LOGISTIC = "logistic"


def likelier(scores: Floats, classes: Sequence[object] | Array) -> Array:
    """Return the class that each score stands for."""
    return np.asarray(np.array(classes)[(scores > 0).astype(int)])


def probabilities(log_odds: Floats) -> Floats:
    """Return the probabilities of both classes, a column for each, in their order."""
    return np.column_stack((expit(-log_odds), expit(log_odds)))


def log_probabilities(log_odds: Floats) -> Floats:
    """Return the logarithms of the probabilities, of which none is lost to rounding."""
    return -np.column_stack((np.logaddexp(0, log_odds), np.logaddexp(0, -log_odds)))


def check_logistic(loss: str) -> None:
    """Raise for a model that has no probabilities."""
    if loss != LOGISTIC:
        hint = "predict returns what the target is, and decision_function the linear score."
        raise rejection("loss", "predict_proba", "logistic, to have probabilities", loss, hint)
