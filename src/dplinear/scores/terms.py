"""Sums of bounded terms of each row: what scores are made of.

A row adds a few integers, each clipped to a public interval, so that neighbours differ by no more
than the intervals allow, whatever the model predicts and the target is (docs/scores.md).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import ceil, isqrt
from typing import ClassVar

import numpy as np

from dplinear.arrays import Floats, Integers
from dplinear.exact.integers import bound_norms
from dplinear.exact.logistic_sums import decay
from dplinear.exact.row_sums import RowSum, freeze
from dplinear.exact.shape import Shape
from dplinear.privacy.neighbours import Neighbours
from dplinear.scores.predictions import Predictor

STEPS = 2**15  # that a term of full weight has to 1
MOST_LOSS = 6.0  # a log loss beyond it counts as it: a probability of 1 in 400 of what happened
_FINE = 256  # places of the table of log losses to one unit of log-odds


@dataclass(frozen=True, eq=False)
class Terms(RowSum):
    """Σ of the chosen terms of each row, each within [low, 1] and times its weight.

    Requires: names of terms, each once.
    Promises: a term is rounded to integers and clipped to its interval, so that a row adds a vector
    of norm at most `bound`, the longest that a case allows, which is verified on the integers. A
    replaced row moves each term by at most the length of its interval.
    """

    shape: Shape
    predictor: Predictor
    target: int
    names: Sequence[str]
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(default=Fraction(1, STEPS), init=False)
    replaced: ClassVar[int] = 4
    # Of each term: its least value, and its weight beside others. Larger weights mean less noise.
    known: ClassVar[Mapping[str, tuple[int, Fraction]]]
    # What rows may be like, each by the most of the terms that are then less than 1.
    cases: ClassVar[Sequence[Mapping[str, Fraction]]] = ({},)

    def __post_init__(self) -> None:
        freeze(self, names=tuple(self.names), size=len(self.names))
        steps = dict(zip(self.names, self.steps, strict=True))
        squares = [
            sum((case.get(name, Fraction(1)) * step) ** 2 for name, step in steps.items())
            for case in self.cases
        ]
        freeze(self, bound=isqrt(ceil(Fraction(max(squares))) - 1) + 1)

    @property
    def steps(self) -> list[int]:
        """How many integers each term has to 1."""
        return [int(STEPS * self.known[name][1]) for name in self.names]

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the most that the sums of two neighbours differ by, in squared norm."""
        whole = super().sensitivity_squared(neighbours)
        if neighbours is not Neighbours.REPLACE:
            return whole
        spans = (1 - self.known[name][0] for name in self.names)
        return sum((span * step) ** 2 for span, step in zip(spans, self.steps, strict=True))

    def sum(self, rows: Floats) -> Integers:
        """Return the sums of the terms."""
        values = self._terms(rows, self.predictor.of_rows(rows))
        steps = np.array(self.steps, float)[:, None]
        lows = np.array([float(self.known[name][0]) for name in self.names])[:, None]
        integers = np.rint(np.clip([values[name] for name in self.names], lows, 1.0) * steps)
        bound_norms(integers, self.bound**2)
        return np.asarray(integers.sum(axis=1), np.int64)

    @abstractmethod
    def _terms(self, rows: Floats, predicted: Floats) -> Mapping[str, Floats]:
        """Return the terms of each row; elementwise, so that each is a function of its row."""


