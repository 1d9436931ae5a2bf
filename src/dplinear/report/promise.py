"""What a guarantee means to those in the table, in words and in three numbers.

Every number here is a theorem about the certificate, rounded against us. With a point (ε, δ) of the
proved curve, a test with chance α of false alarms is right with chance at most
min(e^ε·α + δ, 1 − e^(−ε)·(1 − δ − α)), and a guess between two equally likely tables is right with
chance at most 1 − (1 − δ)/(1 + e^ε) (Wasserman and Zhou 2010; Kairouz, Oh and
Viswanath 2015, arXiv 1311.0776).
All points hold at once, so the least of these bounds does.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scipy.special import ndtr, ndtri

from dplinear.analyst.releases.certificate import Certificate
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.report.words import format_value

ALARM = 0.05
_DELTA = 1e-6  # at which promises without a δ are told as odds
_LARGEST = 700.0  # e^ε is a float

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Promise:
    """A promise in plain words.

    `accuracy` is the best chance of guessing which of two equally likely tables was there, `power`
    that of finding one possibility at one false alarm in twenty; None where nothing is proved.
    """

    headline: str
    sentences: tuple[str, ...]
    protected: str
    unprotected: str
    accuracy: float | None
    power: float | None
    about: "Subject"


def promise(certificate: Certificate) -> Promise:
    """Return what a certificate promises, for a reader who knows nothing of δ(ε) curves."""
    protected, unprotected = neighbours_in_words(certificate)
    words = subject(certificate)
    if certificate.holds is None:
        nothing = "No formal guarantee is proved for this release."
        return Promise(nothing, (), protected, unprotected, None, None, words)
    if certificate.simulated:
        nothing = "This release protects nobody: its noise was drawn from a fixed seed."
        return Promise(nothing, (), protected, unprotected, None, None, words)
    points = proved_points(certificate)
    right = accuracy(certificate.holds, points)
    caught = power(certificate.holds, points)
    sentences = [*_of_guarantee(certificate, words), *_of_attacks(right, caught, words)]
    sentences.append(_IDEAL if certificate.of_ideal else _ANY)
    headline = _headline(certificate.holds, words)
    if certificate.of_ideal:
        headline = f"{_OF_IDEAL}{headline}"
    return Promise(headline, tuple(sentences), protected, unprotected, right, caught, words)


def proved_points(certificate: Certificate) -> Points:
    """Return all points (ε, δ) that the certificate proves: its curve, and what it holds."""
    points = set(certificate.curve)
    holds = certificate.holds
    if isinstance(holds, PureDP):
        points.add((holds.epsilon, 0.0))
    if isinstance(holds, ApproxDP):
        points.add((holds.epsilon, holds.delta))
    if isinstance(holds, MIDP) and holds.bits < 1:
        implied = holds.to(ApproxDP)
        points.add((implied.epsilon, implied.delta))
    return tuple(sorted(points))


def accuracy(holds: Guarantee, points: Points) -> float | None:
    """Return the best chance of telling two equally likely neighbours apart; a half is none."""
    bounds = [1 - (1 - delta) / (1 + _exp(epsilon)) for epsilon, delta in points]
    if isinstance(holds, GDP):
        bounds.append(float(ndtr(holds.mu / 2)))
    return min(bounds, default=None)


def power(holds: Guarantee, points: Points, alarm: float = ALARM) -> float | None:
    """Return the best chance of finding a possibility, at a chance `alarm` of false alarms."""
    bounds: list[float] = []
    for epsilon, delta in points:
        bounds.append(_exp(epsilon) * alarm + delta)
        bounds.append(1 - (1 - delta - alarm) / _exp(epsilon))
    if isinstance(holds, GDP):
        bounds.append(float(ndtr(ndtri(alarm) + holds.mu)))
    return min(bounds, default=None)


def percent(probability: float) -> str:
    """Return a chance as a reader says it, rounded up: a promise is not rounded down."""
    for digits in (0, 1, 2, 3):
        shown = math.ceil(round(probability * 100, 9) * 10**digits) / 10**digits
        if shown < 100 and (digits or probability > 0.1):
            return f"{shown:.{digits}f}%"
    return "100%"


def factor(epsilon: float) -> str:
    """Return e^ε, rounded up to three digits."""
    value = _exp(epsilon)
    if value >= 1e6:
        return "more than a million"
    digits = max(2 - math.floor(math.log10(value)), 0)
    shown = math.ceil(round(value * 10**digits, 6)) / 10**digits
    return f"{shown:,.{digits}f}"


def odds(delta: float) -> str:
    """Return a small chance as "one in 1,000,000", rounded against us."""
    if delta > 0.1:
        return percent(delta)
    each = math.floor(round(1 / delta, 3))
    if each >= 10**15:
        return f"one in 10^{math.floor(math.log10(each))}"
    digits = max(len(str(each)) - 3, 0)
    return f"one in {each // 10**digits * 10**digits:,}"


def _exp(epsilon: float) -> float:
    return math.exp(min(epsilon, _LARGEST))


def _headline(holds: Guarantee, words: "Subject") -> str:
    if isinstance(holds, MIDP):
        return f"An attacker learns at most {holds.bits:g} bits about {words.unit}."
    told = as_odds(holds)
    change = f"For {words.unit}, an attacker’s odds change by a factor of at most "
    change += factor(told.epsilon)
    if told.delta == 0:
        return f"{change}."
    return f"{change}, except with a probability of {odds(told.delta)}."


def as_odds(holds: PureDP | ApproxDP | ZCDP | GDP) -> ApproxDP:
    """Return the (ε, δ) to tell a promise by: its own, or what it implies at one in a million."""
    if isinstance(holds, ApproxDP):
        return holds
    return holds.to(ApproxDP) if isinstance(holds, PureDP) else holds.to(ApproxDP, delta=_DELTA)


def _of_guarantee(certificate: Certificate, words: "Subject") -> Iterable[str]:
    holds = certificate.holds
    if holds is None:
        return
    if isinstance(holds, MIDP):
        yield _BITS.format(unit=words.unit, bits=f"{holds.bits:g}")
        return
    if isinstance(holds, GDP):
        yield _BELLS.format(pair=words.pair, mu=f"{holds.mu:g}")
    told = as_odds(holds)
    yield _ODDS.format(pair=words.pair, factor=factor(told.epsilon), failure=_failure(told))
    if certificate.neighbours is Neighbours.ADD_REMOVE:
        # From one content of a row to another takes two steps: away with it, and in again.
        delta = told.delta * (1 + _exp(told.epsilon))
        if delta < 1:
            twice = ApproxDP(2 * told.epsilon, delta)
            yield _CONTENT.format(
                unit=words.unit, factor=factor(twice.epsilon), failure=_failure(twice)
            )


def _failure(told: ApproxDP) -> str:
    return "" if told.delta == 0 else f", except with a probability of at most {odds(told.delta)}"


def _of_attacks(right: float | None, caught: float | None, words: "Subject") -> Iterable[str]:
    if right is not None:
        yield _GUESS.format(pair=words.pair, probability=percent(right))
    if caught is not None:
        yield _ALARMS.format(probability=percent(caught))


@dataclass(frozen=True)
class Subject:
    """What a guarantee protects: the `unit` in two words, and the `pair` it makes hard to tell."""

    unit: str
    pair: str


def subject(certificate: Certificate) -> Subject:
    """Return what the guarantee of a certificate protects, by its neighbours."""
    if certificate.unit is not None:
        one = unit_in_words(certificate.unit)
        return Subject(one, f"the rows of {one} being in the table and not being in it")
    if certificate.neighbours is Neighbours.ADD_REMOVE:
        return Subject("one row", "a row being in the table and not being in it")
    if protects_rows(certificate):
        return Subject("one row", "two possible contents of one row")
    if certificate.neighbours is Neighbours.ELEMENT:
        near = "" if certificate.parameters.get("change") is None else ", that near to each other"
        return Subject("one cell", f"two possible values of one cell{near}")
    return Subject("one row", "two possible rows, that near to each other")


def unit_in_words(unit: str) -> str:
    """Return one unit of privacy in words: a plain word is taken as what it is called."""
    return f"one {unit}" if unit.isalpha() and unit.islower() else f"one unit (by {unit!r})"


def protects_rows(certificate: Certificate) -> bool:
    """Return whether whole rows are protected, and not only cells or small changes."""
    if certificate.neighbours in {Neighbours.ADD_REMOVE, Neighbours.REPLACE}:
        return True
    anything = certificate.parameters.get("change") is None
    return certificate.neighbours is Neighbours.ROW_L2 and anything


def neighbours_in_words(certificate: Certificate) -> tuple[str, str]:
    """Return what the promise keeps hidden, and what it does not."""
    if certificate.unit is not None:
        one = unit_in_words(certificate.unit).replace("one", "any one", 1)
        protected = _ANY_UNIT.format(one=one, unit=certificate.unit)
        return protected, _SEVERAL_IDS.format(unit=certificate.unit)
    if certificate.neighbours is Neighbours.ADD_REMOVE:
        return _ANY_ROW, _SEVERAL
    if protects_rows(certificate):
        protected = "Everything in any one row: it could have been any other row."
        return protected, f"The number of rows is public. {_SEVERAL}"
    change = format_value(certificate.parameters.get("change"))
    if certificate.neighbours is not Neighbours.ELEMENT:
        norm = "L1" if certificate.neighbours is Neighbours.ROW_L1 else "Euclidean"
        return _NEAR.format(norm=norm, change=change) + _gaps(certificate), _FAR
    if certificate.parameters.get("change") is None:
        return "Any single cell: it could have held anything else that is allowed there.", _CELLS
    return _SMALL.format(change=change) + _gaps(certificate), _CELLS


def _gaps(certificate: Certificate) -> str:
    """Return what a bounded change says of cells that go missing; old releases have not said."""
    return _MAY_GO if certificate.parameters.get("missing_public") is False else _SAME_GAPS


_BITS = (
    "Whatever an attacker knows already, this release reveals at most {bits} bits about {unit}. "
    "The answer to one open yes-or-no question is worth 1 bit."
)
_BELLS = (
    "Telling apart {pair} is at least as hard as telling apart, from a single measurement, two "
    "normal distributions whose means are {mu} standard deviations from each other."
)
_ODDS = (
    "For an attacker who knows the rest of the table, seeing this release changes the odds between "
    "{pair} by a factor of at most {factor}{failure}."
)
_CONTENT = (
    "Suppose the attacker knows that {unit} is in the table. The odds between two possible "
    "contents then change by a factor of at most {factor}{failure}."
)
_GUESS = (
    "An attacker who knows the rest of the table, and gives even odds to {pair}, guesses right "
    "with a probability of at most {probability}. Without this release it would be 50%."
)
_ALARMS = (
    "An attacker who tests for one of the two possibilities, with a false-alarm rate of 5%, "
    "detects it with a probability of at most {probability}. Without this release it would be 5%."
)
_ANY = (
    "This holds against any computing power and any outside knowledge, now and later, and for "
    "whatever is computed from the release."
)
_OF_IDEAL = "Of the ideal mechanism, not of this program: "
_IDEAL = (
    "All of this is proved for an ideal mechanism whose noise is real numbers. The program drew "
    "floating-point numbers, and an attacker who asks which of them can occur may learn more."
)
_ANY_ROW = (
    "Whether any one row is in the table, and everything in that row. Even the exact number of "
    "rows stays private."
)
_SEVERAL = (
    "The unit of privacy is one row, so a person with several rows is protected less. What is true "
    "in general, and would be learnt without that row too, is not hidden."
)
_ANY_UNIT = (
    "Whether {one} is in the table, and everything in all of its rows, however many they are. Even "
    "the exact number of rows, and the number of different values of {unit!r}, stay private."
)
_SEVERAL_IDS = (
    "A person whose rows stand under several values of {unit!r} is protected less: the guarantee "
    "is for the rows of one value. What is true in general, and would be learnt without these rows "
    "too, is not hidden."
)
_CELLS = (
    "Whole rows are protected less, because their cells add up; the number of rows and their order "
    "are public."
)
_SMALL = "A change of any single cell, of a number by at most {change} halves of its range."
_NEAR = (
    "Changes of any one row by {norm} distance at most {change}, in units in which the range of "
    "each column is 2."
)
_MAY_GO = " A changed cell may also be one that goes missing, or that was."
_SAME_GAPS = " Which cells are missing is not hidden."
_FAR = "Larger changes of a row are protected less; the number of rows is public."
