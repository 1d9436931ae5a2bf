"""One spend, in public terms, and the hook that a budget is kept through."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours


@dataclass(frozen=True)
class Request:
    """What a release will spend: `guarantee` between `neighbours` of `dataset`.

    `guarantee` is None where nothing is proved (a reproduction of a paper without a proof).
    `parameters` are the public arguments of the release.
    """

    request: str
    dataset: str | None
    guarantee: Guarantee | None
    neighbours: Neighbours
    mechanism: str
    parameters: Mapping[str, Any]


@runtime_checkable
class Ledger(Protocol):
    """Whoever keeps the budget.

    The gate calls `spend` once for each release, after all public arguments are checked and before
    a row is read. It returns when the spend is recorded for good, and raises to refuse it.
    """

    def spend(self, request: Request) -> None:
        """Record the spend, or raise."""
