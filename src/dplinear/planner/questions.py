"""What one may want to learn: for each question the ways to an answer, and the error of each way.

A question is asked of public facts. `predict` gives the median of the error over tables, and an
interval that 90% of tables are in; where something was left open, over all that was left open.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dplinear.arguments import ArgumentError
from dplinear.mechanisms.checks import RELATIONS
from dplinear.mechanisms.contract import Mechanism
from dplinear.planner.facts import Facts, write_arguments
from dplinear.privacy.guarantees import PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MOMENTS

# Of the absolute value of a normal number, 90% are between these many standard deviations.
_NEAR, _FAR = 0.0627, 1.96
_SINGLE = "The proof of {} is about single rows, not about all rows of a unit."
_TAKES_UNITS = "it has no proof for units of privacy, which the default mechanisms have."
NORMAL_90 = 1.645  # standard deviations that 90% of a normal law are within


@dataclass(frozen=True)
class Prediction:
    """The error that is expected: the median, and the ends of a 90% interval."""

    error: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class Refusal:
    """Why a mechanism cannot be used, and what to ask for instead, if that is known."""

    sentence: str
    hint: str = ""

    @classmethod
    def of(cls, error: ArgumentError) -> "Refusal":
        """Return the mechanism's own words."""
        return cls(error.sentence, error.hint)

    def __str__(self) -> str:
        return f"{self.sentence} Hint: {self.hint}" if self.hint else self.sentence


class Question(ABC):
    """Something to learn of a table.

    `name` is the value of `learn`; `measure` says what an error is; `trivial` is the error of an
    answer that needs no data, if any; `alike` is the ratio of errors below which the usual way is
    as good; `adds_squares` says that noise and sampling add up in squares.
    """

    name: ClassVar[str]
    measure: ClassVar[str]
    target: ClassVar[bool] = False
    relations: ClassVar[tuple[Neighbours, ...]] = RELATIONS
    trivial: ClassVar[float | None] = None
    alike: ClassVar[float] = 1.05
    adds_squares: ClassVar[bool] = False

    @property
    @abstractmethod
    def ways(self) -> tuple[str, ...]:
        """The names of all mechanisms that answer it, the usual one first."""

    @abstractmethod
    def floor(self, facts: Facts) -> float:
        """Return the error without privacy."""

    @abstractmethod
    def predict(self, way: str, facts: Facts) -> Prediction:
        """Return the error of one way."""

    @abstractmethod
    def call(self, way: str, facts: Facts) -> str:
        """Return the Python call that goes this way, on one line."""

    @abstractmethod
    def refusal(self, way: str, facts: Facts) -> Refusal | None:
        """Return why a way cannot be gone under such a guarantee, or None if it can."""

    def beyond(self, facts: Facts) -> Refusal | None:
        """Return why nothing can be recommended for such a table, or None if something can."""
        return None

    def elsewhere(self, facts: Facts) -> str:
        """Return what keeps a guarantee that none of the ways can; empty if nothing does."""
        return ""


def is_exact(way: str) -> bool:
    """Return whether the guarantee of a way is one of the program, and not of an ideal only.

    Noise drawn in floating point lets neighbours be told apart, so nothing recommends such a way.
    """
    return way not in MOMENTS or MOMENTS[way].numerics == "exact"


def over_kinds(facts: Facts, each: Sequence[Prediction]) -> Prediction:
    """Return one prediction for all kinds of tables that the caller left open."""
    if len(each) == 1:
        return each[0]
    open_facts = [
        words
        for words, given in (("the condition number", facts.condition), ("the tails", facts.tails))
        if given is None
    ]
    notes = [one.note for one in each if one.note]
    note = f"you did not give {join_words(open_facts)} of the table, so this covers all values"
    return over_all(each, "; ".join([note, *notes[:1]]))


def over_all(each: Sequence[Prediction], note: str) -> Prediction:
    """Return one prediction for several tables: the middle of their logarithms, the widest ends."""
    logs = [math.log(one.error) for one in each]
    return Prediction(
        math.exp(sum(logs) / len(logs)),
        min(one.low for one in each),
        max(one.high for one in each),
        note,
    )


def join_words(words: Sequence[str]) -> str:
    """Return names in a row."""
    return " and ".join(words)


def lognormal(error: float, spread: float, note: str = "") -> Prediction:
    """Return a median with the interval of a normal law of its logarithm."""
    reach = math.exp(NORMAL_90 * spread)
    return Prediction(error, error / reach, error * reach, note)


def absolute(deviation: float, note: str = "") -> Prediction:
    """Return a root mean square error, and the interval of absolute values of a normal number."""
    return Prediction(deviation, deviation * _NEAR, deviation * _FAR, note)


def refusal_reason(kind: type[Mechanism], facts: Facts, **options: object) -> Refusal | None:
    """Return why a mechanism refuses a guarantee or a neighbour relation; None if it does not."""
    if facts.units is not None and not kind.for_units:
        return Refusal(_SINGLE.format(kind.name), _TAKES_UNITS)
    try:
        kind(guarantee=facts.guarantee, neighbours=facts.neighbours, **options)  # a mechanism's own
    except ArgumentError as error:
        return Refusal.of(error)
    return None


def in_a_set(facts: Facts, labels: str, loss: str = "") -> str:
    """Return what keeps pure ε: a model in a set, and how its error is foreseen."""
    guarantee = facts.guarantee
    if not isinstance(guarantee, PureDP) and getattr(guarantee, "delta", None) != 0:
        return ""
    asked = f"epsilon={guarantee.epsilon:g}, constraint=1.0{loss}"  # type: ignore[union-attr]  # checked
    size = f"{facts.rows}, {facts.columns}"
    return (
        "add delta=1e-6. Pure ε-DP is only possible for models in a constraint set, "
        f"`dpl.release_model(X, target=y, {asked}, row_norm=..., {labels})`, whose errors "
        f"`dpl.forecast_compressed({size}, {asked}, nonzeros=None)` simulates, learner by learner."
    )


def terms(facts: Facts, usual: Neighbours = Neighbours.ADD_REMOVE) -> str:
    """Return guarantee, neighbours where those are not the usual ones, and units, for a call."""
    plain = facts.neighbours is usual
    said = [write_arguments(facts.guarantee)]
    said += [] if plain else [f'neighbours="{facts.neighbours}"']
    if facts.units is not None:
        said += [] if facts.unit_named else ["unit=unit"]
        said.append(f"rows_per_unit={facts.units.rows_per_unit}")
    return ", ".join(said)