@dataclass(frozen=True, eq=False)
class ResidualTerms(Terms):
    """Terms of a value: of the residual e, in units of its clip, and of the target's deviation t.

    Requires: `clip` for residuals, `centre` and `spread` for targets, all in half-ranges.
    """

    clip: float = 1.0
    centre: float = 0.0
    spread: float = 1.0
    known: ClassVar[Mapping[str, tuple[int, Fraction]]] = {
        "e": (-1, Fraction(1, 2)),
        "|e|": (0, Fraction(3, 4)),
        "e²": (0, Fraction(1)),
        "t": (-1, Fraction(1, 2)),
        "t²": (0, Fraction(1)),
        "e⁴": (0, Fraction(3, 8)),
        "t⁴": (0, Fraction(3, 8)),
        "e²t²": (0, Fraction(3, 8)),
    }

    def _terms(self, rows: Floats, predicted: Floats) -> Mapping[str, Floats]:
        values = rows[self.target] * (1.0 / self.shape.steps_per_unit)
        errors = np.clip((values - predicted) * (1.0 / self.clip), -1.0, 1.0)
        off = np.clip((values - self.centre) * (1.0 / self.spread), -1.0, 1.0)
        squares, spreads = errors * errors, off * off
        return {
            "e": errors,
            "|e|": np.abs(errors),
            "e²": squares,
            "t": off,
            "t²": spreads,
            "e⁴": squares * squares,
            "t⁴": spreads * spreads,
            "e²t²": squares * spreads,
        }


_LIKELY = {
    "brier": Fraction(1, 4),
    "brier²": Fraction(1, 16),
    "loss": Fraction(1, 8),
    "loss²": Fraction(1, 64),
}


@dataclass(frozen=True, eq=False)
class LabelTerms(Terms):
    """Terms of a label y and the probability p that a model gives it: log losses in units of 6."""

    known: ClassVar[Mapping[str, tuple[int, Fraction]]] = {
        "right": (0, Fraction(1)),
        "y": (0, Fraction(1, 2)),
        "p": (0, Fraction(1, 2)),
        "brier": (0, Fraction(1)),
        "brier²": (0, Fraction(3, 8)),
        "loss": (0, Fraction(1)),
        "loss²": (0, Fraction(3, 8)),
    }
    # A label that the model finds at least as likely as not has a loss of at most log 2. One that
    # it finds less likely is 1, and p at most 1/2, or 0. Where p is 1/2, y and p are no longer
    # together than 1 and 1/2, and a squared distance (1 − p)² falls faster than p² rises.
    cases: ClassVar[Sequence[Mapping[str, Fraction]]] = (
        {"right": Fraction(0), "y": Fraction(0)},
        {"right": Fraction(0), "p": Fraction(0)},
        {"right": Fraction(0), "p": Fraction(1, 2), **_LIKELY},
        _LIKELY,
    )

    def _terms(self, rows: Floats, predicted: Floats) -> Mapping[str, Floats]:
        labels = rows[self.target] > 0
        odds = decay(predicted, 1.0)  # of the less likely label
        likely = 1.0 / (1.0 + odds)
        probability = np.where(predicted > 0, likely, odds * likely)
        brier = np.square(labels - probability)
        loss = _losses()[_places(np.where(labels, predicted, -predicted))]
        return {
            "right": ((predicted > 0) == labels).astype(float),
            "y": labels.astype(float),
            "p": probability,
            "brier": brier,
            "brier²": brier * brier,
            "loss": loss,
            "loss²": loss * loss,
        }


def _places(margins: Floats) -> Integers:
    """Return where the table has the losses of margins: log-odds of the label that was seen."""
    most = len(_losses()) // 2
    found = np.rint(np.clip(margins * _FINE, -most, most))
    return np.asarray(found, np.int64) + most


@cache
def _losses() -> Floats:
    """Return log(1 + exp(−m))/6, for margins m every 1/256 from −8 to 8.

    Decimals, whose functions round correctly, so that every machine has the same table.
    """
    with localcontext() as context:
        context.prec = 30
        steps = (Decimal(place) / _FINE for place in range(-8 * _FINE, 8 * _FINE + 1))
        found = [float((1 + (-step).exp()).ln() / Decimal(MOST_LOSS)) for step in steps]
    table: Floats = np.minimum(np.array(found), 1.0)
    table.flags.writeable = False
    return np.asarray(table)
