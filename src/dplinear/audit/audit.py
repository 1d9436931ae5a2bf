"""Audits: run a mechanism on two neighbours, count, and say what the counts prove of its promise.

`audit` knows the worst pairs of this library's mechanisms; `audit_callable` takes any function and
any two tables. An audit can refute a promise, never prove one.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.audit.bounds import Counts, Event, best_event
from dplinear.audit.classifier import numbers_of, scores
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.noise.entropy import Entropy, system
from dplinear.privacy.guarantees import Guarantee

CONFIDENCE = 0.95
ALARM = 1e-4  # how often a promise that is kept exactly may be called broken
EXPECTED = 0.9  # of the claim, where the statistic is exact
_UNITS = {"epsilon": "ε", "mu": "μ", "bits": "bits"}
_MOST_TRIALS = 100_000_000


@dataclass(frozen=True)
class AuditResult:
    """What was claimed, and what `trials` runs on each of two tables prove.

    `claimed` and `audited` are in the unit of `kind` ("epsilon", "mu" or "bits"); `audited` is a
    lower bound that holds with 95% confidence, `proved` one that fails once in 10,000 audits.
    `claimed_epsilon` and `audited_epsilon` are the same as ε at `delta`, where that has a meaning.
    """

    mechanism: str
    guarantee: Guarantee
    neighbours: str
    kind: str
    claimed: float
    audited: float
    proved: float
    delta: float
    claimed_epsilon: float | None
    audited_epsilon: float | None
    trials: int
    exact: bool
    simulated: bool
    counts: tuple[Counts, ...]

    @property
    def unit(self) -> str:
        """The sign of what `claimed` and `audited` are."""
        return _UNITS[self.kind]

    @property
    def ratio(self) -> float:
        """What is proved, as a part of the claim."""
        return self.audited / self.claimed if self.claimed else 0.0

    @property
    def broken(self) -> bool:
        """Whether the promise is refuted, beyond one chance in 10,000."""
        return self.proved > self.claimed

    @property
    def verdict(self) -> str:
        """Return "broken", "holds" or, where the audit is close to the claim, "holds, tight"."""
        if self.broken:
            return "broken"
        return "holds, tight" if self.ratio >= EXPECTED else "holds"

    def __str__(self) -> str:
        unit = self.unit
        return (
            f"{self.mechanism} ({self.guarantee}; neighbours {self.neighbours}): "
            f"{unit} = {self.claimed:.3g} claimed, {unit} ≥ {self.audited:.3g} audited in "
            f"{self.trials:,} runs on each table: {self.verdict}"
        )


def audit_subject(
    subject: Subject,
    trials: int = 100_000,
    *,
    entropy: Entropy | None = None,
    confidence: float = CONFIDENCE,
    watch: Callable[[int], object] | None = None,
) -> AuditResult:
    """Run the subject's mechanism `trials` times on each of its tables.

    `watch` is told, as the audit goes, how many of the 2·`trials` runs are done.
    Promises: `audited` holds with `confidence`. Where the event must be chosen, that takes half of
    the runs.
    """
    where = "audit"
    trials = arguments.integer(trials, "trials", where, low=100, high=_MOST_TRIALS)
    confidence = arguments.real(confidence, "confidence", where, low=0.5, high=1, open_high=True)
    bits = entropy or system()
    one = subject.numbers(trials, bits, other=False, watch=watch)
    other = subject.numbers(
        trials, bits, other=True, watch=watch and (lambda done: watch(trials + done))
    )
    counts = _counts(subject.claim, one, other, chosen=subject.chosen)
    facts = _Facts(subject.name, subject.guarantee, str(subject.neighbours), subject.exact)
    return _result(facts, subject.claim, counts, trials, confidence, simulated=bits.simulated)


def audit_callable(
    function: Callable[[Any], Any],
    table: Any,
    neighbour: Any,
    guarantee: Guarantee,
    *,
    trials: int = 10_000,
    normal: bool = False,
    bits: bool = False,
    confidence: float = CONFIDENCE,
    plot: str | os.PathLike[str] | None = None,
) -> AuditResult:
    """Audit a function of one's own, on two tables that its promise keeps apart.

    Requires: `function(table)` returns a number or an array, of one shape always, with fresh noise
    in each call. `normal` says that its noise is: then the claim is audited through μ. `bits` also
    looks at the last bits of the floats. `plot` is a PNG or SVG file for a picture of the number
    that tells the tables apart best.
    Promises: half the runs choose an event (a threshold on one of the numbers or on a logistic
    score of them all), the other half count it, so that the bound holds whatever the function is.
    """
    where = "audit_callable"
    trials = arguments.integer(trials, "trials", where, low=100, high=_MOST_TRIALS)
    if not callable(function):
        raise arguments.wrong_type("function", where, "callable", function)
    confidence = arguments.real(confidence, "confidence", where, low=0.5, high=1, open_high=True)
    claim = Claim.of(guarantee, normal=normal)
    runs = [
        np.stack([numbers_of(function(given), bits=bits) for _ in range(trials)])
        for given in (table, neighbour)
    ]
    name = getattr(function, "__name__", type(function).__name__)
    return audit_runs(name, guarantee, claim, (runs[0], runs[1]), confidence=confidence, plot=plot)


def audit_runs(
    name: str,
    guarantee: Guarantee,
    claim: Claim,
    runs: tuple[Floats, Floats],
    *,
    neighbours: str = "as given",
    confidence: float = CONFIDENCE,
    simulated: bool = False,
    plot: str | os.PathLike[str] | None = None,
) -> AuditResult:
    """Audit numbers that were released already, a line for each run on each of two tables."""
    half = len(runs[0]) // 2
    first, second = scores([part[:half] for part in runs], [part[half:] for part in runs])
    best = _best_column(claim, first)
    columns = [part[:, best] for part in (*first, *second)]
    event = best_event(columns[0], columns[1], partial(_bound, claim, 1 - CONFIDENCE))
    counts = (event.count(columns[2], columns[3]),)
    facts = _Facts(name, guarantee, neighbours, exact=False)
    result = _result(facts, claim, counts, len(runs[0]), confidence, simulated=simulated)
    if plot is not None:
        from dplinear.audit import picture

        label = "a released number, or a score of all"
        picture.save(picture.histograms(result, columns[2:], [event.threshold], label), plot)
    return result


@dataclass(frozen=True)
class _Facts:
    name: str
    guarantee: Guarantee
    neighbours: str
    exact: bool


def _bound(claim: Claim, alarm: float, counts: Counts) -> float:
    return claim.bound(counts, alarm)


def _best_column(claim: Claim, parts: Sequence[Floats]) -> int:
    """Return the column whose best event proves most."""
    bound = partial(_bound, claim, 1 - CONFIDENCE)

    def most(column: int) -> float:
        one, other = (part[:, column] for part in parts)
        event = best_event(one, other, bound, candidates=24)
        return bound(event.count(one, other))

    return max(range(parts[0].shape[1]), key=most)


def _counts(claim: Claim, one: Floats, other: Floats, *, chosen: bool) -> tuple[Counts, ...]:
    if not chosen:
        return tuple(event.count(one, other) for event in claim.events())
    half = len(one) // 2
    bound = partial(_bound, claim, 1 - CONFIDENCE)
    event: Event = best_event(one[:half], other[:half], bound)
    return (event.count(one[half:], other[half:]),)


def _result(
    facts: _Facts,
    claim: Claim,
    counts: tuple[Counts, ...],
    trials: int,
    confidence: float,
    *,
    simulated: bool,
) -> AuditResult:
    def proven_epsilon(alarm: float) -> float:
        # Every event has its share of what may go wrong.
        return max(claim.bound(count, alarm / len(counts)) for count in counts)

    audited = proven_epsilon(1 - confidence)
    known = claim.epsilon(claim.value)
    return AuditResult(
        mechanism=facts.name,
        guarantee=facts.guarantee,
        neighbours=facts.neighbours,
        kind=claim.kind,
        claimed=claim.value,
        audited=audited,
        proved=proven_epsilon(ALARM),
        delta=claim.delta,
        claimed_epsilon=known,
        audited_epsilon=None if known is None else claim.epsilon(audited),
        trials=trials,
        exact=facts.exact,
        simulated=simulated,
        counts=counts,
    )
