"""Composition: what several releases from one table promise together.

Two different questions have two different types. A *fixed* list of releases, settled before the
first is made, composes into a `Profile` or a guarantee, as tightly as mathematics allows. When
later releases are chosen after seeing earlier ones, only a `Filter` is valid: it admits spends
while their exact sum stays within a budget set beforehand.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, TypeVar

from dplinear import arguments
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.profiles.gaussian import Gaussian, GridGaussian
from dplinear.privacy.rounding import ceiling, up
from dplinear.tracebacks import PlainError


def guarantees(parts: Sequence[Guarantee]) -> Guarantee:
    """Return what a fixed list of guarantees promises together.

    All of a kind: ε, (ε and δ), ρ, μ² or bits add up. Pure, Gaussian and concentrated ones mixed:
    ρ adds up. (For a tighter account of a mixture, compose the mechanisms' profiles.)
    """
    where = "compose.guarantees"
    checked = _check_parts(parts, (PureDP, ApproxDP, ZCDP, GDP, MIDP), where, "guarantees")
    kinds = {type(part) for part in checked}
    if kinds == {GDP}:
        return GDP(_root(_sum_of_squares(p.mu for p in checked if isinstance(p, GDP))))
    if kinds == {PureDP}:
        return PureDP(_sum(p.epsilon for p in checked if isinstance(p, PureDP)))
    if kinds == {MIDP}:
        return MIDP(_sum(p.bits for p in checked if isinstance(p, MIDP)))
    if kinds <= {PureDP, ApproxDP}:
        pairs = [part.to(ApproxDP) for part in checked]
        return ApproxDP(_sum(p.epsilon for p in pairs), _sum(p.delta for p in pairs))
    if kinds <= {PureDP, ZCDP, GDP}:
        return ZCDP(_sum(part.to(ZCDP).rho for part in checked))
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise arguments.rejection(
        "parts", where, "guarantees that compose with each other", names, "compose their profiles"
    )


def profiles(parts: Sequence[Profile], *, interval: float | None = None) -> Profile:
    """Return the profile of a fixed list of mechanisms run on the same table.

    Gaussian ones compose exactly (μ² adds up), and so do ones on integer grids, whose coordinates
    stand beside each other (μ² and Σ 1/σᵢ² add up). Any other mixture goes through privacy-loss
    distributions, discretised pessimistically on a grid of `interval` (by default fine enough for
    the narrowest of them); that needs the extra `dplinear[accounting]`.
    """
    where = "compose.profiles"
    checked = _check_parts(parts, (Profile,), where, "profiles")
    relations = {part.neighbours for part in checked}
    if len(relations) > 1:
        names = ", ".join(sorted(relations))
        raise arguments.rejection("parts", where, "profiles of one neighbour relation", names)
    gaussians = [part for part in checked if isinstance(part, Gaussian)]
    if len(gaussians) == len(checked):
        total = _sum_of_squares(part.mu for part in gaussians)
        return Gaussian(_root(total), relations.pop())
    if len(checked) == 1:
        return checked[0]
    grids = [part for part in checked if isinstance(part, GridGaussian)]
    if len(grids) == len(checked):
        total = _sum_of_squares(part.mu for part in grids)
        return GridGaussian(
            _root(total), _sum(part.inverse_variance for part in grids), relations.pop()
        )
    from dplinear.privacy.loss import compose_profiles

    if interval is not None:
        interval = arguments.positive(interval, "interval", where)
    return compose_profiles(checked, interval)


_Amount = TypeVar("_Amount", Fraction, int)  # exact ones alone


class BudgetExceededError(PlainError):
    """A spend would exceed the budget, and was not admitted."""


@dataclass(frozen=True)
class Filter(Generic[_Amount]):
    """A privacy filter: the only valid account of spends that are chosen adaptively.

    Of ρ: Feldman and Zrnic 2021 (arXiv 2008.11193v4) and Whitehouse et al. 2023 (arXiv
    2203.05481v3). Of μ²: Smith and Thakurta 2022 (arXiv 2210.17520v1).
    Chains of noisy sums and ledgers admit by it and by nothing else. `limit` and `spent` are exact
    amounts that add up side by side: ρ alone; ε and δ; μ² and Σ 1/σ².
    Requires: `limit` is set before the first spend; every release spends *before* it reads.
    Promises: whatever is admitted, in whatever order and however chosen, stays within the limit in
    every amount, and nothing gives back what is spent. Sums are exact, so nothing is gained or lost
    by splitting a spend. A filter is frozen: `after(cost)` returns the next one.
    """

    limit: tuple[_Amount, ...]
    spent: tuple[_Amount, ...]

    @property
    def remaining(self) -> tuple[_Amount, ...]:
        """Return what is left of each amount."""
        return tuple(most - gone for most, gone in zip(self.limit, self.spent, strict=True))

    def admits(self, cost: tuple[_Amount, ...]) -> bool:
        """Return whether a cost still fits: no amount is negative, or more than is left."""
        return all(0 <= each <= left for each, left in zip(cost, self.remaining, strict=True))

    def after(self, cost: tuple[_Amount, ...], refusal: str) -> "Filter[_Amount]":
        """Return the filter with the cost admitted, or raise BudgetExceededError: the refusal."""
        if not self.admits(cost):
            raise BudgetExceededError(refusal)
        spent = tuple(gone + each for gone, each in zip(self.spent, cost, strict=True))
        return replace(self, spent=spent)


def _sum(values: Iterable[float]) -> float:
    """Return the sum, exact until it is rounded up to a float."""
    return ceiling(sum(map(Fraction, values), Fraction(0)))


def _sum_of_squares(values: Iterable[float]) -> Fraction:
    return sum((Fraction(value) ** 2 for value in values), Fraction(0))


def _root(value: Fraction) -> float:
    return up(math.sqrt(value), 2)


T = TypeVar("T")


def _check_parts(parts: Iterable[T], kinds: tuple[type, ...], where: str, what: str) -> list[T]:
    """Return the parts as a list, if there are any and all are of the kinds."""
    if not isinstance(parts, list | tuple) or not parts:
        raise arguments.wrong_type("parts", where, f"a list of one or more {what}", parts)
    for part in parts:
        if not isinstance(part, kinds):
            raise arguments.wrong_type("parts", where, f"a list of {what}", part)
    return list(parts)
