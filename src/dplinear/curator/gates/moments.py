"""The gate for second moments: one release, on which every regression is free."""

from collections.abc import Sequence
from typing import Any, Unpack, overload

from dplinear.analyst.releases.groups import Groups
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import choice, rejection
from dplinear.curator.gates.groups import Grouping
from dplinear.curator.gates.measured import (
    filled_relief,
    groups_through,
    measured_through,
    side_names,
)
from dplinear.curator.gates.objects import unfold
from dplinear.curator.gates.options import MomentsOptions, for_units, own_options
from dplinear.curator.passage import Passage
from dplinear.exact.grid import moments_shape
from dplinear.ledger import AnyLedger
from dplinear.mechanisms import AnalyzeGauss, GaussianSketch, MomentsMechanism
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.mechanisms.contract import PreparedMoments
from dplinear.planner.auto import AUTO, Asked, choose, read_expected
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MOMENTS
from dplinear.schema import Schema, SchemaLike


@overload
def release_moments(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = ...,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: None = None,
    mechanism: str | MomentsMechanism = ...,
    expected_rows: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[MomentsOptions],
) -> MomentsRelease: ...


@overload
def release_moments(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = ...,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: str | Sequence[str],
    mechanism: str | MomentsMechanism = ...,
    expected_rows: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[MomentsOptions],
) -> Groups[MomentsRelease]: ...


def release_moments(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: str | Sequence[str] | None = None,
    mechanism: str | MomentsMechanism = "analyze_gauss",
    expected_rows: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[MomentsOptions],
) -> MomentsRelease | Groups[MomentsRelease]:
    """Release the second moments of a table, once; every regression on them is then free.

    Requires: a table and its public schema; `epsilon` and `delta`, or a `guarantee` of another kind
    that the mechanism supports; which tables are `neighbours`. `unit` is the column of ids whose
    rows are protected together, and count as at most `rows_per_unit` rows (1 unless given); the
    schema may name it (docs/schema.md, "Units of privacy"). `by` names a category or truth value of
    the schema, or a list of them: then each of their public levels has a release of its own, all
    for the price of one (docs/schema.md, "Groups for one price"). `mechanism` is one of
    "analyze_gauss", "additive_wishart", "sketch", "inverse_wishart", or "auto": the one of the
    least error that the planner predicts for `expected_rows`, a public guess (without one, the
    first that can keep the guarantee); or an object, such as `AnalyzeGauss(guarantee=…)`, which has
    its own guarantee, neighbours and options. Further options go to the mechanism (`rows`,
    `degrees`, `least_eigenvalue_share`, …) or to the reading (`threads`, `engine`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").
    Promises: the release satisfies what its certificate says, whatever the rows hold. Arguments,
    columns and types are checked before anything is spent; nothing is read before it is spent.
    """
    with Passage("release_moments", locals()) as passage:
        where = passage.where
        if isinstance(mechanism, GaussianSketch) and mechanism.release != "matrix":
            hint = "release_sketch releases the sketch itself."
            raise rejection("mechanism", where, "of release='matrix'", mechanism.release, hint)
        given, guarantee, neighbours, said = unfold(passage, MomentsMechanism)
        name = choice(given, "mechanism", where, (*MOMENTS, AUTO))
        relation = Neighbours.parse(neighbours, where, RELATIONS)
        asked = read_guarantee(where, epsilon, delta, guarantee)
        schema = passage.schema(schema)
        rows = read_expected(expected_rows, where)
        grouping = None if by is None else Grouping.of(passage, schema, by)
        part = schema if grouping is None else grouping.schema
        if name == AUTO:
            size = (part.dimension - part.has_intercept, part.dimension, part.bound**2)
            known = for_units(MOMENTS.own, schema)
            if grouping is not None:
                known = grouping.usable(passage, MOMENTS, known, relation)
                rows = grouping.share(rows)
            found = choose("moments", known, Asked(asked, relation, *size), rows)
            name, passage.notes = found.name, (found.note,)
        chosen = MOMENTS[name]
        own = own_options(chosen, said, where)
        built = chosen(guarantee=asked, neighbours=relation, **own)
        if grouping is not None:
            return groups_through(passage, built, own, grouping, kind=MomentsRelease)
        passage.check_rows(built)
        prepared = _prepare(built, schema)
        return measured_through(passage, built, prepared, own, schema, kind=MomentsRelease)


def _prepare(built: MomentsMechanism, schema: Schema) -> PreparedMoments:
    """Calibrate, for sums beside the moments as well where the mechanism releases such."""
    shape, side = moments_shape(schema), side_names(schema)
    if isinstance(built, AnalyzeGauss) and type(built).prepare is AnalyzeGauss.prepare:
        return built.prepare_with(shape, side, filled_relief(schema))
    return built.prepare(shape)  # of one's own, perhaps, with other noise
