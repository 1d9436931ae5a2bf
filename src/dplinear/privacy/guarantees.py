"""The guarantees a release can carry: frozen values that say what an attacker can learn.

A guarantee does not say between which tables it holds; that is the neighbour relation, which goes
with it everywhere. Conversions live in `conversions.py`, reached by `guarantee.to(kind)`.
"""

import math
from dataclasses import dataclass
from typing import TypeVar

from dplinear import arguments
from dplinear.privacy.rounding import multiple


@dataclass(frozen=True)
class PureDP:
    """ε-differential privacy: no event becomes more than e^ε times likelier."""

    epsilon: float

    def __post_init__(self) -> None:
        value = arguments.positive(self.epsilon, "epsilon", "PureDP")
        object.__setattr__(self, "epsilon", value)

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}"

    def to(self, kind: "type[Kind]", *, delta: float | None = None) -> "Kind":
        """Return the guarantee of another kind that this one implies."""
        return _convert(self, kind, delta)

    def group(self, size: int) -> "PureDP":
        """Return what holds for tables that differ in `size` steps."""
        size = arguments.integer(size, "size", "PureDP.group", low=1)
        return PureDP(multiple(self.epsilon, size))


@dataclass(frozen=True)
class ApproxDP:
    """(ε, δ)-differential privacy: as ε-DP, but for an additive δ on every event."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon = arguments.real(self.epsilon, "epsilon", "ApproxDP", low=0)
        delta = arguments.real(self.delta, "delta", "ApproxDP", low=0, high=1, open_high=True)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}, δ = {self.delta:g}"

    def to(self, kind: "type[Kind]", *, delta: float | None = None) -> "Kind":
        """Return the guarantee of another kind that this one implies."""
        return _convert(self, kind, delta)

    def group(self, size: int) -> "ApproxDP":
        """Return what holds for tables that differ in `size` steps: δ grows by Σ e^{iε}."""
        size = arguments.integer(size, "size", "ApproxDP.group", low=1)
        growth = math.fsum(math.exp(min(i * self.epsilon, 700.0)) for i in range(size))
        delta = self.delta * growth * (1 + 1e-14)
        if delta >= 1:
            hint = "choose a smaller δ, or a guarantee that scales better, such as GDP"
            rule = "small enough that the group's δ is below 1"
            raise arguments.rejection("size", "ApproxDP.group", rule, size, hint)
        return ApproxDP(multiple(self.epsilon, size), delta)


@dataclass(frozen=True)
class ZCDP:
    """ρ-zero-concentrated DP: Rényi divergence at most ρ·α at every order α > 1."""

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", arguments.positive(self.rho, "rho", "ZCDP"))

    def __str__(self) -> str:
        return f"ρ = {self.rho:g}"

    def to(self, kind: "type[Kind]", *, delta: float | None = None) -> "Kind":
        """Return the guarantee of another kind that this one implies."""
        return _convert(self, kind, delta)

    def group(self, size: int) -> "ZCDP":
        """Return what holds for tables that differ in `size` steps."""
        size = arguments.integer(size, "size", "ZCDP.group", low=1)
        return ZCDP(multiple(self.rho, size**2))


@dataclass(frozen=True)
class GDP:
    """μ-Gaussian DP: neighbours are as hard to tell apart as N(0, 1) and N(μ, 1)."""

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", arguments.positive(self.mu, "mu", "GDP"))

    def __str__(self) -> str:
        return f"μ = {self.mu:g}"

    def to(self, kind: "type[Kind]", *, delta: float | None = None) -> "Kind":
        """Return the guarantee of another kind that this one implies."""
        return _convert(self, kind, delta)

    def group(self, size: int) -> "GDP":
        """Return what holds for tables that differ in `size` steps."""
        size = arguments.integer(size, "size", "GDP.group", low=1)
        return GDP(multiple(self.mu, size))


@dataclass(frozen=True)
class MIDP:
    """Mutual-information DP: whatever the prior, at most `bits` are learnt about one entry.

    Cuff and Yu 2016 (arXiv 1608.03677v1): I(entry; output | all other entries) ≤ bits.
    """

    bits: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", arguments.positive(self.bits, "bits", "MIDP"))

    def __str__(self) -> str:
        return f"{self.bits:g} bits"

    def to(self, kind: "type[Kind]", *, delta: float | None = None) -> "Kind":
        """Return the guarantee of another kind that this one implies."""
        return _convert(self, kind, delta)


Guarantee = PureDP | ApproxDP | ZCDP | GDP | MIDP
Kind = TypeVar("Kind", PureDP, ApproxDP, ZCDP, GDP, MIDP)


def _convert(guarantee: Guarantee, kind: type[Kind], delta: float | None) -> Kind:
    from dplinear.privacy.conversions import convert

    return convert(guarantee, kind, delta=delta)
