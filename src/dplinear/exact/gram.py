"""The exact Gram matrix of clipped, rounded rows: one pass, the same bits in any order.

See docs/exact-pass.md. Rows are integers on a grid; blocks of at most 4096 rows multiply
exactly in float64 BLAS, since every partial sum is an integer of at most 2^53; block results add
exactly as two-word integers. Integer addition is associative, so neither the order of rows, nor
block sizes, threads or engines can change a bit.
"""

import json
import struct
from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats, Integers
from dplinear.exact.blocks import Blocks, Reduction
from dplinear.exact.filling import count_gaps
from dplinear.exact.grid import Gaps, Grid
from dplinear.exact.totals import WORD, Total, integers_of, normalise
from dplinear.exact.weights import WHOLE, squared_weights
from dplinear.schema import Schema
from dplinear.schema.filling import filled_columns

_MAGIC = b"dplinear-gram-4\n"


class SecondMoments:
    """The exact integer matrix ZᵀZ of a table's clipped, rounded rows. Private: not a release.

    Requires: a schema; the words `high`·2^53 + `low` of a symmetric matrix, as `Accumulator` makes;
    the number of rows.
    Promises: frozen; equal only where `left`, `squares` and `filled` are equal too; `a + b` is the
    matrix of both tables' rows, to the bit; one row more or less changes it by at most
    `grid.sensitivity` in Frobenius norm (docs/exact-pass.md). If the schema names a unit of privacy
    or a survey weight, rows carry weights, whole numbers of 1/2^24: so do `integers` and `count`,
    and one unit more or less changes the matrix by at most 2^24 times as much. `left` is the
    number, or weight, of rows that are left out, and `squares` what the squared weights of units,
    or of rows, add up to, in units of 1/2^48. `filled` is how many cells of each column that may
    have some were filled in, or the weight of their rows.
    """

    __slots__ = ("_count", "_grid", "_high", "_low", "_schema", "filled", "left", "squares")

    def __init__(
        self,
        schema: Schema,
        high: Integers,
        low: Integers,
        count: int,
        *,
        left: int = 0,
        squares: int = 0,
        filled: Iterable[int] = (),
    ) -> None:
        self._schema = schema
        self._count = count
        self.left, self.squares = left, squares
        self.filled = tuple(filled) or (0,) * len(filled_columns(schema))
        self._grid = Grid.of(schema)
        self._high, self._low = normalise(high, low)
        self._high.flags.writeable = self._low.flags.writeable = False

    @classmethod
    def zero(cls, schema: Schema) -> Self:
        """Return the matrix of a table without rows."""
        shape = (schema.dimension, schema.dimension)
        return cls(schema, np.zeros(shape, np.int64), np.zeros(shape, np.int64), 0)

    @property
    def schema(self) -> Schema:
        """The public description the rows were encoded by."""
        return self._schema

    @property
    def names(self) -> tuple[str, ...]:
        """The features, in the order of rows and columns."""
        return self._schema.names

    @property
    def grid(self) -> Grid:
        """The grid the rows were rounded to; the matrix is in units of 1/cells²."""
        return self._grid

    @property
    def integers(self) -> npt.NDArray[np.object_]:
        """The matrix as Python integers, exact."""
        return integers_of(self._high, self._low)

    @property
    def count(self) -> int:
        """The number of rows: private, unless neighbours replace rows. Of units, their weight."""
        return self._count

    @property
    def _unit(self) -> int:
        """What the integers are counted in: so many of them are one."""
        weights = WHOLE if self._schema.is_weighted else 1
        return self._grid.steps_per_unit**2 * weights

    def cells(self) -> Floats:
        """Return the second moments of the cells in [−1, 1], each rounded once to float64."""
        unit = self._unit
        exact = [float(Fraction(entry, unit)) for entry in self.integers.ravel()]
        return np.array(exact).reshape(self._low.shape)

    def raw(self) -> npt.NDArray[np.object_]:
        """Return the second moments in the columns' own units, as exact fractions.

        Undoes the schema's affine maps in exact arithmetic: x = centre·intercept + half_width·t.
        """
        features = self._schema.features
        unit = self._unit
        inner = self.integers
        scaled = np.array([[Fraction(entry, unit) for entry in row] for row in inner], object)
        half = np.array([feature.half_width for feature in features], object)
        scaled = scaled.reshape(inner.shape) * half[:, None] * half[None, :]
        if self._schema.has_intercept:
            centre = np.array([feature.centre for feature in features], object)
            first = scaled[0].copy()
            cross = np.outer(centre, first)
            scaled = scaled + cross + cross.T + np.outer(centre, centre) * first[0]
        return np.asarray(scaled)

    @property
    def _sides(self) -> tuple[int, int, tuple[int, ...]]:
        return self.left, self.squares, self.filled

    def __add__(self, other: object) -> Self:
        if not isinstance(other, SecondMoments):
            return NotImplemented
        if other.schema != self._schema:
            raise rejection("other", "SecondMoments.__add__", "of the same schema", other)
        words = (self._high + other._high, self._low + other._low)
        left, squares = self.left + other.left, self.squares + other.squares
        filled = map(add, self.filled, other.filled)
        count = self._count + other._count
        return type(self)(self._schema, *words, count, left=left, squares=squares, filled=filled)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SecondMoments):
            return NotImplemented
        return (
            self._schema == other.schema
            and self._count == other._count
            and self._sides == other._sides
            and np.array_equal(self._high, other._high)
            and np.array_equal(self._low, other._low)
        )

    def __hash__(self) -> int:
        return hash((self._schema, self._sides, self._high.tobytes(), self._low.tobytes()))

    def __repr__(self) -> str:
        # No entry of the matrix: it is private, and a repr ends up in logs.
        return f"SecondMoments({len(self.names)} features, private, {self._grid})"

    def to_bytes(self) -> bytes:
        """Return the matrix and its schema as bytes, without pickle. They are private."""
        facts = {"schema": self._schema.to_dict(), "left": self.left, "squares": self.squares}
        facts["filled"] = self.filled
        header = json.dumps(facts).encode()
        words = np.stack((self._high, self._low)).astype("<i8")
        return _MAGIC + struct.pack("<QQ", self._count, len(header)) + header + words.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote; anything else raises a ValueError."""
        where = "SecondMoments.from_bytes"
        rule = "bytes that SecondMoments.to_bytes wrote"
        if not isinstance(data, bytes | bytearray | memoryview):
            raise wrong_type("data", where, rule, data)
        data = bytes(data)
        start = len(_MAGIC) + 16
        if not data.startswith(_MAGIC) or len(data) < start:
            raise rejection("data", where, rule, f"{len(data)} bytes")
        count, length = struct.unpack("<QQ", data[len(_MAGIC) : start])
        end = start + length
        try:
            facts = json.loads(data[start:end])
            schema = Schema.from_dict(facts["schema"])
            left, squares = int(facts["left"]), int(facts["squares"])
            filled = [int(count) for count in facts["filled"]]
        except (ValueError, TypeError, KeyError):
            raise rejection("data", where, rule, f"{len(data)} bytes") from None
        if len(data) - end != 16 * schema.dimension**2:
            raise rejection("data", where, rule, f"{len(data)} bytes")
        words = np.frombuffer(data, "<i8", offset=end).astype(np.int64)
        high, low = words.reshape(2, schema.dimension, schema.dimension)
        return cls(schema, high, low, count, left=left, squares=squares, filled=filled)


class Hold(Protocol):
    """What makes rows obey a promise about their table cells before they are added."""

    def hold(self, rows: Floats) -> Floats:
        """Return the rows, each held to the promise by itself."""


class Accumulator(Blocks[SecondMoments]):
    """Adds up the matrix of rows, exactly. One per thread or worker; their results add with `+`."""

    def __init__(self, schema: Schema, held: Hold | None = None) -> None:
        super().__init__(schema)
        self._held = held
        self._total = Total((schema.dimension, schema.dimension))
        self._rows = self._left = self._squares = 0
        self._gaps = np.zeros(len(filled_columns(schema)), np.int64)

    def add(self, rows: Floats) -> None:
        """Add a block of rounded rows."""
        self.add_multiple(rows, 1)

    def add_multiple(self, rows: Floats, times: int) -> None:
        """Add a block of rounded rows, so many times."""
        if self._held is not None:
            rows = self._held.hold(rows)
        # At most 4096 products of cells in each entry: the grid keeps them below 2^53.
        self._total.add((rows @ rows.T).astype(np.int64), 1 << WORD, times)
        self._rows += times * rows.shape[1]

    def leave(self, rows: Floats, weights: Integers | None = None) -> None:
        """Count rows that are left out, or add up their weights."""
        self._left += rows.shape[1] if weights is None else int(weights.sum())

    def fill(self, rows: Floats, gaps: Gaps, weights: Integers | None = None) -> None:
        """Count the cells that were filled in, or add up the weights of their rows."""
        self._gaps += count_gaps(gaps, weights)

    def weigh(self, weights: Integers, totals: Integers) -> None:
        """Add up squares of weights."""
        self._squares += squared_weights(weights, totals)

    def result(self) -> SecondMoments:
        """Return the matrix of all rows so far."""
        high, low = self._total.words()
        return SecondMoments(
            self.schema,
            high,
            low,
            self._rows,
            left=self._left,
            squares=self._squares,
            filled=self._gaps.tolist(),
        )


class Moments(Reduction[SecondMoments]):
    """The pass that adds up second moments; of rows whose cells are `held` to their sets, if so."""

    def __init__(self, schema: Schema, held: Hold | None = None) -> None:
        super().__init__(schema)
        self._held = held

    def accumulator(self) -> Accumulator:
        """Return an accumulator of the matrix."""
        return Accumulator(self.schema, self._held)

    def merge(self, parts: Iterable[SecondMoments]) -> SecondMoments:
        """Return the sum of partial matrices."""
        return merge(self.schema, list(parts))

    def read(self, data: bytes) -> SecondMoments:
        """Return the matrix a worker sent."""
        return SecondMoments.from_bytes(data)


def merge(schema: Schema, parts: list[SecondMoments]) -> SecondMoments:
    """Return the sum of partial matrices, in any order and number."""
    return reduce(add, parts, SecondMoments.zero(schema))
