"""The way of `release_model` where each group of rows has a model of its own, for one price."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.groups import Groups
from dplinear.analyst.releases.model import ModelRelease
from dplinear.curator.gates.groups import Grouping
from dplinear.curator.gates.one_model import OneModel
from dplinear.curator.in_step import InStep
from dplinear.curator.passage import Passage
from dplinear.curator.passes import Table
from dplinear.curator.sources.source import Reader
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
    moved = grouping.moved(passage, solver.neighbours)
    design = replace(model.design, groups=moved, in_group=True)
    prepared = PreparedGroups(solver.prepare(design))
    opened = open_part()
    grouping.note(passage)
    split, inner = model.schema, replace(model, schema=model.schema.of_group())

    def read() -> InStep[Table]:
        count = len(grouping.levels)
        return InStep(lambda _: opened(), split, count, table)

    def table(reader: Reader) -> Table:
        return Table(reader, inner.schema, in_group=True)

    def make(solution: Solution, certificate: Certificate) -> ModelRelease:
        return inner.release(solution, certificate, None)

    return passage.cross(
        solver,
        prepared,
        read,
        lambda found, certificate: grouping.release(found, certificate, make),
        {**model.public, **own, **grouping.public},
    )
