"""What the releases of a dataset promise together, had they been settled beforehand.

A budget admits spends that are chosen in the light of earlier ones, and its sums are what holds
then. For a list that was fixed before the first release more is known: Gaussian noise composes
exactly, and mixtures through their privacy-loss distributions. These figures are for readers; they
never admit a spend.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dplinear.analyst.releases.certificate import GUARANTEES
from dplinear.arguments import real
from dplinear.ledger.budget import Budget
from dplinear.privacy import compose
from dplinear.privacy.concentration import concentration
from dplinear.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.profiles.concentrated import Concentrated
from dplinear.privacy.profiles.gaussian import Gaussian, GridGaussian
from dplinear.privacy.profiles.laplace import Laplace, Pure
from dplinear.privacy.rounding import ceiling, up

DELTAS = (1e-6, 1e-9)
_PROFILES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Gaussian, GridGaussian, Laplace, Pure, Concentrated)
}
_POINTS, _TAIL = 500, 1e-12
_MOST = 32  # mechanisms of one mixture that are convolved


@dataclass(frozen=True)
class Figure:
    """ε at one δ, and how it was found; None where nothing is known at that δ."""

    delta: float
    epsilon: float | None
    way: str

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"nothing at δ = {self.delta:g} ({self.way})"
        return f"ε = {self.epsilon:.4g} at δ = {self.delta:g} ({self.way})"


@dataclass(frozen=True)
class Figures:
    """A dataset's releases so far, counted as if they had been settled beforehand.

    `spent` is what the budget counts, which holds however they were chosen.
    """

    dataset: str
    budget: Budget
    spent: str
    releases: int
    figures: tuple[Figure, ...]

    def __str__(self) -> str:
        told = "; ".join(map(str, self.figures)) or "nothing"
        return (
            f"{self.dataset}: {self.spent} spent in {self.releases} of {self.budget}. Had they "
            f"been settled beforehand: {told}. This admits no spend."
        )


def facts_of(
    guarantee: Guarantee | None, concentrated: ZCDP | None, profile: Profile | None
) -> dict[str, Any]:
    """Return what a line has to say so that figures can be made of it, as plain JSON."""
    kind = type(profile).__name__
    known = None
    if profile is not None and type(profile) is _PROFILES.get(kind):
        names = [each.name for each in fields(_PROFILES[kind]) if each.name != "neighbours"]
        known = {"kind": kind} | {name: _number(getattr(profile, name)) for name in names}
    promised = None
    if guarantee is not None:
        promised = {"kind": type(guarantee).__name__} | dict(vars(guarantee))
    rho = None if concentrated is None else concentrated.rho
    return {"promised": promised, "rho": rho, "profile": known}


def _number(value: Any) -> float | None:
    return None if value is None else ceiling(Fraction(value))


def figures(
    lines: Sequence[tuple[Mapping[str, Any], int]], budget: Budget, deltas: Sequence[float]
) -> tuple[Figure, ...]:
    """Return ε at each δ for spends: what each line says, and its steps between neighbours."""
    wanted = [
        real(each, "deltas", "figures", low=0, high=1, open_low=True, open_high=True)
        for each in deltas
    ]
    if not lines:
        return ()
    profiles: list[Profile] = []
    pairs: list[ApproxDP] = []
    for facts, steps in lines:
        part = _part(facts)
        if part is None:
            way = "a release whose promise has no ε"
            return tuple(Figure(each, None, way) for each in wanted)
        try:
            grouped = _group_part(part, steps)
        except ValueError:  # the δ of so many steps is 1
            return tuple(Figure(each, None, "δ reaches 1") for each in wanted)
        if isinstance(grouped, ApproxDP):
            pairs.append(grouped)
        else:
            profiles.append(replace(grouped, neighbours=budget.neighbours))
    return tuple(_figure(each, pairs, _merge_profiles(profiles)) for each in wanted)


def _part(facts: Mapping[str, Any]) -> Profile | ApproxDP | None:
    """Return all that is known of a release: a profile; or a pair; or None."""
    known, promised = (dict(facts.get(name) or {}) for name in ("profile", "promised"))
    if known:
        made: Profile = _PROFILES[known.pop("kind")](**known)
        return made
    if facts.get("rho") is not None:
        return Concentrated(facts["rho"])
    guarantee = GUARANTEES[promised.pop("kind")](**promised) if promised else None
    match guarantee:
        case PureDP():
            return Pure(guarantee.epsilon)
        case GDP():
            return Gaussian(guarantee.mu)
        case ZCDP():
            return Concentrated(guarantee.rho)
    return guarantee if isinstance(guarantee, ApproxDP) else None


def _group_part(part: Profile | ApproxDP, steps: int) -> Any:
    """Return what holds of a release for neighbours that are so many steps apart."""
    if steps == 1:
        return part
    match part:
        case ApproxDP():
            return part.group(steps)
        case Gaussian() | GridGaussian():
            return replace(part, mu=GDP(part.mu).group(steps).mu)
        case Laplace() | Pure():
            return Pure(PureDP(part.epsilon(0.0)).group(steps).epsilon)
    rho = concentration(part)
    assert rho is not None  # noqa: S101 - of `_PROFILES`, each has one
    return Concentrated(rho.group(steps).rho)


def _merge_profiles(profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """Return fewer profiles: all Gaussian noise as that of one long vector, and all ρ as one.

    Laws of independent parts multiply, so their distances to the continuous ones add up.
    """
    normal = [each for each in profiles if isinstance(each, Gaussian | GridGaussian)]
    known = [each for each in profiles if isinstance(each, Concentrated)]
    merged: list[Any] = [each for each in profiles if isinstance(each, Laplace | Pure)]
    if normal:
        mu = up(math.sqrt(sum(Fraction(each.mu) ** 2 for each in normal)), 2)
        cells = [each.inverse_variance for each in normal if isinstance(each, GridGaussian)]
        one = GridGaussian(mu, _sum(cells)) if cells else Gaussian(mu)
        merged.insert(0, normal[0] if len(normal) == 1 else one)
    if known:
        merged.append(known[0] if len(known) == 1 else Concentrated(_sum(x.rho for x in known)))
    return tuple(replace(each, neighbours=profiles[0].neighbours) for each in merged)


def _sum(values: Iterable[float]) -> float:
    return ceiling(sum(map(Fraction, values), Fraction(0)))


def _figure(delta: float, pairs: Sequence[ApproxDP], profiles: Sequence[Profile]) -> Figure:
    """Return the best that is known at one δ; pairs take their part of it, and add up."""
    taken = sum((Fraction(pair.delta) for pair in pairs), Fraction(0))
    added = sum((Fraction(pair.epsilon) for pair in pairs), Fraction(0))
    room = Fraction(delta) - taken
    if room < 0 or (room == 0 and profiles):
        return Figure(delta, None, f"pairs take δ = {float(taken):g}")
    if not profiles:
        return Figure(delta, ceiling(added), "pairs added up")
    left = math.nextafter(float(room), 0.0) if taken else delta
    found = [(way(profiles, left), name) for name, way in _WAYS.items()]
    epsilon, name = min((each, name) for each, name in found if each is not None)
    return Figure(delta, ceiling(added + Fraction(epsilon)), name)


def _exactly(profiles: Sequence[Profile], delta: float) -> float | None:
    """Return ε of a single mechanism."""
    return profiles[0].epsilon(delta) if len(profiles) == 1 else None


def _epsilon_by_concentration(profiles: Sequence[Profile], delta: float) -> float | None:
    """Return ε of the sum of all ρ."""
    total = ZCDP(_sum(rho.rho for rho in map(concentration, profiles) if rho is not None))
    return total.to(ApproxDP, delta=delta).epsilon


def _purely(profiles: Sequence[Profile], _: float) -> float | None:
    """Return the sum of all ε, if no loss is unbounded."""
    try:
        return _sum(each.epsilon(0.0) for each in profiles)
    except ValueError:
        return None


def _epsilon_by_convolution(profiles: Sequence[Profile], delta: float) -> float | None:
    """Return ε by privacy-loss distributions, if their library is there."""
    if not 1 < len(profiles) <= _MOST:
        return None
    try:
        return _compose_profiles(tuple(profiles)).epsilon(delta)
    except ImportError:
        return None


@lru_cache(maxsize=8)
def _compose_profiles(profiles: tuple[Profile, ...]) -> Profile:
    widest = max(each.epsilon(_TAIL) for each in profiles)
    # Coarse, so that nobody waits for it: a coarser grid is still an upper bound.
    interval = 2.0 ** math.ceil(math.log2(widest / _POINTS))
    return compose.profiles(list(profiles), interval=interval)


_WAYS: dict[str, Callable[[Sequence[Profile], float], float | None]] = {
    "by their curve": _exactly,
    "by their ε": _purely,
    "by their ρ": _epsilon_by_concentration,
    "by privacy-loss distributions": _epsilon_by_convolution,
}
