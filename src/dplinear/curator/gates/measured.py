"""The way of every gate that releases a measurement of second moments: a matrix, or a sketch."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol, TypeGuard, TypeVar

from dplinear.analyst.design_effect import LEFT_OUT, SQUARES
from dplinear.analyst.filled_in import filled_names
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.groups import Groups
from dplinear.analyst.releases.release import Release
from dplinear.arrays import Floats
from dplinear.curator.gates.groups import Grouping
from dplinear.curator.gates.options import reading_options
from dplinear.curator.passage import Passage
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.source import Reader
from dplinear.exact.filling import relief
from dplinear.exact.gram import Hold, Moments, SecondMoments
from dplinear.exact.grid import Grid, moments_shape
from dplinear.exact.groups import GroupReduction
from dplinear.exact.shape import Shape, Statistic
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms import AnalyzeGauss
from dplinear.mechanisms.contract import (
    Measurement,
    Mechanism,
    MomentsMechanism,
    PreparedMoments,
)
from dplinear.mechanisms.groups import PreparedGroups, Separate
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_Release = TypeVar("_Release", bound=Release)
# What a release is made of: schema, numbers, the law they follow, certificate, rows if public.
Kind = Callable[[Schema, Floats, Any, Certificate, int | None], _Release]


class Read(Protocol):
    """A pass over a table: the statistic that a mechanism is handed."""

    def __call__(
        self, reader: Reader, schema: Schema, shape: Shape, neighbours: Neighbours, /
    ) -> Statistic:
        """Read the table, once."""


def read_moments(
    reader: Reader,
    schema: Schema,
    shape: Shape,
    neighbours: Neighbours,
    *,
    held: Hold | None = None,
) -> Statistic:
    """Return the second moments of rows, `held` to their sets if so.

    The number of rows is with them only where it is public.
    """
    moments = reader.run(Moments(schema, held))
    rows = moments.count if _rows_are_public(schema, neighbours) else None
    return Statistic(shape, moments.integers, rows=rows, side=_side_sums(moments))


def side_names(schema: Schema) -> tuple[str, ...]:
    """Return the names of the sums that are released beside the moments of such rows."""
    left = (LEFT_OUT,) if schema.needed_features else ()
    squares = (SQUARES,) if schema.weight is not None else ()
    return (*left, *squares, *filled_names(schema))


def filled_relief(schema: Schema) -> list[int]:
    """Return how much less a row adds to the moments for each cell that is filled in (`relief`)."""
    whole = WHOLE if schema.is_weighted else 1
    return [int(each) * whole for each in relief(schema, Grid.of(schema))]


def _side_sums(moments: SecondMoments) -> tuple[Fraction, ...]:
    whole = WHOLE if moments.schema.is_weighted else 1
    schema = moments.schema
    left = [Fraction(moments.left, whole)] if schema.needed_features else []
    squares = [Fraction(moments.squares, whole**2)] if schema.weight is not None else []
    return (*left, *squares, *(Fraction(count, whole) for count in moments.filled))


def _rows_are_public(schema: Schema, neighbours: Neighbours) -> bool:
    """Whether neighbours have equally many rows that count."""
    return neighbours.rows_are_public and not schema.count_varies


def read_groups(reader: Reader, grouping: Grouping, shape: Shape) -> Separate[Statistic]:
    """Return the second moments of each group, in one pass. How many rows one has is private."""
    groups = [Moments(grouping.schema) for _ in grouping.levels]
    found = reader.run(GroupReduction(grouping.split, groups))
    return Separate(
        [Statistic(shape, moments.integers, side=_side_sums(moments)) for moments in found.parts]
    )


def prepare_measured(built: MomentsMechanism, schema: Schema) -> PreparedMoments:
    """Calibrate, for sums beside the moments as well where the mechanism releases such."""
    if _releases_side(built):
        return built.prepare_with(moments_shape(schema), side_names(schema), filled_relief(schema))
    return built.prepare(moments_shape(schema))  # of one's own, perhaps, with other noise


def prepare_groups(built: MomentsMechanism, schema: Schema, moved: int) -> PreparedMoments:
    """Do so for groups, of which neighbours move at most so many."""
    if _releases_side(built):
        return built.prepare_groups(moments_shape(schema), moved, side_names(schema))
    return built.prepare_groups(moments_shape(schema), moved)


def _releases_side(built: MomentsMechanism) -> TypeGuard[AnalyzeGauss]:
    """Return whether a mechanism is Analyze Gauss, calibrated as that is."""
    kind = type(built)
    return (
        isinstance(built, AnalyzeGauss)
        and kind.prepare is AnalyzeGauss.prepare
        and kind.prepare_groups is AnalyzeGauss.prepare_groups
    )


def groups_through(
    passage: Passage,
    built: MomentsMechanism,
    own: Mapping[str, Any],
    grouping: Grouping,
    *,
    kind: Kind[_Release],
) -> Groups[_Release]:
    """Calibrate for all groups, check the table, and go through the passage once."""
    passage.check_rows(built)
    grouping.check(passage, built)
    moved = grouping.moved(passage, built.neighbours)
    group = prepare_groups(built, grouping.schema, moved)
    reading = reading_options(passage.given["options"])
    data, rows = passage.given["data"], passage.rows_per_unit
    reader = open_reader(data, grouping.split, rows_per_unit=rows, **reading)
    grouping.note(passage)

    def make(found: Measurement, certificate: Certificate) -> _Release:
        return kind(grouping.schema, found.values, found.noise_model, certificate, None)

    return passage.cross(
        built,
        PreparedGroups(group),
        lambda: read_groups(reader, grouping, group.shape),
        lambda found, certificate: grouping.release(found, certificate, make),
        {**own, **grouping.public},
    )


def measured_through(
    passage: Passage,
    built: Mechanism,
    prepared: PreparedMoments,
    own: Mapping[str, Any],
    schema: Schema,
    *,
    kind: Kind[_Release],
    read: Read = read_moments,
) -> _Release:
    """Check the table, and go through the passage; what was measured becomes a release.

    Promises: the release says the number of rows where that is public, whatever `read` handed on.
    Noise that was made for sums in other units than the table's, such as those of rows without
    weights, is an error before anything is spent.
    """
    passage.check_rows(built)
    if prepared.shape != moments_shape(schema):
        raise ArithmeticError("The noise is made for sums in other units than the table's.")
    reading = reading_options(passage.given["options"])
    data, rows = passage.given["data"], passage.rows_per_unit
    reader = open_reader(data, schema, rows_per_unit=rows, **reading)
    seen: list[Statistic] = []

    def table() -> Statistic:
        seen.append(read(reader, schema, prepared.shape, built.neighbours))
        return seen[0]

    def release(found: Measurement, certificate: Certificate) -> _Release:
        public = seen[0].rows if _rows_are_public(schema, built.neighbours) else None
        return kind(schema, found.values, found.noise_model, certificate, public)

    return passage.cross(built, prepared, table, release, own)
