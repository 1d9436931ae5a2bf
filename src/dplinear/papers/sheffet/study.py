"""All of Figure 1: every number of rows, every repetition, and what the curves say."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu
from threadpoolctl import threadpool_limits

from dplinear.arguments import integer
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.papers.sheffet.design import EXPONENTS, REDUNDANT
from dplinear.papers.sheffet.techniques import (
    ANALYZE_GAUSS,
    INVERSE,
    SCALED_GAUSS,
    SCALED_WISHART,
    SKETCH,
    TECHNIQUES,
    Bench,
    Technique,
)

# One technique is called worse than another where a rank test of their errors says so.
WORSE = 1e-3
# Techniques that the paper finds better than scaled Analyze Gauss up to 2^22 rows.
RIVALS = (SKETCH, INVERSE, SCALED_WISHART)
GAINS = (ANALYZE_GAUSS, SCALED_WISHART, SKETCH)

Watch = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True, eq=False)
class Study:
    """Errors of every technique: arrays of shape (REDUNDANT, exponents, repetitions)."""

    exponents: tuple[int, ...]
    errors: dict[tuple[str, Technique], Floats]

    def of(self, calibration: str, technique: Technique, redundant: int) -> Floats:
        """Return the errors of one curve, of shape (exponents, repetitions)."""
        return np.asarray(self.errors[calibration, technique][REDUNDANT.index(redundant)])

    def median(self, calibration: str, technique: Technique, redundant: int) -> Floats:
        """Return one curve: the median error for each number of rows."""
        return np.asarray(np.median(self.of(calibration, technique, redundant), axis=-1))

    def beaten(
        self, calibration: str, technique: Technique, rivals: Sequence[Technique], redundant: int
    ) -> list[int]:
        """Return the exponents at which a rival's errors are lower: Mann-Whitney, p < 0.001."""
        own = self.of(calibration, technique, redundant)
        values = [
            [_rank_test(*pair) for pair in zip(own, theirs, strict=True)]
            for theirs in (self.of(calibration, other, redundant) for other in rivals)
        ]
        least = [min(column) for column in zip(*values, strict=True)]
        return [n for n, value in zip(self.exponents, least, strict=True) if value < WORSE]

    def leads_from(
        self, calibration: str, technique: Technique, rivals: Sequence[Technique], redundant: int
    ) -> int | None:
        """Return the exponent from which on no rival is better; None if there is none."""
        lost = self.beaten(calibration, technique, rivals, redundant)
        later = [n for n in self.exponents if not lost or n > lost[-1]]
        return later[0] if later else None

    def gain(self, technique: Technique, exponent: int, redundant: int = 0) -> float:
        """Return how many times lower the median error is under the exact calibration."""
        where = self.exponents.index(exponent)
        paper, exact = (
            self.median(calibration, technique, redundant)[where]
            for calibration in ("paper", "exact")
        )
        return float(paper / exact)


def run(
    bench: Bench,
    seed: int,
    *,
    repetitions: int = 20,
    exponents: Sequence[int] = EXPONENTS,
    watch: Watch = iter,
) -> Study:
    """Draw the tables' moments and release them in every way, with the same seeds for each way.

    `watch` wraps the loop over numbers of rows, to show how far it is.
    """
    repetitions = integer(repetitions, "repetitions", "sheffet.run", low=1, high=2**16)
    found: dict[tuple[str, Technique], list[Floats]] = {}
    # Matrices this small are slower in several threads.
    with threadpool_limits(1, user_api="blas"):
        for exponent in watch(exponents):
            for repetition in range(repetitions):
                own = table_seed(seed, exponent, repetition)
                statistic = bench.design.moments(2**exponent, simulation.generator(own))
                for key, errors in bench.errors(statistic, own).items():
                    found.setdefault(key, []).append(errors)
    shape = (len(exponents), repetitions, len(REDUNDANT))
    arrays = {
        key: np.moveaxis(np.array(lines).reshape(shape), -1, 0) for key, lines in found.items()
    }
    return Study(tuple(exponents), arrays)


def table_seed(seed: int, exponent: int, repetition: int) -> int:
    """Return the seed of one table and of all its releases."""
    return (seed << 6 | exponent) << 16 | repetition


def _rank_test(own: Floats, theirs: Floats) -> float:
    """Return Mann and Whitney's p-value, small where `own` are the larger numbers."""
    return float(mannwhitneyu(own, theirs, alternative="greater").pvalue)


def best_from(study: Study, calibration: str) -> int | None:
    """Return the exponent from which on Analyze Gauss is the best of all, without redundancy."""
    others = [technique for technique in TECHNIQUES if technique != ANALYZE_GAUSS]
    return study.leads_from(calibration, ANALYZE_GAUSS, others, 0)


def scaled_beaten(study: Study, calibration: str, rival: Technique, redundant: int) -> list[int]:
    """Return the exponents at which scaled Analyze Gauss is worse than a rival."""
    return study.beaten(calibration, SCALED_GAUSS, [rival], redundant)
