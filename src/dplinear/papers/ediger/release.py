"""The paper's algorithms, as a release of one model."""

from collections.abc import Sequence
from typing import Any

from dplinear.analyst.releases.model import ModelRelease
from dplinear.curator.gates.model import model_through
from dplinear.curator.gates.one_model import OneModel
from dplinear.curator.gates.options import own_options
from dplinear.curator.passage import Passage
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.papers.ediger.published import PublishedCoinPress
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_WHERE = "papers.ediger.release_model"


def release_model(
    data: Any,
    schema: Schema,
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
    **options: Any,
) -> ModelRelease:
    """Release one model by Algorithm 3, 5 or 6 of Ediger 2021.

    Requires: a table and its public schema; a `guarantee` ZCDP(ρ); replace neighbours; `structure`,
    "identity" (Algorithm 3), "covariance" (5) or "mean" (6, the one with an `intercept`); `unit`,
    what 1 in the paper is in cells.
    Promises: the certificate says what the algorithm spends of ρ.
    """
    with Passage(_WHERE, locals()) as passage:
        relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
        schema = passage.schema(schema)
        model = OneModel.of(schema, target, features, intercept=intercept)
        own = own_options(PublishedCoinPress, options, _WHERE)
        solver = PublishedCoinPress(guarantee=asked, neighbours=relation, **own)
        return model_through(passage, solver, own, model, schema)
