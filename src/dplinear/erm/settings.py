"""The choices of a descent: parts of its budget, and steps."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Settings:
    """Parts of μ² and other choices, all public; the steps have what the other parts leave.

    `python -m dplinear.planner.tuning` simulates how the defaults stand (docs/planning.md).
    """

    count: Fraction = Fraction(40, 1000)
    feature_sums: Fraction = Fraction(12, 1000)
    target_sum: Fraction = Fraction(8, 1000)
    squares: Fraction = Fraction(5, 1000)  # each of two
    gram: Fraction = Fraction(200, 1000)
    bands: Fraction = Fraction(20, 1000)  # of all steps together
    intercept: Fraction = Fraction(20, 1000)
    steps: int = 12
    plain_steps: int = 24  # without a Gram matrix
    gram_from: float = 18.0  # n·μ/p from which it is bought; below, it would be mostly noise
    residual_clip: float | None = None  # in scales; None: as wide as the released tails allow
    prior: float = 0.5  # of the target's variance, that the features are expected to explain
