"""What can be audited: a mechanism, two neighbours, and how to tell its releases of them apart.

A `Subject` runs the real mechanism on either of two tables and returns one number for each run: the
logarithm of the ratio of likelihoods where that is known, so that no other number tells more.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.audit.bounds import (
    Counts,
    Event,
    bits_bound,
    epsilon_bound,
    gaussian_epsilon,
    gaussian_mu,
    mu_bound,
)
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours

_JUST_BELOW = 0.98  # of a loss that is reached with a probability of its own


@dataclass(frozen=True)
class Claim:
    """A promised number, by its `kind`: "epsilon" (at `delta`), "mu" or "bits"."""

    kind: str
    value: float
    delta: float = 0.0

    @classmethod
    def of(cls, guarantee: Guarantee, *, normal: bool) -> "Claim":
        """Return the claim that trials can refute; of normal noise it is always one on μ."""
        match guarantee:
            case MIDP(bits=bits):
                return cls("bits", bits)
            case ZCDP(rho=rho):
                return cls("mu", float(np.sqrt(2 * rho)))
            case GDP(mu=mu):
                return cls("mu", mu)
            case PureDP(epsilon=epsilon):
                return cls("epsilon", epsilon)
            case ApproxDP(epsilon=epsilon, delta=delta):
                if normal and delta > 0:
                    return cls("mu", gaussian_mu(epsilon, delta), delta)
                return cls("epsilon", epsilon, delta)

    def bound(self, counts: Counts, alarm: float) -> float:
        """Return what the counts prove, in the unit of the claim."""
        if self.kind == "epsilon":
            return epsilon_bound(counts, self.delta, alarm)
        return mu_bound(counts, alarm) if self.kind == "mu" else bits_bound(counts, alarm)

    def events(self) -> tuple[Event, ...]:
        """Return the events of a log-likelihood ratio that refute a false claim best.

        At ε and δ the most is proved by a loss above ε, in either direction; by any loss that is
        reached with mass of its own, such as Laplace noise's largest; and between normal laws by
        what is likelier on one table than on the other.
        """
        if self.kind != "epsilon":
            return (Event(0.0),)
        at = self.value if self.delta > 0 else _JUST_BELOW * self.value
        return Event(at), Event(-at, back=True)

    def epsilon(self, value: float) -> float | None:
        """Return a number of this kind as ε, where there is a δ for it."""
        if self.kind == "epsilon":
            return value
        if self.kind == "mu" and self.delta > 0:
            return gaussian_epsilon(value, self.delta)
        return None


class Subject(ABC):
    """A mechanism and its worst pair of tables.

    `exact`: whether the pair and the number are those of the claimed curve, so that an audit comes
    close to the claim. `chosen`: whether the event has to be chosen on some of the trials. `runs`:
    how many there are usually, where that is not for the claim to say; `slow`: whether a run is a
    whole learning, so that there are no more than it takes.
    """

    name: str
    guarantee: Guarantee
    neighbours: Neighbours
    claim: Claim
    exact: bool = True
    chosen: bool = False
    batch: int = 20_000
    runs: int | None = None
    slow: bool = False

    @abstractmethod
    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Return the numbers of `count` independent runs on one table, or on the other."""

    def numbers(
        self,
        trials: int,
        entropy: Entropy,
        *,
        other: bool,
        watch: Callable[[int], object] | None = None,
    ) -> Floats:
        """Return the numbers of many runs, a batch at a time; tell `watch` how many are done."""
        parts = []
        for start in range(0, trials, self.batch):
            count = min(self.batch, trials - start)
            parts.append(self.draw(count, entropy, other=other))
            if watch is not None:
                watch(start + count)
        return np.concatenate(parts)


def refusal(parameter: str, rule: str, value: object) -> ValueError:
    """Return the error for what cannot be audited."""
    return arguments.rejection(parameter, "audit", rule, value)
