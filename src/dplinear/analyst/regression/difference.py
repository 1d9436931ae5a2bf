"""Differences between the coefficients of two fits, with standard errors and intervals.

Errors of two fits on different rows are independent, and their variances add up. Where the rows, or
the people behind them, may be the same, nothing is assumed of how errors go together: standard
errors add up, which is the most that they can be (docs/inference.md, "Differences").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dplinear.analyst.regression.inference import Intervals
from dplinear.analyst.regression.summary import Summary, SummaryFacts, summary
from dplinear.analyst.releases.joined_certificate import parts_of
from dplinear.analyst.results import NamedVector
from dplinear.arguments import flag, rejection, wrong_type

if TYPE_CHECKING:
    from dplinear.analyst.releases.certificate import Certificate
    from dplinear.arrays import Floats

_WHERE = "difference"
_LABELS = ("first", "second")
_BOUND = (
    "Standard errors are upper bounds: the two fits may be of the same people. Where no row and no "
    "unit is behind both, disjoint=True makes them smaller."
)


class Fitted(Protocol):
    """A linear model with intervals: of moments, or released by itself."""

    @property
    def target(self) -> str:
        """What it explains."""

    @property
    def names(self) -> tuple[str, ...]:
        """The features, in the order of the coefficients."""

    @property
    def certificate(self) -> Certificate:
        """That of the release."""

    def intervals(self, level: float = ...) -> Intervals:
        """Return the coefficients with intervals."""


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """How much larger the coefficients of `one` are than those of `other`.

    `disjoint` says that no row, and no unit of privacy, is behind both, or that they are different
    groups of one release; `labels` name the two.
    """

    one: Fitted = field(repr=False)
    other: Fitted = field(repr=False)
    disjoint: bool
    labels: tuple[str, str] = _LABELS

    @property
    def coefficients(self) -> NamedVector:
        """The differences of the coefficients, the intercept among them."""
        found = self.intervals()
        return NamedVector(found.names, found.estimates)

    def __getitem__(self, name: str) -> float:
        return self.coefficients[name]

    def intervals(self, level: float = 0.95) -> Intervals:
        """Return the differences with standard errors and intervals, of sampling and noise.

        Promises: `swamped` says in words why there are none, where one of the fits has none.
        """
        pair = self.one.intervals(level), self.other.intervals(level)
        names = tuple(name for name in pair[0].names if name in pair[1].names)
        first, second = (_Part.of(found, names) for found in pair)
        estimates = first.estimates - second.estimates
        for found, label in zip(pair, self.labels, strict=True):
            if found.swamped is not None:
                words = f"Of {label}: {found.swamped}"
                return _refusal(names, estimates, replace(found, swamped=words))
        sampling = _add(first.sampling, second.sampling, independent=self.disjoint)
        certificates = self.one.certificate, self.other.certificate
        apart = self.disjoint or _are_groups(*certificates) or not _share_noise(*certificates)
        privacy = _add(first.privacy, second.privacy, independent=apart)
        errors = np.sqrt(sampling + privacy)
        # Each interval has the quantile of its own degrees of freedom (Zou and Donner 2008).
        own = first.sampling + first.privacy + second.sampling + second.privacy
        quantile = np.sqrt((first.reach**2 + second.reach**2) / own)
        centre, reach = first.centre - second.centre, quantile * errors
        ends = centre - reach, centre + reach
        rest = (*ends, sampling, privacy, level, pair[0].method)
        return Intervals(names, estimates, errors, *rest)

    def summary(self, level: float = 0.95) -> Summary:
        """Return the table of differences with their intervals, for a terminal or a notebook."""
        certificates = self.one.certificate, self.other.certificate
        promises = dict.fromkeys(each.guarantee for each in certificates)
        notes = [] if self.disjoint else [_BOUND]
        if any(each.simulated for each in certificates):
            notes.append("SIMULATED: the noise was seeded, and protects nobody.")
        facts = SummaryFacts(
            target=self.one.target,
            intervals=self.intervals(level),
            guarantee="; ".join(promises),
            unit=certificates[0].unit,
            kind=f"Difference ({self.labels[0]} − {self.labels[1]}) of the",
            notes=tuple(notes),
        )
        return summary(facts)

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary().html


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Mapping[Any, Difference]):
    """How much larger the coefficients of each group are than those of the group `base`."""

    base: Any
    differences: Mapping[Any, Difference]

    def __getitem__(self, level: Any) -> Difference:
        return self.differences[level]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.differences.values()))

    def _repr_html_(self) -> str:
        return "\n".join(each.summary().html for each in self.differences.values())


def difference(
    one: Fitted,
    other: object,
    *,
    disjoint: bool | None = None,
    labels: tuple[str, str] | None = None,
) -> Difference:
    """Return how much larger the coefficients of one fit are than those of another.

    Requires: two fits of one kind, of the same target on the same features. `disjoint=True`
    states that no row and no unit of privacy is behind both. Different groups of one release need
    no such statement: with units, whose weights add up to at most 1 in all groups together, the
    sum of the variances is an upper bound, too, unless the standard errors are clustered ones.
    """
    if type(other) is not type(one):
        raise wrong_type("other", _WHERE, f"a {type(one).__name__}", type(other))
    checked: Any = other
    for name in ("target", "names", "loss"):
        if getattr(one, name, None) != getattr(checked, name, None):
            rule = f"of the same {name}"
            raise rejection("other", _WHERE, rule, str(getattr(checked, name, None)))
    if one.certificate.unit != checked.certificate.unit:
        raise rejection("other", _WHERE, "of the same unit of privacy", checked.certificate.unit)
    certificates = one.certificate, checked.certificate
    apart = disjoint is not None and flag(disjoint, "disjoint", _WHERE)
    groups = _are_groups(*certificates)
    if apart and _share_noise(*certificates) and not groups:
        hint = "two fits of one release, or of a sum that holds it, are of the same rows."
        raise rejection("disjoint", _WHERE, "False for these fits", disjoint, hint)
    # Errors that units' own scores show are no bounds, and say nothing of units in both groups.
    bounds = not any("clustered_errors" in each.parameters for each in certificates)
    return Difference(one, checked, apart or (groups and bounds), labels or _labels(*certificates))


def _share_noise(one: Certificate, other: Certificate) -> bool:
    """Return whether a release is behind both."""
    first, second = ({(p.request, p.dataset) for p in parts_of(each)} for each in (one, other))
    return bool(first & second)


def _are_groups(one: Certificate, other: Certificate) -> bool:
    """Return whether both are of groups of one release, and of different ones."""
    groups = [each.parameters.get("group") for each in (one, other)]
    return one.request == other.request and None not in groups and groups[0] != groups[1]


def _labels(one: Certificate, other: Certificate) -> tuple[str, str]:
    """Return what the two are called: their groups, or else their datasets, where these differ."""
    for first, second in (
        (one.parameters.get("group"), other.parameters.get("group")),
        (one.dataset, other.dataset),
    ):
        if first is not None and second is not None and first != second:
            return str(first), str(second)
    return _LABELS


@dataclass(frozen=True, eq=False)
class _Part:
    """The numbers of one of the fits, in the order of the names that both have."""

    estimates: Floats
    centre: Floats
    reach: Floats
    sampling: Floats
    privacy: Floats

    @staticmethod
    def of(found: Intervals, names: tuple[str, ...]) -> _Part:
        order = [found.names.index(name) for name in names]
        low, high = found.low[order], found.high[order]
        parts = found.sampling[order], found.privacy[order]
        return _Part(found.estimates[order], (low + high) / 2, (high - low) / 2, *parts)


def _refusal(names: tuple[str, ...], estimates: Floats, found: Intervals) -> Intervals:
    """Return the differences without intervals, for the reason that one of the fits has."""
    none = np.full(len(names), np.nan)
    found = replace(found, names=names, estimates=estimates, standard_errors=none)
    return replace(found, low=none, high=none, sampling=none, privacy=none)


def _add(one: Floats, other: Floats, *, independent: bool) -> Floats:
    """Return the variance of a difference, or the most that it can be for any covariance."""
    if independent:
        return np.asarray(one + other)
    return np.asarray(np.square(np.sqrt(one) + np.sqrt(other)))
