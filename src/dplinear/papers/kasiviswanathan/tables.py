"""Tables like texts: sparse rows of words, a truth on frequent words, and the best model of a set.

A row is the words of a text of about 66, drawn by Zipf's law: some 50 different ones, which share
a norm of 1 evenly. The truth has ±1 on the 20 most frequent words, in turns, so that labels are
about balanced and no constant predicts them. For classes it is five times as large, as words are
to tell something about them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from dplinear.arrays import Floats
from dplinear.convex.losses import LOSSES, Loss
from dplinear.convex.sets import L1Ball
from dplinear.noise import simulation
from dplinear.planner.texts import draw_texts, least_risk, mean_loss

WORDS = 66
TRUE = 20
SPREAD = 0.2  # of the squared loss's labels around the truth
WEIGHT = {"squared": 1.0, "logistic": 5.0, "hinge": 5.0}  # of a word of the truth


@dataclass(frozen=True, eq=False)
class Text:
    """A table of `rows`, a label for each, and a set that the truth is on the edge of.

    `least` is the smallest mean loss in the set, or a little above, as steps towards it end.
    """

    rows: Any
    labels: Floats
    loss: Loss
    base: L1Ball
    truth: Floats
    least: float

    @classmethod
    def draw(cls, loss: str, rows: int, features: int, seed: int) -> "Text":
        """Draw a table."""
        source = simulation.generator(seed)
        words = draw_texts(source, rows, features, WORDS)
        weight = WEIGHT[loss]
        truth = np.zeros(features)
        signs = np.where(np.arange(TRUE) % 2, -1.0, 1.0) * source.choice([-1.0, 1.0])
        truth[:TRUE] = weight * signs
        margins = words @ truth
        kind = LOSSES[loss]()
        if kind.classes:
            labels = np.where(source.random(rows) < expit(margins), 1.0, -1.0)
        else:
            labels = np.clip(margins + SPREAD * source.standard_normal(rows), -1.0, 1.0)
        base = L1Ball(features, weight * TRUE)
        return cls(words, labels, kind, base, truth, least_risk(words, labels, kind, base))

    def risk(self, model: Floats) -> float:
        """Return the mean loss of a model."""
        return mean_loss(self.rows, self.labels, self.loss, model)

    @property
    def trivial(self) -> float:
        """The excess of the model that is 0, whose constant prediction needs no data."""
        return self.excess(np.zeros(self.base.dimension))

    def excess(self, model: Floats) -> float:
        """Return the mean loss beyond the least one in the set."""
        return self.risk(model) - self.least
