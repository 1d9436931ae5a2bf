"""The published ridges of Gaussian sketches and inverse-Wishart draws, and what they keep.

Sheffet 2015 (arXiv 1507.00056v1), Theorems 3.1 and 5.1, and the remarks after Theorem 3.2.
"""

from dataclasses import dataclass, replace
from typing import Self

from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.moments.least_eigenvalue import (
    AfterQuery,
    LeastEigenvalue,
    Promised,
    Query,
    Variant,
)
from dplinear.mechanisms.moments.ridged import Fixed, Ready, Ridged
from dplinear.papers import accounts, constants
from dplinear.papers.sheffet.theorems import most_rows
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.profiles.sketch import Sketch
from dplinear.privacy.rounding import ceiling


@dataclass(frozen=True)
class PublishedRidged(Ridged):
    """The same facts, with the ridge as printed."""

    def floor(self, guarantee: ApproxDP, degrees: int) -> float:
        """Return w² of Theorem 3.1, or ψ of Theorem 5.1."""
        asked = accounts.check_delta(guarantee, self.where)
        constant = constants.inverse_wishart if self.inverse else constants.sketch
        return constant(asked, degrees, ceiling(self.shape.bound), self.neighbours).value


@dataclass(frozen=True)
class PublishedFixed(Fixed):
    """The printed ridge, whatever the table."""

    @classmethod
    def of(cls, ridged: Ridged, asked: ApproxDP, degrees: int) -> Self:
        """Take the ridge, and say what it keeps."""
        setting = super().of(ridged, asked, degrees).setting
        account = accounts.what_holds(asked, ridged.profile(degrees, setting.least))
        return cls(replace(setting, account=account), account)


@dataclass(frozen=True)
class PublishedLeastEigenvalue(LeastEigenvalue):
    """A ridge, or a number of rows, by Theorem 3.1 for the least eigenvalue that was bought."""

    @staticmethod
    def _account(
        asked: ApproxDP, query: Query, rest: ApproxDP, inner: Sketch, adjust: str
    ) -> Account:
        """Return what the query and the printed ridge keep together."""
        if adjust == "ridge":
            return accounts.what_holds(asked, AfterQuery(inner, query.epsilon, query.failure))
        if inner.delta(rest.epsilon) > rest.delta:
            rest = ApproxDP(accounts.least_epsilon(rest, inner), rest.delta)
        promised = Promised(rest, inner.neighbours)
        profile = AfterQuery(promised, query.epsilon, query.failure)
        if profile.delta(asked.epsilon) > asked.delta:
            return accounts.what_holds(asked, profile)
        return checks.exact_account(asked, profile)

    def _most_degrees(self, floor: float) -> int:
        square = float(self.ridged.shape.bound**2)
        printed = min(most_rows(self.rest, floor, square), self.variant.most)
        return printed if self._private(printed, floor) else self.degrees


def published_ready(
    ridged: PublishedRidged, variant: Variant | None, asked: ApproxDP, degrees: int
) -> Ready:
    """Return what a draw with the printed ridge uses."""
    if variant is None:
        return PublishedFixed.of(ridged, asked, degrees)
    return PublishedLeastEigenvalue.of(ridged, variant, asked, degrees)
