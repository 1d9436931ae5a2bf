"""Audits of descents and searches: all the sums they release, and how likely each table is.

Every answer of a chain is normal around an exact sum, whatever was asked before. So the likelihood
ratio of a transcript is the product of those of its answers, and its logarithm tells all that the
transcript does. A table that hears its own answers adds them up, as the real method runs on it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from dplinear.adaptive.noisy_sums import Answer
from dplinear.arrays import BigIntegers, Floats
from dplinear.audit import densities
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.convex.example_blocks import Block
from dplinear.exact.grid import shape_of
from dplinear.exact.row_sums import RowSum
from dplinear.exact.shape import Shape
from dplinear.mechanisms.contract import Mechanism
from dplinear.noise.entropy import Entropy
from dplinear.schema import Schema


class Summed(Protocol):
    """A table as chains see it."""

    @property
    def denominator(self) -> int:
        """How many units of weight a row of weight 1 has."""

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return exact sums."""


class Rows:
    """Integer rows in memory, columns first."""

    denominator = 1

    def __init__(self, rows: Floats) -> None:
        self._rows = rows

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return exact sums."""
        return [statistic.sum(self._rows).astype(object) for statistic in statistics]


class ListeningRows:
    """One of two tables, asked by a chain; `truth` says which of the two answers.

    `loss` is ln p_one/p_other of the answers so far, `square` is Σ Δ²/σ² of their sums.
    """

    def __init__(self, pair: tuple[Summed, Summed], *, truth: int) -> None:
        self._pair, self._truth = pair, truth
        self._asked: list[tuple[RowSum, BigIntegers, BigIntegers]] = []
        self.loss, self.square = 0.0, 0.0

    @property
    def denominator(self) -> int:
        """How many units of weight a row of weight 1 has."""
        return self._pair[self._truth].denominator

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return the sums of the table that answers; remember the other's."""
        both = [table.sums(statistics) for table in self._pair]
        self._asked = list(zip(statistics, *both, strict=True))
        return both[self._truth]

    def hear(self, answers: Sequence[Answer]) -> None:
        """Add what the answers tell."""
        for (statistic, one, other), answer in zip(self._asked, answers, strict=True):
            loss, square = log_likelihood_ratio(statistic, one, other, answer, self.denominator)
            self.loss, self.square = self.loss + loss, self.square + square

    def moments(self) -> Any:
        """Refuse: chains ask for sums alone."""
        raise NotImplementedError("A chain asks for sums.")

    def blocks(self) -> Iterator[Block]:
        """Refuse: chains ask for sums alone."""
        raise NotImplementedError("A chain asks for sums.")


def log_likelihood_ratio(
    statistic: RowSum,
    one: BigIntegers,
    other: BigIntegers,
    answer: Answer,
    denominator: int = 1,
) -> tuple[float, float]:
    """Return ln p_one/p_other of one answer, and Δ²/σ²; `denominator` is that of weighted sums.

    Of a symmetric matrix every entry off the diagonal is there twice, with half the variance: so
    all of its entries count as if each had the diagonal's.
    """
    if not (one != other).any():
        return 0.0, 0.0
    unit, values = float(statistic.unit / denominator), answer.values.ravel()
    first, second = (np.asarray(sums, np.float64) * unit for sums in (one, other))
    if not answer.sigma:  # nothing hides the difference; floats of a sum may differ in a rounding
        nearer = float(np.abs(values - second).sum() - np.abs(values - first).sum())
        return math.copysign(np.inf, nearer) if nearer else 0.0, np.inf
    variance = np.array(answer.sigma**2)
    square = float(((first - second) ** 2).sum() / variance)
    return float(densities.normal(values, first, second, variance)), square


class Window:
    """A table of raw numbers looked at through windows, as CoinPress does."""

    def __init__(self, rows: Floats, low: Floats, high: Floats) -> None:
        self.rows, self.low, self.high = rows, low, high

    def through(self, low: Floats, high: Floats) -> "Pane":
        """Return the table through a window."""
        return Pane(self.rows, (low + high) / 2, (high - low) / 2)


class Pane(Rows):
    """A table through one window: a constant first, then the clamped cells."""

    def __init__(self, rows: Floats, middle: Floats, half: Floats) -> None:
        self.middle, self.half = middle, half
        self.shape = _shape(len(middle))
        cells = np.clip((rows - middle[:, None]) / half[:, None], -1.0, 1.0)
        whole = np.vstack((np.ones((1, rows.shape[1])), cells))
        super().__init__(np.rint(whole * self.shape.steps_per_unit))


def _shape(columns: int) -> Shape:
    return shape_of(Schema({f"c{index}": (-1, 1) for index in range(columns)}))


class OverheardWindow:
    """One of two tables that are looked at through windows; `loss` as in `ListeningRows`."""

    def __init__(self, pair: tuple[Window, Window], *, truth: int) -> None:
        self._pair, self._truth = pair, truth
        self.low, self.high = pair[0].low, pair[0].high
        self._seen: list[OverheardPane] = []

    def through(self, low: Floats, high: Floats) -> "OverheardPane":
        """Return both tables through a window."""
        one, other = (table.through(low, high) for table in self._pair)
        self._seen.append(OverheardPane((one, other), truth=self._truth))
        return self._seen[-1]

    @property
    def loss(self) -> float:
        """What all windows told."""
        return sum(pane.loss for pane in self._seen)

    @property
    def square(self) -> float:
        """How far apart all that was seen through them is."""
        return sum(pane.square for pane in self._seen)


class OverheardPane(ListeningRows):
    """One of two tables through the same window."""

    def __init__(self, pair: tuple[Pane, Pane], *, truth: int) -> None:
        super().__init__(pair, truth=truth)
        self.shape, self.middle, self.half = pair[0].shape, pair[0].middle, pair[0].half


class Heard(Protocol):
    """What hears the answers of a run, and adds up what they tell."""

    @property
    def loss(self) -> float:
        """The logarithm of p_one/p_other, of all answers so far."""

    @property
    def square(self) -> float:
        """What Σ Δ²/σ² of their sums is."""


Run = Callable[[Any, Entropy], Any]


class TranscriptSubject(Subject):
    """A method that asks a chain, on two tables; a run is all of it.

    `run` takes a table and entropy; `listening` makes the table that answers and hears. `exact`:
    whether the pair moves every sum by all that is paid for, so that audits come near the claim.
    """

    batch = 500
    slow = True

    def __init__(
        self,
        method: Mechanism,
        run: Run,
        listening: Callable[[int], Heard],
        *,
        exact: bool,
    ) -> None:
        self.name = method.name
        self.guarantee, self.neighbours = method.guarantee, method.neighbours
        self.claim = Claim.of(self.guarantee, normal=True)
        self.exact = exact
        self._run, self._listening = run, listening

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Run the method, again and again, and compare likelihoods."""
        found = np.empty(count)
        for index in range(count):
            table = self._listening(int(other))
            self._run(table, entropy)
            found[index] = table.loss
        return found


def overheard(one: Summed, other: Summed) -> Callable[[int], ListeningRows]:
    """Return how a table of a pair is made that hears its answers."""
    return lambda truth: ListeningRows((one, other), truth=truth)


def overheard_windows(one: Window, other: Window) -> Callable[[int], OverheardWindow]:
    """Return the same for tables that are looked at through windows."""
    return lambda truth: OverheardWindow((one, other), truth=truth)
