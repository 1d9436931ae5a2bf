"""Pure ε, audited: draws of whole learners on neighbouring tables, against what they claim.

An outcome that is P(S) likely on one table and Q(S) on the other shows ε ≥ ln(P(S)/Q(S)). S is
chosen on the first half of the draws and bounded on the second (Clopper-Pearson, false-alarm rate
1e-6 for each audit). The neighbours are extreme: a row as long as it may be, at a label's end.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from dplinear.convex.compression.images import Image
from dplinear.convex.examples import Examples, Frame
from dplinear.convex.learners.contract import ConstrainedMechanism, Task
from dplinear.convex.learners.exponential import Exponential
from dplinear.convex.learners.frank_wolfe import FrankWolfe
from dplinear.convex.learners.output_perturbation import OutputPerturbation
from dplinear.convex.losses import SquaredLoss
from dplinear.convex.sets import L1Ball
from dplinear.noise import simulation
from dplinear.privacy import PureDP

from .learning import examples_of

FALSE_ALARM = 1e-6
EPSILON = 1.0
DRAWS = 12_000
FRAME = Frame(1, 1.0)
LEARNERS: dict[str, tuple[type[ConstrainedMechanism], dict[str, Any]]] = {
    "frank_wolfe": (FrankWolfe, {"steps": 1, "stride": 1.0}),
    "exponential": (Exponential, {}),
    "output_perturbation": (OutputPerturbation, {"regularisation": 50.0, "slope": 2.0}),
}


def table(count: int) -> Examples:
    """So many rows that all say the same."""
    return examples_of(FRAME, np.ones((count, 1)), -np.ones(count))


def draws(kind: str, epsilon: float, count: int, seed: int) -> Any:
    made, options = LEARNERS[kind]
    # A wide ball, so that what is added as noise is not projected away.
    image = Image(L1Ball(1, 1.0 if kind != "output_perturbation" else 100.0))
    learner = made(guarantee=PureDP(epsilon), **options)
    prepared = learner.prepare(Task(FRAME, SquaredLoss(), image, rows=10))
    entropy = simulation.entropy(seed)
    private = table(count)
    return np.array([prepared.run(private, entropy).point[0] for _ in range(DRAWS)])


def bound(first: Any, second: Any, at: float, sign: int) -> float:
    """Return what the outcomes on one side of `at` show of ε, at the least."""
    count = len(first)
    hits = [int(np.count_nonzero(sign * part <= sign * at)) for part in (first, second)]
    if not 0 < hits[0] < count or hits[1] == count:
        return -math.inf
    low = beta.ppf(FALSE_ALARM / 2, hits[0], count - hits[0] + 1)
    high = beta.ppf(1 - FALSE_ALARM / 2, hits[1] + 1, count - hits[1])
    return math.log(low / high)


def audited(first: Any, second: Any) -> float:
    """Return a lower bound on ε, from draws on two neighbours."""
    half = DRAWS // 2
    ends = np.quantile(np.concatenate((first[:half], second[:half])), np.linspace(0, 1, 101))
    events = [
        (bound(first[:half], second[:half], at, sign), at, sign) for at in ends for sign in (1, -1)
    ]
    _, at, sign = max(events)
    return bound(first[half:], second[half:], at, sign)


def shown(kind: str, epsilon: float, seed: int) -> float:
    few, more = (draws(kind, epsilon, count, seed + count) for count in (1, 2))
    return max(audited(few, more), audited(more, few))


@pytest.mark.long
@pytest.mark.parametrize("kind", LEARNERS)
def test_no_learner_shows_more_than_it_claims(kind: str) -> None:
    assert 0.5 * EPSILON < shown(kind, EPSILON, 10) <= EPSILON


@pytest.mark.long
@pytest.mark.parametrize("kind", LEARNERS)
def test_a_learner_with_a_third_of_its_noise_is_caught(kind: str) -> None:
    assert shown(kind, 3 * EPSILON, 20) > EPSILON
