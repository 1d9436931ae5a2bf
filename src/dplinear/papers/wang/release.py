"""AdaSSP with its published constants, as a release."""

from collections.abc import Sequence
from typing import Any, Unpack

from dplinear.analyst.releases.model import ModelRelease
from dplinear.curator.gates.options import ModelOptions
from dplinear.curator.passage import Passage
from dplinear.ledger import AnyLedger
from dplinear.papers.one_model import published_model
from dplinear.papers.wang.published import PublishedAdaSSP
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import SchemaLike


def release_model(
    data: Any,
    schema: SchemaLike,
    target: str,
    features: Sequence[str] | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    intercept: bool = True,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[ModelOptions],
) -> ModelRelease:
    """Release one model by Algorithm 2 of Wang 2018, with its constants.

    Requires: what `dplinear.release_model` does for "adassp"; (ε, δ) with δ below 1/e.
    Promises: what the certificate says that holds, which may be less than was asked for.
    """
    with Passage("papers.wang.release_model", locals()) as passage:
        return published_model(passage, PublishedAdaSSP)
