"""One model by a published solver, as a release: what the papers' `release_model` do."""

from dplinear.analyst.releases.model import ModelRelease
from dplinear.curator.gates.model import model_through
from dplinear.curator.gates.one_model import OneModel
from dplinear.curator.gates.options import own_options
from dplinear.curator.passage import Passage
from dplinear.curator.windows import check_counted
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.mechanisms.model import ModelMechanism
from dplinear.privacy.neighbours import Neighbours


def published_model(passage: Passage, kind: type[ModelMechanism]) -> ModelRelease:
    """Read the arguments of a `release_model`, and go through the passage with a solver."""
    given, where = passage.given, passage.where
    relation = Neighbours.parse(given["neighbours"], where, RELATIONS)
    asked = read_guarantee(where, given["epsilon"], given["delta"], given["guarantee"])
    schema = passage.schema(given["schema"])
    model = OneModel.of(
        schema,
        given["target"],
        given["features"],
        intercept=given["intercept"],
        where=where,
        complete=False,  # some of their proofs take the number of rows for public
    )
    check_counted(model.schema, relation, where)
    own = own_options(kind, given["options"], where)
    solver = kind(guarantee=asked, neighbours=relation, **own)
    return model_through(passage, solver, own, model, schema)
