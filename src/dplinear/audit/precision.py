"""Whether a released number tells its table by being there at all: which numbers can arise.

    python -m dplinear.audit.precision

Draws in floating point leave gaps. A row of a sketch of one column is z·f, with z a float and f a
function of the table: of the floats near a released one, some are the product of no float and f at
all. Whoever knows all rows but one knows the f of either neighbour, and asks of each released
number whether it has a factor. That takes no statistics, and no δ covers it: proofs are about real
numbers, which leave no gaps. Where the release is a rounding of real numbers, it tells nothing.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit import worst_pairs
from dplinear.audit.bounds import Counts
from dplinear.exact.grid import shape_of
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms.cells.mi_projection import MIProjection
from dplinear.mechanisms.contract import Measurement
from dplinear.mechanisms.moments.additive_wishart import AdditiveWishart
from dplinear.mechanisms.moments.inverse_wishart import InverseWishart
from dplinear.mechanisms.moments.sketch import GaussianSketch
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy, system
from dplinear.privacy.guarantees import MIDP, ApproxDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_OTHERS = 20  # rows along each axis that both tables hold
_ROWS = 32  # a power of two: dividing by it loses nothing
_BITS = 0.2

Run = Callable[[Statistic, Entropy], Measurement]
Arises = Callable[[Measurement, Floats], bool]


@dataclass(frozen=True)
class Suspect:
    """A release, two neighbours, and a test whether a float program makes it from such moments."""

    name: str
    guarantee: Guarantee
    run: Run
    arises: Arises
    tables: tuple[Statistic, Statistic]


@dataclass(frozen=True)
class Attack:
    """How often either table alone could have made what was released of it, and of the other.

    `delta` is what that proves of δ at the ε that is promised, but for `alarm`.
    """

    name: str
    guarantee: ApproxDP
    counts: tuple[Counts, Counts]
    delta: float

    @property
    def holds(self) -> bool:
        """Whether the guarantee allows what was seen."""
        return self.delta <= self.guarantee.delta

    def __str__(self) -> str:
        guesses = 2 * self.counts[0].trials
        right = sum(counts.one for counts in self.counts)
        wrong = sum(counts.other for counts in self.counts)
        verdict = "holds" if self.holds else "broken"
        return (
            f"{self.name}, {self.guarantee}: of {guesses} releases {right} told their table, "
            f"{wrong} the wrong one; δ ≥ {self.delta:.3g}: {verdict}"
        )


def attack(
    suspect: Suspect, *, trials: int = 200, alarm: float = 0.05, entropy: Entropy | None = None
) -> Attack:
    """Release `trials` times of both tables, and see which releases only one of them can make."""
    bits = entropy or system()
    promised = suspect.guarantee
    assert isinstance(promised, ApproxDP | MIDP)  # noqa: S101 - as suspects are made
    asked = promised if isinstance(promised, ApproxDP) else promised.to(ApproxDP)
    grams = [table.matrix() for table in suspect.tables]
    seen = np.zeros((2, 2), int)  # by the table that is told, and the table it was
    for own, table in enumerate(suspect.tables):
        for _ in range(trials):
            released = suspect.run(table, bits)
            one, other = (suspect.arises(released, gram) for gram in grams)
            seen[0, own] += one and not other
            seen[1, own] += other and not one
    counts = (
        Counts(int(seen[0, 0]), int(seen[0, 1]), trials),
        Counts(int(seen[1, 1]), int(seen[1, 0]), trials),
    )
    factor = math.exp(asked.epsilon)
    shown = [each.likely(alarm / 4) - factor * each.unlikely(alarm / 4) for each in counts]
    return Attack(suspect.name, asked, counts, max(*shown, 0.0))


# What a float program can make


def can_arise(released: Floats, factor: float) -> bool:
    """Return whether each number is the rounded product of some float and the factor."""
    near = released / factor
    tries = [near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)]
    return bool(np.all(np.any([each * factor == released for each in tries], axis=0)))


def _near(value: float) -> Iterator[float]:
    """Yield the floats about a number."""
    below = math.nextafter(value, -math.inf)
    yield from (value, below, math.nextafter(value, math.inf))
    yield math.nextafter(below, -math.inf)


def rows_arise(released: Measurement, gram: Floats) -> bool:
    """Return whether the first column is made of floats times √H₁₁."""
    ridge = float(np.ravel(released.noise_model.ridges)[0])  # type: ignore[attr-defined]
    return can_arise(released.values[:, 0], math.sqrt(gram[0, 0] + ridge))


def matrix_arises(released: Measurement, gram: Floats) -> bool:
    """Return whether the first entry is (√H₁₁·a)²/rows for a float a."""
    rows = float(released.parameters["rows"])
    found, factor = float(released.values[0, 0]), _root(released, gram)
    squares = [square for square in _near(found * rows) if square / rows == found]
    halves = [half for square in squares for half in _near(math.sqrt(square))]
    return any(half * half in squares and can_arise(np.array([half]), factor) for half in halves)


def inverse_arises(released: Measurement, gram: Floats) -> bool:
    """Return whether the first entry is √H₁₁·i·√H₁₁ for a float i."""
    found, factor = float(released.values[0, 0]), _root(released, gram)
    halves = [half for half in _near(found / factor) if half * factor == found]
    return any(can_arise(np.array([half]), factor) for half in halves)


def wishart_arises(released: Measurement, gram: Floats) -> bool:
    """Return whether the first column less G is t·(t, s, …) for floats t and s."""
    first, known = released.values[:, 0], gram[:, 0]
    noise = first - known
    if noise[0] <= 0:
        return False
    for top in _near(math.sqrt(noise[0])):
        column = [top, *(each / top for each in noise[1:])]
        pairs = zip(column, first, known, strict=True)
        if top * top + known[0] == first[0] and all(
            any(side * top + own == value for side in _near(each)) for each, value, own in pairs
        ):
            return True
    return False


def _root(released: Measurement, gram: Floats) -> float:
    return math.sqrt(gram[0, 0] + float(released.parameters["ridge"]))


# What is attacked


def suspects(
    dimension: int, *, epsilon: float = 0.5, delta: float = 1e-6, others: int = _OTHERS
) -> Iterator[Suspect]:
    """Yield every mechanism whose noise is a rounded real number, on a row that comes and goes.

    Of a sketch for single cells it is a cell.
    """
    shape, asked = Shape(dimension, 724, 10), ApproxDP(epsilon, delta)
    pair = worst_pairs.matrix_pair(shape, Neighbours.ADD_REMOVE, base=others)
    one, other = (worst_pairs.moments(shape, rows, 1) for rows in pair)
    rows = max(_ROWS, dimension)
    sketch = GaussianSketch(guarantee=asked, rows=rows, release="sketch")
    kinds: list[tuple[str, Run, Arises]] = [
        ("sketch, rows", sketch.prepare(shape).run, rows_arise),
        ("sketch", GaussianSketch(guarantee=asked, rows=rows).prepare(shape).run, matrix_arises),
        ("inverse_wishart", InverseWishart(guarantee=asked).prepare(shape).run, inverse_arises),
        ("additive_wishart", AdditiveWishart(guarantee=asked).prepare(shape).run, wishart_arises),
    ]
    for name, run, arises in kinds:
        yield Suspect(name, asked, run, arises, (one, other))
    yield _cells(dimension)


def _cells(dimension: int) -> Suspect:
    schema = Schema({f"x{j}": (-1, 1) for j in range(dimension)}, intercept=False)
    shape = shape_of(schema)
    rows = np.eye(dimension, dtype=int).astype(object) * shape.steps_per_unit
    whole, changed = rows.T @ rows, rows.T @ rows
    changed[0, 0] //= 4
    method = MIProjection(guarantee=MIDP(_BITS), rows=_ROWS).prepare(schema, shape)
    tables = Statistic(shape, whole, dimension), Statistic(shape, changed, dimension)
    return Suspect("mi_projection", MIDP(_BITS), method.run, rows_arise, tables)


def main(given: Sequence[str] | None = None) -> int:
    """Print what the attacks find; return 1 if one refutes a guarantee."""
    parser = argparse.ArgumentParser(prog="python -m dplinear.audit.precision", description=__doc__)
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--columns", type=int, default=2)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int)
    chosen = parser.parse_args(given)
    entropy = None if chosen.seed is None else simulation.entropy(chosen.seed)
    broken = 0
    for suspect in suspects(chosen.columns, epsilon=chosen.epsilon, delta=chosen.delta):
        found = attack(suspect, trials=chosen.trials, entropy=entropy)
        broken += not found.holds
        sys.stdout.write(f"{found}\n")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
