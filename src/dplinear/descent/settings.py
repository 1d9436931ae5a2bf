"""The choices of a descent: parts of its budget, and steps."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dplinear.adaptive.noisy_sums import LEAST_SHARE
from dplinear.arguments import integer, positive, rejection, wrong_type

_WHERE = "Settings"
_MOST_STEPS = 200
_WIDE = Fraction(30, 1000)  # that a wide step spends at least, where it may spend so much
_WIDE_PART = Fraction(1, 20)  # of that, for the least of its sums


@dataclass(frozen=True)
class Settings:
    """Parts of μ² and other choices, all public; the steps have what the other parts leave.

    `python -m dplinear.planner.tuning` simulates how the defaults stand (docs/planning.md).
    """

    count: Fraction = Fraction(40, 1000)
    count_first: Fraction = Fraction(10, 1000)  # of that; the rest only where it is needed
    left_out: Fraction = Fraction(1, 1000)  # for the number of rows that lack a number
    filled_in: Fraction = Fraction(8, 1000)  # for counts of cells, where some may be filled in
    squared_weights: Fraction = Fraction(4, 1000)  # of rows with survey weights
    feature_sums: Fraction = Fraction(12, 1000)
    target_sum: Fraction = Fraction(8, 1000)
    squares: Fraction = Fraction(5, 1000)  # each of two
    gram: Fraction = Fraction(200, 1000)
    gram_first: Fraction = Fraction(30, 1000)  # of that; the rest only where it is needed
    bands: Fraction = Fraction(20, 1000)  # of all steps together
    intercept: Fraction = Fraction(20, 1000)
    unit_scores: Fraction = Fraction(0)  # for clustered standard errors; 0: none
    wide_most: Fraction = Fraction(300, 1000)  # for a wide step, at the most; 0: none is taken
    matrices: Fraction = Fraction(0)  # both that logistic standard errors rest on; 0: none are
    steps: int = 12
    plain_steps: int = 24  # without a Gram matrix
    gram_from: float = 12.0  # n·μ/p from which it is bought; below, it would be mostly noise
    residual_clip: float | None = None  # in scales; None: as wide as the released tails allow
    prior: float = 0.5  # of the target's variance, that the features are expected to explain

    def __post_init__(self) -> None:
        parts = [self.count, self.feature_sums, self.target_sum, 2 * self.squares, self.gram]
        parts += [self.left_out, self.filled_in, self.squared_weights, self.bands, self.intercept]
        parts += [self.wide_most, self.unit_scores, self.matrices]
        firsts = [self.count_first, self.gram_first]
        if not all(isinstance(part, Fraction) for part in parts + firsts):
            raise wrong_type("shares", _WHERE, "Fractions", parts + firsts)
        steps = [
            integer(steps, name, _WHERE, low=1, high=_MOST_STEPS)
            for name, steps in (("steps", self.steps), ("plain_steps", self.plain_steps))
        ]
        positive(self.gram_from, "gram_from", _WHERE)
        positive(self.prior, "prior", _WHERE)
        if self.residual_clip is not None:
            positive(self.residual_clip, "residual_clip", _WHERE)
        # The first step has the least share: at most the √k-th part of an even one.
        least = min(*parts[:-4], self.bands / max(steps), self.intercept or 1)
        least = min(least, self.unit_scores or 1, self.matrices / 2 or 1, self._least_of_wide)
        first = (1 - sum(parts)) / Fraction(max(steps) * (math.isqrt(max(steps)) + 1))
        # What is left of a share after a first part is asked for, or nothing is.
        rests = [self.count - self.count_first, self.gram - self.gram_first]
        least = min(least, *firsts, *(rest or 1 for rest in rests))
        if least < LEAST_SHARE or first < LEAST_SHARE:
            rule = "parts that leave every query at least 2^−14 of the whole"
            raise rejection("shares", _WHERE, rule, [str(part) for part in parts + firsts])

    @property
    def _least_of_wide(self) -> Fraction:
        """The least share that a wide step leaves a sum: its own, or a further gradient's instead.

        Shares of wide steps are whole thousandths.
        """
        if not self.wide_most:
            return Fraction(1)
        share = Fraction(math.floor(min(self.wide_most, _WIDE) * 1000), 1000)
        return min(share * _WIDE_PART, share - self.bands / min(self.steps, self.plain_steps))
