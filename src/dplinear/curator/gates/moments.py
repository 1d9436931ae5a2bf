"""The gate for second moments: one release, on which every regression is free."""

from collections.abc import Callable
from typing import Any, Unpack

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import choice
from dplinear.curator.gates.options import MomentsOptions, own_options, reading_options
from dplinear.curator.passage import Passage
from dplinear.curator.sources import exact_pass
from dplinear.exact.gram import SecondMoments
from dplinear.exact.grid import shape_of
from dplinear.exact.shape import Shape, Statistic
from dplinear.ledger import AnyLedger
from dplinear.mechanisms import MECHANISMS
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.mechanisms.contract import Measurement
from dplinear.planner.auto import AUTO, Asked, choose, read_expected
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import SchemaLike


def release_moments(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    mechanism: str = "analyze_gauss",
    expected_rows: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[MomentsOptions],
) -> MomentsRelease:
    """Release the second moments of a table, once; every regression on them is then free.

    Requires: a table and its public schema; `epsilon` and `delta`, or a `guarantee` of another kind
    that the mechanism supports; which tables are `neighbours`. `mechanism` is one of
    "analyze_gauss", "additive_wishart", "sketch", "inverse_wishart", or "auto": the one of the
    least error that the planner predicts for `expected_rows`, a public guess (without one, the
    first that can keep the guarantee). Further options go to the mechanism (`rows`, `degrees`,
    `least_eigenvalue_share`, …) or to the reading (`threads`, `engine`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").
    Promises: the release satisfies what its certificate says, whatever the rows hold. Arguments,
    columns and types are checked before anything is spent; nothing is read before it is spent.
    """
    with Passage("release_moments", locals()) as passage:
        where = passage.where
        choice(mechanism, "mechanism", where, (*MECHANISMS, AUTO))
        relation = Neighbours.parse(neighbours, where, RELATIONS)
        asked = read_guarantee(where, epsilon, delta, guarantee)
        schema = passage.schema(schema)
        rows = read_expected(expected_rows, where)
        if mechanism == AUTO:
            size = (schema.dimension - schema.has_intercept, schema.dimension, schema.bound**2)
            found = choose("moments", tuple(MECHANISMS), Asked(asked, relation, *size), rows)
            mechanism, passage.notes = found.name, (found.note,)
        chosen = MECHANISMS[mechanism]
        own = own_options(chosen, options, where)
        built = chosen(guarantee=asked, neighbours=relation, **own)
        prepared = built.prepare(shape_of(schema))
        read = exact_pass(data, schema, **reading_options(options))
        table = Counted(read, prepared.shape, relation)

        def release(found: Measurement, certificate: Certificate) -> MomentsRelease:
            return MomentsRelease(schema, found.values, found.law, certificate, table.rows)

        return passage.cross(built, prepared, table, release, own)


class Counted:
    """Second moments to be read: the statistic, and the number of rows where that is public."""

    def __init__(
        self, read: Callable[[], SecondMoments], shape: Shape, neighbours: Neighbours
    ) -> None:
        self._read, self._shape, self._neighbours = read, shape, neighbours
        self.rows: int | None = None

    def __call__(self) -> Statistic:
        """Read the table, once."""
        moments = self._read()
        if self._neighbours.rows_are_public:
            self.rows = moments.count
        return Statistic(self._shape, moments.integers, rows=self.rows)
