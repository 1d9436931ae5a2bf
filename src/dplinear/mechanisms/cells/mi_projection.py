"""Random projection for single cells: rows of [SX + noise, Sy + noise], measured in bits.

Showkatbakhsh, Karakus and Diggavi 2018 (ISIT), Lemma 2 and equation (13), mended: the lemma treats
the columns of SX as independent although S is shared, and its noise depends on the table. Rows of
the result are independent draws of N(0, AᵀA + ridges), so S is never built. Proofs are in
docs/theory/bits.md. Ridges are rounded up to the grid of AᵀA, and none is 0 (`ridge_units`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dplinear import arguments
from dplinear.analyst.noise_models.matrices import ProjectionNoise
from dplinear.arrays import Floats
from dplinear.exact.roots import Root
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import checks
from dplinear.mechanisms.cells.bounded_query import BoundedQuery
from dplinear.mechanisms.cells.table_cells import Cell, cells_of
from dplinear.mechanisms.contract import Account, Measurement, Mechanism, PreparedMoments
from dplinear.mechanisms.moments.sketch import row_blocks
from dplinear.mechanisms.release_grid import ridge_units, row_step
from dplinear.noise.entropy import Entropy
from dplinear.privacy.bits import variance_for
from dplinear.privacy.guarantees import MIDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.rounding import ceiling, up
from dplinear.schema import Schema

_WHERE = "MIProjection"
RULES = ("logarithmic", "linear", "full")
MOST_ROWS = 1_000_000
_ON_TRUST = (
    "the lower bound was taken on the caller's word: the guarantee holds where it is true, and "
    "where it was not taken from the table"
)


def projected_rows(rule: str, count: int, base: int = 1000) -> int:
    """Return the paper's numbers of rows n' for a table of n = base·k rows, k ≥ 1.

    "logarithmic" is base·(ln k + 1), "linear" base·(k + 1)/2, "full" n; all are n where k ≤ 1, at
    least 1 and at most 1,000,000.
    """
    arguments.choice(rule, "rows", "projected_rows", RULES)
    times = count / base
    if rule == "full" or times <= 1:
        rows = float(count)
    else:
        rows = base * (math.log(times) + 1) if rule == "logarithmic" else base * (times + 1) / 2
    return min(max(round(rows), 1), MOST_ROWS)


@dataclass(frozen=True, kw_only=True)
class MIProjection(Mechanism):
    """A sketch in which no single cell of the table shows by more than so many bits.

    Requires: `MIDP` and element neighbours; a schema without derived features or a row norm.
    `rows` is a number, by default twice that of the features, or one of the paper's rules
    (`projected_rows`, with `base`). `target` names the column of the response.
    Promises: whatever an attacker knows of all other cells, and believes of this one, at most that
    many bits are learnt of it. The number of rows is public. Numerics are exact: what is released
    are rows of real numbers, each column rounded to a public grid of its own (`release_grid`), and
    rounding a release tells nothing more.
    `y_public=True` leaves the target without protection, and without noise but for a ridge of a
    billionth of the others'; so it is with the intercept.
    `lower_bound` lowers all noise by a number that must be public: no more than the least residual
    sum of squares when a column is explained by all the others, with any one row left out, in
    units of half ranges squared (for a category: of every combination of its levels' indicators
    with squares that add up to 1). It is taken on the caller's word.
    `least_eigenvalue_bits` finds such a bound in the table itself, for so many of the bits.
    Departs from the paper: noise that is enough for every table, and less of it on indicators; y
    has noise as well.
    """

    neighbours: Neighbours = Neighbours.ELEMENT
    rows: int | str | None = None
    base: int = 1000
    target: str | None = None
    y_public: bool = False
    lower_bound: float | None = None
    least_eigenvalue_bits: float | None = None
    name: ClassVar[str] = "mi_projection"
    numerics: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        allowed = (Neighbours.ELEMENT,)
        relation = Neighbours.parse(self.neighbours, _WHERE, allowed)
        object.__setattr__(self, "neighbours", relation)
        if not isinstance(self.guarantee, MIDP):
            hint = "write bits=0.5, or guarantee=MIDP(0.5)."
            raise arguments.wrong_type("guarantee", _WHERE, "MIDP, in bits", self.guarantee, hint)
        if not isinstance(self.y_public, bool):
            raise arguments.wrong_type("y_public", _WHERE, "True or False", self.y_public)
        arguments.integer(self.base, "base", _WHERE, low=1)
        if isinstance(self.rows, str):
            arguments.choice(self.rows, "rows", _WHERE, RULES)
        elif self.rows is not None:
            arguments.integer(self.rows, "rows", _WHERE, low=1, high=MOST_ROWS)
        self._check_bounds(self.guarantee.bits)

    def _check_bounds(self, bits: float) -> None:
        asked, known = self.least_eigenvalue_bits, self.lower_bound
        if known is not None:
            arguments.real(known, "lower_bound", _WHERE, low=0)
        if asked is not None:
            high, hint = min(bits, 1.0), "the sketch needs bits too, and a query takes 1 at most."
            name = "least_eigenvalue_bits"
            arguments.real(
                asked, name, _WHERE, low=0, high=high, open_low=True, open_high=True, hint=hint
            )
        if asked is not None and known is not None:
            rule = "left out where a lower_bound is given"
            raise arguments.rejection("least_eigenvalue_bits", _WHERE, rule, asked)

    def prepare(self, schema: Schema, shape: Shape) -> "PreparedProjection":
        """Choose the noise of each column; raise for a schema that ties cells together."""
        assert isinstance(self.guarantee, MIDP)  # noqa: S101 - as checked above
        cells = cells_of(schema, _WHERE)
        bare = self._bare(schema)
        protected = tuple(cell for cell in cells if cell.column != bare)
        if not protected:
            hint = "there must be a column besides a public target."
            raise arguments.rejection("schema", _WHERE, "one with cells to protect", schema, hint)
        notes: tuple[str, ...] = ()
        if bare is not None:
            notes = (f"the target, {bare}, has no noise: its cells are not protected",)
        notes += (_ON_TRUST,) if self.lower_bound is not None else ()
        account = Account(self.guarantee, self.guarantee, None, notes)
        spent = self.least_eigenvalue_bits
        query = None if spent is None else BoundedQuery(spent, shape, protected)
        left = self.guarantee.bits
        if spent is not None:
            left = math.nextafter(left - spent, 0.0)
        variances = tuple(_variance(cell, left) for cell in protected)
        return PreparedProjection(shape, account, self, protected, variances, query)

    def _bare(self, schema: Schema) -> str | None:
        """Return the column that has no noise, if there is one."""
        if self.target is None and self.y_public:
            hint = "name the column of the response: target='y'."
            rule = "the name of a column where the target is public"
            raise arguments.wrong_type("target", _WHERE, rule, self.target, hint)
        if self.target is not None:
            arguments.choice(self.target, "target", _WHERE, schema.columns)
        return self.target if self.y_public else None


@dataclass(frozen=True)
class PreparedProjection(PreparedMoments):
    """A projection whose noise is known for each of its rows."""

    shape: Shape
    account: Account
    method: MIProjection
    cells: tuple[Cell, ...]
    variances: tuple[float, ...] = field(repr=False)
    query: BoundedQuery | None

    def run(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Draw the rows."""
        checks.same_shape(statistic, self.shape, _WHERE)
        assert statistic.rows is not None  # noqa: S101 - public under element
        rows = self._rows(statistic.rows)
        parameters: dict[str, Any] = {"rows": rows}
        units = self._ridge_units(rows, self._known_bound(statistic, entropy, parameters))
        ridges = [each / self.shape.unit for each in units]
        steps = self._steps(rows)
        parameters["largest_ridge"] = max(ridges)
        parameters["grid_step"] = float(max(steps))
        noise_model = ProjectionNoise(rows, tuple(ridges))
        values = self._draw(statistic, units, steps, rows, entropy)
        return Measurement(values, noise_model, self.account, parameters)

    def _rows(self, count: int) -> int:
        rows = self.method.rows
        if rows is None:
            return max(2 * self.shape.dimension, 2)
        return projected_rows(rows, count, self.method.base) if isinstance(rows, str) else rows

    def _known_bound(
        self, statistic: Statistic, entropy: Entropy, parameters: dict[str, Any]
    ) -> float:
        """Return a lower bound on what the other columns and rows leave of each."""
        if self.query is not None:
            lower = self.query.ask(statistic, entropy)
            parameters["lambda_lower"] = lower
            parameters["least_eigenvalue_bits"] = self.query.bits
            return max(lower, 0.0)
        if self.method.lower_bound is None:
            return 0.0
        parameters["lower_bound"] = self.method.lower_bound
        return self.method.lower_bound

    def _ridge_units(self, rows: int, known: float) -> list[int]:
        """Return the ridge of each column, in units of the grid of AᵀA."""
        least, unit = rows * min(self.variances), self.shape.unit
        units = [ridge_units(0.0, least, unit)] * self.shape.dimension
        for cell, variance in zip(self.cells, self.variances, strict=True):
            ridge = up(up(rows * variance) - known)
            for index in cell.indices:
                units[index] = ridge_units(ridge, least, unit)
        return units

    def _steps(self, rows: int) -> list[Fraction]:
        """Return the step of each column's grid; of columns without noise, the finest of all."""
        finest = row_step(rows * min(self.variances))
        steps = [finest] * self.shape.dimension
        for cell, variance in zip(self.cells, self.variances, strict=True):
            for index in cell.indices:
                steps[index] = row_step(rows * variance)
        return steps

    def _draw(
        self,
        statistic: Statistic,
        units: Sequence[int],
        steps: Sequence[Fraction],
        rows: int,
        entropy: Entropy,
    ) -> Floats:
        """Return independent rows of N(0, AᵀA + ridges), each column on its own grid."""
        coarsest = max(steps)
        # With L the root of H, C·L is that of C·H·C: one factor then scales each column by its own.
        finer = np.array([int(coarsest / step) for step in steps], object)
        matrix = (statistic.integers + np.diag(np.array(units, object))) * np.outer(finer, finer)
        factor = 1 / (self.shape.steps_per_unit * coarsest)
        drawn = row_blocks(Root(matrix, min(units)), rows, factor, coarsest, entropy)
        return np.concatenate([block / finer.astype(np.float64) for block in drawn])


def _variance(cell: Cell, bits: float) -> float:
    """Return the noise that hides a cell of one row of S."""
    return variance_for(bits, spread=ceiling(cell.spread), freedom=cell.freedom)
