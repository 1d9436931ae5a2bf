"""The gates for means and covariances, of columns whose bounds may be far too wide."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, Unpack, overload

import numpy as np

from dplinear.analyst.design_effect import weight_scale
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.groups import Groups
from dplinear.analyst.releases.location import CovarianceRelease, MeanRelease
from dplinear.analyst.results import NamedMatrix, NamedVector
from dplinear.arguments import choice
from dplinear.arrays import Floats
from dplinear.coinpress.centred import CentredCovariance, CentredEstimate
from dplinear.coinpress.covariance import CovarianceEstimate
from dplinear.coinpress.mean import MeanEstimate
from dplinear.coinpress.methods import (
    CoinPressCovariance,
    CoinPressMean,
    CoinPressOutcome,
    LocationMethod,
)
from dplinear.curator.gates.groups import Grouping
from dplinear.curator.gates.options import (
    CovarianceOptions,
    MeanOptions,
    own_options,
    reading_options,
)
from dplinear.curator.in_step import InStep
from dplinear.curator.passage import Passage
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.source import Reader
from dplinear.curator.windows import Windowed, check_plain
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.mechanisms.groups import PreparedGroups
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema, SchemaLike
from dplinear.schema.groups import By

_Covariance = CovarianceEstimate | CentredEstimate
COVARIANCES: Mapping[str, type[LocationMethod[Any]]] = {
    CoinPressCovariance.name: CoinPressCovariance,
    CentredCovariance.name: CentredCovariance,
}
_Estimate = TypeVar("_Estimate")
_Method = TypeVar("_Method", bound=LocationMethod[Any])
_Release = TypeVar("_Release", MeanRelease, CovarianceRelease)


@overload
def release_mean(
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
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[MeanOptions],
) -> MeanRelease: ...


@overload
def release_mean(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = ...,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: By,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[MeanOptions],
) -> Groups[MeanRelease]: ...


def release_mean(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: By | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[MeanOptions],
) -> MeanRelease | Groups[MeanRelease]:
    """Release the mean of each column, by CoinPress; bounds may be far too wide.

    Requires: a table that can be read again, and its public schema, of numeric columns; `epsilon`
    and `delta`, or a `guarantee` such as ZCDP(0.5); which tables are `neighbours`. `unit` is the
    column of ids whose rows are protected together, and count as at most `rows_per_unit` rows (1
    unless given); the schema may name it (docs/schema.md, "Units of privacy"). `by` names
    categories or truth values of the schema: each of their levels has a release of its own, all for
    one price; or lists groups, as for `release_moments` (docs/schema.md, "Groups for one price").
    Options: `steps`
    (2), `scale` (public standard deviations of the columns; found where they are not given), and
    those of the reading (`threads`, `engine`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").
    Promises: the release satisfies what its certificate says, whatever the rows hold. Arguments,
    columns and types are checked before anything is spent; nothing is read before it is spent.
    """
    with Passage("release_mean", locals()) as passage:
        asked = read_guarantee(passage.where, epsilon, delta, guarantee)
        method = _method(CoinPressMean, passage, asked, neighbours, options)
        schema, grouping = _schema(passage, schema, by)

        def release(found: CoinPressOutcome[MeanEstimate], certificate: Certificate) -> MeanRelease:
            names, estimate = schema.columns, found.estimate
            return MeanRelease(
                schema=schema,
                mean=NamedVector(names, estimate.values),
                noise=NamedMatrix(names, _symmetric(estimate.noise)),
                certificate=certificate,
                rows=None if grouping else _rows(method, schema, found),
                count=found.count * weight_scale(schema, certificate.rows_per_unit),
            )

        if grouping is not None:
            return _cross_groups(passage, method, grouping, release)
        return _cross(passage, method, schema, release)


@overload
def release_covariance(
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
    mechanism: str = ...,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[CovarianceOptions],
) -> CovarianceRelease: ...


@overload
def release_covariance(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = ...,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: By,
    mechanism: str = ...,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[CovarianceOptions],
) -> Groups[CovarianceRelease]: ...


def release_covariance(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: By | None = None,
    mechanism: str = CoinPressCovariance.name,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[CovarianceOptions],
) -> CovarianceRelease | Groups[CovarianceRelease]:
    """Release the covariance of all columns, and so their correlations and principal components.

    Requires and promises what `release_mean` does. `mechanism` is "coinpress_covariance", for
    bounds that may be far too wide, or "centred_covariance", for bounds that fit the columns: it
    takes rows for nothing but bounded, and most of the budget is for one matrix of second moments
    around a mean that a part of it found. Options of the first: `steps` (5), `scale` as for
    `release_mean`, and `centred` (False), which says that all columns have a mean of 0; of the
    second: `metric`, in which rows are long and noise is alike: "bounds" (the columns' own widths)
    or "euclidean" (their units, as principal components have it).
    """
    with Passage("release_covariance", locals()) as passage:
        asked = read_guarantee(passage.where, epsilon, delta, guarantee)
        chosen = COVARIANCES[choice(mechanism, "mechanism", passage.where, COVARIANCES)]
        method: LocationMethod[_Covariance] = _method(chosen, passage, asked, neighbours, options)
        schema, grouping = _schema(passage, schema, by)

        def release(
            found: CoinPressOutcome[_Covariance], certificate: Certificate
        ) -> CovarianceRelease:
            names, estimate = schema.columns, found.estimate
            return CovarianceRelease(
                schema=schema,
                mean=NamedVector(names, estimate.mean),
                covariance=NamedMatrix(names, _symmetric(estimate.values)),
                privacy_errors=NamedMatrix(names, _symmetric(estimate.errors)),
                certificate=certificate,
                rows=None if grouping else _rows(method, schema, found),
                count=found.count * weight_scale(schema, certificate.rows_per_unit),
            )

        if grouping is not None:
            return _cross_groups(passage, method, grouping, release)
        return _cross(passage, method, schema, release)


def _method(
    kind: type[_Method],
    passage: Passage,
    asked: Guarantee,
    neighbours: str,
    options: Mapping[str, Any],
) -> _Method:
    relation = Neighbours.parse(neighbours, passage.where, RELATIONS)
    own = own_options(kind, options, passage.where)
    return kind(guarantee=asked, neighbours=relation, **own)


def _schema(passage: Passage, schema: SchemaLike, by: object) -> tuple[Schema, Grouping | None]:
    """Return the schema of what is released, and the groups that it is released for, if any."""
    whole = passage.schema(schema)
    if by is None:
        return whole, None
    grouping = Grouping.of(passage, whole, by)
    return grouping.schema, grouping


def _cross(
    passage: Passage,
    method: LocationMethod[_Estimate],
    schema: Schema,
    release: Callable[[CoinPressOutcome[_Estimate], Certificate], _Release],
) -> _Release:
    """Calibrate, check the table, and go through the passage."""
    columns = len(check_plain(schema, passage.where))
    prepared = method.prepare(columns, count_varies=schema.count_varies)
    open_part = _opening(passage)
    open_part(schema)
    public = _public(passage, method)
    return passage.cross(method, prepared, lambda: Windowed(open_part, schema), release, public)


def _cross_groups(
    passage: Passage,
    method: LocationMethod[_Estimate],
    grouping: Grouping,
    release: Callable[[CoinPressOutcome[_Estimate], Certificate], _Release],
) -> Groups[_Release]:
    """Calibrate for all groups, check the table, and go through the passage once.

    Each group has windows of its own; one pass over the table serves all of them.
    """
    grouping.check(passage, method)
    columns = len(check_plain(grouping.schema, passage.where))
    moved = grouping.moved(passage, method.neighbours)
    prepared = PreparedGroups(method.prepare(columns, moved, count_varies=True))
    open_part = _opening(passage)
    open_part(grouping.split)
    grouping.note(passage)

    def make(reader: Reader) -> Windowed:
        return Windowed(lambda _: reader, grouping.schema, in_group=True)

    return passage.cross(
        method,
        prepared,
        lambda: InStep(open_part, grouping.split, len(grouping.levels), make),
        lambda found, certificate: grouping.release(found, certificate, release),
        {**_public(passage, method), **grouping.public},
    )


def _opening(passage: Passage) -> Callable[[Schema], Reader]:
    """Return what opens the table under a schema, for several passes."""
    data, reading = passage.given["data"], reading_options(passage.given["options"])
    return partial(open_reader, data, anew=True, rows_per_unit=passage.rows_per_unit, **reading)


def _public(passage: Passage, method: LocationMethod[Any]) -> dict[str, Any]:
    """Return what a ledger is told of the method."""
    own = own_options(type(method), passage.given["options"], passage.where)
    return {name: getattr(method, name) for name in own}


def _rows(
    method: LocationMethod[_Estimate], schema: Schema, found: CoinPressOutcome[_Estimate]
) -> int | None:
    """Return the number of rows where that is public."""
    public = method.neighbours.rows_are_public and not schema.count_varies
    return round(found.count) if public else None


def _symmetric(matrix: Floats) -> Floats:
    """Return a matrix that is symmetric to the bit."""
    return np.asarray((matrix + matrix.T) / 2)
