"""The paper's algorithms, as a release of one model."""

from collections.abc import Sequence
from typing import Any, Unpack

from dplinear.analyst.releases.model import ModelRelease
from dplinear.curator.gates.options import ModelOptions
from dplinear.curator.passage import Passage
from dplinear.ledger import AnyLedger
from dplinear.papers.ediger.published import PublishedCoinPress
from dplinear.papers.one_model import published_model
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import SchemaLike


class PublishedOptions(ModelOptions, total=False):
    """Of the published algorithms."""

    unit: float


def release_model(
    data: Any,
    schema: SchemaLike,
    target: str,
    features: Sequence[str] | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.REPLACE,
    intercept: bool = True,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[PublishedOptions],
) -> ModelRelease:
    """Release one model by Algorithm 3, 5 or 6 of Ediger 2021.

    Requires: a table and its public schema; a `guarantee` ZCDP(ρ); replace neighbours; `structure`,
    "identity" (Algorithm 3), "covariance" (5) or "mean" (6, the one with an `intercept`); `unit`,
    what 1 in the paper is in cells.
    Promises: the certificate says what the algorithm spends of ρ.
    """
    with Passage("papers.ediger.release_model", locals()) as passage:
        return published_model(passage, PublishedCoinPress)
