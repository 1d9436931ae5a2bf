"""The gate for means and covariances, of columns whose bounds may be far too wide.

The order is the gate's: check, calibrate, check the table's columns, spend, read, step by step,
certify.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.location import CovarianceRelease, MeanRelease
from dplinear.analyst.results import NamedMatrix, NamedVector
from dplinear.arrays import Floats
from dplinear.coinpress.covariance import CovarianceEstimate
from dplinear.coinpress.mean import MeanEstimate
from dplinear.coinpress.methods import CoinPress, CoinPressCovariance, CoinPressMean, Outcome
from dplinear.curator.gates.moments import (
    RELATIONS,
    Passing,
    curve_of,
    own_options,
    reading_options,
)
from dplinear.curator.recorded import recorded
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.pool import one_blas_thread
from dplinear.curator.sources.source import Reader
from dplinear.curator.windows import Windowed, check_plain
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import read_guarantee
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_Estimate = TypeVar("_Estimate", MeanEstimate, CovarianceEstimate)


@recorded
def release_mean(
    data: Any,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
) -> MeanRelease:
    """Release the mean of each column, by CoinPress; bounds may be far too wide.

    Requires: a table that can be read again, and its public schema, of numeric columns; `epsilon`
    and `delta`, or a `guarantee` such as ZCDP(0.5); which tables are `neighbours`. Options: `steps`
    (2), `scale` (public standard deviations of the columns; found where they are not given), and
    those of the reading (`threads`, `engine`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").
    Promises: the release satisfies what its certificate says, whatever the rows hold. Arguments,
    columns and types are checked before anything is spent; nothing is read before it is spent.
    """
    where = "release_mean"
    method = _method(CoinPressMean, where, (epsilon, delta, guarantee), neighbours, options)
    passing = Passing(where, schema, ledger, dataset, request)
    found, certificate, rows = _released(method, passing, data, options)
    names, estimate = schema.columns, found.estimate
    return MeanRelease(
        schema=schema,
        mean=NamedVector(names, estimate.values),
        noise=NamedMatrix(names, _symmetric(estimate.noise)),
        certificate=certificate,
        rows=rows,
        count=found.count,
    )


@recorded
def release_covariance(
    data: Any,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
) -> CovarianceRelease:
    """Release the covariance of all columns, by CoinPress; bounds may be far too wide.

    Requires and promises what `release_mean` does. `steps` is 5, and `centred` (False) says that
    all columns have a mean of 0, which then is not looked for.
    """
    where = "release_covariance"
    method = _method(CoinPressCovariance, where, (epsilon, delta, guarantee), neighbours, options)
    passing = Passing(where, schema, ledger, dataset, request)
    found, certificate, rows = _released(method, passing, data, options)
    names, estimate = schema.columns, found.estimate
    return CovarianceRelease(
        schema=schema,
        mean=NamedVector(names, estimate.mean),
        covariance=NamedMatrix(names, _symmetric(estimate.values)),
        privacy_errors=NamedMatrix(names, _symmetric(estimate.errors)),
        certificate=certificate,
        rows=rows,
        count=found.count,
    )


_Method = TypeVar("_Method", CoinPressMean, CoinPressCovariance)


def _method(
    kind: type[_Method],
    where: str,
    asked: tuple[float | None, float | None, Guarantee | None],
    neighbours: str,
    options: Mapping[str, Any],
) -> _Method:
    relation = Neighbours.parse(neighbours, where, RELATIONS)
    own = own_options(kind, options, where)
    return kind(guarantee=read_guarantee(where, *asked), neighbours=relation, **own)


def _released(
    method: CoinPress[_Estimate],
    passing: Passing,
    data: Any,
    options: Mapping[str, Any],
) -> tuple[Outcome[_Estimate], Certificate, int | None]:
    """Calibrate, check the table, spend, take the steps."""
    schema = passing.schema
    prepared = method.prepare(len(check_plain(schema, passing.where)))
    curve = curve_of(prepared.account.profile)
    reading = reading_options(options)

    def opened(part: Schema) -> Reader:
        return open_reader(data, part, again=True, **reading)

    opened(schema)
    own = own_options(type(method), options, passing.where)
    passing.spend(method, prepared.account, {name: getattr(method, name) for name in own})
    with one_blas_thread():  # more of them only wait for each other over small matrices
        found = prepared.run(Windowed(opened, schema), passing.entropy)
    certificate = passing.certificate(method, found.account, found.parameters, curve)
    public = method.neighbours is Neighbours.REPLACE
    return found, certificate, round(found.count) if public else None


def _symmetric(matrix: Floats) -> Floats:
    """Return a matrix that is symmetric to the bit."""
    return np.asarray((matrix + matrix.T) / 2)
