"""A table that is checked once and passed over as often as an adaptive algorithm needs.

Each pass is exact: the same bits for the same rows in any order, chunks, threads or engine
(docs/exact-pass.md). What it returns is private; only a mechanism may release anything of it.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import BigIntegers
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.source import Reader
from dplinear.exact.block_moments import design_moments
from dplinear.exact.design import Design
from dplinear.exact.gram import Moments, SecondMoments
from dplinear.exact.grid import Grid, shape_of
from dplinear.exact.row_sums import RowSum
from dplinear.exact.shape import Shape
from dplinear.exact.sums import Sums
from dplinear.exact.weights import WHOLE
from dplinear.schema import Schema


class Table:
    """A checked table. `open_table` makes it; it reads nothing until it is asked.

    `in_group`: it is one group of a table, which a row that is replaced may leave.
    """

    def __init__(self, reader: Reader, schema: Schema, *, in_group: bool = False) -> None:
        self._reader = reader
        self.schema = schema
        self._in_group = in_group

    @cached_property
    def denominator(self) -> int:
        """How many units of weight make a row that counts as one: 1 where rows have no weights."""
        return WHOLE if self.schema.is_weighted else 1

    @cached_property
    def count_varies(self) -> bool:
        """Whether how much its rows count for tells of single ones: it is then never free."""
        return self._in_group or self.schema.count_varies

    @cached_property
    def shape(self) -> Shape:
        """What is public about its rows: the shape that row sums are made for."""
        return shape_of(self.schema)

    @cached_property
    def _grid(self) -> Grid:
        return Grid.of(self.schema)

    def moments(self) -> SecondMoments:
        """Return the exact second moments of its rows, as `second_moments` does.

        Rows that are left out, and cells that are filled in, are counted in the first pass alone:
        those after it may be over rounded rows that are kept.
        """
        return self._reader.run(Moments(self.schema))

    def bounded_moments(self, design: Design) -> BigIntegers:
        """Return the second moments of a design's features and target, held to its bounds."""
        return design_moments(self, design)

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return several exact sums over its rows, in one pass.

        Requires: row sums made for this table's `shape`.
        Promises: Python integers, in an array of `size` for each sum; adding or removing one row
        changes each by at most its `bound`, in Euclidean norm. If the schema names a unit of
        privacy or a survey weight, sums are of weighted rows, in units that are `denominator` times
        as fine, and one unit more or less changes each by at most `denominator` times its bound.
        """
        asked = Sums(self.schema, check_sums(statistics, self.shape), self._grid)
        return self._reader.run(asked).integers()

    def __repr__(self) -> str:
        return f"Table({self.schema!r}, private)"


def open_table(
    data: Any,
    schema: Schema,
    *,
    threads: int | None = None,
    engine: str | None = None,
    progress: bool | None = None,
    rows_per_unit: int = 1,
) -> Table:
    """Check a table for several passes, before a row is read.

    Requires: what `second_moments` does; moreover, where rounded rows cannot be kept, a table that
    can be read again and then holds the same rows.
    Promises: errors about columns and types here, never in a pass. The first pass keeps the rounded
    rows for the others: 512 MiB of them in memory, the rest of a file or stream in a temporary file
    (`TMPDIR`). Dask and Spark read their tables in each pass. What a pass returns is private: no
    ledger counts it, and only a mechanism may release anything of it.
    """
    reader = open_reader(
        data,
        schema,
        threads=threads,
        engine=engine,
        progress=progress,
        again=True,
        rows_per_unit=rows_per_unit,
    )
    return Table(reader, schema)


def exact_sums(
    data: Any,
    schema: Schema,
    statistics: Sequence[RowSum],
    *,
    threads: int | None = None,
    engine: str | None = None,
    progress: bool | None = None,
    rows_per_unit: int = 1,
) -> list[BigIntegers]:
    """Return several exact sums over a table's rows, in one pass; a stream will do.

    Requires and promises what `second_moments` and `Table.sums` do. The sums are private, like
    what `open_table` reads.
    """
    reader = open_reader(
        data,
        schema,
        threads=threads,
        engine=engine,
        progress=progress,
        rows_per_unit=rows_per_unit,
    )
    return Table(reader, schema).sums(statistics)


def check_sums(statistics: Any, shape: Shape) -> tuple[RowSum, ...]:
    """Return the sums if they understand rows of this shape."""
    where = "Table.sums"
    if not isinstance(statistics, Sequence) or not statistics:
        raise wrong_type("statistics", where, "a list of at least one row sum", statistics)
    for statistic in statistics:
        if not isinstance(statistic, RowSum):
            raise wrong_type("statistics", where, "a list of row sums", statistic)
        if statistic.shape not in {None, shape}:
            hint = "make them with the `shape` of the table they are for."
            raise rejection(
                "statistics", where, f"for rows of shape {shape}", statistic.shape, hint
            )
    return tuple(statistics)
