"""The way of `release_model` where each group of rows has a model of its own, for one price."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.groups import Groups
from dplinear.analyst.releases.model import ModelRelease
from dplinear.arguments import rejection
from dplinear.curator.gates.groups import Grouping
from dplinear.curator.gates.one_model import OneModel
from dplinear.curator.in_step import InStep
from dplinear.curator.passage import Passage
from dplinear.curator.passes import Table
from dplinear.curator.sources.source import Reader
from dplinear.descent.common import Descent
from dplinear.mechanisms.groups import PreparedGroups
from dplinear.mechanisms.model import ModelMechanism, Solution


def model_groups_through(
    passage: Passage,
    solver: ModelMechanism,
    own: Mapping[str, Any],
    model: OneModel,
    grouping: Grouping,
    *,
    open_part: Callable[[], Callable[[], Reader]],
) -> Groups[ModelRelease]:
    """Calibrate for all groups, check the table, and go through the passage once.

    Requires: a `model` of the schema that is split; `open_part`, which checks the table.
    """
    passage.check_rows(solver)
    grouping.check(passage, solver)
    if isinstance(solver, Descent) and solver.settings.unit_scores:
        # A pass over groups adds up rows; scores need all rows of a unit at once.
        rule = "left out where groups are released, whose standard errors are the bound"
        raise rejection("errors", passage.where, rule, "clustered")
    moved = grouping.moved(passage, solver.neighbours)
    prepared = PreparedGroups(solver.prepare(replace(model.design, groups=moved)))
    opened = open_part()
    grouping.note(passage)
    split, inner = model.schema, replace(model, schema=model.schema.of_group())

    def read() -> InStep[Table]:
        count = len(grouping.levels)
        return InStep(lambda _: opened(), split, count, lambda reader: Table(reader, inner.schema))

    def make(solution: Solution, certificate: Certificate) -> ModelRelease:
        return inner.release(solution, certificate, None)

    return passage.cross(
        solver,
        prepared,
        read,
        lambda found, certificate: grouping.release(found, certificate, make),
        {**model.public, **own, **grouping.public},
    )
