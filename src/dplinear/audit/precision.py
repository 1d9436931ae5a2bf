"""What tells neighbours apart where noise is drawn in floating point: which numbers can arise.

    python -m dplinear.audit.precision

The rows of a sketch of one column are z·f, with z a floating-point normal number and f a function
of the table. Multiplied by f, the floats leave gaps between their images: of the numbers near a
released one, some are the product of no float and f at all. Whoever knows all rows but one knows
the f of either neighbour, and asks of each released number whether it has a factor. That takes no
statistics, and no δ covers it: the proof is about real numbers, which leave no gaps.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit import worst_pairs
from dplinear.audit.bounds import Counts
from dplinear.exact.shape import Shape
from dplinear.mechanisms.moments.sketch import GaussianSketch
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy, system
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours

_SHAPE = Shape(1, 724, 10)
_OTHERS = 1_000  # rows that both tables hold
_ALARM = 0.05


@dataclass(frozen=True)
class Attack:
    """How often the attack saw a table in `trials` sketches of it, and in as many of the other.

    `delta` is what that proves of δ at the ε that was certified, wrong once in twenty times.
    """

    guarantee: ApproxDP
    counts: Counts
    right: int
    delta: float

    def __str__(self) -> str:
        allowed = 1 - (1 - self.guarantee.delta) / (1 + math.exp(self.guarantee.epsilon))
        guesses = 2 * self.counts.trials
        return (
            f"sketch of one column, {self.guarantee} of the ideal mechanism: "
            f"{self.right} of {guesses} guesses right ({allowed:.0%} are allowed); "
            f"this program has δ ≥ {self.delta:.3g}"
        )


def can_arise(released: Floats, factor: float) -> bool:
    """Return whether each number is the rounded product of some float and the factor."""
    near = released / factor
    tries = [near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)]
    return bool(np.all(np.any([each * factor == released for each in tries], axis=0)))


def attack(
    epsilon: float = 1.0,
    delta: float = 1e-6,
    *,
    rows: int = 40,
    trials: int = 200,
    entropy: Entropy | None = None,
) -> Attack:
    """Guess of each of `trials` sketches of either of two neighbours which one it is of."""
    bits, asked = entropy or system(), ApproxDP(epsilon, delta)
    prepared = GaussianSketch(guarantee=asked, rows=rows, release="sketch").prepare(_SHAPE)
    pair = worst_pairs.matrix_pair(_SHAPE, Neighbours.ADD_REMOVE, base=_OTHERS)
    tables = [worst_pairs.moments(_SHAPE, rows_of, 1) for rows_of in pair]
    ridge = float(prepared.run(tables[0], bits).parameters["ridge"])  # public, and of no table
    one, other = (math.sqrt(float(table.matrix()[0, 0]) + ridge) for table in tables)
    seen = []
    for table in tables:
        drawn = [prepared.run(table, bits).values for _ in range(trials)]
        seen.append(sum(can_arise(x, one) and not can_arise(x, other) for x in drawn))
    counts = Counts(seen[0], seen[1], trials)
    shown = counts.likely(_ALARM / 2) - math.exp(epsilon) * counts.unlikely(_ALARM / 2)
    return Attack(asked, counts, seen[0] + trials - seen[1], max(shown, 0.0))


def main(given: Sequence[str] | None = None) -> int:
    """Print what the attack finds; return 0, as no certificate claims otherwise."""
    parser = argparse.ArgumentParser(prog="python -m dplinear.audit.precision", description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int)
    chosen = parser.parse_args(given)
    entropy = None if chosen.seed is None else simulation.entropy(chosen.seed)
    found = attack(
        chosen.epsilon, chosen.delta, rows=chosen.rows, trials=chosen.trials, entropy=entropy
    )
    sys.stdout.write(f"{found}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
